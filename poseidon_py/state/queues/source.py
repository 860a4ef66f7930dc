"""What one project's queues are: the objects that are watched, the tree they make, the queue of each choice."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from poseidon_py.describe.queues.model import Tree
from poseidon_py.kube.queue_objects.fields import QueueObject
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

    @property
    @abstractmethod
    def in_use(self) -> bool:
        """Whether users have declared queues."""

    def put(self, resource: Resource, item: QueueObject) -> Touched:
        """An object exists or has changed. Returns what that concerns."""
        metadata = item.metadata
        key = (resource, metadata.namespace, metadata.name)
        before, self.refs[key] = self.refs.get(key), Ref(*key, metadata.uid)
        touched = self._put(resource, item)
        return touched or ({key} if before != self.refs[key] else touched)

    def drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        """An object is gone."""
        self.refs.pop((resource, namespace, name), None)
        return self._drop(resource, namespace, name)

    @abstractmethod
    def _put(self, resource: Resource, item: QueueObject) -> Touched: ...

    @abstractmethod
    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched: ...

    @abstractmethod
    def tree(self) -> Tree:
        """All queues."""

    @abstractmethod
    def resolve(self, query: Query) -> Resolution:
        """The queue of a choice."""

    def named(self, query: Query) -> Resolution:
        """The queue of a choice that names one in the way of this kind, whether or not it exists."""
        return NO_QUEUE

    @abstractmethod
    def declared(self) -> Iterable[Declared]:
        """All objects, with their problems apart from those of the tree."""

    def closed(self) -> Mapping[str, str]:
        """Key -> why a queue or local queue takes no pods, of those that nobody has stopped on purpose."""
        return {each.key: each.inactive for each in self.declared() if each.inactive and each.reason != STOPPED}
