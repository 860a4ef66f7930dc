"""ElasticQuotas of scheduler-plugins: each is the queue of its namespace; all lend to each other."""

from collections.abc import Iterable, Iterator

from poseidon_py.describe.queues.model import EVERY_NODE, Flavor, Queue, Quota, Rules, Stop, Tree, Victims
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.elastic_quota import ElasticQuota, elastic_quota
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUOTAS = Resource("scheduling.x-k8s.io", "elasticquotas", ("v1alpha1",))
_ALL = "elasticquotas/all"
"""Key of the parent of all quotas."""


class ElasticQuotas(Source):
    kind = "elasticquota"
    resources = (QUOTAS,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._quotas: dict[str, dict[str, ElasticQuota]] = {}
        """By namespace and name."""

    @property
    def in_use(self) -> bool:
        return bool(self._quotas)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        metadata = item.metadata
        quotas, now = self._quotas.setdefault(metadata.namespace, {}), elastic_quota(item)
        if quotas.get(metadata.name) == now:
            return set()
        quotas[metadata.name] = now
        return {(QUOTAS, metadata.namespace)}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        found = self._quotas.get(namespace, {})
        found.pop(name, None)
        if not found:
            self._quotas.pop(namespace, None)
        return {(QUOTAS, namespace)}

    def _of(self, namespace: str) -> ElasticQuota | None:
        """The quota of a namespace: of several the first by name."""
        found = self._quotas.get(namespace)
        return found[min(found)] if found else None

    def resolve(self, query: Query) -> Resolution:
        if name := query.label(keys.OWN):
            return Resolution(f"elasticquota/{name}", name, f"label {keys.OWN}")
        query.depends_on.add((QUOTAS, query.namespace))
        quota = self._of(query.namespace)
        if quota is None:
            return NO_QUEUE
        full = f"{quota.namespace}/{quota.name}"
        return Resolution(f"elasticquota/{full}", full, f"namespace {query.namespace}")

    def tree(self) -> Tree:
        return make_tree(self._queues(), (Flavor(EVERY_NODE),), Rules(), "spec")

    def _queues(self) -> Iterator[Queue]:
        if self._quotas:
            yield Queue(_ALL, "all elastic quotas")
        for namespace in self._quotas:
            quota = self._of(namespace)
            if quota is None:
                continue
            full = f"{quota.namespace}/{quota.name}"
            resources = dict.fromkeys((*quota.least, *quota.largest))
            yield Queue(
                f"elasticquota/{full}",
                full,
                _ALL,
                tuple(
                    Quota(EVERY_NODE, each, quota.least.get(each, 0), limit=quota.largest.get(each))
                    for each in resources
                ),
                within=Victims.LOWER_PRIORITY,
                reclaim=Victims.ANY,
                stop=Stop.HOLD if quota.closed_by else Stop.NONE,
            )

    def declared(self) -> Iterable[Declared]:
        for namespace, quotas in self._quotas.items():
            used = self._of(namespace)
            for name, quota in quotas.items():
                why = quota.closed_by
                if used is not None and quota is not used:
                    why = f"ElasticQuota {used.name} is the one of namespace {namespace}; merge the two"
                key = f"elasticquota/{namespace}/{name}"
                yield Declared(self.refs[QUOTAS, namespace, name], key if quota is used else "", quota.problems, why)
