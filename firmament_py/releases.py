"""When tasks that hold room are expected to give it back, and which never do."""

from functools import cached_property

import numpy as np

from firmament_py.arrays import I64
from firmament_py.cluster import ClusterState
from firmament_py.lifecycle import TaskState

FOREVER = 2**62
"""The expected end of a task that does not say how long it runs."""


class Releases:
    """Of the tasks that are assumed or bound on `nodes` (N,), rows of the node table, as things stand at `now_us`.

    A task ends when it has run for as long as it expects to; one that has not begun begins now, and one that is over
    its time, or on its way out, ends now.
    """

    def __init__(self, state: ClusterState, nodes: I64, now_us: int) -> None:
        self._state = state
        self._nodes = nodes
        self._now_us = now_us

    @cached_property
    def lasting(self) -> I64:
        """(N, R) what is held by tasks that stay as long as their node, and do not say how long they run."""
        tasks = self._state.tasks
        rows, end = self._holding
        return self._held(rows[tasks.lasting[rows] & (end == FOREVER)])

    @cached_property
    def ends(self) -> I64:
        """(E,) when tasks are expected to end, ascending, microseconds since the epoch, >= now."""
        end = np.unique(self._holding[1])
        return end[end < FOREVER]

    def until(self, when_us: int) -> I64:
        """(N, R) what tasks hold now and are expected to have given back at `when_us`."""
        rows, end = self._holding
        return self._held(rows[end <= when_us])

    @cached_property
    def _holding(self) -> tuple[I64, I64]:
        """Rows of those tasks, and their expected ends."""
        tasks, classes = self._state.tasks, self._state.classes
        holds = (tasks.state == TaskState.ASSUMED) | (tasks.state == TaskState.BOUND)
        rows = np.flatnonzero(holds)
        rows = rows[np.isin(tasks.node[rows], self._nodes)]
        expected, started = classes.expected_us[tasks.cls[rows]], tasks.started_us[rows]
        end = np.where(expected > 0, np.where(started > 0, started, self._now_us) + expected, FOREVER)
        end = np.where(tasks.leaving[rows], self._now_us, np.maximum(end, self._now_us))
        return rows, end

    def _held(self, rows: I64) -> I64:
        state = self._state
        classes = state.classes.capacity
        pairs, counts = np.unique(state.tasks.node[rows] * classes + state.tasks.cls[rows], return_counts=True)
        node, cls = np.divmod(pairs, classes)
        held = np.zeros((len(self._nodes), len(state.resources)), np.int64)
        np.add.at(held, np.searchsorted(self._nodes, node), counts[:, None] * state.classes.requests[cls])
        return held
