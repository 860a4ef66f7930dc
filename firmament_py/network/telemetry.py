"""Telemetry of a round: seconds by stage, the number of solved networks, and these themselves."""

from collections import Counter
from dataclasses import dataclass
from time import perf_counter

from firmament_py.flow.network import Solution
from firmament_py.model.arrays import I64, U64
from firmament_py.network.decode import NodeCounts
from firmament_py.network.placement_network import PlacementNetwork


@dataclass(frozen=True, slots=True)
class SolvedNetwork:
    """A network that a round has solved, as it stood, for those who look at it later (drawing/).

    network, solution: None: none was built, since the few tasks of one class go to the slots that cost least. cost: of
    the flow. sent: number of tasks of each class that the flow sends to each node, and sent_cost (K,) the cost of the
    first of them; None: there is no flow. classes (C,): rows of the class table; nodes (N,): of the node table;
    task_uid, task_class, task_wait (T,): of the waiting tasks, and the costs of leaving each waiting.
    """

    network: PlacementNetwork | None
    solution: Solution | None
    cost: int
    sent: NodeCounts | None
    sent_cost: I64
    classes: I64
    nodes: I64
    task_uid: U64
    task_class: I64
    task_wait: I64


class Telemetry:
    """stage_seconds: seconds by stage. solves: networks solved to place tasks; trials: networks solved only to find out
    what could be placed. pricing_rounds: networks built again because omitted arcs could have a negative reduced cost.
    unsolved: networks without a flow, by the solver's status; compressed: those solved with smaller waiting costs.
    networks: those that were solved to place tasks; None: they are not kept.
    """

    def __init__(self, *, keeps_networks: bool = False) -> None:
        self.networks: list[SolvedNetwork] | None = [] if keeps_networks else None
        self.stage_seconds: dict[str, float] = {}
        self.solves = 0
        self.trials = 0
        self.pricing_rounds = 0
        self.unsolved = Counter[str]()
        self.compressed = 0
        self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """Adds the time since the last call to a stage."""
        now = perf_counter()
        self.stage_seconds[stage] = self.stage_seconds.get(stage, 0.0) + now - self._last
        self._last = now
