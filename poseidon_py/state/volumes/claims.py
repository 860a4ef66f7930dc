"""What the claims of a pod mean for where it can go. Pure: decides on Storage, changes nothing.

    missing, lost, going, not the pod's, unbound though its class does not wait     the pod is blocked
    bound             the volume's node affinity; its zone and region labels
    waits for a pod   the nodes where a volume that fits is for the taking, or one can be provisioned

The messages, and the order in which they are looked for, are kube-scheduler's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from poseidon_py.describe.reason_keys import ATTACHABLE, VOLUME_NODE, VOLUME_NONE, VOLUME_SPACE, VOLUME_ZONE
from poseidon_py.describe.selectors import label_requirements, node_selector, on_node
from poseidon_py.kube.objects import NOTHING, InvalidField, Metadata, Pod, SelectorTerm
from poseidon_py.kube.storage_objects import Capacity, Claim, StorageClass, Volume
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.volumes.cache import (
    SELECTED_NODE,
    ClaimKey,
    Storage,
    annotations,
    capacity_bytes,
    class_of,
    is_bound,
    labels,
    wanted_bytes,
)
from poseidon_py.state.volumes.matching import candidates
from protos.gen import firmament_pb2

WAIT_FOR_POD = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"
_ONE_POD_CONFLICT = (
    f"node(s) unavailable due to PersistentVolumeClaim with {ONE_POD} access mode already in-use by another pod"
)
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_ZONE_LABELS = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
_SUCCESSOR = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}

Terms = list[firmament_pb2.NodeSelectorTerm]
_Demand = firmament_pb2.NodeSelectorRequirement


@dataclass(frozen=True, slots=True)
class User:
    """Who uses claims."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class Verdict:
    """blocked: why no node will do, "": one may. per_node: the reason is one that kube-scheduler finds on each node.

    further, requests: as in classes.Extras. waits_in: classes of claims that wait for the pod.
    """

    blocked: str = ""
    per_node: bool = False
    further: list[tuple[str, bytes]] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    waits_in: set[str] = field(default_factory=set)

    def demand(self, name: str, terms: Terms) -> None:
        """One of `terms` must match the node; without any, none does."""
        message = firmament_pb2.NodeSelector(nodeSelectorTerms=terms)
        self.further.append((name, message.SerializeToString(deterministic=True)))


def claims_of(pod: Pod) -> tuple[ClaimUse, ...]:
    """The claims that a pod uses, in its order."""
    found = []
    for volume in pod.spec.volumes or ():
        if volume.claim is not None:
            found.append(ClaimUse(volume.claim.name))
        elif volume.ephemeral is not NOTHING and bytes(volume.ephemeral) != b"null":
            found.append(ClaimUse(f"{pod.metadata.name}-{volume.name}", own=True))
    return tuple(found)


def judge(storage: Storage, user: User, uses: Sequence[ClaimUse], taken: Callable[[ClaimKey], bool]) -> Verdict:
    """`taken`: whether a claim that only one pod may use is another's."""
    verdict = Verdict()
    claims = []
    for use in uses:
        claim = storage.claims.get((user.namespace, use.name))
        verdict.blocked = _unusable(claim, user, use)
        if verdict.blocked or claim is None:
            return verdict
        claims.append((use, claim))
    if any(_is_immediate(storage, claim) for _, claim in claims):
        verdict.blocked = "pod has unbound immediate PersistentVolumeClaims"
        return verdict
    for use, claim in claims:
        if not use.own and ONE_POD in (claim.spec.access_modes or ()) and taken((user.namespace, use.name)):
            verdict.blocked = _ONE_POD_CONFLICT
            verdict.per_node = True
            return verdict
    for use, claim in claims:
        try:
            if is_bound(claim):
                _add_bound(storage, use, claim, verdict)
            else:
                _add_waiting(storage, claim, verdict)
        except InvalidField as problem:
            verdict.blocked = f'volume of persistentvolumeclaim "{use.name}" makes no sense: {problem}'
        if verdict.blocked:
            return verdict
    # zones are asked about when all volumes have been found usable on a node, or to be had there
    verdict.further.sort(key=lambda demand: demand[0] == VOLUME_ZONE)
    verdict.requests = attachments(storage, [claim for _, claim in claims])
    return verdict


def _unusable(claim: Claim | None, user: User, use: ClaimUse) -> str:
    if claim is None:
        if use.own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return f'persistentvolumeclaim "{use.name}" not found'
    if claim.status.phase == "Lost":
        return (
            f'persistentvolumeclaim "{use.name}" bound to non-existent '
            f'persistentvolume "{claim.spec.volume_name or ""}"'
        )
    if claim.metadata.deleting is not None:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    if use.own and not any(owner.controller and owner.uid == user.uid for owner in claim.metadata.owners or ()):
        return (
            f"PVC {user.namespace}/{use.name} was not created for pod {user.namespace}/{user.name} (pod is not owner)"
        )
    return ""


def waits_for_pod(storage: Storage, claim: Claim) -> bool:
    """Whether a scheduler has to choose the node before there is a volume."""
    item = storage.classes.get(class_of(claim))
    return not is_bound(claim) and item is not None and item.binding_mode == WAIT_FOR_POD and not claim.spec.volume_name


def _is_immediate(storage: Storage, claim: Claim) -> bool:
    return not is_bound(claim) and not waits_for_pod(storage, claim)


# -- bound ----------------------------------------------------------------------------------------------------------


