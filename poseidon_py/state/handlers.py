"""Passes reports of the watches to the store, without invalid objects."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from poseidon_py.kube.objects import InvalidField, Metadata, Node, Pod
from poseidon_py.state.listeners import PodListener
from poseidon_py.state.store import Store
from poseidon_py.util.metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T")


class PodHandler:
    """Passes reports of the watch of pods to listeners and a store."""

    def __init__(self, store: Store, listeners: Sequence[PodListener] = ()) -> None:
        self._store = store
        self._listeners = listeners

    def observe(self, item: Pod) -> None:
        self._tell(lambda listener: listener.observed(item))
        try:
            self._store.observe_pod(item)
        except ValueError as error:
            self.invalid(item.metadata, str(error))

    def removed(self, item: Pod) -> None:
        self._tell(lambda listener: listener.removed(item))
        self._store.remove_pod(item.metadata.uid)

    def listed(self, uids: set[str]) -> None:
        self._tell(lambda listener: listener.listed(uids))
        self._store.pods_listed(uids)

    def _tell(self, report: Callable[[PodListener], None]) -> None:
        """A defect of a listener does not keep pods from being scheduled."""
        for listener in self._listeners:
            try:
                report(listener)
            except Exception:
                log.exception("a listener to pods failed")

    def invalid(self, metadata: Metadata, problem: str) -> None:
        self._store.problems.of_pod(metadata.namespace, metadata.name, metadata.uid, problem)


class NodeHandler:
    """Passes reports of the watch of nodes to a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def observe(self, item: Node) -> None:
        self._store.observe_node(item)

    def removed(self, item: Node) -> None:
        self._store.problems.node_gone(item.metadata.uid)  # the store knows no node that was never valid
        known = self._store.nodes.get(item.metadata.name)
        if known is not None and known.uid == item.metadata.uid:
            self._store.remove_node(item.metadata.name)

    def listed(self, uids: set[str]) -> None:
        self._store.nodes_listed(uids)

    def invalid(self, metadata: Metadata, problem: str) -> None:
        self._store.problems.of_node(metadata.uid or metadata.name, metadata.name, problem)


class ObjectHandler(Generic[T]):
    """Keeps objects of another kind up to date: `put` takes existing objects, `drop` the keys of deleted ones.

    `key`: the key of an object, from its metadata. `put` may raise InvalidField.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Metadata], Any],
        put: Callable[[T], None],
        drop: Callable[[Any], None],
        metrics: Metrics,
    ) -> None:
        self._name = name
        self._key = key
        self._put = put
        self._drop = drop
        self._metrics = metrics
        self._uid: dict[Any, str] = {}
        self._warned: set[str] = set()
        """UIDs of invalid objects."""

    def observe(self, item: T) -> None:
        metadata: Metadata = item.metadata  # type: ignore[attr-defined]
        self._uid[self._key(metadata)] = metadata.uid
        try:
            self._put(item)
        except InvalidField as problem:
            self.invalid(metadata, str(problem))
        else:
            self._warned.discard(metadata.uid)

    def removed(self, item: T) -> None:
        metadata: Metadata = item.metadata  # type: ignore[attr-defined]
        key = self._key(metadata)
        self._warned.discard(metadata.uid)
        if self._uid.get(key) == metadata.uid:
            del self._uid[key]
            self._drop(key)

    def listed(self, uids: set[str]) -> None:
        for key in [key for key, uid in self._uid.items() if uid not in uids]:
            del self._uid[key]
            self._drop(key)
        self._warned &= uids

    def invalid(self, metadata: Metadata, problem: str) -> None:
        if metadata.uid not in self._warned:
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            log.warning("skipping %s %s: %s", self._name, name, problem)
            self._metrics.invalid.labels(self._name).inc()
        self._warned.add(metadata.uid)


def by_name(metadata: Metadata) -> str:
    return metadata.name


def by_namespace(metadata: Metadata) -> tuple[str, str]:
    return metadata.namespace, metadata.name
