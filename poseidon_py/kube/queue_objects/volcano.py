"""Volcano's kind Queue (scheduling.volcano.sh/v1beta1)."""

from dataclasses import dataclass

from poseidon_py.kube.objects import InvalidField, annotations_of
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded, spec_of

HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
_CLOSED = ("Closed", "Closing")
_WEIGHT_MAX = 65535
_LIMITS_NOTHING = ("spec.weight", "spec.priority", "spec.dequeueStrategy", "metadata.annotations")


@dataclass(frozen=True, slots=True)
class VolcanoQueue:
    name: str
    parent: str
    weight: float
    capability: dict[str, int]
    guarantee: dict[str, int]
    deserved: dict[str, int]
    reclaimable: bool
    priority: int
    strict_fifo: bool
    closed: bool
    hierarchy: tuple[tuple[str, float], ...]
    """Names from the root to the queue, and their weights, as annotations give them; empty: they do not."""
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""


def volcano_queue(item: QueueObject) -> VolcanoQueue:
    problems = Problems(_LIMITS_NOTHING)
    spec = spec_of(item, problems)
    status = Fields(decoded(item.status, "status", problems), "status", problems)
    guarantee = spec.part("guarantee").amounts("resource")
    capability, deserved = spec.amounts("capability"), spec.amounts("deserved")
    for resource, amount in (guarantee | deserved).items():
        if amount > capability.get(resource, amount):
            name = "deserved" if resource in deserved else "guarantee.resource"
            spec.part(name).remark(resource, "is more than the capability; raise spec.capability or lower it")
    return VolcanoQueue(
        item.metadata.name,
        spec.text("parent"),
        float(spec.whole("weight", 1, 1, _WEIGHT_MAX)),
        capability,
        guarantee,
        deserved,
        spec.flag("reclaimable", default=True),
        spec.whole("priority", 0),
        spec.choice("dequeueStrategy", ("fifo", "traverse"), "traverse") == "fifo",
        status.text("state") in _CLOSED,
        _hierarchy(item, problems),
        problems.all,
        problems.closing,
    )


def _hierarchy(item: QueueObject, problems: Problems) -> tuple[tuple[str, float], ...]:
    try:
        annotations = annotations_of(item.metadata)
    except InvalidField as problem:
        problems.add(problem.field, problem.reason)
        return ()
    path = annotations.get(HIERARCHY, "")
    if not path:
        return ()
    names = path.split("/")
    where = f"metadata.annotations[{HIERARCHY}]"
    if not all(names) or names[0] != "root":
        problems.add(where, f"{path!r} is not valid and is ignored; give a path like root/team/queue")
        return ()
    texts = annotations.get(HIERARCHY_WEIGHTS, "").split("/")
    texts[0] = "1"  # that of the root, which is often a name
    weights = Fields(
        {str(at): text for at, text in enumerate(texts)}, f"metadata.annotations[{HIERARCHY_WEIGHTS}]", problems
    )
    if len(texts) != len(names):
        problems.add(
            f"metadata.annotations[{HIERARCHY_WEIGHTS}]",
            f"has {len(texts)} weights for {len(names)} names, so each counts as 1; give one for each",
        )
        return tuple((name, 1.0) for name in names)
    return tuple((name, weights.number(str(at), 1.0)) for at, name in enumerate(names))
