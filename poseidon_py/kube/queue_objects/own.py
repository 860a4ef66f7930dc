"""Our own kind of queue: Queue (poseidon.io/v1), cluster-scoped; deploy/chart/definitions/queues.yaml defines it."""

from dataclasses import dataclass

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, spec_of

WITHIN = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
BORROW_WITHIN = ("Never", "LowerPriority")
_LIMITS_NOTHING = ("spec.weight", "spec.guarantee", "spec.priority", "spec.order", "spec.preemptionNotice")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Pods of one queue with a priority and rights of their own."""

    namespaces: tuple[str, ...]
    selector: LabelSelector | None
    """Of namespaces."""
    users: tuple[str, ...]
    """Values of the label poseidon.io/user."""
    priority: int | None
    """None: pods keep their own."""
    may_preempt: bool


@dataclass(frozen=True, slots=True)
class OwnQueue:
    name: str
    parent: str
    weight: float
    guarantee: dict[str, int]
    limit: dict[str, int]
    node_selector: dict[str, str]
    reclaims: bool
    reclaim_min_runtime: float
    preempt_min_runtime: float
    delay: float
    evictions_per_hour: int | None
    within: str
    borrow_within: str
    borrow_threshold: int | None
    selector: LabelSelector | None
    """Namespaces that may use it, and whose pods are in it unless they say otherwise; None: all, and none."""
    strict_fifo: bool
    stop: str
    priority: int
    preemptible: bool
    notice: float | None
    """Seconds between the announcement of a preemption of its pods, and the preemption; None: not given."""
    tenants: tuple[Tenant, ...]
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""


def own_queue(item: QueueObject) -> OwnQueue:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    reclaim, preemption = spec.part("reclaim"), spec.part("preemption")
    guarantee, limit, lending = (spec.amounts(name) for name in ("guarantee", "limit", "lendingLimit"))
    for resource, amount in guarantee.items():
        if amount > limit.get(resource, amount):
            spec.part("limit").remark(resource, "is less than the guarantee; raise it, or lower spec.guarantee")
    for resource, amount in lending.items():
        if amount < guarantee.get(resource, 0):
            why = "these queues lend their whole guarantee and reclaim it, so the queue is closed; remove the field"
            problems.refuse(f"{spec.part('lendingLimit').at(resource)}: {why}")
        elif resource not in guarantee:
            spec.part("lendingLimit").remark(resource, "has no effect without a guarantee; remove it")
    return OwnQueue(
        item.metadata.name,
        spec.text("parent"),
        spec.number("weight", 1.0),
        guarantee,
        limit,
        spec.labels("nodeSelector"),
        reclaim.flag("allow", default=True),
        reclaim.duration("minRuntime"),
        preemption.duration("minRuntime"),
        reclaim.duration("delay"),
        reclaim.optional_whole("evictionsPerHour", least=0),
        preemption.choice("within", WITHIN, "LowerPriority"),
        preemption.part("borrowWithin").choice("policy", BORROW_WITHIN, "Never"),
        preemption.part("borrowWithin").optional_whole("maxPriority"),
        spec.selector("namespaces"),
        spec.choice("order", ("fifo", "bestEffort"), "bestEffort") == "fifo",
        spec.choice("stop", ("none", "hold", "drain"), "none"),
        spec.whole("priority", 0),
        spec.flag("preemptible", default=True),
        spec.duration("preemptionNotice") if "preemptionNotice" in spec else None,
        tuple(_tenant_of(fields) for fields in spec.parts("tenants")),
        problems.all,
        problems.closing,
    )


def _tenant_of(fields: Fields) -> Tenant:
    found = Tenant(
        fields.texts("namespaces"),
        fields.selector("namespaceSelector"),
        fields.texts("users"),
        fields.optional_whole("priority"),
        fields.flag("mayPreempt", default=True),
    )
    if not (found.namespaces or found.users or "namespaceSelector" in fields):
        fields.remark("namespaces", "and namespaceSelector and users are missing, so it is everyone; give one of them")
    return found
