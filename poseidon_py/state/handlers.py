"""Passes reports of the watches of pods and nodes to the store, without invalid ones."""

import logging
from collections.abc import Callable, Sequence

from poseidon_py.kube.objects import Metadata, Node, Pod
from poseidon_py.state.listeners import PodListener
from poseidon_py.state.store import Store

log = logging.getLogger(__name__)


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
