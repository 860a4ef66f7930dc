"""Whether pods were preempted for good reason, and what it cost.

The events of the API server name the preemptor of each victim, its audit says when and from which node, and a watch has
shown priorities and nominations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from benchmarks.demo.apps import KIND_LABEL
from benchmarks.demo.checks import Check
from benchmarks.demo.disruptions import Disruptions, PodHistory
from benchmarks.demo.evidence import Evidence

Json = dict[str, Any]


def check_preemption(evidence: Evidence, disruptions: Disruptions) -> list[Check]:
    """The checks of preemption."""
    return [
        Check(
            "every victim, or its gang, has a preemptor of strictly higher priority on its node",
            *_preemptors_found(evidence, disruptions),
        ),
        Check("no disruption budget was exceeded", *_budgets(disruptions)),
    ]


def preemption(evidence: Evidence, disruptions: Disruptions) -> Json:
    """Victims, their preemptors, and the seconds that victims had been bound; empty without victims."""
    victims, preemptors = disruptions.victims, _preemptors(evidence)
    groups: Counter[tuple[str, ...]] = Counter()
    for uid, victim in victims.items():
        preemptor = disruptions.pods.get(preemptors.get(uid, ""))
        groups[(*_sort_of(victim), *_sort_of(preemptor))] += 1
    names = ("victim_class", "victim_owner", "preemptor_class", "preemptor_owner")
    return {
        "victims": len(victims),
        "preemptors": len({preemptors[uid] for uid in victims if uid in preemptors}),
        "lost_seconds": sum(_bound_seconds(evidence, uid) for uid in victims),
        "groups": [dict(zip(names, group, strict=True)) | {"victims": n} for group, n in groups.most_common()],
    }


def _sort_of(pod: PodHistory | None) -> tuple[str, str]:
    return (pod.priority_class, pod.owner) if pod is not None else ("unknown", "unknown")


def _preemptors(evidence: Evidence) -> dict[str, str]:
    """UID of a victim -> UID of its preemptor."""
    return {each["involvedObject"]["uid"]: (each.get("related") or {}).get("uid", "") for each in evidence.preempted}


def _bound_seconds(evidence: Evidence, uid: str) -> float:
    """The seconds from a pod's bind to the request to delete it."""
    times = {entry["what"]: entry["time"] for entry in evidence.audit if entry["uid"] == uid}
    return float(times["delete"] - times["bind"]) if {"bind", "delete"} <= times.keys() else 0.0


def _preemptors_found(evidence: Evidence, disruptions: Disruptions) -> tuple[bool, str]:
    preemptors = _preemptors(evidence)
    node_of = {entry["uid"]: entry["node"] for entry in evidence.audit if entry["what"] == "delete"}
    wrong = []
    # a gang is preempted as a whole if the node of one member is needed
    needed = {
        victim.labels.get("app")
        for uid, victim in disruptions.victims.items()
        if (other := disruptions.pods.get(preemptors.get(uid, ""))) is not None and node_of.get(uid) in other.nodes
    }
    for uid, victim in disruptions.victims.items():
        preemptor = disruptions.pods.get(preemptors.get(uid, ""))
        needed_by_its_gang = victim.labels.get(KIND_LABEL) == "gang" and victim.labels.get("app") in needed
        if preemptor is None:
            wrong.append(f"{victim.name} has no preemptor")
        elif preemptor.priority <= victim.priority:
            wrong.append(
                f"{victim.name} of priority {victim.priority} was preempted by {preemptor.name} of {preemptor.priority}"
            )
        elif node_of.get(uid) not in preemptor.nodes and not needed_by_its_gang:
            wrong.append(f"{victim.name} left {node_of.get(uid)}, which {preemptor.name} was never to have")
    wrong += [
        f"{_named(disruptions, uid)} was reported as preempted, but was not deleted"
        for uid in preemptors.keys() - disruptions.victims
    ]
    served = len({preemptors.get(uid) for uid in disruptions.victims})
    return not wrong, _some(wrong) or f"{len(disruptions.victims)} pods were preempted by {served} others"


def _named(disruptions: Disruptions, uid: str) -> str:
    known = disruptions.pods.get(uid)
    return known.name if known is not None else uid


def _budgets(disruptions: Disruptions) -> tuple[bool, str]:
    detail = f"budgets: {len(disruptions.budgets)}; of the preempted pods they count {disruptions.counted}"
    return not disruptions.exceeded, _some(disruptions.exceeded) or detail


def _some(found: Iterable[str]) -> str:
    texts = list(found)
    return "; ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
