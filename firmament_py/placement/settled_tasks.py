"""What is known about running tasks on their nodes from earlier rounds, so that a round need not find it out again."""

from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.resources import resized
from firmament_py.state.tables import TaskTable

_LONGEST_DELAY = 6
"""Doublings of the number of rounds after which a task that has stayed enters a network again."""


class _Column(IntEnum):
    GENERATION = 0  # of the row of the task table, and
    NODE = 1  # its node: what the other columns are about
    NOTED = 2
    EXCESS = 3
    STAYED = 4  # how often the task entered a network and stayed
    UNTIL = 5  # the round before which it does not enter another one


class SettledTasks:
    """By row of the task table: what a task's data costs more on its node than where it costs least, and until which
    round it does not enter a network, because it stayed on its node when it last did. Both are forgotten when the task
    leaves its node."""

    def __init__(self, tasks: TaskTable) -> None:
        self._tasks = tasks
        self._round = 0
        self._columns: I64 = np.zeros((len(_Column), 0), np.int64)

    def next_round(self) -> None:
        """Begins a round, in which nothing is known of any task until `recall` names it."""
        self._round += 1

    def recall(self, rows: I64) -> None:
        """Forgets what was known of those of task rows (K,) that are on other nodes by now."""
        self._columns = columns = resized(self._columns, len(_Column), self._tasks.capacity)
        generation, node = self._tasks.generation[rows], self._tasks.node[rows]
        other = (columns[_Column.GENERATION, rows] != generation) | (columns[_Column.NODE, rows] != node)
        columns[:, rows[other]] = 0
        columns[_Column.GENERATION, rows[other]], columns[_Column.NODE, rows[other]] = generation[other], node[other]

    def known(self, rows: I64) -> Bools:
        """(K,) whether `note` has been called for task rows (K,) on their nodes."""
        known: Bools = self._columns[_Column.NOTED, rows] > 0
        return known

    def note(self, rows: I64, excess: I64) -> None:
        """Notes what the data of task rows (K,) costs more than where it costs least."""
        self._columns[_Column.NOTED, rows], self._columns[_Column.EXCESS, rows] = 1, excess

    def excess(self, rows: I64) -> I64:
        """(K,) what the data of task rows (K,) costs more than where it costs least; 0: nothing, or not noted."""
        excess: I64 = self._columns[_Column.EXCESS, rows]
        return excess

    def stay(self, rows: I64) -> None:
        """Task rows (K,) have entered a network and stay on their nodes; each time for twice as many rounds."""
        stayed = self._columns[_Column.STAYED, rows]
        self._columns[_Column.STAYED, rows] = np.minimum(stayed + 1, _LONGEST_DELAY)
        self._columns[_Column.UNTIL, rows] = self._round + 1 + 2**stayed

    def due(self, rows: I64) -> Bools:
        """(K,) whether task rows (K,) may enter a network in this round."""
        due: Bools = self._columns[_Column.UNTIL, rows] <= self._round
        return due
