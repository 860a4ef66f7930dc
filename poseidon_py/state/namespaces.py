"""The namespaces with their labels, for the engine, and those whose pods may be moved unless they say otherwise."""

from collections.abc import Callable

from poseidon_py.describe.annotations.movable import namespace_is_movable
from poseidon_py.kube.objects import Labels, decode
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2


class Namespaces:
    """`observe` and `remove`."""

    def __init__(self, touch_pods: Callable[[str], None], metrics: Metrics) -> None:
        """`touch_pods`: describes the bound pods of a namespace again."""
        self._touch_pods = touch_pods
        self.messages: dict[str, flow_pb2.Namespace] = {}
        """By name; a deleted one is kept without labels until that has been sent to the engine."""
        self.queue: KeyedQueue[str] = KeyedQueue("namespaces", metrics=metrics)
        self.movable: set[str] = set()
        """Those whose pods may be moved unless they say otherwise."""

    def observe(self, item: Namespace) -> None:
        """Raises InvalidField."""
        name = item.metadata.name
        labels = decode(item.metadata.labels, Labels, "metadata.labels") or {}
        known = self.messages.get(name)
        if known is None or dict(known.labels) != labels:
            self.messages[name] = flow_pb2.Namespace(name=name, labels=labels)
            self.queue.add(name)
            self._set_movable(name, namespace_is_movable(labels))

    def remove(self, name: str) -> None:
        if name in self.messages:
            self.messages[name] = flow_pb2.Namespace(name=name)
            self.queue.add(name)
            self._set_movable(name, False)

    def _set_movable(self, namespace: str, movable: bool) -> None:
        if movable != (namespace in self.movable):
            (self.movable.add if movable else self.movable.discard)(namespace)
            self._touch_pods(namespace)
