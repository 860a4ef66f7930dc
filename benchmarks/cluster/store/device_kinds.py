"""The resources of Dynamic Resource Allocation (resource.k8s.io), in each version that a server may have.

Objects are stored as v1 has them. Other versions are views of the same collection: v1beta2 and v1alpha3 differ in
apiVersion alone, v1beta1 in the form of devices and requests (`device_versions`).
"""

from __future__ import annotations

from benchmarks.cluster.store.device_versions import from_v1beta1, to_v1beta1
from benchmarks.cluster.store.kinds import Json, Kind

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
"""In the order in which clients prefer them."""
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that is allocated from being removed."""
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""Of a generated claim: the entry of its pod's spec.resourceClaims."""
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""Of a namespace: "true" where claims may ask for administrative access."""

_TAINT_RULE_VERSIONS = ("v1", "v1beta2", "v1alpha3")


def _slice_fields(obj: Json) -> tuple[str, ...]:
    spec = obj.get("spec") or {}
    return spec.get("nodeName") or "", spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""


def _kind(plural: str, kind: str, namespaced: bool = False, **extra: object) -> Kind:
    return Kind(GROUP, "v1", plural, kind, namespaced, status_alone=True, **extra)  # type: ignore[arg-type]


RESOURCE_SLICES = _kind(
    "resourceslices",
    "ResourceSlice",
    generation=True,
    field_names=("spec.nodeName", "spec.driver", "spec.pool.name"),
    fields=_slice_fields,
)
DEVICE_CLASSES = _kind("deviceclasses", "DeviceClass", generation=True)
RESOURCE_CLAIMS = _kind("resourceclaims", "ResourceClaim", True, subresources=("status",))
CLAIM_TEMPLATES = _kind("resourceclaimtemplates", "ResourceClaimTemplate", True)
TAINT_RULES = _kind("devicetaintrules", "DeviceTaintRule", generation=True, subresources=("status",))

DEVICE_KINDS = (RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, CLAIM_TEMPLATES, TAINT_RULES)


def served_kinds(versions: tuple[str, ...]) -> list[Kind]:
    """The kinds that a server with these versions has. DeviceTaintRules are not in v1beta1, and alone in v1alpha3."""
    found: list[Kind] = []
    for version in (each for each in VERSIONS if each in versions):
        for kind in DEVICE_KINDS:
            if version in _TAINT_RULE_VERSIONS if kind is TAINT_RULES else version != "v1alpha3":
                found.append(kind if version == "v1" else _view(kind, version))
    return found


def _view(kind: Kind, version: str) -> Kind:
    converted = version == "v1beta1"
    return Kind(
        kind.group,
        version,
        kind.plural,
        kind.kind,
        kind.namespaced,
        subresources=kind.subresources,
        generation=kind.generation,
        field_names=kind.field_names,
        fields=kind.fields,
        stored_as=kind,
        to_stored=from_v1beta1 if converted else None,
        from_stored=to_v1beta1 if converted else None,
        status_alone=True,
    )
