"""What the claims of a pod require of its node. Pure: reads Storage, changes nothing.

    missing, lost, being deleted, owned by another pod, unbound with immediate binding: the pod is blocked
    bound                  the volume's node affinity, and its zone and region labels
    WaitForFirstConsumer   the nodes where a matching volume is available, or where one can be provisioned

The messages, and the order of the checks, are kube-scheduler's.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poseidon_py.describe.reason_keys import ATTACHABLE, VOLUME_NODE, VOLUME_NONE, VOLUME_SPACE, VOLUME_ZONE
from poseidon_py.describe.selectors import RequirementMessage, label_requirements, node_selector, on_node
from poseidon_py.kube.objects import NOTHING, InvalidField, Metadata, Pod, SelectorTerm
from poseidon_py.kube.storage_objects import Capacity, Claim, StorageClass, Volume
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.volumes.cache import (
    SELECTED_NODE,
    ClaimKey,
    Storage,
    annotations,
    class_of,
    is_bound,
    labels,
    largest_volume_bytes,
    requested_bytes,
)
from poseidon_py.state.volumes.matching import candidates, usable_on
from protos.gen import firmament_pb2

WAIT_FOR_POD = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"
ONE_POD_CONFLICT = (
    f"node(s) unavailable due to PersistentVolumeClaim with {ONE_POD} access mode already in-use by another pod"
)
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_ZONE_LABELS = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
_SUCCESSOR = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}

_GCE, _AWS = "pd.csi.storage.gke.io", "ebs.csi.aws.com"
_AZURE, _CINDER = "disk.csi.azure.com", "cinder.csi.openstack.org"
_DRIVERS = {
    "kubernetes.io/gce-pd": _GCE,
    "kubernetes.io/aws-ebs": _AWS,
    "kubernetes.io/azure-disk": _AZURE,
    "kubernetes.io/cinder": _CINDER,
}
"""In-tree plug-in -> the driver that it has been migrated to in every cluster (nodevolumelimits/utils.go)."""

Terms = list[firmament_pb2.NodeSelectorTerm]


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that uses claims."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class VolumeDemands:
    """What the claims of one pod require of its node.

    blocked: why no node is possible; empty: one may be. per_node: kube-scheduler reports this reason node by node.
    further, requests, tokens: as in task_classes.Extras. waits_in: storage classes of the claims that wait for the
    pod's node. attached: driver and handle of the volumes that count for limits of nodes.
    """

    blocked: str = ""
    per_node: bool = False
    further: list[tuple[str, bytes]] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    waits_in: set[str] = field(default_factory=set)
    attached: frozenset[tuple[str, str]] = frozenset()

    def require(self, name: str, terms: Terms, *, first: bool = False) -> None:
        """Add a requirement: one of `terms` must match the node; if there are none, no node matches. `first`: nodes
        that do not meet it fail for it, and not for others."""
        message = firmament_pb2.NodeSelector(nodeSelectorTerms=terms)
        self.further.insert(0 if first else len(self.further), (name, message.SerializeToString(deterministic=True)))


def claims_of(pod: Pod) -> tuple[ClaimUse, ...]:
    """The claims that a pod uses, in the order of its volumes."""
    found = []
    for volume in pod.spec.volumes or ():
        if volume.claim is not None:
            found.append(ClaimUse(volume.claim.name))
        elif volume.ephemeral is not NOTHING and bytes(volume.ephemeral) != b"null":
            found.append(ClaimUse(f"{pod.metadata.name}-{volume.name}", own=True))
    return tuple(found)


def volume_demands(
    storage: Storage, pod: PodIdentity, uses: Sequence[ClaimUse], in_use: Callable[[ClaimKey], bool]
) -> VolumeDemands:
    """What the claims `uses` of `pod` require. `in_use`: whether another pod uses a ReadWriteOncePod claim."""
    demands = VolumeDemands()
    claims = []
    for use in uses:
        claim = storage.claims.get((pod.namespace, use.name))
        demands.blocked = _unusable(claim, pod, use)
        if demands.blocked or claim is None:
            return demands
        claims.append((use, claim))
    if any(_is_immediate(storage, claim) for _, claim in claims):
        demands.blocked = "pod has unbound immediate PersistentVolumeClaims"
        return demands
    for use, claim in claims:
        if not use.own and ONE_POD in (claim.spec.access_modes or ()) and in_use((pod.namespace, use.name)):
            demands.blocked = ONE_POD_CONFLICT
            demands.per_node = True
            return demands
    for use, claim in claims:
        try:
            if is_bound(claim):
                _add_bound(storage, use, claim, demands)
            else:
                _add_waiting(storage, claim, demands)
        except InvalidField as problem:
            demands.blocked = f'volume of persistentvolumeclaim "{use.name}" is invalid: {problem}'
        if demands.blocked:
            return demands
    # kube-scheduler checks zones after node affinity and provisioning: a node fails for the first that it does not meet
    demands.further.sort(key=lambda requirement: requirement[0] == VOLUME_ZONE)
    demands.attached = attached_by(storage, [claim for _, claim in claims])
    demands.requests = slots(Counter(driver for driver, _ in demands.attached))
    return demands


def _unusable(claim: Claim | None, pod: PodIdentity, use: ClaimUse) -> str:
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
    if use.own and not any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owners or ()):
        return f"PVC {pod.namespace}/{use.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    return ""


def waits_for_pod(storage: Storage, claim: Claim) -> bool:
    """Whether the claim gets its volume only after a scheduler has chosen the node."""
    item = storage.classes.get(class_of(claim))
    return not is_bound(claim) and item is not None and item.binding_mode == WAIT_FOR_POD and not claim.spec.volume_name


def _is_immediate(storage: Storage, claim: Claim) -> bool:
    return not is_bound(claim) and not waits_for_pod(storage, claim)


# -- bound ----------------------------------------------------------------------------------------------------------


def _add_bound(storage: Storage, use: ClaimUse, claim: Claim, demands: VolumeDemands) -> None:
    name = claim.spec.volume_name or ""
    volume = storage.volumes.get(name)
    if volume is None:
        demands.blocked = f'persistentvolume "{name}" not found'
        if use.own:
            demands.blocked = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            demands.per_node = True
        return
    terms = affinity_terms(volume)
    if terms is not None:
        demands.require(VOLUME_NODE, terms)
    if not use.own:
        for key, value in sorted(labels(volume.metadata).items()):
            if key in _ZONE_LABELS and (zones := _zones(value)):
                demands.require(VOLUME_ZONE, _zone_terms(key, zones))


def affinity_terms(volume: Volume) -> Terms | None:
    """The nodes on which a volume can be used, as alternative terms; None: all. Raises InvalidField."""
    affinity = volume.spec.affinity
    if affinity is None or affinity.required is None:
        return None
    alternatives = affinity.required.terms or ()
    # kube-scheduler and kubelets match a volume against the node's labels alone and ignore matchFields
    if any(term.fields and not term.labels for term in alternatives):
        return None
    labelled = [SelectorTerm(labels=term.labels) for term in alternatives]
    return list(node_selector(labelled, "spec.nodeAffinity.required").nodeSelectorTerms)


def _zones(value: str) -> list[str]:
    """The zones in a label's value, which may list several; none if one of them is empty."""
    zones = [zone.strip() for zone in value.split("__")]
    return sorted(set(zones)) if all(zones) else []


