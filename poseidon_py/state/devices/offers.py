"""What nodes offer in columns: what is free, and what the pods count as that the engine has there.

An extended resource is served by devices where the node itself has none of it: what a device plugin serves there is not
added up with what devices serve.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from poseidon_py.devices.book import UNLIMITED, DeviceBook
from poseidon_py.devices.column_names import SERVED
from poseidon_py.devices.columns import Kind
from poseidon_py.devices.device_quotas import NO_QUOTAS, DeviceQuotas
from poseidon_py.devices.device_requests import Request

Columns = tuple[tuple[str, int], ...]


class DeviceOffers:
    """`count` and `uncount` pods, `join` and `leave` kinds, then `of`."""

    def __init__(
        self,
        book: DeviceBook,
        touch_node: Callable[[str], None],
        touch_nodes: Callable[[], None],
        quotas: Callable[[], DeviceQuotas] = lambda: NO_QUOTAS,
    ) -> None:
        """`touch_node`, `touch_nodes`: have a node, or all, described again. `quotas`: what devices count as."""
        self._quotas = quotas
        self._book = book
        self._touch_node = touch_node
        self._touch_nodes = touch_nodes
        self._counted: dict[str, dict[str, tuple[Columns, tuple[tuple[str, Request], ...]]]] = {}
        """Node -> UID of a pod that the engine has there -> what it counts as, and its extended resources."""
        self._node: dict[str, str] = {}
        """UID of such a pod -> its node."""
        self._waiting: dict[Kind, set[str]] = {}
        """Kinds with a column of their own -> UIDs of pending pods."""
        self._kind: dict[str, Kind] = {}

    def count(self, uid: str, node: str, columns: Columns, kind: Kind) -> None:
        """The engine has a pod of a kind on a node, where it counts as that."""
        now = columns, kind.extended
        if self._node.get(uid) == node and self._counted[node][uid] == now:
            return
        self.uncount(uid)
        if columns:
            self._node[uid] = node
            self._counted.setdefault(node, {})[uid] = now
            self._touch_node(node)

    def uncount(self, uid: str) -> None:
        node = self._node.pop(uid, "")
        if node:
            del self._counted[node][uid]
            if not self._counted[node]:
                del self._counted[node]
            self._touch_node(node)

    def join(self, uid: str, kind: Kind) -> None:
        """A pending pod is of a kind that has a column of its own."""
        if self._kind.get(uid) == kind:
            return
        self.leave(uid)
        self._kind[uid] = kind
        pods = self._waiting.setdefault(kind, set())
        pods.add(uid)
        if len(pods) == 1:
            self._touch_nodes()

    def leave(self, uid: str) -> None:
        kind = self._kind.pop(uid, None)
        if kind is not None:
            self._waiting[kind].discard(uid)
            if not self._waiting[kind]:
                del self._waiting[kind]

    def of(self, node: str, labels: Mapping[str, str], allocatable: Mapping[str, int]) -> Columns:
        """Of a node that offers `allocatable` itself."""
        book, quotas = self._book, self._quotas()
        if not (book.known.number or self._waiting or quotas.resource_of):
            return ()
        counted, requested = Counter[str](), Counter[str]()
        for columns, extended in self._counted.get(node, {}).values():
            counted.update(dict(columns))
            for resource, request in extended:
                requested[resource] += request.alternatives[0].number
        free = book.free(node, labels)
        found = {column: min(amount + counted[column], UNLIMITED) for column, amount in free.items()}
        for resource, column in book.sets_serving().items():
            if allocatable.get(resource, 0) > 0:
                found[SERVED + resource] = UNLIMITED
            else:
                found[SERVED + resource] = min(free[column] + counted[SERVED + resource], UNLIMITED)
                found[resource] = min(free[column] + requested[resource], UNLIMITED)
        for resource, classes in quotas.classes_of.items():
            if (own := allocatable.get(resource, 0)) > 0:  # what its device plugin serves, claims take nothing of
                found[resource] = own + counted[resource]
                continue
            there, unused = book.of_classes(node, labels, classes)
            plugged = sum(allocatable.get(name, 0) for name in book.resources_of(classes))
            used = counted[resource] + requested[resource]
            found[resource] = min(max(there, unused + used) + plugged, UNLIMITED)
        for kind in self._waiting:
            claims = kind.claims_on(lambda resource: allocatable.get(resource, 0) > 0)
            copies = book.copies(node, labels, kind, claims) if claims else UNLIMITED
            found[kind.column] = min(copies + counted[kind.column], UNLIMITED)
        return tuple(sorted((column, amount) for column, amount in found.items() if amount))
