"""Whether devices are given away as they may be: each write of a claim is checked when it happens.

A whole device has one user at a time. Users of a device that allows several consume no more of each capacity than there
is. Devices in use consume no more of the counters of their pool than there are. Administrative access does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from benchmarks.cluster.api.device_rules.allocation_rules import results_of
from benchmarks.cluster.nodes.devices.inventory import DeviceId, Inventory, PoolId
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS
from benchmarks.cluster.store.quantities import parse
from benchmarks.cluster.store.store import Change, Store

Json = dict[str, Any]


class Violation(NamedTuple):
    """A write that gave away what was not there."""

    version: int
    """resourceVersion of the write."""
    claim: str
    """namespace/name."""
    device: str
    """driver/pool/device."""
    problem: str


class AllocationAudit:
    """Follows the claims of a store; `violations` must stay empty."""

    def __init__(self, store: Store, inventory: Inventory) -> None:
        self.violations: list[Violation] = []
        self._inventory = inventory
        self._holders: dict[DeviceId, dict[str, list[Json]]] = {}  # device to UIDs of claims to their results
        self._in_use: dict[PoolId, set[str]] = {}  # names of the devices of a pool that anyone holds
        self._names: dict[str, str] = {}  # UID of a claim to namespace/name
        store.subscribe(RESOURCE_CLAIMS, self._changed)

    def holders(self, which: DeviceId) -> list[str]:
        """The claims (namespace/name) that hold a device, those with administrative access apart."""
        return [self._names[uid] for uid in self._holders.get(which, {})]

    def _changed(self, change: Change) -> None:
        record = change.record
        before = results_of(change.before.parse()) if change.before is not None else []
        after = results_of(record.parse()) if change.type != "DELETED" else []
        if before == after:
            return
        for which in map(DeviceId.of, before):
            self._release(which, record.uid)
        if not after:
            self._names.pop(record.uid, None)
            return
        self._names[record.uid] = record.key
        for result in after:
            if not result.get("adminAccess"):
                which = DeviceId.of(result)
                self._holders.setdefault(which, {}).setdefault(record.uid, []).append(result)
                self._in_use.setdefault(which.home, set()).add(which.device)
        for which in dict.fromkeys(map(DeviceId.of, after)):
            for problem in self._problems(which):
                self.violations.append(Violation(record.version, record.key, str(which), problem))

    def _release(self, which: DeviceId, uid: str) -> None:
        holders = self._holders.get(which)
        if holders is not None and holders.pop(uid, None) is not None and not holders:
            del self._holders[which]
            self._in_use[which.home].discard(which.device)

    def _problems(self, which: DeviceId) -> Iterator[str]:
        device = self._inventory.device(which)
        if device is None:
            yield "no slice of the newest generation of the pool has it"
            return
        holders = self._holders.get(which)
        if not holders:
            return  # administrative access
        results = [result for each in holders.values() for result in each]
        if not device.get("allowMultipleAllocations"):
            if len(results) > 1:
                yield f"it is held {len(results)} times, by {', '.join(self.holders(which))}"
        else:
            yield from _overdrawn(device, results)
        yield from self._counters(which.home)

    def _counters(self, home: PoolId) -> Iterator[str]:
        consumed: dict[tuple[str, str], Fraction] = {}
        for name in self._in_use.get(home, ()):
            device = self._inventory.device(DeviceId(*home, name)) or {}
            for consumption in device.get("consumesCounters") or ():
                for counter, amount in consumption["counters"].items():
                    key = (consumption["counterSet"], counter)
                    consumed[key] = consumed.get(key, Fraction(0)) + parse(amount["value"])
        available = self._inventory.counters(home) if consumed else {}
        for key, amount in consumed.items():
            if amount > available.get(key, 0):
                limit = available.get(key, 0)
                yield f"devices of the pool consume {amount} of {limit} of the counter {key[0]}/{key[1]}"


def _overdrawn(device: Json, results: list[Json]) -> Iterator[str]:
    """A device that allows several allocations: each has a share of its own, and together they fit."""
    shares = [result.get("shareID") for result in results]
    if None in shares or len(set(shares)) < len(shares):
        yield f"the shares {', '.join(map(str, shares))} are not distinct"
    for name, capacity in (device.get("capacity") or {}).items():
        consumed = sum(parse((result.get("consumedCapacity") or {}).get(name, "0")) for result in results)
        if consumed > parse(capacity["value"]):
            yield f"{consumed} of {capacity['value']} of its capacity {name} is consumed"
