"""Whether all pods that were moved had opted in, and for which pods they were moved.

The events of the API server name the pod that needed the capacity; labels and nodes come from a watch.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from benchmarks.demo.apps import KIND_LABEL
from benchmarks.demo.checks import Check
from benchmarks.demo.disruptions import Disruptions
from benchmarks.demo.evidence import Evidence

Json = dict[str, Any]

MOVABLE_KIND = "service"
"""Only pods of this kind may be moved."""


def check_moves(evidence: Evidence, disruptions: Disruptions) -> Check:
    """The check of moves."""
    wrong = []
    for event in evidence.moved:
        known = disruptions.pods.get(event["involvedObject"]["uid"])
        name = event["involvedObject"]["name"]
        if known is None or known.labels.get(KIND_LABEL) != MOVABLE_KIND:
            wrong.append(f"{name} may not be moved")
        elif not known.leaving:
            wrong.append(f"{name} was reported as moved, but was not deleted")
    detail = "; ".join(wrong[:3]) or f"{len(evidence.moved)} pods were moved"
    return Check("only pods that may be moved were moved", not wrong, detail)


def moves(evidence: Evidence, disruptions: Disruptions) -> Json:
    """Numbers of pods that were moved and of pods that this made fit; how many moves were decided and needed."""
    groups: Counter[tuple[str, str]] = Counter()
    served = set()
    kinds = {pod.name: pod.labels.get(KIND_LABEL, "") for pod in disruptions.pods.values()}
    for event in evidence.moved:
        needed_by = re.search(r"so that pod [^/]+/(\S+) fits", event["message"])
        if needed_by is not None:
            served.add(needed_by[1])
            groups[kinds.get(event["involvedObject"]["name"], ""), kinds.get(needed_by[1], "")] += 1
    return {
        "moved": len(evidence.moved),
        "served": len(served),
        "decided": int(evidence.metric("poseidon_moves_decided_total")),
        "needed": int(evidence.metric("poseidon_moves_needed_total")),
        "groups": [{"kind": kind, "for": other, "moved": count} for (kind, other), count in groups.most_common()],
    }
