"""The field checks that matter to users of a scheduler; everything else is taken as it is.

Each check returns the causes of a 422; an empty list means valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.cluster.store.errors import cause, forbidden_field, invalid_value, required
from benchmarks.cluster.store.quantities import parse

Json = dict[str, Any]
Causes = list[Json]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN_SAID = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_SAID = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)
_NO_POD_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _unsupported(field: str, value: Any, supported: list[str]) -> Json:
    listed = ", ".join(f'"{one}"' for one in supported)
    said = f'Unsupported value: "{value}": supported values: {listed}'
    return cause(field, said, "FieldValueNotSupported")


def metadata(meta: Json) -> Causes:
    """Name, labels and annotations of any object."""
    causes: Causes = []
    name = meta.get("name") or ""
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        causes.append(invalid_value("metadata.name", name, _SUBDOMAIN_SAID))
    causes += labels(meta.get("labels"), "metadata.labels")
    annotations = meta.get("annotations")
    if annotations is not None and not (
        isinstance(annotations, dict) and all(isinstance(value, str) for value in annotations.values())
    ):
        causes.append(invalid_value("metadata.annotations", annotations, "must be a map of strings"))
    finalizers = meta.get("finalizers")
    if finalizers is not None and not (
        isinstance(finalizers, list) and all(isinstance(one, str) and one for one in finalizers)
    ):
        causes.append(invalid_value("metadata.finalizers", finalizers, "must be a list of names"))
    return causes + owner_references(meta.get("ownerReferences"))


def owner_references(given: Any) -> Causes:
    """Owner references: each names its owner completely, and at most one is the controller."""
    if given is None:
        return []
    if not isinstance(given, list):
        return [invalid_value("metadata.ownerReferences", given, "must be a list")]
    causes: Causes = []
    for at, reference in enumerate(given):
        place = f"metadata.ownerReferences[{at}]"
        if not isinstance(reference, Mapping):
            causes.append(invalid_value(place, reference, "must be an object"))
            continue
        for name in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(reference.get(name), str) or not reference[name]:
                causes.append(required(f"{place}.{name}"))
    if not causes and sum(reference.get("controller") is True for reference in given) > 1:
        causes.append(
            invalid_value("metadata.ownerReferences", given, "Only one reference can have Controller set to true.")
        )
    return causes


def labels(given: Any, field: str) -> Causes:
    """Label keys and values."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return [invalid_value(field, given, "must be a map of strings")]
    causes: Causes = []
    for key, value in given.items():
        prefix, slash, name = key.rpartition("/")
        if len(name) > 63 or not _NAME_PART.fullmatch(name) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
            causes.append(
                invalid_value(field, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
            )
        if not isinstance(value, str) or len(value) > 63 or (value and not _NAME_PART.fullmatch(value)):
            causes.append(invalid_value(field, value, _LABEL_VALUE_SAID))
    return causes


def quantities(given: Any, field: str) -> Causes:
    """A resource list: every quantity parses and is not negative."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return [invalid_value(field, given, "must be a map of quantities")]
    causes: Causes = []
    for name, quantity in given.items():
        try:
            value = parse(quantity)
        except (ValueError, TypeError) as error:
            causes.append(invalid_value(f"{field}[{name}]", quantity, str(error)))
            continue
        if value < 0:
            causes.append(invalid_value(f"{field}[{name}]", quantity, "must be greater than or equal to 0"))
    return causes


def _resources(resources: Any, field: str) -> Causes:
    if not isinstance(resources, Mapping):
        return []
    requests, limits = resources.get("requests"), resources.get("limits")
    causes = quantities(limits, f"{field}.limits") + quantities(requests, f"{field}.requests")
    if causes or not requests:
        return causes
    for name, request in requests.items():
        limit = (limits or {}).get(name)
        extended = "/" in name and "kubernetes.io/" not in name
        if extended and (limit is None or parse(limit) != parse(request)):
            if limit is None:
                causes.append(required(f"{field}.limits[{name}]", "Limit must be set for non overcommitable resources"))
            else:
                said = f"must be equal to {name} limit of {limit}"
                causes.append(invalid_value(f"{field}.requests", request, said))
        elif limit is not None and parse(request) > parse(limit):
            said = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{field}.requests", request, said))
    return causes


def pod_spec(spec: Any, field: str = "spec") -> Causes:
    """The specification of a pod or of a pod template."""
    if not isinstance(spec, Mapping):
        return [required(field)]
    causes: Causes = []
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        causes.append(required(f"{field}.containers"))
        containers = []
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(group) or ()):
            place = f"{field}.{group}[{at}]"
            if not isinstance(container, Mapping):
                causes.append(invalid_value(place, container, "must be an object"))
                continue
            name = container.get("name") or ""
            if not name:
                causes.append(required(f"{place}.name"))
            elif not _LABEL.fullmatch(name):
                causes.append(
                    invalid_value(
                        f"{place}.name",
                        name,
                        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
                    )
                )
            elif name in seen:
                causes.append(cause(f"{place}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
            seen.add(name)
            if not container.get("image"):
                causes.append(required(f"{place}.image"))
            causes += _resources(container.get("resources"), f"{place}.resources")
    causes += quantities(spec.get("overhead"), f"{field}.overhead")
    causes += _resources(spec.get("resources"), f"{field}.resources")
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        causes.append(
            _unsupported(f"{field}.restartPolicy", spec.get("restartPolicy"), ["Always", "OnFailure", "Never"])
        )
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        if toleration.get("operator") not in (None, "", "Exists", "Equal", "Gt", "Lt"):
            place = f"{field}.tolerations[{at}].operator"
            causes.append(_unsupported(place, toleration.get("operator"), ["Equal", "Exists"]))
    return causes


def pod(obj: Json) -> Causes:
    """A new pod."""
    return pod_spec(obj.get("spec"))


def pod_update(new: Json, old: Json) -> Causes:
    """A change of a pod through the main resource: nearly all of the specification is fixed."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before == after:
        return []
    causes = pod_spec(after)
    if causes:
        return causes
    gated = bool(before.get("schedulingGates"))
    gates_before = [gate.get("name") for gate in before.get("schedulingGates") or ()]
    gates_after = [gate.get("name") for gate in after.get("schedulingGates") or ()]
    added = sorted(set(gates_after) - set(gates_before))
    if added:
        return [
            forbidden_field(
                "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
            )
        ]
    kept = before.get("tolerations") or []
    if any(toleration not in (after.get("tolerations") or []) for toleration in kept):
        return (
            [
                forbidden_field(
                    "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
                )
            ]
            if not _only_seconds(kept, after)
            else []
        )
    if _fixed(before, gated) != _fixed(after, gated):
        return [forbidden_field("spec", _NO_POD_UPDATE)]
    return []


def _only_seconds(kept: list[Json], after: Json) -> bool:
    def bare(tolerations: Any) -> list[Json]:
        return [{k: v for k, v in t.items() if k != "tolerationSeconds"} for t in tolerations or ()]

    present = bare(after.get("tolerations"))
    return all(toleration in present for toleration in bare(kept))


def _fixed(spec: Json, gated: bool) -> Json:
    """What of a pod's specification may not change."""
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    if gated:  # a gated pod's placement may still be narrowed
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free and value not in (None, {}, [])}
    for group in ("containers", "initContainers"):
        if group in fixed:
            fixed[group] = [{k: v for k, v in one.items() if k != "image"} for one in fixed[group]]
    return fixed


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
            causes.append(_unsupported(f"{place}.effect", effect, ["NoSchedule", "PreferNoSchedule", "NoExecute"]))
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
            causes.append(_unsupported("spec.template.spec.restartPolicy", policy, allowed))
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


def _replicated(obj: Json) -> Causes:
    spec = obj.get("spec") or {}
    causes = _count(spec, "replicas")
    selector = spec.get("selector")
    if not selector:
        causes.append(required("spec.selector"))
    else:
        have = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        wanted = selector.get("matchLabels") or {}
        if any(have.get(key) != value for key, value in wanted.items()):
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
        wanted = f"{spec['names'].get('plural')}.{spec['group']}"
        if obj["metadata"]["name"] != wanted:
            causes.append(
                invalid_value("metadata.name", obj["metadata"]["name"], 'must be spec.names.plural+"."+spec.group')
            )
    return causes


CHECKS: dict[tuple[str, str], Callable[[Json], Causes]] = {
    ("", "Pod"): pod,
    ("", "Node"): _node,
    ("batch", "Job"): _job,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _replicated,
    ("policy", "PodDisruptionBudget"): _budget,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
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
}
"""(group, kind) to the check of a change: (new, old)."""


def binding(obj: Json) -> Causes:
    """A Binding's target."""
    target = obj.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        return [_unsupported("target.kind", target.get("kind"), ["Node", "<empty>"])]
    if not target.get("name"):
        return [required("target.name")]
    return []
