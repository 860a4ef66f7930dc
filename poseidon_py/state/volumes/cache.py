"""The storage objects of the cluster: claims, volumes, classes, drivers, capacities. Lookups only, no decisions.

Filled by the watches of storage objects, which start with the first pod that has a claim. Sizes are in bytes: requests
are rounded up, capacities down.
"""

from dataclasses import dataclass, field

from msgspec import Raw

from poseidon_py.kube.objects import InvalidField, Labels, Metadata, annotations_of, decode, labels_of
from poseidon_py.kube.quantity import NANO, QuantityError, nanos
from poseidon_py.kube.storage_objects import (
    Capacity,
    Claim,
    CsiDriver,
    CsiNode,
    StorageClass,
    Volume,
    VolumeAttachment,
)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"

ClaimKey = tuple[str, str]
"""Namespace and name."""


class StorageListener:
    """What a change of storage objects concerns. Ignores everything; subclasses override what concerns them."""

    def claim_changed(self, key: ClaimKey) -> None:
        """A claim, or the volume that it names or is named by, has changed."""

    def class_changed(self, name: str) -> None:
        """The unclaimed volumes of a class, or what can be provisioned, have changed."""

    def mode_changed(self, name: str) -> None:
        """A class has appeared, disappeared or changed its binding mode."""

    def node_changed(self, name: str) -> None:
        """The number of volumes that can be attached to a node has changed."""

    def limits_changed(self) -> None:
        """A driver has got its first node with a limit, or lost the last."""


@dataclass(slots=True)
class Storage:
    """Objects by name, claims by namespace and name. Announces changes to its listener."""

    claims: dict[ClaimKey, Claim] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    drivers: dict[str, CsiDriver] = field(default_factory=dict)
    capacities: dict[ClaimKey, Capacity] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNode] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    by_node: dict[str, dict[str, VolumeAttachment]] = field(default_factory=dict)
    """Node -> attachments by name."""
    of_class: dict[str, dict[str, Volume]] = field(default_factory=dict)
    """Class name -> volumes by name."""
    named_by: dict[str, dict[ClaimKey, None]] = field(default_factory=dict)
    """Volume name -> the claims whose spec.volumeName it is; the volume may not refer back to them yet."""
    reserved: dict[str, ClaimKey] = field(default_factory=dict)
    """Volume name -> the claim that it was chosen for, until the watch shows its claimRef."""
    limited: dict[str, int] = field(default_factory=dict)
    """Driver name -> number of nodes that limit how many of its volumes can be attached."""
    ready: bool = False
    """Whether every watch has listed once."""
    listener: StorageListener = field(default_factory=StorageListener)

    # -- updates from the watches -------------------------------------------------------------------------------

    def put_claim(self, claim: Claim) -> None:
        key = (claim.metadata.namespace, claim.metadata.name)
        self._forget_name(key)
        self.claims[key] = claim
        if claim.spec.volume_name:
            self.named_by.setdefault(claim.spec.volume_name, {})[key] = None
        self.listener.claim_changed(key)

    def drop_claim(self, key: ClaimKey) -> None:
        self._forget_name(key)
        if self.claims.pop(key, None) is not None:
            self.listener.claim_changed(key)

    def _forget_name(self, key: ClaimKey) -> None:
        old = self.claims.get(key)
        name = old.spec.volume_name or "" if old is not None else ""
        if name in self.named_by:
            self.named_by[name].pop(key, None)
            if not self.named_by[name]:
                del self.named_by[name]

    def put_volume(self, volume: Volume) -> None:
        name = volume.metadata.name
        old = self.volumes.get(name)
        self.volumes[name] = volume
        if old is not None and class_of(old) != class_of(volume):
            self.of_class[class_of(old)].pop(name, None)
        self.of_class.setdefault(class_of(volume), {})[name] = volume
        if volume.spec.claim is not None:
            self.reserved.pop(name, None)
        self._volume_changed(old, volume)

    def drop_volume(self, name: str) -> None:
        old = self.volumes.pop(name, None)
        if old is not None:
            self.of_class[class_of(old)].pop(name, None)
            self.reserved.pop(name, None)
            self._volume_changed(old, None)

    def _volume_changed(self, *states: Volume | None) -> None:
        present = [volume for volume in states if volume is not None]
        concerned = {(v.spec.claim.namespace, v.spec.claim.name): None for v in present if v.spec.claim is not None}
        for volume in present:
            concerned |= self.named_by.get(volume.metadata.name, {})
        for key in concerned:
            self.listener.claim_changed(key)
        if any(volume.spec.claim is None for volume in present):
            for name in {class_of(volume) for volume in present}:
                self.listener.class_changed(name)

    def put_class(self, item: StorageClass) -> None:
        old = self.classes.get(item.metadata.name)
        self.classes[item.metadata.name] = item
        if old is None or old.binding_mode != item.binding_mode:
            self.listener.mode_changed(item.metadata.name)
        self.listener.class_changed(item.metadata.name)

    def drop_class(self, name: str) -> None:
        if self.classes.pop(name, None) is not None:
            self.listener.mode_changed(name)

    def put_driver(self, item: CsiDriver) -> None:
        self.drivers[item.metadata.name] = item
        self._driver_changed(item.metadata.name)

    def drop_driver(self, name: str) -> None:
        if self.drivers.pop(name, None) is not None:
            self._driver_changed(name)

    def _driver_changed(self, driver: str) -> None:
        for name, item in self.classes.items():
            if item.provisioner == driver:
                self.listener.class_changed(name)

    def put_capacity(self, item: Capacity) -> None:
        self.capacities[item.metadata.namespace, item.metadata.name] = item
        self.listener.class_changed(item.class_name)

    def drop_capacity(self, key: ClaimKey) -> None:
        old = self.capacities.pop(key, None)
        if old is not None:
            self.listener.class_changed(old.class_name)

    def put_csi_node(self, item: CsiNode) -> None:
        before = self.limits(item.metadata.name)
        self.csi_nodes[item.metadata.name] = item
        self._limits_changed(item.metadata.name, before)

    def drop_csi_node(self, name: str) -> None:
        before = self.limits(name)
        if self.csi_nodes.pop(name, None) is not None:
            self._limits_changed(name, before)

    def put_attachment(self, item: VolumeAttachment) -> None:
        name, node = item.metadata.name, item.spec.node
        known = self.attachments.get(name)
        self.attachments[name] = self.by_node.setdefault(node, {})[name] = item
        if known is None:
            self.listener.node_changed(node)

    def drop_attachment(self, name: str) -> None:
        item = self.attachments.pop(name, None)
        if item is not None:
            there = self.by_node[item.spec.node]
            del there[name]
            if not there:
                del self.by_node[item.spec.node]
            self.listener.node_changed(item.spec.node)

    def _limits_changed(self, node: str, before: dict[str, int]) -> None:
        drivers = set(self.limited)
        for limits, sign in ((before, -1), (self.limits(node), 1)):
            for driver in limits:
                self.limited[driver] = self.limited.get(driver, 0) + sign
        self.limited = {driver: nodes for driver, nodes in self.limited.items() if nodes}
        if set(self.limited) != drivers:
            self.listener.limits_changed()
        self.listener.node_changed(node)

    # -- answers to writes --------------------------------------------------------------------------------------

    def claim_written(self, before: Claim, after: Claim) -> None:
        """Takes the answer to a write that named the version of `before`. Without effect if the watch has reported that
        write, a later one, or the deletion: it may be ahead of the answer, and reports nothing twice."""
        now = self.claims.get((before.metadata.namespace, before.metadata.name))
        if now is not None and _version(now) == _version(before):
            self.put_claim(after)

    def volume_written(self, before: Volume, after: Volume) -> None:
        """Likewise."""
        now = self.volumes.get(before.metadata.name)
        if now is not None and _version(now) == _version(before):
            self.put_volume(after)

    # -- lookups ------------------------------------------------------------------------------------------------

    def limits(self, node: str) -> dict[str, int]:
        """Driver name -> number of its volumes that can be attached to the node; no entry: no limit."""
        item = self.csi_nodes.get(node)
        return {
            driver.name: driver.allocatable.count
            for driver in (item.spec.drivers if item is not None else None) or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        }

    def attached_to(self, node: str) -> set[tuple[str, str]]:
        """Driver and handle of the volumes that are attached to the node."""
        found = set()
        for item in self.by_node.get(node, {}).values():
            volume = self.volumes.get(item.spec.source.volume or "")
            if volume is not None and volume.spec.csi is not None and item.spec.driver:
                found.add((item.spec.driver, volume.spec.csi.handle))
        return found


