"""The drivers of devices: they publish pools as slices, and renew them when a device changes or when they restart.

A pool with anything changed is published in the next generation: first its new slices, one after the other, then those
of the generation before are removed. In between the pool is incomplete, or has both.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.device_rules.slice_rules import MAX_COUNTER_SETS, MAX_DEVICES, MAX_DEVICES_ADVANCED
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.nodes.devices.equipment import (
    DEVICE_CLASSES_OF_DRIVERS,
    DevicePool,
    fabric_pools,
    node_pools,
)
from benchmarks.cluster.nodes.devices.inventory import PoolId
from benchmarks.cluster.store.device_kinds import DEVICE_CLASSES, RESOURCE_SLICES
from benchmarks.cluster.store.kinds import NODES

Json = dict[str, Any]


class Drivers:
    """All drivers of a cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._pools: dict[PoolId, DevicePool] = {}
        self._generations: dict[PoolId, int] = {}
        self._slices: dict[PoolId, list[str]] = {}

    def equip(self, node: str, equipment: Sequence[tuple[str, int]]) -> None:
        """Publish the devices of a node: pairs of a name (`equipment.EQUIPMENT`) and a count. Raises ValueError."""
        for pool in node_pools(node, equipment):
            self.publish(pool)

    def attach(self, name: str, count: int, zones: Sequence[str] = ()) -> None:
        """Publish devices that are attached to the network: `fabric`, or `zone-fabric` for each zone. Raises
        ValueError."""
        for pool in fabric_pools(name, count, zones):
            self.publish(pool)

    def publish(self, pool: DevicePool) -> int:
        """Publish a pool, in the generation after that of its last publication, which is returned."""
        self._make_classes()
        home = PoolId(pool.driver, pool.name)
        generation = self._generations.get(home, 0) + 1
        owners = self._owners(pool)
        contents = list(_contents(pool))
        names: list[str] = []
        for content in contents:
            about = {"name": pool.name, "generation": generation, "resourceSliceCount": len(contents)}
            where = pool.nodes or {"allNodes": True}
            metadata: Json = {"generateName": f"{pool.name.replace('/', '-')}-{pool.driver}-"}
            if owners:
                metadata["ownerReferences"] = owners
            spec = {"driver": pool.driver, "pool": about, **where, **content}
            names.append(self._api.create(RESOURCE_SLICES, "", {"metadata": metadata, "spec": spec}).name)
        self._remove(home)
        self._pools[home], self._generations[home], self._slices[home] = pool, generation, names
        return generation

    def restart(self, driver: str, pool: str) -> int:
        """The driver of a pool restarts and publishes the pool anew. Returns the generation. Raises ValueError."""
        return self.publish(self._known(driver, pool))

    def withdraw(self, driver: str, pool: str) -> None:
        """Publish no slices of a pool any more. Raises ValueError."""
        self._known(driver, pool)
        home = PoolId(driver, pool)
        self._remove(home)
        del self._pools[home]

    def taint(self, driver: str, pool: str, device: str, taints: Sequence[Json]) -> int:
        """Publish a device with these taints alone; none: it is healthy again. Returns the generation. Raises
        ValueError."""
        known = self._known(driver, pool)
        if all(one["name"] != device for one in known.devices):
            raise ValueError(f"the pool {pool} of {driver} has no device {device!r}")
        devices = []
        for one in map(copy.deepcopy, known.devices):
            if one["name"] == device:
                one.pop("taints", None)
                if taints:
                    one["taints"] = [dict(taint) for taint in taints]
            devices.append(one)
        return self.publish(DevicePool(driver, pool, tuple(devices), known.counters, known.nodes))

    def _known(self, driver: str, pool: str) -> DevicePool:
        found = self._pools.get(PoolId(driver, pool))
        if found is None:
            known = ", ".join(f"{one.pool} of {one.driver}" for one in self._pools) or "no pools at all"
            raise ValueError(f"there is no pool {pool!r} of {driver}; there are {known}"[:500])
        return found

    def _remove(self, home: PoolId) -> None:
        for name in self._slices.pop(home, ()):
            if self._api.store.get(RESOURCE_SLICES, "", name) is not None:  # it may have gone with its node
                delete(self._api, RESOURCE_SLICES, "", name)

    def _owners(self, pool: DevicePool) -> list[Json]:
        """Slices of a node go with it."""
        node = self._api.store.get(NODES, "", (pool.nodes or {}).get("nodeName", ""))
        if node is None:
            return []
        return [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}]

    def _make_classes(self) -> None:
        for manifest in DEVICE_CLASSES_OF_DRIVERS if not self._generations else ():
            if self._api.store.get(DEVICE_CLASSES, "", manifest["metadata"]["name"]) is None:
                self._api.create(DEVICE_CLASSES, "", copy.deepcopy(manifest))


def _contents(pool: DevicePool) -> Iterator[Json]:
    """What the slices of a pool hold: counter sets first, then devices, as many as a slice may have."""
    for sets in _parts(pool.counters, MAX_COUNTER_SETS):
        yield {"sharedCounters": sets}
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in pool.devices)
    limit = MAX_DEVICES_ADVANCED if advanced else MAX_DEVICES
    for devices in _parts(pool.devices, limit):
        yield {"devices": devices}
    if not pool.devices and not pool.counters:
        yield {}


def _parts(items: Sequence[Json], size: int) -> Iterator[list[Json]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
