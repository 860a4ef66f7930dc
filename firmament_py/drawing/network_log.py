"""The networks of the last rounds: the arrays that these have made anyway, none of which is copied."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from firmament_py.model.arrays import I64
from firmament_py.network.telemetry import SolvedNetwork
from firmament_py.state.cluster import ClusterState

ARCS_KEPT = 250_000
"""Of all networks together: some 7 MB. The arcs of a larger network are not recorded, only its size."""


@dataclass(frozen=True, slots=True)
class RecordedNetwork:
    """class_names (C,). node_generation (N,): of the rows `solved.nodes`, which can be others' by now. vertices, arcs:
    the size, also if the network itself is not recorded since it `is_too_large`."""

    solved: SolvedNetwork
    class_names: tuple[str, ...]
    node_generation: I64
    vertices: int
    arcs: int
    is_too_large: bool


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """number: of the round, from 1. started_us: microseconds since the epoch. placed: tasks."""

    number: int
    started_us: int
    placed: int
    networks: tuple[RecordedNetwork, ...]

    @property
    def arcs(self) -> int:
        """That are in memory."""
        return sum(each.arcs for each in self.networks if not each.is_too_large)


class NetworkLog:
    """At largest so many `rounds` that have solved networks, with ARCS_KEPT arcs at largest."""

    def __init__(self, rounds: int) -> None:
        self._limit = rounds
        self._rounds: deque[RecordedRound] = deque()

    def add(
        self, state: ClusterState, number: int, started_us: int, placed: int, networks: Sequence[SolvedNetwork]
    ) -> None:
        """Keeps a round that has just ended. The oldest go."""
        if not networks or not self._limit:
            return
        self._rounds.append(
            RecordedRound(number, started_us, placed, tuple(_recorded(state, each) for each in networks))
        )
        while len(self._rounds) > self._limit or self._arcs() > ARCS_KEPT:
            if len(self._rounds) == 1:
                [last] = self._rounds
                self._rounds[0] = replace(last, networks=tuple(map(_without_arrays, last.networks)))
                return
            self._rounds.popleft()

    def _arcs(self) -> int:
        return sum(each.arcs for each in self._rounds)

    def __iter__(self) -> Iterator[RecordedRound]:
        """Oldest first."""
        return iter(self._rounds)

    def find(self, number: int) -> RecordedRound | None:
        """A round by its number, 0: the last one; None: it is not recorded."""
        if not number:
            return self._rounds[-1] if self._rounds else None
        return next((each for each in self._rounds if each.number == number), None)


def _recorded(state: ClusterState, solved: SolvedNetwork) -> RecordedNetwork:
    names = tuple(state.classes.definition(row).name for row in solved.classes.tolist())
    network = solved.network
    vertices, arcs = (0, 0) if network is None else (len(network.flow.supply), len(network.flow.tail))
    recorded = RecordedNetwork(solved, names, state.nodes.generation[solved.nodes], vertices, arcs, is_too_large=False)
    return _without_arrays(recorded) if arcs > ARCS_KEPT else recorded


def _without_arrays(recorded: RecordedNetwork) -> RecordedNetwork:
    if recorded.solved.network is None:
        return recorded
    return replace(recorded, solved=replace(recorded.solved, network=None, sent=None), is_too_large=True)