def _zone_terms(key: str, zones: list[str]) -> Terms:
    """Nodes in `zones`; and nodes without any zone or region label, as in a cluster of a single zone."""
    same_zone = RequirementMessage(key=key, operator="In", values=zones)
    terms = [_all([RequirementMessage(key=each, operator="DoesNotExist") for each in _ZONE_LABELS]), _all([same_zone])]
    if key in _SUCCESSOR:
        absent = RequirementMessage(key=key, operator="DoesNotExist")
        terms.append(_all([absent, RequirementMessage(key=_SUCCESSOR[key], operator="In", values=zones)]))
    return terms


# -- WaitForFirstConsumer ---------------------------------------------------------------------------------------------


def _add_waiting(storage: Storage, claim: Claim, demands: VolumeDemands) -> None:
    name = class_of(claim)
    demands.waits_in.add(name)
    topology, space = provisioning(storage, claim, storage.classes[name])
    chosen = annotations(claim.metadata).get(SELECTED_NODE)
    if chosen is not None:
        demands.require(VOLUME_NONE, [on_node(chosen)])
    else:
        ready: Terms = []
        for volume in candidates(storage, claim):
            terms = affinity_terms(volume)
            if terms is None:
                return  # it can be used anywhere
            ready += [term for term in terms if term not in ready]
        if ready:
            demands.require(VOLUME_NONE, ready + _both(topology, space))
            return
    if topology is not None:
        demands.require(VOLUME_NONE, topology)
    if space is not None:
        demands.require(VOLUME_SPACE, space)


