"""The status of objects that declare queues, as each project's kind has it. Pure."""

from collections.abc import Mapping
from typing import Any

from poseidon_py.kube.quantity import written
from poseidon_py.report.queue_use import Amounts, QueueUse, by_resource
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues import kai, kueue, own, volcano
from poseidon_py.state.queues.source import Declared

Json = dict[str, Any]

WITH_CONDITIONS = (kueue.CLUSTER_QUEUES, kueue.LOCAL_QUEUES, own.QUEUES)
"""Kinds whose status has conditions that a user reads; the problems of the others are events only."""
ACTIVE = "Active"
_DRS = 1000
"""Kueue's unit of shares: a thousandth."""


def body_of(resource: Resource, use: QueueUse, version: str = "") -> Json:
    """The fields of the status, without conditions; empty: the kind has none that schedulers write. `version`: at which
    the object is served."""
    if resource == kueue.CLUSTER_QUEUES:
        flavors = _by_flavor(use.used, use.borrowed)
        return {
            "flavorsReservation": flavors,
            "flavorsUsage": flavors,
            "pendingWorkloads": use.pending,
            "reservingWorkloads": use.running,
            "admittedWorkloads": use.running,
            "fairSharing": {"weightedShare": round(use.share * _DRS)},
        }
    if resource == kueue.LOCAL_QUEUES:
        return _local_queue(use, "flavorUsage" if version == "v1beta1" else "flavorsUsage")
    used = _list(by_resource(use.used))
    if resource == kai.QUEUES:
        return {"allocated": used, "requested": _list(use.requested)}
    if resource == volcano.QUEUES:
        return {"allocated": used, "pending": use.pending, "running": use.running}
    if resource == own.QUEUES:
        return {
            "used": used,
            "borrowed": _list(by_resource(use.borrowed)),
            "pending": use.pending,
            "running": use.running,
            "share": round(use.share, 4),
            "fairShare": _list(use.fair_share),
        }
    return {}


def _local_queue(use: QueueUse, usage: str) -> Json:
    flavors = _by_flavor(use.used, None)
    body: Json = {
        "flavorsReservation": flavors,
        usage: flavors,
        "pendingWorkloads": use.pending,
        "reservingWorkloads": use.running,
        "admittedWorkloads": use.running,
    }
    if use.past is not None:
        consumed = _list({resource: round(amount) for resource, amount in use.past.items()})
        past = {"consumedResources": consumed, "lastUpdate": use.past_at}
        body["fairSharing"] = {"weightedShare": 0, "admissionFairSharingStatus": past}
    return body


def condition_of(declared: Declared) -> Json | None:
    """The condition Active, without its time; None: the kind has no conditions."""
    if declared.ref.resource not in WITH_CONDITIONS:
        return None
    if declared.inactive:
        message = "; ".join(dict.fromkeys((declared.inactive, *declared.problems)))
        return {"type": ACTIVE, "status": "False", "reason": declared.reason or "Misconfigured", "message": message}
    message = "; ".join(("takes pods", *declared.problems))
    return {"type": ACTIVE, "status": "True", "reason": "Ready", "message": message}


def _list(amounts: Mapping[str, int]) -> dict[str, str]:
    return {resource: written(resource, amounts[resource]) for resource in sorted(amounts)}


def _by_flavor(used: Amounts, borrowed: Amounts | None) -> list[Json]:
    """`borrowed`: None: the kind does not say."""
    flavors: dict[str, list[Json]] = {}
    for flavor, resource in sorted(used):
        entry = {"name": resource, "total": written(resource, used[flavor, resource])}
        if borrowed is not None:
            entry["borrowed"] = written(resource, borrowed.get((flavor, resource), 0))
        flavors.setdefault(flavor, []).append(entry)
    return [{"name": flavor, "resources": resources} for flavor, resources in flavors.items()]
