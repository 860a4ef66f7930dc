"""Whether devices are given away as they may be, by the claims alone: no code of the scheduler is used.

Follows every write of a claim, as a watch shows it or one after the other: what is wrong for a moment is found, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.loads.devices.device_objects import DRIVER, PER_RAIL, device_count

Json = dict[str, Any]
Device = tuple[str, str]
"""Pool and name."""


class ClaimAudit:
    """`take` each event, then read `wrong`. kind: of all claims (device_objects.KINDS); devices: of the model `new`, of
    each node."""

    def __init__(self, kind: str, nodes: Iterable[str], devices: int) -> None:
        self._number = device_count(kind)
        self._suitable = {(node, f"new-{at}") for node in nodes for at in range(devices)}
        self._user: dict[Device, str] = {}  # UID of the claim
        self._has: dict[str, list[Device]] = {}  # by UID of the claim
        self.allocations = 0
        """Claims that were allocated, those again that had lost their devices."""
        self.wrong: list[str] = []
        self.nodes: dict[str, str] = {}
        """UID of a pod -> the node of the devices that were reserved for it last."""

    def take(self, change: str, claim: Json) -> None:
        """A change of a claim, ADDED, MODIFIED or DELETED, and the claim after it."""
        uid, name = claim["metadata"]["uid"], claim["metadata"]["name"]
        status = (claim.get("status") or {}) if change != "DELETED" else {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
        now = [(each["pool"], each["device"]) for each in results]
        before = self._has.get(uid, [])
        if now != before:
            for device in before:
                if self._user.get(device) == uid:
                    del self._user[device]
            self._has.pop(uid, None)
            if now:
                if before:
                    self.wrong.append(f"claim {name} has other devices than before")
                self._allocated(uid, name, now, {each["driver"] for each in results})
        for user in status.get("reservedFor") or ():
            if not now:
                self.wrong.append(f"claim {name} is reserved and has no devices")
                break
            self.nodes[user["uid"]] = now[0][0]

    def _allocated(self, uid: str, name: str, devices: list[Device], drivers: set[str]) -> None:
        self.allocations += 1
        self._has[uid] = devices
        if len(devices) != self._number:
            self.wrong.append(f"claim {name} has {len(devices)} devices, and asks for {self._number}")
        for device in devices:
            if drivers != {DRIVER} or device not in self._suitable:
                self.wrong.append(f"claim {name} has {'/'.join(device)}, which it does not select")
            if (other := self._user.setdefault(device, uid)) != uid or devices.count(device) > 1:
                self.wrong.append(f"{'/'.join(device)} is given to claim {name} and to {other}")
        if len({pool for pool, _ in devices}) > 1:
            self.wrong.append(f"claim {name} has devices of several nodes")
        if self._number > 1 and len({_rail(device) for _, device in devices}) > 1:
            self.wrong.append(f"claim {name} has devices of several rails")

    @property
    def in_use(self) -> int:
        """Devices that are given away now."""
        return len(self._user)


def _rail(device: str) -> int:
    number = device.rpartition("-")[2]
    return int(number) // PER_RAIL if device.startswith("new-") else -1
