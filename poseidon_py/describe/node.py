"""Describes a node as a message of the contract. Pure."""

from msgspec import Raw

from poseidon_py.describe import node_features
from poseidon_py.describe.annotations import node_reservation, usage_thresholds
from poseidon_py.describe.bandwidth import NOT_COUNTED, Bandwidth
from poseidon_py.describe.requests import offered_by
from poseidon_py.kube.object_details import AvoidPods, Images
from poseidon_py.kube.objects import Amounts, InvalidField, Node, Taints, annotations_of, decode, labels_of
from protos.gen import flow_pb2

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
"""A label. Volcano uses such nodes within times that its scheduler is given, for pods that give them up then."""
AVOID_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_AVOID_BYTES = AVOID_ANNOTATION.encode()


def node_key(node: Node, bandwidth: Bandwidth = NOT_COUNTED) -> tuple[object, ...]:
    """Equal keys mean equal descriptions of the same node."""
    annotations = bytes(node.metadata.annotations)
    return (
        bytes(node.status.allocatable),
        bytes(node.metadata.labels),
        bytes(node.spec.taints),
        bool(node.spec.unschedulable),
        bytes(node.status.images),
        bytes(node.status.declared),
        annotations if _reads_annotations(node, bandwidth) else b"",
    )


def describe_node(node: Node, node_id: str, bandwidth: Bandwidth = NOT_COUNTED) -> flow_pb2.Node:
    """The message of a node; without status.allocatable it has no capacity. Raises InvalidField."""
    message = flow_pb2.Node(id=node_id, name=node.metadata.name)
    allocatable = decode(node.status.allocatable, Amounts, "status.allocatable") or {}
    message.allocatable.update(node_reservation.left(node, offered_by(allocatable.items())))
    message.labels.update(labels_of(node.metadata))
    message.allocatable.update(bandwidth.offered(node, message.labels, message.allocatable))
    message.labels.update(node_features.labels(node))
    if node.spec.unschedulable:
        # first, because a message names the first taint that a pod does not tolerate
        message.taints.add(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")
    for taint in decode(node.spec.taints, Taints, "spec.taints") or ():
        same = (taint.key, taint.value or "", taint.effect) == (UNSCHEDULABLE_TAINT, "", "NoSchedule")
        if not (same and node.spec.unschedulable):
            message.taints.add(key=taint.key, value=taint.value or "", effect=taint.effect)
    if zone := message.labels.get(REVOCABLE_ZONE):
        message.taints.add(key=REVOCABLE_ZONE, value=zone, effect="NoSchedule")
    for image in decode(node.status.images, Images, "status.images") or ():
        for name in image.names or ():
            message.images[name] = max(image.size, 0)
    message.avoids.extend(sorted(_avoids(node)))
    return message


def _reads_annotations(node: Node, bandwidth: Bandwidth) -> bool:
    return (
        _AVOID_BYTES in bytes(node.metadata.annotations)
        or node_reservation.mentioned_by(node)
        or usage_thresholds.mentioned_by(node)
        or bandwidth.mentioned_by(node)
    )


def _avoids(node: Node) -> set[str]:
    """UIDs of controllers whose pods should avoid the node; an invalid annotation is ignored."""
    if _AVOID_BYTES not in bytes(node.metadata.annotations):
        return set()
    text = annotations_of(node.metadata).get(AVOID_ANNOTATION, "")
    try:
        wish = decode(Raw(text.encode()), AvoidPods, AVOID_ANNOTATION) or AvoidPods()
    except InvalidField:
        return set()
    controllers = (pod.signature.controller for pod in wish.pods or () if pod.signature is not None)
    return {controller.uid for controller in controllers if controller is not None and controller.uid}
