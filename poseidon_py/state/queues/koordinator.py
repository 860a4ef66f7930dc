"""Koordinator's quotas: a tree by labels, whose names are unique in the cluster. Min first, then the surplus by weight.

A pod names its quota by a label; without it, its quota is that of its namespace, else the default one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    UNBOUNDED,
    Flavor,
    Queue,
    Quota,
    ReclaimRules,
    Rules,
    Sharing,
    Stop,
    Tree,
    Victims,
)
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.koordinator import (
    IS_PARENT,
    NAMESPACES,
    PARENT,
    ROOT,
    KoordinatorQuota,
    koordinator_quota,
)
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUOTAS = Resource("scheduling.sigs.k8s.io", "elasticquotas", ("v1alpha1",))
DEFAULT, SYSTEM = "koordinator-default-quota", "koordinator-system-quota"
_APART = (DEFAULT, SYSTEM)
"""Quotas without limits that Koordinator makes. They take what they request, and the others divide what is left."""
_RULES = Rules(Sharing.PROPORTIONAL, reclaim=ReclaimRules.FAIR_SHARE)
_BY_NAMESPACE = ("namespaces", QUOTAS)
"""What choices without a label depend on."""
_WEIGHED_BY = ("nvidia.com/gpu", "cpu", "memory")
"""Resources whose weights count before those of others."""


class Koordinator(Source):
    kind = "koordinator"
    resources = (QUOTAS,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._named: dict[str, dict[str, KoordinatorQuota]] = {}
        """By name and namespace."""

    @property
    def in_use(self) -> bool:
        return any(name not in (*_APART, ROOT) for name in self._named)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        namespace, name = item.metadata.namespace, item.metadata.name
        if name == ROOT:  # Koordinator's own keys on it ask for nothing
            self.remarks.pop(self.refs[QUOTAS, namespace, name], None)
        quotas, now = self._named.setdefault(name, {}), koordinator_quota(item)
        before = quotas.get(namespace)
        if before == now:
            return set()
        quotas[namespace] = now
        same = before is not None and before.namespaces == now.namespaces
        return {(QUOTAS, name)} if same else {(QUOTAS, name), _BY_NAMESPACE}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        found = self._named.get(name, {})
        found.pop(namespace, None)
        if not found:
            self._named.pop(name, None)
        return {(QUOTAS, name), _BY_NAMESPACE}

    def _of(self, name: str) -> KoordinatorQuota:
        """The quota with a name: that in the namespace of this name, else the first by namespace."""
        found = self._named[name]
        return found[name] if name in found else found[min(found)]

    def _used(self) -> Iterator[KoordinatorQuota]:
        return (self._of(name) for name in self._named if name != ROOT)

    # -- the queue of a choice --------------------------------------------------------------------------------

    def resolve(self, query: Query) -> Resolution:
        if name := query.label(keys.OWN):
            return _resolution(name, f"label {keys.OWN}")
        found = self.named(query)
        if found != NO_QUEUE:
            return self._with_terms(query, found)
        query.depends_on.add(_BY_NAMESPACE)
        if name := self._of_namespace(query.namespace):
            return self._with_terms(query, _resolution(name, f"namespace {query.namespace}"))
        if DEFAULT not in self._named or not query.takes_default:
            return NO_QUEUE
        return self._with_terms(query, _resolution(DEFAULT, f"label {keys.KOORDINATOR}"))

    def named(self, query: Query) -> Resolution:
        """Koordinator makes some quotas, without limits: where one of them does not exist, it is no queue."""
        name = query.label(keys.KOORDINATOR)
        if name in _APART:
            query.depends_on.add((QUOTAS, name))
        if not name or (name in _APART and name not in self._named):
            return NO_QUEUE
        return _resolution(name, f"label {keys.KOORDINATOR}")

    def _of_namespace(self, namespace: str) -> str:
        """The quota that has the name of the namespace and is in it, else the first by name that lists it."""
        if namespace in self._named.get(namespace, {}) and namespace != ROOT:
            return namespace
        return min((each.name for each in self._used() if namespace in each.namespaces), default="")

    def _with_terms(self, query: Query, found: Resolution) -> Resolution:
        return found._replace(preemptible=query.label(keys.KOORDINATOR_PREEMPTIBLE) != "false")

    # -- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Tree:
        quotas = list(self._used())
        parents = {each.parent for each in quotas}
        weights = _weights(each for each in quotas if each.name not in _APART)
        queues = [_queue(each, weights.get(each.name), self._closed_by(each, parents)) for each in quotas]
        return make_tree(queues, (Flavor(EVERY_NODE),), _RULES, f"label {PARENT}")

    @staticmethod
    def _closed_by(quota: KoordinatorQuota, parents: set[str]) -> str:
        """Why a quota takes no pods; empty: it does, or those below it do."""
        if quota.closed_by or not quota.is_parent or quota.name in parents:
            return quota.closed_by
        return f"label {IS_PARENT}: its pods are in quotas below it, and there is none; create one, or remove the label"

    def declared(self) -> Iterable[Declared]:
        parents = {each.parent for each in self._used()}
        for name, quotas in self._named.items():
            used = self._of(name)
            for namespace, quota in quotas.items():
                ref = self.refs[QUOTAS, namespace, name]
                if name == ROOT:
                    yield Declared(ref, "", quota.problems)
                elif quota is not used:
                    why = f"ElasticQuota {used.namespace}/{name} has the same name, and counts; rename one of them"
                    yield Declared(ref, "", quota.problems, why)
                else:
                    problems = (*quota.problems, *self._listed_elsewhere(quota))
                    yield Declared(ref, f"koordinator/{name}", problems, self._closed_by(quota, parents))

    def _listed_elsewhere(self, quota: KoordinatorQuota) -> Iterator[str]:
        for namespace in quota.namespaces:
            if (other := self._of_namespace(namespace)) != quota.name:
                yield f"{NAMESPACES}: ElasticQuota {other} is the one of namespace {namespace}; list it in one quota"


def _resolution(name: str, chosen_by: str) -> Resolution:
    if name != ROOT:
        return Resolution(f"koordinator/{name}", name, chosen_by)
    return Resolution(f"root/{name}", name, chosen_by, f"queue {name} takes no pods: name one below it in {chosen_by}")


def _weights(quotas: Iterable[KoordinatorQuota]) -> dict[str, float]:
    """Weights by name. A queue has one for all resources: that of the first one of which all quotas with its parent
    have a weight. Without such a resource they are equal."""
    siblings: dict[str, list[KoordinatorQuota]] = {}
    for quota in quotas:
        if quota.weights:
            siblings.setdefault(quota.parent, []).append(quota)
    found: dict[str, float] = {}
    for each in siblings.values():
        common = set.intersection(*(set(quota.weights) for quota in each))
        resource = next((name for name in (*_WEIGHED_BY, *sorted(common)) if name in common), None)
        if resource is not None:
            found |= {quota.name: float(quota.weights[resource]) for quota in each}
    return found


def _queue(quota: KoordinatorQuota, weight: float | None, closed_by: str) -> Queue:
    queue = Queue(
        f"koordinator/{quota.name}",
        quota.name,
        f"koordinator/{quota.parent}" if quota.parent else "",
        tuple(_quotas(quota)),
        weight=weight,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        stop=Stop.HOLD if closed_by else Stop.NONE,
    )
    if quota.name not in _APART:
        return queue
    quotas = (replace(each, nominal=UNBOUNDED if each.limit is None else each.limit) for each in queue.quotas)
    within = Victims.NEVER if quota.name == DEFAULT else queue.within
    return replace(queue, quotas=tuple(quotas), within=within, reclaim=Victims.NEVER)


def _quotas(quota: KoordinatorQuota) -> Iterator[Quota]:
    for resource in dict.fromkeys((*quota.least, *quota.largest)):
        least, limit = min(quota.least.get(resource, 0), UNBOUNDED), quota.largest.get(resource)
        unlimited = limit is None or limit >= UNBOUNDED
        yield Quota(EVERY_NODE, resource, least, limit=None if unlimited else limit)
