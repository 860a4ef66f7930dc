"""Clusters and tasks with inter-task constraints, as the engine's events, and a check of their placements.

Each shape is one of the published cases (pod affinity, anti-affinity, spread, symmetry) or a mixture of classes. The
check reads only the generated input and the placements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from firmament_py.model.arrays import U64
from firmament_py.model.constraints import (
    NO_PREFERENCES,
    Operator,
    PeerDemand,
    PeerSelector,
    PeerTerm,
    PreferenceSet,
    Requirement,
    Spread,
)
from firmament_py.model.events import ClassDefined, Event, LabelSetDefined, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_NAMESPACE = "bench"
_MAX_RUNNING = 100  # on a node: fewer than it has capacity for


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """`pods` tasks of `groups` apps on `nodes` nodes in `zones` zones; `shape` names their constraints.

    `running` more tasks of the same apps run at the start, on nodes that are loaded at random.
    """

    shape: str
    nodes: int
    pods: int
    groups: int
    zones: int = 3
    before: int = 0  # symmetry: anti-affine tasks that are placed first
    running: int = 0
    seed: int = 0


@dataclass(slots=True)
class ConstraintLoad:
    """The events of a load: apply `cluster`; with `first` apply it and run a round; apply `tasks`, run the round."""

    spec: ConstraintSpec
    cluster: list[Event] = field(default_factory=list)
    first: TasksObserved | None = None
    tasks: TasksObserved | None = None
    zone: dict[str, str] = field(default_factory=dict)
    app: dict[int, int] = field(default_factory=dict)  # task uid -> group
    demands: list[PeerDemand] = field(default_factory=list)  # of each group

    def violations(self, placed: dict[int, str]) -> list[str]:
        """The constraints that placements uid -> node break, at most three; empty if none."""
        by_host: dict[str, Counter[int]] = defaultdict(Counter)
        by_zone: dict[str, Counter[int]] = defaultdict(Counter)
        for uid, node in placed.items():
            by_host[node][self.app[uid]] += 1
            by_zone[self.zone[node]][self.app[uid]] += 1
        placed_of = Counter(self.app[uid] for uid in placed)
        wrong = []
        for uid, node in placed.items():
            group = self.app[uid]
            here = {HOST: by_host[node], ZONE: by_zone[self.zone[node]]}
            demand = self.demands[group]
            for term in demand.affinity:
                other = _group_of(term.selector)
                if other == group and placed_of[group] == 1:
                    continue  # the first task with affinity to its own group may go anywhere
                if here[term.topology_key][other] <= (other == group):
                    wrong.append(f"task {uid}: no task of group {other} in its domain")
            for term in demand.anti_affinity:
                other = _group_of(term.selector)
                if here[term.topology_key][other] > (other == group):
                    wrong.append(f"task {uid}: a task of group {other} in its domain")
        for group, demand in enumerate(self.demands):
            for spread in demand.spread:
                counts = [counts[group] for counts in (by_zone if spread.topology_key == ZONE else by_host).values()]
                domains = self.spec.zones if spread.topology_key == ZONE else self.spec.nodes
                lowest = min(counts, default=0) if len(counts) == domains else 0
                if max(counts, default=0) - lowest > spread.max_skew:
                    wrong.append(
                        f"group {group}: from {lowest} to {max(counts)} in the domains of {spread.topology_key}"
                    )
            counts = [by_zone[zone][group] for zone in set(self.zone.values())]
            if self.spec.shape == "services" and not self.spec.running and max(counts) - min(counts) > 1:
                wrong.append(f"group {group}: from {min(counts)} to {max(counts)} in the zones of an empty cluster")
        return wrong[:3]


def load(spec: ConstraintSpec) -> ConstraintLoad:
    """The load of a spec; the same spec gives the same load."""
    made = ConstraintLoad(spec)
    for i in range(spec.nodes):
        name, zone = f"node-{i:05d}", f"zone-{i % spec.zones}"
        made.zone[name] = zone
        offer = {"cpu": 16_000, "memory": 64 << 30, "pods": 110}
        made.cluster.append(NodeObserved(name, name, offer, {HOST: name, ZONE: zone}))
    random = np.random.default_rng(spec.seed)
    for group in range(spec.groups):
        made.cluster.append(LabelSetDefined(group + 1, _NAMESPACE, {"app": str(group)}))
        demand = _SHAPES[spec.shape](group, spec.groups)
        made.demands.append(demand)
        cpu = 100 if spec.shape != "mixed" else 100 * int(random.integers(1, 20))
        preferences = _default_spread(group) if spec.shape == "services" else NO_PREFERENCES
        requests = {"cpu": cpu, "memory": 128 << 20}
        made.cluster.append(ClassDefined(group + 1, requests, peers=demand, preferences=preferences))
    if spec.running:
        made.cluster.append(_running(made, random))
    if spec.before:
        made.first = _tasks(made, range(1, spec.before + 1), [0] * spec.before)
    uids = range(spec.before + 1, spec.before + spec.pods + 1)
    groups = [1] * spec.pods if spec.before else [i % spec.groups for i in range(spec.pods)]
    made.tasks = _tasks(made, uids, groups)
    return made


def _running(made: ConstraintLoad, random: np.random.Generator) -> TasksObserved:
    """Tasks that run on nodes in proportion to a random weight of each, which is also their largest number there."""
    spec = made.spec
    places = np.repeat(np.arange(spec.nodes), random.integers(0, _MAX_RUNNING, spec.nodes))
    first = spec.before + spec.pods + 1
    observed = _tasks(made, range(first, first + spec.running), [i % spec.groups for i in range(spec.running)])
    return replace(observed, node=random.choice(places, spec.running, replace=False) + 1, nodes=tuple(made.zone))


def _tasks(made: ConstraintLoad, uids: range, groups: list[int]) -> TasksObserved:
    made.app.update(zip(uids, groups, strict=True))
    of: U64 = np.array(groups, np.uint64) + np.uint64(1)
    return TasksObserved(
        uid=np.array(uids, np.uint64),
        class_id=of,
        job_id=of,
        created_us=np.full(len(uids), START_US),
        node=np.zeros(len(uids), np.int64),
        names=[f"{_NAMESPACE}/pod-{uid}" for uid in uids],
        label_set_id=of,
    )


def _term(group: int, key: str) -> PeerTerm:
    return PeerTerm(_selector(group), key)


def _selector(group: int) -> PeerSelector:
    return PeerSelector(frozenset([_NAMESPACE]), None, (Requirement("app", Operator.IN, (str(group),)),))


def _group_of(selector: PeerSelector) -> int:
    requirements = selector.labels or ()
    return int(requirements[0].values[0])


def _symmetric(group: int, groups: int) -> PeerDemand:
    return PeerDemand(anti_affinity=(_term(0, HOST), _term(1, HOST))) if group == 0 else PeerDemand()


def _mixed(group: int, groups: int) -> PeerDemand:
    other = (7 * group) % groups
    return (
        PeerDemand(),
        PeerDemand(anti_affinity=(_term(group, HOST),)),
        PeerDemand(spread=(Spread(_selector(group), ZONE),)),
        PeerDemand(affinity=(_term(other, ZONE),)),
        PeerDemand(
            anti_affinity=(_term(other, HOST),) if other != group else (), spread=(Spread(_selector(group), HOST, 2),)
        ),
    )[group % 5]


def _default_spread(group: int) -> PreferenceSet:
    """That of the pods of a Service."""
    return PreferenceSet(spread=(Spread(_selector(group), HOST, 3), Spread(_selector(group), ZONE, 5)))


_SHAPES: dict[str, Callable[[int, int], PeerDemand]] = {
    "affinity": lambda group, groups: PeerDemand(affinity=(_term(group, ZONE),)),
    "anti-affinity": lambda group, groups: PeerDemand(anti_affinity=(_term(group, HOST),)),
    "spread": lambda group, groups: PeerDemand(spread=(Spread(_selector(group), ZONE),)),
    "plain": lambda group, groups: PeerDemand(),
    "services": lambda group, groups: PeerDemand(),
    "symmetry": _symmetric,
    "mixed": _mixed,
}
