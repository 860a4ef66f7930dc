"""Whether a gang was ever bound in part, checked with the audit: the API server's own record of events, in order.

A gang is all pods of one Job of kind "gang"; its minimum is all of them. Replaying the audit gives the number of its
bound pods at every instant. Pods are bound one after the other, so fewer than the minimum are bound for a moment, the
*burst*. A gang was bound in part if a burst does not end with the complete gang, if a member ends during the burst, or
if the burst takes longer than BURST_SECONDS, and than BURST_ANSWERS answers of the scheduler, which are slow on a slow
machine. A complete gang counts as complete until all its pods have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from benchmarks.demo.apps import KIND_LABEL
from benchmarks.demo.evidence import Evidence

Json = dict[str, Any]

BURST_SECONDS = 5.0
BURST_ANSWERS = 5.0
_ENDS = ("finish", "gone", "reject")


def is_gang(pod: Json) -> bool:
    """Whether a pod is a member of one of the demo's gangs."""
    return (pod["metadata"].get("labels") or {}).get(KIND_LABEL) == "gang"


def check_gangs(evidence: Evidence) -> tuple[bool, str]:
    """Whether no gang was ever bound in part, and what was found."""
    gang_of = {pod["metadata"]["uid"]: _gang(pod) for pod in evidence.pods if is_gang(pod)}
    minimum = Counter(gang_of.values())
    bound: Counter[str] = Counter()
    began: dict[str, float] = {}
    complete: set[str] = set()
    wrong: dict[str, str] = {}
    longest = 0.0
    limit = max(BURST_SECONDS, BURST_ANSWERS * evidence.slowest_answer)
    for entry in evidence.audit:
        gang = gang_of.get(entry["uid"])
        if gang is None:
            continue
        if entry["what"] == "bind":
            bound[gang] += 1
            if bound[gang] == 1:
                began.setdefault(gang, entry["time"])
            if bound[gang] == minimum[gang] and gang not in complete:
                complete.add(gang)
                burst = entry["time"] - began.pop(gang)
                longest = max(longest, burst)
                if burst > limit:
                    wrong[gang] = f"{gang} took {burst:.1f} s to be bound completely"
        elif entry["what"] in _ENDS and bound[gang]:
            bound[gang] -= 1
            if gang not in complete:
                wrong[gang] = f"{gang} lost a member before it was bound completely"
            if not bound[gang]:
                complete.discard(gang)
                began.pop(gang, None)
    for gang in began:
        wrong.setdefault(gang, f"{gang} has {bound[gang]} of {minimum[gang]} bound")
    if not evidence.audit:  # the API server keeps none: only the final state can be checked
        wrong = _partly_bound(evidence, minimum)
    waiting = len(minimum) - len({gang_of[e["uid"]] for e in evidence.audit if e["uid"] in gang_of})
    detail = f"gangs: {len(minimum)}, of these waiting: {waiting}; longest burst: {1000 * longest:.0f} ms"
    return not wrong, _some(wrong.values()) or detail


def _partly_bound(evidence: Evidence, minimum: Counter[str]) -> dict[str, str]:
    bound = Counter(_gang(pod) for pod in evidence.pods if is_gang(pod) and pod["spec"].get("nodeName"))
    return {g: f"{g} has {n} of {minimum[g]} bound" for g, n in bound.items() if n < minimum[g]}


def _gang(pod: Json) -> str:
    metadata = pod["metadata"]
    owner = next((one["name"] for one in metadata.get("ownerReferences") or () if one.get("controller")), "")
    return f"{metadata.get('namespace', 'default')}/{owner or metadata['name']}"


def _some(found: Iterable[str]) -> str:
    texts = list(found)
    return "; ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
