"""Which claims a pod has, and whose claim one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.cluster.store.kinds import POD_NODE, POD_PHASE
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]

GROUPS = "scheduling.k8s.io"
"""The API group of PodGroups."""
_FIELDS = (b'"resourceClaims":', b'"extendedResourceClaimStatus":')


class PodClaim(NamedTuple):
    """One entry of a pod's spec.resourceClaims."""

    entry: str
    name: str | None
    """The claim's name; None if it has not been created, or is not needed."""
    template: str
    """The template that it is generated from; empty: the entry names a claim."""
    needed: bool
    """Whether the pod waits for the claim."""


def may_have_claims(pod: Record) -> bool:
    """Whether a pod can have claims: false for nearly all pods of most clusters, without parsing them."""
    return any(mark in pod.raw for mark in _FIELDS)


def claims_of(pod: Mapping[str, Any]) -> Iterator[PodClaim]:
    """The entries of a pod, with the names that its status gives to generated claims."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    generated = {one.get("name"): one.get("resourceClaimName") for one in statuses}
    for one in pod["spec"].get("resourceClaims") or ():
        entry, template = one.get("name") or "", one.get("resourceClaimTemplateName") or ""
        if one.get("resourceClaimName"):
            yield PodClaim(entry, one["resourceClaimName"], "", True)
        else:
            needed = entry not in generated or generated[entry] is not None
            yield PodClaim(entry, generated.get(entry), template, needed)


def extended_claim_of(pod: Mapping[str, Any]) -> str:
    """The claim that a scheduler has made for a pod's extended resources; empty: none."""
    return ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or ""


def group_of(pod: Mapping[str, Any]) -> str:
    """The name of the PodGroup of Kubernetes that a pod names; empty: none."""
    return (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""


def is_owned_by(claim: Mapping[str, Any], pod: Record, group: str = "") -> bool:
    """Whether the pod is the controller of the claim, or its PodGroup of this name is."""
    if owner_of(claim) == (pod.name, pod.uid):
        return True
    controllers = (one for one in claim["metadata"].get("ownerReferences") or () if one.get("controller"))
    return bool(group) and any(
        one["apiVersion"].startswith(f"{GROUPS}/") and (one["kind"], one["name"]) == ("PodGroup", group)
        for one in controllers
    )


def owner_of(claim: Mapping[str, Any]) -> tuple[str, str]:
    """Name and UID of the pod that is the controller of a claim; empty: none is."""
    for reference in claim["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and (reference["apiVersion"], reference["kind"]) == ("v1", "Pod"):
            return reference["name"], reference["uid"]
    return "", ""


def is_reserved_for(claim: Mapping[str, Any], uid: str, group: str = "") -> bool:
    """Whether a pod may use the claim, itself or as one of its PodGroup of this name."""
    of_group = (GROUPS, "podgroups", group)
    return any(
        one.get("uid") == uid or (group and (one.get("apiGroup"), one.get("resource"), one.get("name")) == of_group)
        for one in (claim.get("status") or {}).get("reservedFor") or ()
    )


def will_not_run(pod: Record) -> bool:
    """Whether a pod has ended, or was deleted before it was bound."""
    return pod.fields[POD_PHASE] in ("Succeeded", "Failed") or (pod.deleting and not pod.fields[POD_NODE])
