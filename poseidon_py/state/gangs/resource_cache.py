"""The objects of one resource, kept up to date by its watch."""

import logging
from collections.abc import Callable
from typing import Protocol

from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.objects import InvalidField, Metadata
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.decode import Item, owner_or_group_of, same
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource

log = logging.getLogger(__name__)

_GONE_KEPT = 20_000
_WITHOUT = "gangs and queues that its objects declare for pods are ignored, and their selectors for spreading"
_WITHOUT_CLASSES = "no pod that names a PriorityClass is preempted"


class Changed(Protocol):
    def __call__(self, resource: Resource, owner_or_group: OwnerOrGroup, *, gone: bool = False) -> None: ...


class ResourceCache:
    """The objects of one resource; the handler of its watch."""

    def __init__(
        self,
        resource: Resource,
        changed: Changed,
        metrics: Metrics,
        settled: Callable[[], None] = lambda: None,
        *,
        is_owner: bool = False,
        metadata_only: bool = False,
    ) -> None:
        """`settled`: called when it is known whether there are objects. `is_owner`: the metadata of an object tells
        something."""
        self.resource = resource
        self.informer = Informer(
            resource,
            self,
            Item,
            _WITHOUT_CLASSES if resource == PRIORITY_CLASSES else _WITHOUT,
            settled=settled,
            metadata_only=metadata_only,
            metadata_suffices=is_owner,
        )
        self.by_name: dict[tuple[str, str], OwnerOrGroup] = {}
        self.by_uid: dict[str, OwnerOrGroup] = {}
        self.gone: dict[str, None] = {}
        """UIDs of owners that do not exist, the latest last."""
        self._changed = changed
        self._warned: set[str] = set()
        """UIDs of invalid objects."""
        self._untold: set[str] = set()
        """UIDs of objects whose last change was not taken, because of a defect: the next list reports them again."""
        self._metrics = metrics

    def observe(self, item: Item) -> None:
        try:
            entry = owner_or_group_of(
                self.resource, item, metadata_only=self.informer.metadata_only, problem=self.informer.left_out
            )
        except InvalidField as problem:
            self.invalid(item.metadata, str(problem))
            return
        self._warned.discard(entry.uid)
        before = self.by_uid.get(entry.uid)
        other = self.by_name.get((entry.namespace, entry.name))
        if other is not None and other.uid != entry.uid:
            self._drop(other)
        self.by_name[entry.namespace, entry.name] = self.by_uid[entry.uid] = entry
        self.gone.pop(entry.uid, None)
        if entry.uid in self._untold or not same(before, entry):
            self._untold.add(entry.uid)
            self._changed(self.resource, entry)
            self._untold.discard(entry.uid)

    def removed(self, item: Item) -> None:
        self._warned.discard(item.metadata.uid)
        entry = self.by_uid.get(item.metadata.uid)
        if entry is not None:
            self._drop(entry)

    def listed(self, uids: set[str]) -> None:
        for entry in [entry for uid, entry in self.by_uid.items() if uid not in uids]:
            self._drop(entry)
        self._warned &= uids

    def invalid(self, metadata: Metadata, problem: str) -> None:
        if metadata.uid in self._warned:
            return
        self._warned.add(metadata.uid)
        self._metrics.invalid.labels(self.resource.plural).inc()
        log.warning("skipping %s %s/%s: %s", self.resource.label, metadata.namespace, metadata.name, problem)

    def missing(self, uid: str) -> None:
        """Record that an owner does not exist, and will not appear."""
        self.gone.pop(uid, None)  # an assignment alone does not make it the latest
        self.gone[uid] = None
        if len(self.gone) > _GONE_KEPT:
            del self.gone[next(iter(self.gone))]

    def _drop(self, entry: OwnerOrGroup) -> None:
        del self.by_uid[entry.uid]
        self._untold.discard(entry.uid)
        if self.by_name.get((entry.namespace, entry.name)) is entry:
            del self.by_name[entry.namespace, entry.name]
        self.missing(entry.uid)
        self._changed(self.resource, entry, gone=True)

    def clear(self) -> None:
        for entry in list(self.by_uid.values()):
            self._drop(entry)
