"""Constraints of the pods of a live benchmark: workloads like those of kube-scheduler's scheduler_perf.

basic           nothing
node-affinity   one of two zones
affinity        a zone that has pods of the same app
anti-affinity   a node without pods of the same app
spread          zones differ by at most one pod of the app
gang            groups of GANG pods that are bound together or not at all
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

WORKLOADS = ("basic", "node-affinity", "affinity", "anti-affinity", "spread", "gang")
GANG = 10
_APP = "app"
_REGION, _ZONE, _HOST = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_GROUP = "pod-group.scheduling.x-k8s.io/"


def demands(workload: str, app: str, number: int) -> tuple[dict[str, str], Json]:
    """Labels, and fields of the specification, of pod `number` of an app. Raises ValueError for an unknown workload."""
    labels = {_APP: app}
    mates = {"labelSelector": {"matchLabels": {_APP: app}}}
    match workload:
        case "basic":
            return labels, {}
        case "node-affinity":
            zones = {"key": _ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
            return labels, _affinity("nodeAffinity", terms)
        case "affinity":
            return labels, _affinity("podAffinity", [{**mates, "topologyKey": _REGION}])
        case "anti-affinity":
            return labels, _affinity("podAntiAffinity", [{**mates, "topologyKey": _HOST}])
        case "spread":
            spread = {**mates, "topologyKey": _ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            return labels, {"topologySpreadConstraints": [spread]}
        case "gang":
            group = {f"{_GROUP}name": f"{app}-{number // GANG}", f"{_GROUP}min-available": str(GANG)}
            return labels | group, {}
    raise ValueError(f"unknown workload {workload!r}; choose one of: {', '.join(WORKLOADS)}")


def _affinity(kind: str, required: Json | list[Json]) -> Json:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
