"""The volumes that are attached to each node, for the limits of CSI drivers.

As kube-scheduler counts them (nodevolumelimits/csi.go): each volume once, however many pods of the node use it, and
also those that no pod uses any more but that are not detached yet (VolumeAttachment).

In the flow service, a volume that one bound pod of a node uses is part of what that pod requests. Those that several
use, or none, are taken off what the node offers: no such pod releases a slot by leaving.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from poseidon_py.describe.reason_keys import VOLUME_COUNT
from poseidon_py.describe.selectors import node_term
from poseidon_py.kube.objects import Requirement, SelectorTerm
from poseidon_py.state.volumes.cache import Storage
from poseidon_py.state.volumes.claims import VolumeDemands, slots

Attached = tuple[str, str]
"""Driver and handle."""


class Attachments:
    """`use` and `forget` the volumes of bound and assumed pods."""

    def __init__(self, storage: Storage, touch: Callable[[str], None], touch_node: Callable[[str], None]) -> None:
        """`touch`, `touch_node`: have a pod or node described again, because its share of the slots has changed."""
        self._storage = storage
        self._touch = touch
        self._touch_node = touch_node
        self._of_pod: dict[str, tuple[str, bool, frozenset[Attached]]] = {}
        """By UID: node, whether it is bound, and volumes."""
        self._users: dict[str, dict[Attached, dict[str, bool]]] = {}
        """Node -> volume -> UID of each user, and whether it is bound."""
        self._bound_users: Counter[Attached] = Counter()

    def use(self, uid: str, node: str, volumes: frozenset[Attached], *, bound: bool) -> bool:
        """A pod uses the volumes on its node; whether that is new."""
        if self._of_pod.get(uid) == (node, bound, volumes):
            return False
        self.forget(uid)
        if volumes:
            self._of_pod[uid] = node, bound, volumes
            users = self._users.setdefault(node, {})
            for volume in volumes:
                users.setdefault(volume, {})[uid] = bound
                self._bound_users[volume] += bound
            self._shares_changed(uid, node, volumes)
        return True

    def forget(self, uid: str) -> str:
        """The pod uses nothing any more; returns the node that it did on, empty: none."""
        node, bound, volumes = self._of_pod.pop(uid, ("", False, frozenset[Attached]()))
        for volume in volumes:
            self._bound_users[volume] -= bound
            if not self._bound_users[volume]:
                del self._bound_users[volume]
            users = self._users[node][volume]
            del users[uid]
            if not users:
                del self._users[node][volume]
        if node and not self._users[node]:
            del self._users[node]
        self._shares_changed(uid, node, volumes)
        return node

    def _shares_changed(self, uid: str, node: str, volumes: Collection[Attached]) -> None:
        others = {
            other
            for volume in volumes
            for other, bound in self._users.get(node, {}).get(volume, {}).items()
            if bound and other != uid
        }
        for other in others:
            self._touch(other)
        if volumes:
            self._touch_node(node)

    def own(self, uid: str) -> Counter[str]:
        """By driver, the volumes of a bound pod that no other bound pod of its node uses."""
        node, _, volumes = self._of_pod.get(uid, ("", True, frozenset[Attached]()))
        users = self._users.get(node, {})
        return Counter(driver for driver, handle in volumes if sum(users[driver, handle].values()) == 1)

    def limits(self, node: str) -> dict[str, int]:
        """By driver, how many volumes may be attached to the node beside those that no single pod accounts for."""
        limits = self._storage.limits(node)
        if limits:
            shared = Counter(driver for (driver, _), users in self._used_on(node) if sum(users.values()) > 1)
            shared.update(driver for driver, _ in self._left_on(node))
            limits = {driver: limit - shared[driver] for driver, limit in limits.items()}
        return limits

    def relieve(self, demands: VolumeDemands) -> bool:
        """Volumes that are attached to some node for bound pods need no further slot there. A pod requests the same on
        all nodes: so it requests no slot for them, and nodes are left out that have neither the volumes nor slots.
        Whether there are such volumes. Since several pods may get the same slot in one round, each is counted again
        afterwards (`takes`)."""
        shared = {volume for volume in demands.attached if volume in self._bound_users}
        if shared:
            full = sorted(node for node in self._storage.csi_nodes if not self.takes(node, demands.attached))
            if full:
                others = Requirement(key="metadata.name", operator="NotIn", values=full)
                demands.require(VOLUME_COUNT, [node_term(SelectorTerm(fields=[others]), "")])
            demands.requests = slots(Counter(driver for driver, _ in demands.attached - shared))
        return bool(shared)

    def takes(self, node: str, volumes: Collection[Attached]) -> bool:
        """Whether all volumes can be attached to the node, beside those of bound and assumed pods."""
        limits = self._storage.limits(node)
        here = {volume for volume, _ in self._used_on(node)}
        requested = Counter(driver for driver, _ in {*volumes} - here)
        if not limits.keys() & requested.keys():
            return True
        taken = Counter(driver for driver, _ in here) + Counter(driver for driver, _ in self._left_on(node))
        return all(taken[driver] + count <= limits[driver] for driver, count in requested.items() if driver in limits)

    def _used_on(self, node: str) -> Iterator[tuple[Attached, Mapping[str, bool]]]:
        yield from self._users.get(node, {}).items()

    def _left_on(self, node: str) -> set[Attached]:
        """Volumes that are attached to the node, and used by no pod there."""
        return self._storage.attached_to(node) - self._users.get(node, {}).keys()
