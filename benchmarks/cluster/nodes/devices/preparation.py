"""Whether a kubelet can prepare the claims of a pod that is bound to its node; in the words of a real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cluster.api.device_rules.allocation_rules import results_of
from benchmarks.cluster.nodes.affinity import selector_holds
from benchmarks.cluster.nodes.claim_names import claims_of, extended_claim_of, group_of, is_owned_by, is_reserved_for
from benchmarks.cluster.nodes.devices.inventory import DeviceId, Inventory
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS
from benchmarks.cluster.store.store import Record, Store

Json = dict[str, Any]


def unprepared(
    store: Store, inventory: Inventory, pod: Record, obj: Mapping[str, Any], node: str, labels: Mapping[str, str]
) -> str:
    """Why the pod's claims cannot be prepared on the node; empty: they can."""
    return next(_problems(store, inventory, pod, obj, node, labels), "")


def _problems(
    store: Store, inventory: Inventory, pod: Record, obj: Mapping[str, Any], node: str, labels: Mapping[str, str]
) -> Iterator[str]:
    group = group_of(obj)
    required = [(one.name, bool(one.template)) for one in claims_of(obj) if one.needed]
    if extended := extended_claim_of(obj):
        required.append((extended, True))
    for name, generated in required:
        if not name:
            yield f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet'
            return
        record = store.get(RESOURCE_CLAIMS, pod.namespace, name)
        if record is None:
            yield f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
            return
        claim = record.parse()
        if generated and not is_owned_by(claim, pod, group):
            whole = f"{pod.namespace}/{name}"
            yield f"ResourceClaim {whole} was not created for Pod {pod.namespace}/{pod.name} (Pod is not owner)"
        if not is_reserved_for(claim, pod.uid, group):
            yield f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({record.uid})"
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is None:
            yield f"ResourceClaim {name}: not allocated"
            return
        failed = f"NodePrepareResources failed for ResourceClaim {name}"
        selector = allocation.get("nodeSelector")
        if selector is not None and not selector_holds(selector, node, labels):
            yield f"{failed}: it is allocated for other nodes than {node}"
        for which in map(DeviceId.of, results_of(claim)):
            if not inventory.reaches(which, node, labels):
                yield f"{failed}: there is no device {which} on {node}"


def mapped_requests(obj: Mapping[str, Any]) -> frozenset[str]:
    """The extended resources of a pod that a claim serves: a node counts none of them."""
    status = (obj.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return frozenset(one.get("resourceName", "") for one in status.get("requestMappings") or ())
