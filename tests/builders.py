"""Short ways to say what a test is about: events of the engine, and a cluster to tell them to.

Amounts default to plenty, so that a test names only what matters to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from firmament_py.engine.round import Observer
from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver, Solver
from firmament_py.model.constraints import (
    NO_PEERS,
    NO_PREFERENCES,
    NodeDemand,
    Operator,
    PeerDemand,
    PeerSelector,
    PreferenceSet,
    Requirement,
    Taint,
    Term,
)
from firmament_py.model.events import (
    Block,
    BudgetObserved,
    ClassDefined,
    Event,
    GangObserved,
    InputsDefined,
    LabelSetDefined,
    NodeObserved,
    Outcome,
    TasksEnded,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.options import EngineOptions, Migrating, Preempting
from firmament_py.policy import Policy
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading

NOW_US = 1_700_000_000_000_000
"""A moment for tests; no test reads a clock."""

SECOND_US = 1_000_000


def make_node(
    name: str,
    *,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    **amounts: int,
) -> NodeObserved:
    """A node whose id is `id-NAME`."""
    return NodeObserved(f"id-{name}", name, {"pods": pods, **amounts}, labels or {}, tuple(taints))


def make_class(
    number: int,
    *,
    priority: int = 0,
    demand: NodeDemand | None = None,
    peers: PeerDemand = NO_PEERS,
    preferences: PreferenceSet = NO_PREFERENCES,
    tokens: Sequence[str] = (),
    traits: Mapping[str, str] | None = None,
    expected_us: int = 0,
    never_preempts: bool = False,
    **requests: int,
) -> ClassDefined:
    name = f"class-{number}"
    return ClassDefined(
        number,
        requests,
        demand or NodeDemand(),
        priority,
        name,
        peers,
        preferences,
        tuple(tokens),
        traits or {},
        expected_us,
        never_preempts,
    )


def make_label_set(number: int, namespace: str = "default", /, **labels: str) -> LabelSetDefined:
    return LabelSetDefined(number, namespace, labels)


def make_tasks(
    uids: Iterable[int],
    cls: int | Sequence[int],
    *,
    on: str | None = None,
    job: int = 0,
    created_us: int | Sequence[int] = NOW_US,
    label_set: int = 0,
    leaving: bool = False,
    gang: int = 0,
    role: int | Sequence[int] = 0,
    inputs: int | Sequence[int] = 0,
    started_us: int = 0,
    lasting: bool = False,
    nominated: str | None = None,
    unevictable: bool = False,
    checkpoint_us: int = 0,
    movable: bool = False,
    daemon: bool = False,
    queue: int = 0,
    local_queue: int = 0,
    least_preemptor: int = 0,
    exempt_until_us: int = 0,
    required_node: str | Sequence[str] = "",
) -> TasksObserved:
    """Tasks of one class (or of a class each), waiting, or all bound to the node named `on`; nominated: the name of the
    node that is kept for each."""
    uids = list(uids)
    count = len(uids)
    named = on or nominated
    return TasksObserved(
        uid=np.array(uids, np.uint64),
        class_id=np.array([cls] * count if isinstance(cls, int) else cls, np.uint64),
        job_id=np.full(count, job, np.uint64),
        created_us=np.array([created_us] * count if isinstance(created_us, int) else created_us, np.int64),
        node=np.full(count, 0 if on is None else 1, np.int64),
        names=[f"task-{uid}" for uid in uids],
        nodes=() if named is None else (f"id-{named}",),
        label_set_id=np.full(count, label_set, np.uint64) if label_set else None,
        leaving=np.ones(count, np.bool_) if leaving else None,
        gang_id=np.full(count, gang, np.uint64) if gang else None,
        role=np.array([role] * count if isinstance(role, int) else role, np.int64) if gang else None,
        inputs_id=np.array([inputs] * count if isinstance(inputs, int) else inputs, np.uint64) if inputs else None,
        started_us=np.full(count, started_us, np.int64) if started_us else None,
        lasting=np.ones(count, np.bool_) if lasting else None,
        nominated=np.ones(count, np.int64) if nominated else None,
        unevictable=np.ones(count, np.bool_) if unevictable else None,
        checkpoint_us=np.full(count, checkpoint_us, np.int64) if checkpoint_us else None,
        movable=np.ones(count, np.bool_) if movable else None,
        daemon=np.ones(count, np.bool_) if daemon else None,
        queue_id=np.full(count, queue, np.uint64) if queue else None,
        local_queue_id=np.full(count, local_queue, np.uint64) if local_queue else None,
        least_preemptor=np.full(count, least_preemptor, np.int64) if exempt_until_us else None,
        exempt_until_us=np.full(count, exempt_until_us, np.int64) if exempt_until_us else None,
        required_node=None
        if not required_node
        else ([required_node] * count if isinstance(required_node, str) else list(required_node)),
    )


def make_budget(number: int, selector: PeerSelector, allowed: int) -> BudgetObserved:
    return BudgetObserved(number, selector, allowed, f"budget-{number}")


def make_gang(
    number: int,
    minimum: int,
    *,
    created_us: int = NOW_US,
    roles: Mapping[str, int] | None = None,
    topology: str = "",
    required: bool = False,
    maximum: int = 0,
    whole: bool = False,
    narrower: Sequence[str] = (),
    outer: Sequence[str] = (),
    start: Mapping[str, int] | None = None,
    keeps: Mapping[str, int] | None = None,
    queue: int = 0,
    keeps_on: str = "",
    staged: bool = False,
) -> GangObserved:
    """A gang named `gang-NUMBER`; roles: minimums by name, in the order of their numbers; start: what must be free;
    keeps: what of the quota of `queue`; keeps_on: name of a node; staged: whether it asks for that before it starts."""
    of_role, name = tuple((roles or {}).items()), f"gang-{number}"
    levels, start_amounts = tuple(narrower), tuple((start or {}).items())
    retained, on = tuple((keeps or {}).items()), f"id-{keeps_on}" if keeps_on else ""
    of = number, minimum, created_us, of_role, topology, required, name, maximum, whole, levels, start_amounts
    return GangObserved(*of, retained, queue, on, tuple(outer), staged)


def make_inputs(number: int, *blocks: tuple[int, str] | tuple[int, str, str]) -> InputsDefined:
    """Blocks of so many MiB, on nodes and in racks whose names are given in one text each."""
    return InputsDefined(
        number,
        tuple(Block(size * 2**20, tuple(on.split()), tuple(" ".join(racks).split())) for size, on, *racks in blocks),
    )


def removed(*uids: int) -> TasksRemoved:
    return TasksRemoved(np.array(uids, np.uint64))


def ended(*uids: int, failed: bool = False) -> TasksEnded:
    return TasksEnded(np.array(uids, np.uint64), failed)


@cache
def needs(key: str, operator: str = "Exists", *values: str) -> Requirement:
    return Requirement(key, Operator(operator), values)


def selecting(*requirements: Requirement) -> NodeDemand:
    return NodeDemand(selector=requirements)


def any_of(*terms: Term) -> NodeDemand:
    return NodeDemand(affinity=(terms,))


def tasks_like(*requirements: Requirement, namespaces: Iterable[str] = ("default",)) -> PeerSelector:
    """Tasks of these namespaces whose labels meet the requirements."""
    return PeerSelector(frozenset(namespaces), None, requirements)


@dataclass
class Cluster:
    """A state and a scheduler, with answers in names instead of rows."""

    state: ClusterState
    scheduler: Scheduler

    def tell(self, *events: Event) -> list[Outcome]:
        """Applies events and checks the state after the last."""
        outcomes = [self.state.apply(event) for event in events]
        self.state.validate()
        return outcomes

    def round(self, now_us: int = NOW_US) -> dict[int, str]:
        """Runs a round: uid -> name of the node it was placed on."""
        return self.names(self.run(now_us))

    def run(self, now_us: int = NOW_US) -> RoundResult:
        result = self.scheduler.run(now_us)
        self.state.validate()
        assert result.stats.dropped == 0, "the independent check refused placements"
        return result

    def names(self, result: RoundResult) -> dict[int, str]:
        uids = self.state.tasks.uid[result.tasks].tolist()
        nodes = [self.state.nodes.observed[row].name for row in result.nodes.tolist()]
        assert len(set(uids)) == len(uids), "a task is placed twice"
        return dict(zip(uids, nodes, strict=True))

    def preempted(self, result: RoundResult) -> dict[int, int]:
        """Uid of each victim -> uid of its preemptor."""
        uid, preemption = self.state.tasks.uid, result.preemption
        return dict(zip(uid[preemption.victims].tolist(), uid[preemption.preemptors].tolist(), strict=True))

    def nominated(self) -> dict[int, str]:
        """Uid of each nominated task -> name of the node that is kept for it."""
        tasks = self.state.tasks
        rows = np.flatnonzero(tasks.nominated >= 0).tolist()
        return {int(tasks.uid[row]): self.state.nodes.observed[int(tasks.nominated[row])].name for row in rows}

    def migrating(self, result: RoundResult) -> dict[int, str]:
        """Uid of each task to evict -> name of the node that costs less."""
        uids = self.state.tasks.uid[result.migration.tasks].tolist()
        nodes = [self.state.nodes.observed[row].name for row in result.migration.nodes.tolist()]
        return dict(zip(uids, nodes, strict=True))

    def waiting(self) -> set[int]:
        return set(self.state.tasks.uid[self.state.tasks.state == TaskState.WAITING].tolist())


def make_cluster(
    *events: Event,
    policy: Policy | None = None,
    solver: Solver | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Cluster:
    """A cluster that was told `events`, none of which may be refused. options: EngineOptions; it does not preempt
    unless told to: most oracles know no evictions."""
    state, chosen = ClusterState(), EngineOptions(**{"preempting": Preempting.OFF, **options})
    scheduler = Scheduler(state, policy or LoadSpreading(), solver or OrToolsSolver(), observer, options=chosen)
    cluster = Cluster(state, scheduler)
    for outcome in cluster.tell(*events):
        assert outcome == Outcome(), outcome
    return cluster


def preempting_cluster(*events: Event, **options: Any) -> Cluster:
    """Likewise, one that preempts within budgets unless told otherwise."""
    return make_cluster(*events, **{"preempting": Preempting.WITHIN_BUDGETS, **options})


def migrating_cluster(*events: Event, **options: Any) -> Cluster:
    """Likewise, one in which movable tasks may migrate however short they have run."""
    return make_cluster(*events, **{"migrating": Migrating.ALWAYS, "migrate_after_us": 0, **options})


def per_node(placements: Mapping[int, str]) -> dict[str, int]:
    """How many tasks each node was given."""
    counts: dict[str, int] = {}
    for name in placements.values():
        counts[name] = counts.get(name, 0) + 1
    return counts
