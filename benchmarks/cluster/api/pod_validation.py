"""Field checks of pods and of the pod templates in workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchmarks.cluster.api.pod_claims import container_claims, pod_claims
from benchmarks.cluster.api.validation import Causes, Json, quantities, unsupported
from benchmarks.cluster.store.errors import cause, forbidden_field, invalid_value, required
from benchmarks.cluster.store.quantities import parse

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_NO_POD_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


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
                message = f"must be equal to {name} limit of {limit}"
                causes.append(invalid_value(f"{field}.requests", request, message))
        elif limit is not None and parse(request) > parse(limit):
            message = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{field}.requests", request, message))
    return causes


def _container_resources(resources: Any, field: str) -> Causes:
    """Of a container: a name without a domain is one of the standard resources (`validateContainerResourceName`)."""
    causes = _resources(resources, field)
    for group in ("limits", "requests"):
        amounts = resources.get(group) if isinstance(resources, Mapping) else None
        for name in amounts if isinstance(amounts, Mapping) else ():
            if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
                causes.append(
                    invalid_value(f"{field}.{group}[{name}]", name, "must be a standard resource for containers")
                )
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
            causes += _container_resources(container.get("resources"), f"{place}.resources")
            causes += container_claims(container, spec, f"{place}.resources.claims")
    causes += pod_claims(spec.get("resourceClaims"), f"{field}.resourceClaims")
    causes += quantities(spec.get("overhead"), f"{field}.overhead")
    causes += _resources(spec.get("resources"), f"{field}.resources")
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        causes.append(
            unsupported(f"{field}.restartPolicy", spec.get("restartPolicy"), ["Always", "OnFailure", "Never"])
        )
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        if toleration.get("operator") not in (None, "", "Exists", "Equal", "Gt", "Lt"):
            place = f"{field}.tolerations[{at}].operator"
            causes.append(unsupported(place, toleration.get("operator"), ["Equal", "Exists"]))
    return causes


def pod(obj: Json) -> Causes:
    """A new pod."""
    return pod_spec(obj.get("spec"))


def pod_update(new: Json, old: Json) -> Causes:
    """A change of a pod through the main resource: most of the specification is immutable."""
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
    existing = before.get("tolerations") or []
    if any(toleration not in (after.get("tolerations") or []) for toleration in existing):
        return (
            [
                forbidden_field(
                    "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
                )
            ]
            if not _only_seconds(existing, after)
            else []
        )
    if _fixed(before, gated) != _fixed(after, gated):
        return [forbidden_field("spec", _NO_POD_UPDATE)]
    return []


def _only_seconds(existing: list[Json], after: Json) -> bool:
    def bare(tolerations: Any) -> list[Json]:
        return [{k: v for k, v in t.items() if k != "tolerationSeconds"} for t in tolerations or ()]

    present = bare(after.get("tolerations"))
    return all(toleration in present for toleration in bare(existing))


def _fixed(spec: Json, gated: bool) -> Json:
    """The fields of a pod's specification that may not change."""
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    if gated:  # a gated pod's placement may still be narrowed
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free and value not in (None, {}, [])}
    for group in ("containers", "initContainers"):
        if group in fixed:
            fixed[group] = [{k: v for k, v in one.items() if k != "image"} for one in fixed[group]]
    return fixed
