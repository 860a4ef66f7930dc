"""What must hold after any run, checked against the API server's view alone.

Requests, selectors and tolerations are evaluated with the synthetic cluster's code, which shares nothing with the
scheduler: a defect in the scheduler cannot hide itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.nodes.affinity import selects, tolerates
from benchmarks.cluster.nodes.resources import Amounts, amounts, pod_amounts
from benchmarks.demo.device_check import check_devices
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.gang_check import check_gangs, is_gang

Json = dict[str, Any]

_DONE = ("Succeeded", "Failed")
_ENDS = ("finish", "gone", "reject")
_REPELS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `name` states what holds if `ok`; `detail` is what was found."""

    name: str
    ok: bool
    detail: str


def run_checks(evidence: Evidence, scheduler: str, expected: int, settled: bool) -> list[Check]:
    """All checks, for the `expected` pods of `scheduler`. settled: whether the workload settled in time."""
    mine = [pod for pod in evidence.pods if pod["spec"].get("schedulerName") == scheduler]
    waiting = [pod for pod in mine if is_waiting(pod)]
    checks: list[tuple[str, Callable[[], tuple[bool, str]]]] = [
        (
            "every submitted pod is bound, has ended, or has a reason for waiting",
            lambda: _accounted(mine, expected, settled),
        ),
        ("no node is or was over-committed in any resource", lambda: _over_committed(evidence)),
        ("no kubelet rejected a pod", lambda: _rejected(evidence)),
        ("no pod was bound twice", lambda: _bound_twice(evidence)),
        (
            "every pod is on a node that its selectors, affinity and tolerations allow",
            lambda: _constraints(evidence, mine),
        ),
        ("no pod waits that fits in the free capacity of a node", lambda: _work_conserving(evidence, waiting)),
        ("no gang was bound below its minimum, except during its burst of binds", lambda: check_gangs(evidence)),
        ("every pod with a claim has devices of its own, on its node", lambda: check_devices(evidence, mine)),
        ("every waiting pod has a condition with a reason", lambda: _explained(waiting)),
        ("the scheduler reports no errors and dropped no placements", lambda: _no_errors(evidence)),
    ]
    return [Check(name, *check()) for name, check in checks]


def is_waiting(pod: Json) -> bool:
    """Whether a pod has no node and has not ended."""
    return not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in _DONE


def is_running(pod: Json) -> bool:
    """Whether a pod is bound and uses resources of its node."""
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in _DONE


def demand(pod: Json) -> Amounts:
    """What a pod requests of a node; the pod itself counts as one of `pods`."""
    return {**pod_amounts(pod["spec"]), "pods": 1}


def offers(evidence: Evidence) -> dict[str, Amounts]:
    """What each node offers."""
    return {node["metadata"]["name"]: amounts(node["status"].get("allocatable")) for node in evidence.nodes}


def requested(evidence: Evidence) -> dict[str, Amounts]:
    """What the running pods on each node request."""
    total: dict[str, Amounts] = {node["metadata"]["name"]: {} for node in evidence.nodes}
    for pod in evidence.pods:
        if is_running(pod):
            _add(total.setdefault(pod["spec"]["nodeName"], {}), demand(pod), +1)
    return total


def replayed(evidence: Evidence) -> Iterator[tuple[str, Amounts, int]]:
    """The audit as (node, amounts, +1 or -1), in order: a pod uses what it requests from its bind until its end.

    Pods that have been deleted since are left out, because their requests are no longer known.
    """
    demands = {pod["metadata"]["uid"]: demand(pod) for pod in evidence.pods}
    node_of: dict[str, str] = {}
    for entry in evidence.audit:
        uid = entry["uid"]
        if uid not in demands:
            continue
        if entry["what"] == "bind":
            node_of[uid] = entry["node"]
            yield entry["node"], demands[uid], +1
        elif entry["what"] in _ENDS and uid in node_of:
            yield node_of.pop(uid), demands[uid], -1


def condition(pod: Json) -> Json:
    """The PodScheduled condition, {} if there is none."""
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "PodScheduled":
            found: Json = one
            return found
    return {}


def _accounted(mine: list[Json], expected: int, settled: bool) -> tuple[bool, str]:
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in mine)
    detail = f"{len(mine)} of {expected} pods: {bound} bound, {len(mine) - bound} waiting"
    return settled and len(mine) == expected, detail if settled else detail + "; not settled in time"


def _over_committed(evidence: Evidence) -> tuple[bool, str]:
    offered, now = offers(evidence), requested(evidence)
    over = [f"{node} in {name}" for node, used in now.items() for name in _excess(used, offered.get(node, {}))]
    over += [f"{what} for a while" for what in _over_committed_ever(evidence, offered)]
    running = sum(map(is_running, evidence.pods))
    return not over, _some(over) or f"{running} running pods on {len(now)} nodes, and all binds before"


def _over_committed_ever(evidence: Evidence, offered: Mapping[str, Amounts]) -> list[str]:
    used: dict[str, Amounts] = {}
    over: dict[str, None] = {}
    for node, amount, sign in replayed(evidence):
        on_node = used.setdefault(node, {})
        _add(on_node, amount, sign)
        if sign > 0:
            over.update(dict.fromkeys(f"{node} in {name}" for name in _excess(on_node, offered.get(node, {}))))
    return list(over)


