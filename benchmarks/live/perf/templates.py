"""Pods and nodes in the shape of the templates of scheduler_perf (Kubernetes, test/integration/scheduler_perf)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.cluster import NodeShape
from benchmarks.live.session import LABEL

Json = dict[str, Any]

PART = f"{LABEL}-part"
"""Label with the part that a pod has in a case: initial, measured, waiting, churn."""
HIGH = f"{LABEL}-high"
"""PriorityClass of the templates of high priority; the others have priority 0."""

NODES = {
    "standard": NodeShape(cpu="4", memory="32Gi", pods=110),
    "wide": NodeShape(cpu="64", memory="256Gi", pods=512),
    "giant": NodeShape(cpu="1000", memory="4000Gi", pods=90_000),
}

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_APP = "app"
_OWN = {"labelSelector": {"matchLabels": {_APP: LABEL}}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _near(key: str) -> Json:
    return {**_OWN, "topologyKey": key}


def _rather(key: str) -> list[Json]:
    return [{"weight": 1, "podAffinityTerm": _near(key)}]


def _spread(when: str) -> Json:
    return {"topologySpreadConstraints": [{**_near(_ZONE), "maxSkew": 5, "whenUnsatisfiable": when}]}


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """What pods have in common. pinned: each to a node by its name, as pods of a DaemonSet are."""

    cpu: str = "100m"
    memory: str = "500Mi"
    high: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False

    def pod(self, name: str, part: str, scheduler: str, node: str, group: str = "", *, bound: bool = False) -> Json:
        """A pod. node: where it runs if it is bound, or what it is pinned to. group: its PodGroup."""
        spec: Json = {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,  # a server without kubelets deletes it at once, too
            "containers": [{"name": "main", "image": "example.com/app:1", "resources": {"requests": self._requests()}}],
            **self.spec,
        }
        if self.high:
            spec["priorityClassName"] = HIGH
        if bound:
            spec["nodeName"] = node
        elif self.pinned:
            only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            spec["affinity"] = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [only]}}}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        return {"metadata": {"name": name, "labels": labels_of(part)}, "spec": spec}

    def _requests(self) -> dict[str, str]:
        return {name: amount for name, amount in (("cpu", self.cpu), ("memory", self.memory)) if amount}


def labels_of(part: str) -> dict[str, str]:
    """The labels of a pod with this part in a case."""
    return {LABEL: "true", PART: part, _APP: LABEL}


SERVICE = {"selector": {_APP: LABEL}, "ports": [{"port": 80}]}
"""The specification of a Service that all pods of a case belong to."""

TEMPLATES: Mapping[str, PodTemplate] = {
    "default": PodTemplate(),
    "light": PodTemplate(cpu="", memory=""),
    "low-priority": PodTemplate(cpu="900m"),
    "high-priority": PodTemplate(cpu="3000m", high=True),
    "large-cpu": PodTemplate(cpu="9", high=True),
    "gated": PodTemplate(spec={"schedulingGates": [{"name": f"{LABEL}/gate"}]}),
    "daemon": PodTemplate(pinned=True),
    "node-affinity": PodTemplate(
        spec={
            "affinity": {
                "nodeAffinity": {
                    _REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}]}
                        ]
                    }
                }
            }
        }
    ),
    "affinity": PodTemplate(spec={"affinity": {"podAffinity": {_REQUIRED: [_near(_ZONE)]}}}),
    "anti-affinity": PodTemplate(spec={"affinity": {"podAntiAffinity": {_REQUIRED: [_near(_HOST)]}}}),
    "preferred-affinity": PodTemplate(spec={"affinity": {"podAffinity": {_PREFERRED: _rather(_HOST)}}}),
    "preferred-anti-affinity": PodTemplate(spec={"affinity": {"podAntiAffinity": {_PREFERRED: _rather(_HOST)}}}),
    "spread": PodTemplate(spec=_spread("DoNotSchedule")),
    "preferred-spread": PodTemplate(spec=_spread("ScheduleAnyway")),
    "group-member": PodTemplate(cpu="300m"),
    "whole-node": PodTemplate(cpu="3970m", high=True),
}
