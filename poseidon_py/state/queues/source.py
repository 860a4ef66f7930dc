"""What one project's queues are: the objects that are watched, the tree they make, the queue of each choice."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

from poseidon_py.conventions.fields import NO_REMARKS, Remarks, remarks_on
from poseidon_py.conventions.keys import remarks_on_object
from poseidon_py.conventions.table import kind_table
from poseidon_py.describe.queues.model import Tree
from poseidon_py.devices.device_quotas import DeviceQuotas, quotas_by_class
from poseidon_py.kube.queue_objects.fields import Problems, QueueObject, decoded
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution

Touched = set[Hashable]
"""What has changed, as `Query.depends_on` names it; empty: nothing has."""

STOPPED = "Stopped"
"""The reason of what its owner has stopped."""


class Ref(NamedTuple):
    """An object that declares something about queues."""

    resource: Resource
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.label} {name}"


class Declared(NamedTuple):
    """What is known of an object. `key`: that of its queue, empty if it is none."""

    ref: Ref
    key: str = ""
    problems: tuple[str, ...] = ()
    """Invalid or unsupported fields, each with the remedy."""
    inactive: str = ""
    """Why it takes no pods; empty: it does."""
    reason: str = ""
    """The same in one word, for conditions; empty: it is misconfigured."""
    remarks: tuple[str, ...] = ()
    """Those of `problems` that tell of fields, labels and annotations without effect, and of nothing that is wrong."""


KINDS = {
    "clusterqueues": "ClusterQueue",
    "cohorts": "Cohort",
    "configmaps": "ConfigMap",
    "elasticquotas": "ElasticQuota",
    "localqueues": "LocalQueue",
    "queues": "Queue",
    "resourceflavors": "ResourceFlavor",
    "schedulingshards": "SchedulingShard",
    "topologies": "Topology",
    "workloadpriorityclasses": "WorkloadPriorityClass",
}
"""Kinds of the resources."""


def _remarks(resource: Resource, item: QueueObject) -> Remarks:
    keys = remarks_on_object(bytes(item.metadata.labels), bytes(item.metadata.annotations))
    kind = kind_table(resource.group, KINDS[resource.plural])
    if kind is None:
        return keys
    problems = Problems()  # the source reports them itself
    content = {"spec": decoded(item.spec, "spec", problems), "value": decoded(item.value, "value", problems)}
    fields = remarks_on(kind, content)
    return Remarks(fields.reported + keys.reported, fields.refused + keys.refused)


class Source(ABC):
    """The queues of one project. `put` and `drop` objects; `tree` and `resolve` describe the present ones."""

    kind: str
    """As --queues names it."""
    resources: tuple[Resource, ...]
    limit_nothing: tuple[Resource, ...] = ()
    """Those of `resources` whose objects limit nothing."""
    selectors: Mapping[Resource, str] = MappingProxyType({})
    """Field selectors, of resources of which a few objects matter."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.namespaces = namespaces
        self.refs: dict[tuple[Resource, str, str], Ref] = {}
        self.remarks: dict[Ref, Remarks] = {}
        """What is said of the fields, labels and annotations of objects, if anything is."""

    @property
    @abstractmethod
    def in_use(self) -> bool:
        """Whether users have declared queues."""

    def put(self, resource: Resource, item: QueueObject) -> Touched:
        """An object exists or has changed. Returns what that concerns."""
        metadata = item.metadata
        key = (resource, metadata.namespace, metadata.name)
        before, ref = self.refs.get(key), Ref(*key, metadata.uid)
        self.refs[key] = ref
        published = self.remarks.pop(ref, NO_REMARKS)
        if (remarks := _remarks(resource, item)) != NO_REMARKS:
            self.remarks[ref] = remarks
        touched = self._put(resource, item)
        return touched or ({key} if (before, published) != (ref, remarks) else touched)

    def drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        """An object is gone."""
        if (ref := self.refs.pop((resource, namespace, name), None)) is not None:
            self.remarks.pop(ref, None)
        return self._drop(resource, namespace, name)

    @abstractmethod
    def _put(self, resource: Resource, item: QueueObject) -> Touched: ...

    @abstractmethod
    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched: ...

    @abstractmethod
    def tree(self) -> Tree:
        """All queues."""

    def device_quotas(self, tree: Tree) -> DeviceQuotas:
        """What devices of claims count as. `tree`: the present one."""
        return quotas_by_class(quota.resource for queue in tree.queues for quota in queue.quotas)

    @abstractmethod
    def resolve(self, query: Query) -> Resolution:
        """The queue of a choice."""

    def named(self, query: Query) -> Resolution:
        """The queue of a choice that names one in the way of this kind, whether or not it exists."""
        return NO_QUEUE

    def has_default(self, namespace: str) -> bool:
        """Whether owners of pods in a namespace that name no queue count as if they named one."""
        return False

    @abstractmethod
    def declared(self) -> Iterable[Declared]:
        """All objects, with their problems apart from those of the tree."""

    def all_declared(self) -> Iterable[Declared]:
        """The same with what is said of their fields, labels and annotations: what is refused closes a queue."""
        for each in self.declared():
            remarks = self.remarks.get(each.ref)
            if remarks is not None:
                problems = (*each.problems, *remarks.refused, *remarks.reported)
                each = each._replace(problems=problems, remarks=(*each.remarks, *remarks.reported))
                if remarks.refused and not each.inactive:
                    each = each._replace(inactive=remarks.refused[0], reason="")
            yield each

    def closed(self) -> Mapping[str, str]:
        """Key -> why a queue or local queue takes no pods, of those that nobody has stopped on purpose."""
        return {each.key: each.inactive for each in self.all_declared() if each.inactive and each.reason != STOPPED}

    def refused(self) -> Set[str]:
        """Keys of queues of which something is refused."""
        return {each.key for each in self.declared() if each.ref in self.remarks and self.remarks[each.ref].refused}
