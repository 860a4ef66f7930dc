"""Claims of PodGroups: an entry of a pod's claims that equals one of its PodGroup's is the claim of the group.

It is reserved for the group, not for its pods, however many use it; and it keeps its devices until the group is gone,
whichever pods come and go meanwhile. As in Kubernetes (gate DRAWorkloadResourceClaims, since 1.36).
"""

from collections.abc import Callable, Mapping

from poseidon_py.devices.objects import Consumer, ResourceClaim
from poseidon_py.devices.pod_needs import ClaimEntry
from poseidon_py.state.devices.claim_cache import is_full
from poseidon_py.state.gangs.by_pod_group import NATIVE
from poseidon_py.state.gangs.model import OwnerOrGroup, Unknown
from poseidon_py.state.queues.choice import Objects
from poseidon_py.state.records import PodRecord


class GroupClaims:
    """Whether the claims that pods name are their own or their PodGroup's."""

    def __init__(self, pods: Mapping[str, PodRecord], objects: Callable[[], Objects]) -> None:
        self._pods = pods
        self._objects = objects

    def group_of(self, known: PodRecord, entry: ClaimEntry) -> Consumer | None:
        """The PodGroup that a claim of a pod is for; None: it is the pod's own."""
        found = self._find(known)
        claims = found.spec.get("resourceClaims") if found is not None else None
        for each in claims if isinstance(claims, list) else ():
            if found is not None and isinstance(each, dict) and _same(each, entry):
                return Consumer("podgroups", found.name, found.uid, NATIVE.group)
        return None

    def is_known(self, known: PodRecord) -> bool:
        """Whether the PodGroup that a pod names is known, if it names one."""
        return not known.devices.group or self._find(known) is not None

    def _find(self, known: PodRecord) -> OwnerOrGroup | None:
        if not known.devices.group:
            return None
        try:
            return self._objects().find(NATIVE, known.namespace, known.devices.group)
        except Unknown:
            return None

    def consumer(self, known: PodRecord, claim: str) -> Consumer:
        """The consumer that a claim which a pod names is reserved for: its PodGroup, or the pod itself."""
        for entry in known.devices.entries:
            if entry.claim == claim and (group := self.group_of(known, entry)) is not None:
                return group
        return Consumer("pods", known.name, known.uid)

    def are_of_groups(self, known: PodRecord) -> bool:
        """Whether some claim of a pod is its group's."""
        return bool(known.devices.group) and any(
            self.group_of(known, entry) is not None for entry in known.devices.entries
        )

    def others_use(self, known: PodRecord, claim: str, users: Mapping[str, None]) -> bool:
        """Whether other pods have a node that use a claim as the same consumer as a pod does. `users`: UIDs of the pods
        that name the claim."""
        consumer = self.consumer(known, claim)
        return consumer.uid != known.uid and any(
            other.uid != known.uid and bool(other.node or other.assumed) and self.consumer(other, claim) == consumer
            for other in filter(None, map(self._pods.get, users))
        )


def _same(given: Mapping[str, object], entry: ClaimEntry) -> bool:
    claim, template = given.get("resourceClaimName") or "", given.get("resourceClaimTemplateName") or ""
    return (given.get("name"), claim, template) == (entry.name, entry.named, entry.template)


def unusable(known: PodRecord, entry: ClaimEntry, claim: ResourceClaim | None, group: Consumer | None) -> str:
    """Why a claim cannot be used, in kube-scheduler's words; empty: it can. `group`: whose it is, if not the pod's."""
    if not entry.claim:
        return f'pod "{known.full_name}": ResourceClaim not created yet'
    if claim is None:
        return f'resourceclaim "{entry.claim}" not found'
    if claim.metadata.deleting is not None:
        return f'resourceclaim "{entry.claim}" is being deleted'
    consumer = group.uid if group is not None else known.uid
    if entry.generated and not any(owner.uid == consumer for owner in claim.metadata.owners or ()):
        name, whose = f"{known.namespace}/{entry.claim}", "PodGroup" if group is not None else "pod"
        return f"ResourceClaim {name} was not created for pod {known.full_name} ({whose} is not owner)"
    if claim.status.allocation is not None and is_full(claim, consumer):
        return "resourceclaim in use"
    return ""
