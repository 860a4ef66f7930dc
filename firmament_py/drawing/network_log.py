"""The networks of the last rounds: the arrays that these have made anyway, none of which is copied."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.network.telemetry import SolvedNetwork
from firmament_py.state.cluster import ClusterState

ENTRIES_KEPT = 250_000
"""Arcs and tasks of all networks together: some 8 MB. Of a larger network only its size is recorded."""


@dataclass(frozen=True, slots=True)
class RecordedNetwork:
    """class_names (C,). node_generation (N,): of the rows `solved.nodes`, which can be others' by now. vertices, arcs,
    tasks: the size, also if the network itself is not recorded since it `is_too_large`."""

    solved: SolvedNetwork
    class_names: tuple[str, ...]
    node_generation: I64
    vertices: int
    arcs: int
    tasks: int
    is_too_large: bool

    @property
    def entries(self) -> int:
        """Arcs and tasks that are in memory."""
        return 0 if self.is_too_large else self.arcs + self.tasks


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """number: of the round, from 1. started_us: microseconds since the epoch. placed: tasks."""

    number: int
    started_us: int
    placed: int
    networks: tuple[RecordedNetwork, ...]

    @property
    def entries(self) -> int:
        """Arcs and tasks that are in memory."""
        return sum(each.entries for each in self.networks)


class NetworkLog:
    """At most so many `rounds` that have solved networks, with ENTRIES_KEPT arcs and tasks at most."""

    def __init__(self, rounds: int) -> None:
        self._limit = rounds
        self._rounds: deque[RecordedRound] = deque()
        self._entries = 0  # of all

    def add(
        self, state: ClusterState, number: int, started_us: int, placed: int, networks: Sequence[SolvedNetwork]
    ) -> None:
        """Keeps a round that has just ended. The oldest go."""
        if not networks or not self._limit:
            return
        generation = {id(each.nodes): state.nodes.generation[each.nodes] for each in networks}  # of most, the same
        recorded = [_recorded(state, each, generation[id(each.nodes)]) for each in networks]
        added = RecordedRound(number, started_us, placed, tuple(recorded))
        if added.entries > ENTRIES_KEPT:
            added = replace(added, networks=tuple(map(_without_arrays, added.networks)))
        self._rounds.append(added)
        self._entries += added.entries
        while len(self._rounds) > self._limit or self._entries > ENTRIES_KEPT:
            self._entries -= self._rounds.popleft().entries

    def __iter__(self) -> Iterator[RecordedRound]:
        """Oldest first."""
        return iter(self._rounds)

    def find(self, number: int) -> RecordedRound | None:
        """A round by its number, 0: the last one; None: it is not recorded."""
        if not number:
            return self._rounds[-1] if self._rounds else None
        return next((each for each in self._rounds if each.number == number), None)


def _recorded(state: ClusterState, solved: SolvedNetwork, generation: I64) -> RecordedNetwork:
    names = tuple(state.classes.definition(row).name for row in solved.classes.tolist())
    network, tasks = solved.network, len(solved.task_uid)
    vertices, arcs = (0, 0) if network is None else (len(network.flow.supply), len(network.flow.tail))
    recorded = RecordedNetwork(solved, names, generation, vertices, arcs, tasks, is_too_large=False)
    return _without_arrays(recorded) if recorded.entries > ENTRIES_KEPT else recorded


def _without_arrays(recorded: RecordedNetwork) -> RecordedNetwork:
    solution = recorded.solved.solution
    solved = replace(
        recorded.solved,
        network=None,
        solution=None if solution is None else replace(solution, flow=NO_ROWS),
        sent=None,
        sent_cost=NO_ROWS,
        classes=NO_ROWS,
        nodes=NO_ROWS,
        task_uid=np.empty(0, np.uint64),
        task_class=NO_ROWS,
        task_wait=NO_ROWS,
    )
    return replace(recorded, solved=solved, node_generation=NO_ROWS, is_too_large=True)