def provisioning(storage: Storage, claim: Claim, item: StorageClass) -> tuple[Terms | None, Terms | None]:
    """Where a volume can be provisioned: by the topology of the class, and by free capacity; None: anywhere."""
    if item.provisioner in ("", NO_PROVISIONER):
        return [], None
    topology = None
    if item.topologies:
        topology = [
            _all([RequirementMessage(key=e.key, operator="In", values=e.values or ()) for e in term.expressions or ()])
            for term in item.topologies
            if term.expressions
        ]
    driver = storage.drivers.get(item.provisioner)
    size = requested_bytes(claim)
    if driver is None or not driver.spec.capacity or not size:
        return topology, None
    return topology, _space(storage.capacities.values(), item.metadata.name, size)


def _space(capacities: Iterable[Capacity], class_name: str, size: int) -> Terms | None:
    terms = []
    for capacity in capacities:
        limit = largest_volume_bytes(capacity)
        if capacity.class_name != class_name or capacity.topology is None or limit is None or limit < size:
            continue
        try:
            requirements = label_requirements(capacity.topology, "nodeTopology")
        except InvalidField:
            continue
        if not requirements:
            return None
        if (term := _all(requirements)) not in terms:
            terms.append(term)
    return terms


def may_come_to(storage: Storage, claim: Claim, node: str, node_labels: Mapping[str, str]) -> bool:
    """Whether a pod on the node can have the volume of a claim. While a round was being solved, the volume may have
    been bound elsewhere, or another node selected for it."""
    if is_bound(claim):
        volume = storage.volumes.get(claim.spec.volume_name or "")
        return volume is not None and usable_on(volume, node_labels)
    return annotations(claim.metadata).get(SELECTED_NODE, node) == node


def _both(one: Terms | None, other: Terms | None) -> Terms:
    """Alternatives that meet both; if both are None, a term that every node matches."""
    if one is None and other is None:
        return [_all([RequirementMessage(key="metadata.name", operator="Exists")], fields=True)]
    if one is None or other is None:
        return (one if other is None else other) or []
    return [_all([*a.matchExpressions, *b.matchExpressions]) for a in one for b in other]


def _all(requirements: list[RequirementMessage], *, fields: bool = False) -> firmament_pb2.NodeSelectorTerm:
    if fields:
        return firmament_pb2.NodeSelectorTerm(matchFields=requirements)
    return firmament_pb2.NodeSelectorTerm(matchExpressions=requirements)


# -- attaching --------------------------------------------------------------------------------------------------------


def attached_by(storage: Storage, claims: Iterable[Claim]) -> frozenset[tuple[str, str]]:
    """Driver and handle of the volumes that pods with these claims attach, of drivers that some node limits."""
    found = (_attached(storage, claim) for claim in claims)
    return frozenset(each for each in found if each is not None and each[0] in storage.limited)


def slots(drivers: Mapping[str, int]) -> dict[str, int]:
    """What to request for so many volumes of drivers."""
    return {ATTACHABLE + driver: count for driver, count in drivers.items() if count}


def _attached(storage: Storage, claim: Claim) -> tuple[str, str] | None:
    """Driver and handle of the claim's volume; before it is provisioned, the claim's name in place of the handle."""
    volume = storage.volumes.get(claim.spec.volume_name or "")
    if volume is not None:
        return _source(volume)
    item = storage.classes.get(class_of(claim))
    metadata: Metadata = claim.metadata
    if item is None or not item.provisioner:
        return None
    return _DRIVERS.get(item.provisioner, item.provisioner), f"{metadata.namespace}/{metadata.name}"


def _source(volume: Volume) -> tuple[str, str] | None:
    """Driver and handle of a volume, or of the driver that its in-tree plug-in was migrated to; None: it has none."""
    spec = volume.spec
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.handle
    if spec.gce is not None:
        return _GCE, spec.gce.name
    if spec.aws is not None:
        return _AWS, spec.aws.ident.rpartition("/")[2]  # "aws://zone/volume", or the volume alone
    if spec.azure is not None:
        return _AZURE, spec.azure.uri
    return None if spec.cinder is None else (_CINDER, spec.cinder.ident)
