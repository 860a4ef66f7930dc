"""The checks of each kind: on creation, and of the fields that may not change."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from benchmarks.cluster.api.device_rules.rule_tables import DEVICE_CHECKS, DEVICE_STATUS_CHECKS, DEVICE_UPDATE_CHECKS
from benchmarks.cluster.api.pod_claims import pod_status
from benchmarks.cluster.api.pod_validation import pod, pod_spec, pod_update
from benchmarks.cluster.api.validation import Causes, Json, quantities, unsupported
from benchmarks.cluster.store.errors import cause, forbidden_field, invalid_value, required


def _node(obj: Json) -> Causes:
    causes: Causes = []
    status = obj.get("status") or {}
    for name in ("capacity", "allocatable"):
        causes += quantities(status.get(name), f"status.{name}")
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        place = f"spec.taints[{at}]"
        if not taint.get("key"):
            causes.append(required(f"{place}.key"))
        effect = taint.get("effect")
        if effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            causes.append(unsupported(f"{place}.effect", effect, ["NoSchedule", "PreferNoSchedule", "NoExecute"]))
        identity = (taint.get("key") or "", effect or "")
        if identity in seen:
            causes.append(cause(place, f"Duplicate value: {taint}", "FieldValueDuplicate"))
        seen.add(identity)
    return causes


def _template(obj: Json, allowed: list[str]) -> Causes:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    causes = pod_spec(template.get("spec"), "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if not causes and policy not in allowed:
        if "Always" in allowed:
            causes.append(unsupported("spec.template.spec.restartPolicy", policy, allowed))
        else:
            listed = ", ".join(f'"{one}"' for one in sorted(allowed, reverse=True))
            causes.append(required("spec.template.spec.restartPolicy", f"valid values: {listed}"))
    return causes


def _count(spec: Json, *names: str) -> Causes:
    causes: Causes = []
    for name in names:
        value = spec.get(name)
        if value is not None and (not isinstance(value, int) or value < 0):
            causes.append(invalid_value(f"spec.{name}", value, "must be greater than or equal to 0"))
    return causes


def _job(obj: Json) -> Causes:
    spec = obj.get("spec") or {}
    causes = _count(spec, "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    return causes + _template(obj, ["OnFailure", "Never"])


def _replication_controller(obj: Json) -> Causes:
    return _replicated(obj, {"matchLabels": (obj.get("spec") or {}).get("selector")})


def _replicated(obj: Json, selector: Json | None = None) -> Causes:
    spec = obj.get("spec") or {}
    causes = _count(spec, "replicas")
    selector = selector or spec.get("selector")
    if not selector:
        causes.append(required("spec.selector"))
    else:
        have = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        selected = selector.get("matchLabels") or {}
        if any(have.get(key) != value for key, value in selected.items()):
            causes.append(
                invalid_value("spec.template.metadata.labels", have, "`selector` does not match template `labels`")
            )
    return causes + _template(obj, ["Always"])


def _share(spec: Any, name: str, field: str) -> Causes:
    """A count, or a percentage as text."""
    value = (spec or {}).get(name)
    if value is None or (isinstance(value, int) and value >= 0):
        return []
    if isinstance(value, str) and re.fullmatch(r"\d{1,3}%", value):
        return []
    return [invalid_value(f"{field}.{name}", value, "must be a non-negative integer or a percentage")]


def _deployment(obj: Json) -> Causes:
    rolling = ((obj.get("spec") or {}).get("strategy") or {}).get("rollingUpdate")
    field = "spec.strategy.rollingUpdate"
    return _replicated(obj) + _share(rolling, "maxSurge", field) + _share(rolling, "maxUnavailable", field)


def _budget(obj: Json) -> Causes:
    spec = obj.get("spec") or {}
    causes = _share(spec, "minAvailable", "spec") + _share(spec, "maxUnavailable", "spec")
    if causes:
        return causes
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")]
    return []


def _priority_class(obj: Json) -> Causes:
    value, name = obj.get("value", 0), obj["metadata"].get("name", "")
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        return [
            forbidden_field(
                "metadata.name", "priority class names with 'system-' prefix are reserved for system use only"
            )
        ]
    if not name.startswith("system-") and isinstance(value, int) and value > 1_000_000_000:
        return [forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000")]
    return []


def _definition(obj: Json) -> Causes:
    spec = obj.get("spec") or {}
    causes = [required(f"spec.{field}") for field in ("group", "names", "versions", "scope") if not spec.get(field)]
    if not causes:
        expected = f"{spec['names'].get('plural')}.{spec['group']}"
        if obj["metadata"]["name"] != expected:
            causes.append(
                invalid_value("metadata.name", obj["metadata"]["name"], 'must be spec.names.plural+"."+spec.group')
            )
    return causes


CHECKS: dict[tuple[str, str], Callable[[Json], Causes]] = {
    ("", "Pod"): pod,
    ("", "Node"): _node,
    ("", "ReplicationController"): _replication_controller,
    ("batch", "Job"): _job,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _replicated,
    ("policy", "PodDisruptionBudget"): _budget,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    **DEVICE_CHECKS,
}
"""(group, kind) to the check of the whole object."""


def _fixed_fields(*paths: tuple[str, ...]) -> Callable[[Json, Json], Causes]:
    def check(new: Json, old: Json) -> Causes:
        causes: Causes = []
        for path in paths:
            before: Any = old
            after: Any = new
            for part in path:
                before = before.get(part) if isinstance(before, dict) else None
                after = after.get(part) if isinstance(after, dict) else None
            if before != after:
                causes.append(invalid_value(".".join(path), after, "field is immutable"))
        return causes

    return check


UPDATE_CHECKS: dict[tuple[str, str], Callable[[Json, Json], Causes]] = {
    ("", "Pod"): pod_update,
    ("batch", "Job"): _fixed_fields(("spec", "template"), ("spec", "selector"), ("spec", "completionMode")),
    ("apps", "ReplicaSet"): _fixed_fields(("spec", "selector")),
    ("apps", "Deployment"): _fixed_fields(("spec", "selector")),
    ("apps", "StatefulSet"): _fixed_fields(("spec", "selector"), ("spec", "serviceName")),
    ("scheduling.k8s.io", "PriorityClass"): _fixed_fields(("value",)),
    **DEVICE_UPDATE_CHECKS,
}
"""(group, kind) to the check of a change: (new, old)."""

STATUS_CHECKS: dict[tuple[str, str], Callable[[Json, Json], Causes]] = {
    ("", "Node"): lambda new, _: _node(new),
    ("", "Pod"): lambda new, _: pod_status(new),
    **DEVICE_STATUS_CHECKS,
}
"""(group, kind) to the check of a change of the status: (new, old)."""


def binding(obj: Json) -> Causes:
    """A Binding's target."""
    target = obj.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        return [unsupported("target.kind", target.get("kind"), ["Node", "<empty>"])]
    if not target.get("name"):
        return [required("target.name")]
    return []
