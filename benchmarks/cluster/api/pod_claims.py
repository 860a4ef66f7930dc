"""Field checks of a pod's claims for devices: in its specification, in its containers, and in its status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cluster.api.device_rules.field_checks import dns_label, dns_subdomain, duplicate, each
from benchmarks.cluster.api.validation import Causes, Json
from benchmarks.cluster.store.errors import cause, invalid_value, required

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def pod_claims(claims: Any, field: str) -> Causes:
    """The claims of a pod or of a pod template."""
    causes: Causes = []
    seen: set[str] = set()
    for at, claim in enumerate(claims or ()):
        place, name = f"{field}[{at}]", claim.get("name") or ""
        if not name:
            causes.append(required(f"{place}.name"))
        elif name in seen:
            causes.append(duplicate(f"{place}.name", name))
        else:
            causes += dns_label(name, f"{place}.name")
        seen.add(name)
        stated = [source for source in _SOURCES if claim.get(source) is not None]
        if len(stated) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid_value(place, claim, why))
        elif not stated:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid_value(place, claim, why))
        for source in stated:
            causes += dns_subdomain(claim[source], f"{place}.{source}")
    return causes


def container_claims(container: Mapping[str, Any], spec: Mapping[str, Any], field: str) -> Causes:
    """Which claims of its pod, or which requests of them, a container uses."""
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    resources = container.get("resources")
    causes: Causes = []
    seen: set[str] = set()
    for at, claim in enumerate((resources.get("claims") if isinstance(resources, Mapping) else None) or ()):
        place, name, request = f"{field}[{at}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            causes.append(required(place))
            continue
        key = f"{name}/{request}" if request else name
        if request:
            causes += dns_label(request, f"{place}.request")
        if name in seen or key in seen or (not request and any(one.startswith(f"{name}/") for one in seen)):
            causes.append(duplicate(place, name if name in seen else key))
        seen.add(key)
        if name not in known:
            names = ", ".join(sorted(filter(None, known)))
            listed = f": {names}" if names else " which is empty"
            message = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{listed}'
            causes.append(cause(place, message, "FieldValueNotFound"))
    return causes


def pod_status(pod: Json) -> Causes:
    """The names of claims in a pod's status."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}

    def entry(one: Json, field: str) -> Causes:
        causes: Causes = []
        if one.get("name") not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            causes.append(invalid_value(f"{field}.name", one.get("name") or "", why))
        if one.get("resourceClaimName") is not None:
            causes += dns_subdomain(one["resourceClaimName"], f"{field}.resourceClaimName")
        return causes

    statuses, field = status.get("resourceClaimStatuses"), "status.resourceClaimStatuses"
    causes = each(statuses, -1, field, entry, lambda one: one.get("name"))
    return causes + list(_extended(status.get("extendedResourceClaimStatus"), spec))


def _extended(status: Json | None, spec: Json) -> Iterator[Json]:
    """The claim for a pod's extended resources: which request serves which resource of which container."""
    if status is None:
        return
    field = "status.extendedResourceClaimStatus"
    containers = {
        one.get("name"): (one.get("resources") or {}).get("requests") or {}
        for group in ("initContainers", "containers")
        for one in spec.get(group) or ()
    }
    mappings = status.get("requestMappings") or []
    if not mappings:
        yield required(f"{field}.requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for at, mapping in enumerate(mappings):
        place = f"{field}.requestMappings[{at}]"
        key = tuple(str(mapping.get(name) or "") for name in ("containerName", "resourceName", "requestName"))
        container, resource, request = key
        if container not in containers:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid_value(f"{place}.containerName", container, why)
        elif resource not in containers[container]:
            why = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            )
            yield invalid_value(f"{place}.resourceName", resource, why)
        yield from dns_label(request, f"{field}.requestName")
        if key in seen:
            yield duplicate(f"{place}.requestName", request)
        seen.add(key)
    name = status.get("resourceClaimName")
    if not name:
        yield required(f"{field}.resourceClaimName")
    else:
        yield from dns_subdomain(name, f"{field}.resourceClaimName")
