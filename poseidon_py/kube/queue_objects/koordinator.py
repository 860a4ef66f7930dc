"""Koordinator's kind ElasticQuota (scheduling.sigs.k8s.io/v1alpha1): amounts in its spec, all else in metadata."""

from dataclasses import dataclass

from msgspec import Raw

from poseidon_py.kube.objects import InvalidField, annotations_of, labels_of
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded, spec_of

_PREFIX = "quota.scheduling.koordinator.sh"
PARENT = f"{_PREFIX}/parent"
IS_PARENT = f"{_PREFIX}/is-parent"
NAMESPACES = f"{_PREFIX}/namespaces"
SHARED_WEIGHT = f"{_PREFIX}/shared-weight"
ROOT = "koordinator-root-quota"
"""The parent of quotas that name none. Koordinator makes an object of it, which says nothing."""
_BOOLEANS = ("true", "false")


@dataclass(frozen=True, slots=True)
class KoordinatorQuota:
    namespace: str
    name: str
    parent: str
    """Empty: it is at the top."""
    least: dict[str, int]
    largest: dict[str, int]
    weights: dict[str, int]
    """Resource -> its part of the surplus, relative to those of its siblings."""
    is_parent: bool
    namespaces: tuple[str, ...]
    """Whose pods are in it without naming it."""
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""


def koordinator_quota(item: QueueObject) -> KoordinatorQuota:
    problems = Problems((IS_PARENT, SHARED_WEIGHT))
    spec = spec_of(item, problems)
    least, largest = spec.amounts("min"), spec.amounts("max")
    for resource, amount in least.items():
        if amount > largest.get(resource, amount):
            spec.part("max").remark(resource, "is less than min; raise it, or lower spec.min")
    labels, annotations = _keys(item, problems)
    parent = labels.text(PARENT)
    weights = annotations.amounts(SHARED_WEIGHT)
    return KoordinatorQuota(
        item.metadata.namespace,
        item.metadata.name,
        "" if parent == ROOT else parent,
        least,
        largest,
        weights if any(weights.values()) else largest,
        labels.choice(IS_PARENT, _BOOLEANS, "false") == "true",
        annotations.texts(NAMESPACES),
        problems.all,
        problems.closing,
    )


def _keys(item: QueueObject, problems: Problems) -> tuple[Fields, Fields]:
    """The labels, and the annotations that hold JSON, decoded."""
    try:
        labels, annotations = labels_of(item.metadata), annotations_of(item.metadata)
    except InvalidField as problem:
        problems.refuse(f"{problem.field}: {problem.reason}")
        return Fields({}, "", problems), Fields({}, "", problems)
    texts = {key: annotations.get(key, "") for key in (NAMESPACES, SHARED_WEIGHT)}
    values = {key: decoded(Raw(text.encode()), key, problems) for key, text in texts.items() if text}
    return Fields(labels, "", problems), Fields(values, "", problems)
