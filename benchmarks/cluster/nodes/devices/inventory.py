"""The devices that are published: of each pool, those of the slices of its newest generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from benchmarks.cluster.nodes.affinity import selector_holds
from benchmarks.cluster.store.device_kinds import RESOURCE_SLICES
from benchmarks.cluster.store.quantities import parse
from benchmarks.cluster.store.store import Change, Store

Json = dict[str, Any]


class PoolId(NamedTuple):
    """A pool; pools of different drivers may have the same name."""

    driver: str
    pool: str


class DeviceId(NamedTuple):
    """A device."""

    driver: str
    pool: str
    device: str

    @property
    def home(self) -> PoolId:
        """Its pool."""
        return PoolId(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> DeviceId:
        """The device of a result in an allocation."""
        return cls(result.get("driver") or "", result.get("pool") or "", result.get("device") or "")


class _Pool:
    """The slices of a pool, of all generations; what the newest have is computed when it is asked for."""

    def __init__(self) -> None:
        self.slices: dict[str, Json] = {}  # name of the slice to its specification
        self._devices: dict[str, tuple[Json, Json]] | None = None

    def put(self, name: str, spec: Json | None) -> None:
        self._devices = None
        if spec is None:
            self.slices.pop(name, None)
        else:
            self.slices[name] = spec

    def newest(self) -> list[Json]:
        last = max((spec["pool"].get("generation", 0) for spec in self.slices.values()), default=0)
        return [spec for _, spec in sorted(self.slices.items()) if spec["pool"].get("generation", 0) == last]

    def devices(self) -> dict[str, tuple[Json, Json]]:
        """Name to the slice's specification and the device."""
        if self._devices is None:
            self._devices = {
                device["name"]: (spec, device) for spec in self.newest() for device in spec.get("devices") or ()
            }
        return self._devices


class Inventory:
    """Follows the slices of a store."""

    def __init__(self, store: Store) -> None:
        self._pools: dict[PoolId, _Pool] = {}
        store.subscribe(RESOURCE_SLICES, self._changed)

    def device(self, which: DeviceId) -> Json | None:
        """The published device."""
        found = self._found(which)
        return found[1] if found is not None else None

    def reaches(self, which: DeviceId, node: str, labels: Mapping[str, str]) -> bool:
        """Whether the device is published for a node."""
        found = self._found(which)
        if found is None:
            return False
        spec, device = found
        where = device if spec.get("perDeviceNodeSelection") else spec
        if where.get("nodeSelector") is not None:
            return selector_holds(where["nodeSelector"], node, labels)
        return bool(where.get("allNodes")) or where.get("nodeName") == node

    def devices(self) -> Iterator[tuple[DeviceId, Json]]:
        """All published devices."""
        for home, pool in self._pools.items():
            for name, (_, device) in pool.devices().items():
                yield DeviceId(*home, name), device

    def pools(self) -> Iterator[tuple[PoolId, int, bool, int]]:
        """Each pool: its newest generation, whether all slices of it are there, and the number of its devices."""
        for home, pool in self._pools.items():
            newest = pool.newest()
            if newest:
                about = newest[0]["pool"]
                whole = len(newest) == about["resourceSliceCount"]
                yield home, about.get("generation", 0), whole, len(pool.devices())

    def counters(self, home: PoolId) -> dict[tuple[str, str], Fraction]:
        """(counter set, counter) to the amount that partitions of a pool's devices share."""
        pool = self._pools.get(home)
        return {
            (counters["name"], name): parse(counter["value"])
            for spec in (pool.newest() if pool is not None else ())
            for counters in spec.get("sharedCounters") or ()
            for name, counter in counters["counters"].items()
        }

    def _found(self, which: DeviceId) -> tuple[Json, Json] | None:
        pool = self._pools.get(which.home)
        return pool.devices().get(which.device) if pool is not None else None

    def _changed(self, change: Change) -> None:
        spec = change.record.parse()["spec"]
        home = PoolId(spec["driver"], spec["pool"]["name"])
        pool = self._pools.setdefault(home, _Pool())
        pool.put(change.record.name, None if change.type == "DELETED" else spec)
        if not pool.slices:
            del self._pools[home]
