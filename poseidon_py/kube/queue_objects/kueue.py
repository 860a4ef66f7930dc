"""Kueue's kinds (kueue.x-k8s.io): ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology, WorkloadPriorityClass.

The versions v1beta1 and v1beta2 differ in names of fields only; both names are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded, spec_of

WITHIN = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
RECLAIM = ("Never", "LowerPriority", "Any")
BORROW_WITHIN = ("Never", "LowerPriority")
ADMISSION = ("NoAdmissionFairSharing", "UsageBasedAdmissionFairSharing")
PREFERENCES = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
STOP = ("None", "Hold", "HoldAndDrain")
OPERATORS = ("Equal", "Exists", "Gt", "Lt")
"""Of tolerations."""
MAX_LEVELS = 16
"""Of a Topology, as its definition allows."""
_TOLERATIONS = (
    "spec.tolerations: counts for nodeTaints alone, and is not added to pods; give the pods the tolerations that the "
    "taints of nodes need"
)
_LIMITS_NOTHING = ("spec.fairSharing", "spec.flavorFungibility", "spec.queueingStrategy", "spec.admissionScope")


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """Quota for one resource of one flavor, in the engine's units. `borrowing`, `lending`: None: no limit."""

    flavor: str
    resource: str
    nominal: int
    borrowing: int | None
    lending: int | None


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources whose flavor is chosen together, and the quotas, flavor by flavor in the order of preference."""

    resources: tuple[str, ...]
    quotas: tuple[ResourceQuota, ...]

    @property
    def flavors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(quota.flavor for quota in self.quotas))


@dataclass(frozen=True, slots=True)
class Fungibility:
    """Whether the next flavor is tried rather than borrow, or preempt; which of both is preferred otherwise."""

    next_to_avoid_borrowing: bool
    next_to_avoid_preemption: bool
    preemption_over_borrowing: bool


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    name: str
    cohort: str
    groups: tuple[ResourceGroup, ...]
    selector: LabelSelector | None
    """Of namespaces; None: no namespace."""
    strict_fifo: bool
    stop: str
    weight: float | None
    within: str
    reclaim: str
    borrow_within: str
    borrow_threshold: int | None
    fungibility: Fungibility
    by_past_use: bool
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""


@dataclass(frozen=True, slots=True)
class Cohort:
    name: str
    parent: str
    groups: tuple[ResourceGroup, ...]
    weight: float | None
    problems: tuple[str, ...]
    closed_by: str


@dataclass(frozen=True, slots=True)
class LocalQueue:
    namespace: str
    name: str
    cluster_queue: str
    stop: str
    weight: float | None
    problems: tuple[str, ...]
    closed_by: str


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    name: str
    node_labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    """Key, value and effect."""
    tolerations: tuple[tuple[str, str, str, str], ...]
    """Key, operator, value and effect."""
    topology: str
    problems: tuple[str, ...]
    closed_by: str
    """Why the queues with it take no pods; empty: they do."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said of fields that count only in part."""
        return (_TOLERATIONS,) if self.tolerations else ()


@dataclass(frozen=True, slots=True)
class Topology:
    """`levels`: labels of nodes, the widest domains first."""

    name: str
    levels: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PriorityClass:
    name: str
    value: int | None
    problems: tuple[str, ...]


def cluster_queue(item: QueueObject) -> ClusterQueue:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    preemption = spec.part("preemption")
    borrow = preemption.part("borrowWithinCohort")
    reclaim = preemption.choice("reclaimWithinCohort", RECLAIM, "Never")
    borrow_within = borrow.choice("policy", BORROW_WITHIN, "Never")
    if reclaim == "Never" and borrow_within != "Never":
        borrow.remark("policy", f"{borrow_within} has no effect while reclaimWithinCohort is Never; set that, too")
        borrow_within = "Never"
    if "namespaceSelector" not in spec:
        spec.remark("namespaceSelector", "is missing, so no namespace may use the queue; give {} for all namespaces")
    cohort = spec.text("cohortName") or spec.text("cohort")
    return ClusterQueue(
        item.metadata.name,
        cohort,
        _groups(spec),
        spec.selector("namespaceSelector"),
        spec.choice("queueingStrategy", ("BestEffortFIFO", "StrictFIFO"), "BestEffortFIFO") == "StrictFIFO",
        spec.choice("stopPolicy", STOP, "None"),
        _weight(spec),
        preemption.choice("withinClusterQueue", WITHIN, "Never"),
        reclaim,
        borrow_within,
        borrow.optional_whole("maxPriorityThreshold"),
        _fungibility(spec.part("flavorFungibility")),
        spec.part("admissionScope").choice("admissionMode", ADMISSION, ADMISSION[0]) == ADMISSION[1],
        problems.all,
        problems.closing,
    )


def cohort(item: QueueObject) -> Cohort:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    parent = spec.text("parentName") or spec.text("parent")
    return Cohort(item.metadata.name, parent, _groups(spec), _weight(spec), problems.all, problems.closing)