def annotations(metadata: Metadata) -> Labels:
    """The annotations of an object; empty if they are invalid."""
    try:
        return annotations_of(metadata)
    except InvalidField:
        return {}


def labels(metadata: Metadata) -> Labels:
    """The labels of an object; empty if they are invalid."""
    try:
        return labels_of(metadata)
    except InvalidField:
        return {}


def _version(item: Claim | Volume) -> tuple[str, str]:
    return item.metadata.uid, item.metadata.resource_version


def class_of(item: Claim | Volume) -> str:
    """The name of the storage class; empty if there is none."""
    return annotations(item.metadata).get(_CLASS_ANNOTATION) or item.spec.class_name or ""


def is_bound(claim: Claim) -> bool:
    """Whether claim and volume are bound, both ways."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in annotations(claim.metadata)


def requested_bytes(claim: Claim) -> int:
    """The size that a claim requests, rounded up; 0 if none."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return -(-_nanos(requests.storage if requests is not None else None) // NANO)


def capacity_bytes(volume: Volume) -> int:
    """The size of a volume, rounded down."""
    return _nanos(volume.spec.capacity.storage if volume.spec.capacity is not None else None) // NANO


def largest_volume_bytes(capacity: Capacity) -> int | None:
    """The largest volume that can be provisioned, rounded down; None if unknown."""
    for raw in (capacity.largest, capacity.capacity):
        amount = _decode_amount(raw)
        if amount is not None:
            return _nanos(amount) // NANO
    return None


def _decode_amount(raw: Raw) -> str | int | float | None:
    try:
        return decode(raw, str | int | float, "capacity")  # type: ignore[arg-type]
    except InvalidField:
        return None


def _nanos(amount: str | int | float | None) -> int:
    try:
        return nanos(str(amount)) if amount is not None else 0
    except QuantityError:
        return 0
