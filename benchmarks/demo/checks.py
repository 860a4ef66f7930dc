"""What must hold after any run, judged from the API server's side alone.

Requests, selectors and tolerations are evaluated with the synthetic cluster's code, which shares nothing with the
scheduler's own, so a mistake there cannot excuse itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.nodes.affinity import selects, tolerates
from benchmarks.cluster.nodes.resources import Amounts, amounts, pod_amounts
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.gang_check import is_gang, never_half

Json = dict[str, Any]

_DONE = ("Succeeded", "Failed")
_ENDS = ("finish", "gone", "reject")
_REPELS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Check:
    """name says what holds if ok; detail, what was found."""

    name: str
    ok: bool
    detail: str


def run_checks(evidence: Evidence, scheduler: str, expected: int, settled: bool) -> list[Check]:
    """All checks, for the `expected` pods of `scheduler`. settled: whether things came to rest in time."""
    mine = [pod for pod in evidence.pods if pod["spec"].get("schedulerName") == scheduler]
    waiting = [pod for pod in mine if is_waiting(pod)]
    judges: list[tuple[str, Callable[[], tuple[bool, str]]]] = [
        (
            "every submitted pod is bound, has ended, or is told why it waits",
            lambda: _accounted(mine, expected, settled),
        ),
        ("no node is over-committed in any resource, now or at any moment", lambda: _over_committed(evidence)),
        ("no kubelet rejected a pod", lambda: _rejected(evidence)),
        ("no pod was bound twice", lambda: _bound_twice(evidence)),
        ("every pod is on a node that its selectors and tolerations allow", lambda: _constraints(evidence, mine)),
        ("no pod waits that fits on what is left of a node", lambda: _work_conserving(evidence, waiting)),
        ("no gang was ever bound below its minimum, but for the moment of binding", lambda: never_half(evidence)),
        ("every waiting pod has a condition with a reason", lambda: _explained(waiting)),
        ("the scheduler reports no error and dropped no placement", lambda: _no_errors(evidence)),
    ]
    return [Check(name, *judge()) for name, judge in judges]


def is_waiting(pod: Json) -> bool:
    """No node, not ended."""
    return not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in _DONE


def holds(pod: Json) -> bool:
    """On a node, and holding resources there."""
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in _DONE


def demand(pod: Json) -> Amounts:
    """What a pod takes from a node, itself included."""
    return {**pod_amounts(pod["spec"]), "pods": 1}


def offers(evidence: Evidence) -> dict[str, Amounts]:
    """What each node offers."""
    return {node["metadata"]["name"]: amounts(node["status"].get("allocatable")) for node in evidence.nodes}


def held(evidence: Evidence) -> dict[str, Amounts]:
    """What the pods on each node take."""
    taken: dict[str, Amounts] = {node["metadata"]["name"]: {} for node in evidence.nodes}
    for pod in evidence.pods:
        if holds(pod):
            _add(taken.setdefault(pod["spec"]["nodeName"], {}), demand(pod), +1)
    return taken


def replayed(evidence: Evidence) -> Iterator[tuple[str, Amounts, int]]:
    """The audit as (node, amounts, +1 or -1), in order: a pod holds what it requests from its bind until it has ended.

    Pods that were deleted since are left out: what they asked for is not known any more.
    """
    demands = {pod["metadata"]["uid"]: demand(pod) for pod in evidence.pods}
    home: dict[str, str] = {}
    for entry in evidence.audit:
        uid = entry["uid"]
        if uid not in demands:
            continue
        if entry["what"] == "bind":
            home[uid] = entry["node"]
            yield entry["node"], demands[uid], +1
        elif entry["what"] in _ENDS and uid in home:
            yield home.pop(uid), demands[uid], -1


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
    return settled and len(mine) == expected, detail if settled else detail + "; still moving when time ran out"


def _over_committed(evidence: Evidence) -> tuple[bool, str]:
    offered, now = offers(evidence), held(evidence)
    over = [f"{node} in {name}" for node, taken in now.items() for name in _excess(taken, offered.get(node, {}))]
    over += [f"{what} for a while" for what in _over_committed_ever(evidence, offered)]
    bound = sum(map(holds, evidence.pods))
    return not over, _some(over) or f"{bound} pods on {len(now)} nodes, and all before them"


def _over_committed_ever(evidence: Evidence, offered: Mapping[str, Amounts]) -> list[str]:
    taken: dict[str, Amounts] = {}
    over: dict[str, None] = {}
    for node, wants, sign in replayed(evidence):
        on_node = taken.setdefault(node, {})
        _add(on_node, wants, sign)
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
    offered, taken = offers(evidence), held(evidence)
    left = {
        name: {resource: amount - taken[name].get(resource, 0) for resource, amount in offered[name].items()}
        for name in offered
    }
    homes: dict[str, str | None] = {}  # for pods that are alike to a scheduler: a node that would do
    wasted = []
    for pod in waiting:
        if pod["spec"].get("schedulingGates") or is_gang(pod):
            continue  # a gang takes all that it needs, or nothing
        alike = repr([pod["spec"].get(key) for key in _MATTERS])
        if alike not in homes:
            homes[alike] = _room(pod, evidence.nodes, left)
        if homes[alike] is not None:
            wasted.append(f"{pod['metadata']['name']} would fit on {homes[alike]}")
    return not wasted, _some(wasted) or f"{len(waiting)} pods wait, none of them fits anywhere"


_MATTERS = ("containers", "initContainers", "overhead", "resources", "nodeSelector", "affinity", "tolerations")


def _room(pod: Json, nodes: Iterable[Json], left: Mapping[str, Amounts]) -> str | None:
    wants = demand(pod)
    for node in nodes:
        name: str = node["metadata"]["name"]
        if not _excess(wants, left[name]) and not _unsuitable(pod, node):
            return name
    return None


def _explained(waiting: list[Json]) -> tuple[bool, str]:
    silent = [
        pod["metadata"]["name"]
        for pod in waiting
        if (found := condition(pod)).get("status") != "False" or not found.get("reason") or not found.get("message")
    ]
    return not silent, _some(silent) or f"{len(waiting)} pods"


def _no_errors(evidence: Evidence) -> tuple[bool, str]:
    if not evidence.metrics:
        return False, "the scheduler's metrics are missing"
    counts = {
        "placements dropped by the independent check": evidence.metric("poseidon_placements_dropped_total"),
        "errors": evidence.metric("poseidon_schedule_attempts_total", result="error"),
        "failed rounds": evidence.metric("poseidon_rounds_total", result="failed"),
        "descriptions refused by the engine": evidence.metric("poseidon_engine_refusals_total"),
        "objects that make no sense": evidence.metric("poseidon_nonsense_objects_total"),
        "restarts of the engine": max(0.0, evidence.metric("poseidon_firmament_starts_total") - 1),
    }
    wrong = [f"{count:.0f} {what}" for what, count in counts.items() if count]
    rounds = evidence.metric("poseidon_rounds_total")
    return not wrong, ", ".join(wrong) or f"{rounds:.0f} rounds"


def _unsuitable(pod: Json, node: Json | None) -> str:
    """Why a pod must not be on a node; empty if it may."""
    if node is None:
        return "there is no such node"
    spec, metadata = pod["spec"], node["metadata"]
    if not selects(spec, metadata["name"], metadata.get("labels") or {}):
        return "its selector or affinity does not match"
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint.get("effect") in _REPELS and tolerates(spec.get("tolerations") or (), taint) is None:
            return f"it does not tolerate {taint['key']}"
    return ""


def _excess(wants: Amounts, has: Amounts) -> list[str]:
    return [name for name, amount in wants.items() if amount > 0 and amount > has.get(name, 0)]


def _add(total: Amounts, more: Amounts, sign: int) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


def _some(found: list[str]) -> str:
    return "; ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