def local_queue(item: QueueObject) -> LocalQueue:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    target = spec.text("clusterQueue")
    if not target:
        spec.remark("clusterQueue", "is missing; give the name of a ClusterQueue")
    stop = spec.choice("stopPolicy", STOP, "None")
    weight, name = _weight(spec), item.metadata.name
    return LocalQueue(item.metadata.namespace, name, target, stop, weight, problems.all, problems.closing)


def resource_flavor(item: QueueObject) -> ResourceFlavor:
    problems = Problems(())
    spec = spec_of(item, problems)
    labels, levels = spec.labels("nodeLabels"), spec.text("topologyName")
    taints = tuple((each.text("key"), each.text("value"), each.text("effect")) for each in spec.parts("nodeTaints"))
    tolerations = tuple(
        (each.text("key"), each.choice("operator", OPERATORS, "Equal"), each.text("value"), each.text("effect"))
        for each in spec.parts("tolerations")
    )
    read = labels, taints, tolerations, levels
    return ResourceFlavor(item.metadata.name, *read, problems.all, problems.closing)


def topology(item: QueueObject) -> Topology:
    problems = Problems()
    spec = spec_of(item, problems)
    levels = tuple(dict.fromkeys(level for each in spec.parts("levels") if (level := each.text("nodeLabel"))))
    if not levels:
        spec.remark("levels", "names no labels; give a list of nodeLabel, the widest domains first")
    elif len(levels) > MAX_LEVELS:
        spec.remark("levels", f"has {len(levels)} labels; only the first {MAX_LEVELS} count")
    return Topology(item.metadata.name, levels[:MAX_LEVELS], problems.all)


def priority_class(item: QueueObject) -> PriorityClass:
    problems = Problems()
    top = Fields({"value": decoded(item.value, "value", problems)}, "", problems)
    if "value" not in top:
        problems.add("value", "is missing, so the pods keep their own priority; give a whole number")
    return PriorityClass(item.metadata.name, top.optional_whole("value"), problems.all)


def wrong_level(wishes: Mapping[str, str], topologies: Sequence[Topology]) -> str:
    """What is wrong with the levels that pods request, by annotation, if the flavors of their queue have any."""
    levels = dict.fromkeys(level for topology in topologies for level in topology.levels)
    for annotation, level in wishes.items():
        if level and levels and level not in levels:
            names = ", ".join(topology.name for topology in topologies)
            return f"annotation {annotation}: {level} is no level of Topology {names}; give {' or '.join(levels)}"
    return ""


def levels_from(level: str, topologies: Sequence[Topology]) -> tuple[str, ...]:
    """`level` and those above it, the narrowest first. Of several Topologies with that level, whose flavor is not known
    yet, only what is above it in all of them: the nodes of the others lack the other labels."""
    above = [topology.levels[: topology.levels.index(level)] for topology in topologies if level in topology.levels]
    if not above:
        return ()
    return (level, *(each for each in reversed(above[0]) if all(each in other for other in above)))


def _weight(spec: Fields) -> float | None:
    """None: fair sharing is not configured."""
    return spec.part("fairSharing").number("weight", 1.0) if "fairSharing" in spec else None


def _fungibility(given: Fields) -> Fungibility:
    """v1beta1 has names of its own for MayStopSearch."""
    borrow = given.choice("whenCanBorrow", ("MayStopSearch", "Borrow", "TryNextFlavor"), "MayStopSearch")
    preempt = given.choice("whenCanPreempt", ("MayStopSearch", "Preempt", "TryNextFlavor"), "TryNextFlavor")
    preference = given.choice("preference", PREFERENCES, PREFERENCES[0])
    return Fungibility(borrow == "TryNextFlavor", preempt == "TryNextFlavor", preference == PREFERENCES[1])


def _groups(spec: Fields) -> tuple[ResourceGroup, ...]:
    return tuple(_group(group) for group in spec.parts("resourceGroups"))


def _group(group: Fields) -> ResourceGroup:
    covered = group.texts("coveredResources")
    quotas: list[ResourceQuota] = []
    for flavor in group.parts("flavors"):
        name = flavor.text("name")
        if not name:
            flavor.remark("name", "is missing, so its quotas are ignored; give the name of a ResourceFlavor")
            continue
        for each in flavor.parts("resources"):
            resource = each.text("name")
            if resource not in covered:
                each.remark("name", f"{resource!r} is not in coveredResources, so its quota is ignored; add it there")
                continue
            nominal = each.amount("nominalQuota", resource)
            if "nominalQuota" not in each:
                each.remark("nominalQuota", "is missing and counts as 0; give a quantity")
            quotas.append(
                ResourceQuota(
                    name,
                    resource,
                    nominal or 0,
                    each.amount("borrowingLimit", resource),
                    each.amount("lendingLimit", resource),
                )
            )
    return ResourceGroup(covered, tuple(quotas))