def _rejected(evidence: Evidence) -> tuple[bool, str]:
    counts = Counter(dict(evidence.rejected))
    if not counts:
        counts = Counter(
            pod["status"]["reason"]
            for pod in evidence.pods
            if pod["spec"].get("nodeName") and str((pod.get("status") or {}).get("reason", "")).startswith("OutOf")
        )
    return not counts, ", ".join(f"{n} x {why}" for why, n in counts.items()) or "0 rejections"


def _bound_twice(evidence: Evidence) -> tuple[bool, str]:
    binds = Counter(entry["uid"] for entry in evidence.audit if entry["what"] == "bind")
    names = Counter((e["namespace"], e["name"], e["uid"]) for e in evidence.audit if e["what"] == "bind")
    twice = [f"{namespace}/{name} {count} times" for (namespace, name, _), count in names.items() if count > 1]
    return not twice, _some(twice) or f"{sum(binds.values())} binds of {len(binds)} pods"


def _constraints(evidence: Evidence, mine: list[Json]) -> tuple[bool, str]:
    nodes = {node["metadata"]["name"]: node for node in evidence.nodes}
    bound = [pod for pod in mine if pod["spec"].get("nodeName")]
    wrong = [
        f"{pod['metadata']['name']} on {pod['spec']['nodeName']}: {why}"
        for pod in bound
        if (why := _unsuitable(pod, nodes.get(pod["spec"]["nodeName"])))
    ]
    return not wrong, _some(wrong) or f"{len(bound)} pods"


def _work_conserving(evidence: Evidence, waiting: list[Json]) -> tuple[bool, str]:
    offered, used = offers(evidence), requested(evidence)
    free = {
        name: {resource: amount - used[name].get(resource, 0) for resource, amount in offered[name].items()}
        for name in offered
    }
    fitting: dict[str, str | None] = {}  # by the fields that matter: a node where such pods fit
    wasted = []
    for pod in waiting:
        if pod["spec"].get("schedulingGates") or is_gang(pod) or pod["spec"].get("resourceClaims"):
            continue  # a gang gets all that it needs, or nothing; devices are no capacity of nodes
        fields = repr([pod["spec"].get(key) for key in _PLACEMENT_FIELDS])
        if fields not in fitting:
            fitting[fields] = _fitting_node(pod, evidence.nodes, free)
        if fitting[fields] is not None:
            wasted.append(f"{pod['metadata']['name']} would fit on {fitting[fields]}")
    return not wasted, _some(wasted) or f"{len(waiting)} pods wait; none of them fits on any node"


_PLACEMENT_FIELDS = ("containers", "initContainers", "overhead", "resources", "nodeSelector", "affinity", "tolerations")


def _fitting_node(pod: Json, nodes: Iterable[Json], free: Mapping[str, Amounts]) -> str | None:
    requests = demand(pod)
    for node in nodes:
        name: str = node["metadata"]["name"]
        if not _excess(requests, free[name]) and not _unsuitable(pod, node):
            return name
    return None


def _explained(waiting: list[Json]) -> tuple[bool, str]:
    unexplained = [
        pod["metadata"]["name"]
        for pod in waiting
        if (found := condition(pod)).get("status") != "False" or not found.get("reason") or not found.get("message")
    ]
    return not unexplained, _some(unexplained) or f"{len(waiting)} pods"


def _no_errors(evidence: Evidence) -> tuple[bool, str]:
    if not evidence.metrics:
        return False, "the scheduler's metrics are missing"
    counts = {
        "placements dropped by the engine's check": evidence.metric("poseidon_placements_dropped_total"),
        "errors": evidence.metric("scheduler_schedule_attempts_total", result="error"),
        "failed rounds": evidence.metric("poseidon_rounds_total", result="failed"),
        "objects refused by the engine": evidence.metric("poseidon_engine_refusals_total"),
        "objects with invalid fields": evidence.metric("poseidon_invalid_objects_total"),
        "restarts of the flow service": max(0.0, evidence.metric("poseidon_firmament_starts_total") - 1),
    }
    wrong = [f"{count:.0f} {what}" for what, count in counts.items() if count]
    rounds = evidence.metric("poseidon_rounds_total")
    return not wrong, ", ".join(wrong) or f"{rounds:.0f} rounds"


def _unsuitable(pod: Json, node: Json | None) -> str:
    """Why a pod must not run on a node; empty if it may."""
    if node is None:
        return "the node does not exist"
    spec, metadata = pod["spec"], node["metadata"]
    if not selects(spec, metadata["name"], metadata.get("labels") or {}):
        return "its selector or affinity does not match"
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint.get("effect") in _REPELS and tolerates(spec.get("tolerations") or (), taint) is None:
            return f"it does not tolerate {taint['key']}"
    return ""


def _excess(requests: Amounts, available: Amounts) -> list[str]:
    return [name for name, amount in requests.items() if amount > 0 and amount > available.get(name, 0)]


def _add(total: Amounts, amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount


def _some(found: list[str]) -> str:
    return "; ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
