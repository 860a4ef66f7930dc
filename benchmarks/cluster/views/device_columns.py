"""The columns of devices, their classes, and the claims for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.cluster.views.columns import AGE, NAME, Column, Json, age


def _of_spec(*path: str) -> Any:
    def cell(obj: Json) -> str:
        value: Any = obj.get("spec")
        for part in path:
            value = (value or {}).get(part)
        return str(value or "")

    return cell


def claim_state(claim: Json) -> str:
    """The STATE column of a claim."""
    status = claim.get("status") or {}
    deleting = "deletionTimestamp" in claim["metadata"]
    states = ["deleted"] if deleting else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleting:
        states.append("pending")
    return ",".join(states)


def _time_added(rule: Json) -> str:
    added = ((rule.get("spec") or {}).get("taint") or {}).get("timeAdded")
    return age(added) if added else ""


DEVICE_COLUMNS: dict[tuple[str, str], Sequence[Column]] = {
    ("resource.k8s.io", "DeviceClass"): (NAME, AGE),
    ("resource.k8s.io", "ResourceClaim"): (NAME, Column("State", claim_state), AGE),
    ("resource.k8s.io", "ResourceClaimTemplate"): (NAME, AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        Column("Node", _of_spec("nodeName")),
        Column("Driver", _of_spec("driver")),
        Column("Pool", _of_spec("pool", "name")),
        AGE,
    ),
    ("resource.k8s.io", "DeviceTaintRule"): (
        NAME,
        Column("Key", _of_spec("taint", "key")),
        Column("Value", _of_spec("taint", "value")),
        Column("Effect", _of_spec("taint", "effect")),
        Column("TimeAdded", _time_added),
        AGE,
    ),
}