def _add_bound(storage: Storage, use: ClaimUse, claim: Claim, verdict: Verdict) -> None:
    name = claim.spec.volume_name or ""
    volume = storage.volumes.get(name)
    if volume is None:
        verdict.blocked = f'persistentvolume "{name}" not found'
        if use.own:
            verdict.blocked = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            verdict.per_node = True
        return
    terms = affinity_terms(volume)
    if terms is not None:
        verdict.demand(VOLUME_NODE, terms)
    if not use.own:
        for key, value in sorted(labels(volume.metadata).items()):
            if key in _ZONE_LABELS and (zones := _zones(value)):
                verdict.demand(VOLUME_ZONE, _zone_terms(key, zones))


def affinity_terms(volume: Volume) -> Terms | None:
    """The nodes that a volume can be used on, as alternatives; None: all. Raises InvalidField."""
    affinity = volume.spec.affinity
    if affinity is None or affinity.required is None:
        return None
    given = affinity.required.terms or ()
    # kube-scheduler and kubelets hold a volume against a node's labels alone: demands on fields are as good as met
    if any(term.fields and not term.labels for term in given):
        return None
    labelled = [SelectorTerm(labels=term.labels) for term in given]
    return list(node_selector(labelled, "spec.nodeAffinity.required").nodeSelectorTerms)


def _zones(value: str) -> list[str]:
    """A label's value may be a set of zones; one with an empty member says nothing."""
    zones = [zone.strip() for zone in value.split("__")]
    return sorted(set(zones)) if all(zones) else []


def _zone_terms(key: str, zones: list[str]) -> Terms:
    """A node without any label of the kind is taken for part of a cluster of a single zone."""
    wanted = _Demand(key=key, operator="In", values=zones)
    terms = [_all([_Demand(key=each, operator="DoesNotExist") for each in _ZONE_LABELS]), _all([wanted])]
    if key in _SUCCESSOR:
        absent = _Demand(key=key, operator="DoesNotExist")
        terms.append(_all([absent, _Demand(key=_SUCCESSOR[key], operator="In", values=zones)]))
    return terms


# -- waiting for the pod ----------------------------------------------------------------------------------------------


def _add_waiting(storage: Storage, claim: Claim, verdict: Verdict) -> None:
    name = class_of(claim)
    verdict.waits_in.add(name)
    topology, space = provisioning(storage, claim, storage.classes[name])
    chosen = annotations(claim.metadata).get(SELECTED_NODE)
    if chosen is not None:
        verdict.demand(VOLUME_NONE, [on_node(chosen)])
    else:
        ready: Terms = []
        for volume in candidates(storage, claim):
            terms = affinity_terms(volume)
            if terms is None:
                return  # it can be used anywhere
            ready += [term for term in terms if term not in ready]
        if ready:
            verdict.demand(VOLUME_NONE, ready + _both(topology, space))
            return
    if topology is not None:
        verdict.demand(VOLUME_NONE, topology)
    if space is not None:
        verdict.demand(VOLUME_SPACE, space)


def provisioning(storage: Storage, claim: Claim, item: StorageClass) -> tuple[Terms | None, Terms | None]:
    """Where a volume can be made for the claim: by what the class allows, and by free space; None: anywhere."""
    if item.provisioner in ("", NO_PROVISIONER):
        return [], None
    topology = None
    if item.topologies:
        topology = [
            _all([_Demand(key=e.key, operator="In", values=e.values or ()) for e in term.expressions or ()])
            for term in item.topologies
            if term.expressions
        ]
    driver = storage.drivers.get(item.provisioner)
    wanted = wanted_bytes(claim)
    if driver is None or not driver.spec.capacity or not wanted:
        return topology, None
    return topology, _space(storage.capacities.values(), item.metadata.name, wanted)


def _space(capacities: Iterable[Capacity], class_name: str, wanted: int) -> Terms | None:
    terms = []
    for capacity in capacities:
        limit = capacity_bytes(capacity)
        if capacity.class_name != class_name or capacity.topology is None or limit is None or limit < wanted:
            continue
        try:
            demands = label_requirements(capacity.topology, "nodeTopology")
        except InvalidField:
            continue
        if not demands:
            return None
        if (term := _all(demands)) not in terms:
            terms.append(term)
    return terms


def _both(one: Terms | None, other: Terms | None) -> Terms:
    """Alternatives that meet both; "anywhere" on both sides is a demand that every node meets."""
    if one is None and other is None:
        return [_all([_Demand(key="metadata.name", operator="Exists")], fields=True)]
    if one is None or other is None:
        return (one if other is None else other) or []
    return [_all([*a.matchExpressions, *b.matchExpressions]) for a in one for b in other]


def _all(demands: list[_Demand], *, fields: bool = False) -> firmament_pb2.NodeSelectorTerm:
    if fields:
        return firmament_pb2.NodeSelectorTerm(matchFields=demands)
    return firmament_pb2.NodeSelectorTerm(matchExpressions=demands)


# -- attaching --------------------------------------------------------------------------------------------------------


def attachments(storage: Storage, claims: Iterable[Claim]) -> dict[str, int]:
    """How many volumes of each driver whose number is limited somewhere the claims need attached."""
    volumes = {found for claim in claims if (found := _attached(storage, claim)) is not None}
    counts: dict[str, int] = {}
    for driver, _ in volumes:
        if driver in storage.limited:
            counts[ATTACHABLE + driver] = counts.get(ATTACHABLE + driver, 0) + 1
    return counts


def _attached(storage: Storage, claim: Claim) -> tuple[str, str] | None:
    """Driver and handle of the claim's volume; of one that is still to be made, a handle that stands for it."""
    volume = storage.volumes.get(claim.spec.volume_name or "")
    if volume is not None:
        return (volume.spec.csi.driver, volume.spec.csi.handle) if volume.spec.csi is not None else None
    item = storage.classes.get(class_of(claim))
    who: Metadata = claim.metadata
    return (item.provisioner, f"{who.namespace}/{who.name}") if item is not None and item.provisioner else None
