"""What pods say about their queue, and what it resolves to.

Pods that say the same, in the same namespace and with the same owner, share one choice, which is resolved once. What
the resolution depends on is recorded, so that a change of an object finds the choices that it concerns.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from poseidon_py.kube.queue_objects.keys import Pairs
from poseidon_py.state.gangs.model import MAX_OWNERS, OwnerOrGroup, Resource, Unknown


class Choice(NamedTuple):
    """What a pod says about its queue."""

    namespace: str
    labels: Pairs = ()
    annotations: Pairs = ()
    owner: str = ""
    """UID of its controller."""
    assigned: bool = True
    """Whether this scheduler places it; pods of others count only where they are said to be in a queue."""


class Resolution(NamedTuple):
    """The queue of pods. `key`: that of a queue in the tree, or of one that does not exist; empty: no quota concerns
    the pods."""

    key: str = ""
    name: str = ""
    """Of the queue, as messages show it."""
    chosen_by: str = ""
    """Where the pods name it, as messages show it."""
    problem: str = ""
    """Why no queue takes the pods, and the remedy; empty: see the queue."""
    priority: int | None = None
    """That the queue gives the pods; None: their own."""
    never_preempts: bool = False
    running_key: str = ""
    """Key of the queue of the running ones; empty: the same."""
    preemptible: bool = True
    """Whether they may be preempted, unless they say otherwise."""
    notice: float | None = None
    """Seconds between the announcement of their preemption and the preemption; None: the queue does not say."""
    local_key: str = ""
    """Key of the local queue that they come through; empty: none."""
    topology_levels: tuple[str, ...] = ()
    """Node labels of the level of topology that they prefer and of those above it, the narrowest first."""
    workload: str = ""
    """UID of the owner whose pods the queue admits together; empty: it admits each by itself."""
    workload_us: int = 0
    """When that was created, microseconds since the epoch."""
    node_pool: str | None = None
    """The pool of nodes to which they are confined; empty: nodes without one; None: to none."""


NO_QUEUE = Resolution()


class Objects(Protocol):
    """The owners and groups that conventions of gangs watch."""

    def known_owner(self, uid: str) -> OwnerOrGroup | None: ...
    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None: ...


@dataclass(slots=True)
class Namespaces:
    """Labels and annotations of namespaces, by name."""

    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    annotations: dict[str, Mapping[str, str]] = field(default_factory=dict)


class Query:
    """One resolution: what the choice says, and what the answer depends on."""

    def __init__(
        self, choice: Choice, namespaces: Namespaces, objects: Objects, pod: Callable[[str], Choice | None]
    ) -> None:
        """`pod`: what a pod says, by UID; pods can own others, as the driver of a Spark application its executors."""
        self.namespace = choice.namespace
        self.takes_default = choice.assigned
        """Whether pods that name no queue are in one that is called the default."""
        self.depends_on: set[Hashable] = set()
        self.unknown = False
        """Whether something is being looked up, so that the answer may change."""
        self._choice = choice
        self._namespaces = namespaces
        self._objects = objects
        self._pod = pod

    def label(self, key: str) -> str:
        """A label of the pods, or of the closest owner that has it; empty: there is none."""
        return next((found for labels, _ in self._levels() for name, found in labels if name == key and found), "")

    def annotation(self, key: str) -> str:
        """An annotation of the pods, or of the closest owner that has it; empty: there is none."""
        return next(
            (found for _, annotations in self._levels() for name, found in annotations if name == key and found), ""
        )

    def _levels(self) -> Iterator[tuple[Pairs, Pairs]]:
        """Labels and annotations of the pods, their owner, the owner of that, and so on."""
        yield self._choice.labels, self._choice.annotations
        uid = self._choice.owner
        for _ in range(MAX_OWNERS):
            if not uid:
                return
            self.depends_on.add(("owner", uid))
            if (owner := self._objects.known_owner(uid)) is not None:
                yield owner.queue_labels, owner.queue_annotations
                uid = owner.owner.uid if owner.owner is not None else ""
            elif (pod := self._pod(uid)) is not None:
                yield pod.labels, pod.annotations
                uid = pod.owner
            else:
                return

    def owners(self) -> list[OwnerOrGroup]:
        """The owner of the pods, the owner of that, and so on, as far as they are known."""
        found: list[OwnerOrGroup] = []
        uid = self._choice.owner
        while uid and len(found) < MAX_OWNERS:
            self.depends_on.add(("owner", uid))
            if (owner := self._objects.known_owner(uid)) is None:
                break
            found.append(owner)
            uid = owner.owner.uid if owner.owner is not None else ""
        return found

    def group(self, resource: Resource, name: str) -> OwnerOrGroup | None:
        """A group in the namespace of the pods."""
        return self.object(resource, self.namespace, name)

    def object(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        """An object; empty namespace: of the cluster."""
        self.depends_on.add((resource, namespace, name))
        try:
            return self._objects.find(resource, namespace, name)
        except Unknown:
            self.unknown = True
            return None

    def namespace_labels(self) -> Mapping[str, str]:
        self.depends_on.add(("namespace", self.namespace))
        return self._namespaces.labels.get(self.namespace, {})

    def namespace_annotations(self) -> Mapping[str, str]:
        self.depends_on.add(("namespace", self.namespace))
        return self._namespaces.annotations.get(self.namespace, {})
