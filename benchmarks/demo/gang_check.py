"""Whether gangs were ever bound by half, judged from the audit: the API server's own order of what happened.

A gang is all pods of one Job of kind "gang"; its minimum is all of them. Replaying the audit gives at every instant
how many of its pods are bound. They are bound one after the other, so that for a moment, the *burst*, fewer than the
minimum are. A gang was bound by half if a burst does not end with the gang whole, if a member ends within it, or if it
takes longer than BURST_SECONDS. Once whole, a gang counts as whole until none of its pods is left: they end when they
like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from benchmarks.demo.apps import KIND_LABEL
from benchmarks.demo.evidence import Evidence

Json = dict[str, Any]

BURST_SECONDS = 5.0
_ENDS = ("finish", "gone", "reject")


def is_gang(pod: Json) -> bool:
    """Whether a pod is a member of one of the demo's gangs."""
    return (pod["metadata"].get("labels") or {}).get(KIND_LABEL) == "gang"


def never_half(evidence: Evidence) -> tuple[bool, str]:
    """Whether no gang was ever bound by half, and what was found."""
    gang_of = {pod["metadata"]["uid"]: _gang(pod) for pod in evidence.pods if is_gang(pod)}
    minimum = Counter(gang_of.values())
    bound: Counter[str] = Counter()
    began: dict[str, float] = {}
    whole: set[str] = set()
    wrong: dict[str, str] = {}
    longest = 0.0
    for entry in evidence.audit:
        gang = gang_of.get(entry["uid"])
        if gang is None:
            continue
        if entry["what"] == "bind":
            bound[gang] += 1
            if bound[gang] == 1:
                began.setdefault(gang, entry["time"])
            if bound[gang] == minimum[gang] and gang not in whole:
                whole.add(gang)
                burst = entry["time"] - began.pop(gang)
                longest = max(longest, burst)
                if burst > BURST_SECONDS:
                    wrong[gang] = f"{gang} took {burst:.1f} s to become whole"
        elif entry["what"] in _ENDS and bound[gang]:
            bound[gang] -= 1
            if gang not in whole:
                wrong[gang] = f"{gang} lost a member before it was whole"
            if not bound[gang]:
                whole.discard(gang)
                began.pop(gang, None)
    for gang in began:
        wrong.setdefault(gang, f"{gang} has {bound[gang]} of {minimum[gang]} bound")
    if not evidence.audit:  # an API server that keeps none: only how it ended can be judged
        wrong = _half_now(evidence, minimum)
    waiting = len(minimum) - len({gang_of[e["uid"]] for e in evidence.audit if e["uid"] in gang_of})
    detail = f"{len(minimum)} gangs, {waiting} of them wait; the longest burst took {1000 * longest:.0f} ms"
    return not wrong, _some(wrong.values()) or detail


def _half_now(evidence: Evidence, minimum: Counter[str]) -> dict[str, str]:
    bound = Counter(_gang(pod) for pod in evidence.pods if is_gang(pod) and pod["spec"].get("nodeName"))
    return {g: f"{g} has {n} of {minimum[g]} bound" for g, n in bound.items() if n < minimum[g]}


def _gang(pod: Json) -> str:
    metadata = pod["metadata"]
    owner = next((one["name"] for one in metadata.get("ownerReferences") or () if one.get("controller")), "")
    return f"{metadata.get('namespace', 'default')}/{owner or metadata['name']}"


def _some(found: Iterable[str]) -> str:
    texts = list(found)
    return "; ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
