"""Whether pods have the devices that their claims ask for: each its own, on the node where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.demo.evidence import Evidence

Json = dict[str, Any]
_DONE = ("Succeeded", "Failed")


def check_devices(evidence: Evidence, pods: Sequence[Json]) -> tuple[bool, str]:
    """Whether every bound pod that has not ended has as many devices as its claims ask for, which no other has, in a
    pool of its node (those of the demo are named like their nodes); and what was found."""
    claims = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in evidence.claims}
    users: dict[tuple[str, ...], str] = {}
    wrong: list[str] = []
    asking = [pod for pod in pods if pod["spec"].get("resourceClaims")]
    for pod in asking:
        node, name = pod["spec"].get("nodeName"), pod["metadata"]["name"]
        if not node or (pod.get("status") or {}).get("phase") in _DONE:
            continue
        for claim in _claims_of(pod, claims):
            if claim is None:
                wrong.append(f"{name} lacks a claim")
                continue
            results = _results(claim)
            if len(results) != _requested(claim):
                wrong.append(f"{name} has {len(results)} of {_requested(claim)} devices")
            if not any(user["uid"] == pod["metadata"]["uid"] for user in claim["status"].get("reservedFor") or ()):
                wrong.append(f"{name} uses a claim that is not reserved for it")
            for each in results:
                device = each["driver"], each["pool"], each["device"]
                if each["pool"] != node:
                    wrong.append(f"{name} is on {node}, and has a device of {each['pool']}")
                if (other := users.setdefault(device, name)) != name:
                    wrong.append(f"{name} and {other} have {'/'.join(device)}")
    shown = "; ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
    return not wrong, shown or f"{len(asking)} pods with claims; {len(users)} devices are in use"


def _claims_of(pod: Json, claims: Mapping[tuple[str, str], Json]) -> Iterator[Json | None]:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {each["name"]: each.get("resourceClaimName") for each in statuses}
    namespace = pod["metadata"].get("namespace", "default")
    for entry in pod["spec"]["resourceClaims"]:
        yield claims.get((namespace, entry.get("resourceClaimName") or made.get(entry["name"]) or ""))


def _results(claim: Json) -> list[Json]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    found: list[Json] = (allocation.get("devices") or {}).get("results") or []
    return found


def _requested(claim: Json) -> int:
    requests = claim["spec"]["devices"].get("requests") or ()
    return sum(each["exactly"].get("count", 1) for each in requests)
