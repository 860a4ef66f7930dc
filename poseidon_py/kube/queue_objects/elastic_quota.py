"""The kind ElasticQuota of scheduler-plugins (scheduling.x-k8s.io/v1alpha1)."""

from dataclasses import dataclass

from poseidon_py.kube.queue_objects.fields import Problems, QueueObject, spec_of


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    namespace: str
    name: str
    least: dict[str, int]
    largest: dict[str, int]
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes it; empty: none does."""


def elastic_quota(item: QueueObject) -> ElasticQuota:
    problems = Problems(())
    spec = spec_of(item, problems)
    least, largest = spec.amounts("min"), spec.amounts("max")
    for resource, amount in least.items():
        if amount > largest.get(resource, amount):
            spec.part("max").remark(resource, "is less than min; raise it, or lower spec.min")
    return ElasticQuota(item.metadata.namespace, item.metadata.name, least, largest, problems.all, problems.closing)
