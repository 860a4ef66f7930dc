"""Describes a pod as a task class: everything in it that matters to placement. Pure.

Names are not part of a class. Labels are not either (they make a profile, see label_profiles.py), unless a constraint
refers to the pod's own labels or namespace.
"""

from poseidon_py.describe import node_features, node_pool
from poseidon_py.describe.annotations import usage_thresholds
from poseidon_py.describe.annotations.traits import traits_key, traits_of
from poseidon_py.describe.bandwidth import NOT_COUNTED, Bandwidth
from poseidon_py.describe.lifetime import annotated, daemon, expected_seconds
from poseidon_py.describe.pinning import unpinned, without_name
from poseidon_py.describe.pod_affinity import add_pod_affinity, add_spread
from poseidon_py.describe.ports_and_disks import tokens
from poseidon_py.describe.reason_keys import ENFORCED, FEATURES, NODE_POOL
from poseidon_py.describe.requests import requests
from poseidon_py.describe.selectors import node_selector, node_term
from poseidon_py.kube.object_details import Affinity, ImageSource, SpreadConstraints
from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Pod, Tolerations, decode, labels_of
from poseidon_py.util.ids import hash64
from protos.gen import firmament_pb2, flow_pb2

Key = tuple[object, ...]

NEVER = "Never"
"""The preemptionPolicy of a pod for which no other is evicted; the other one is PreemptLowerPriority."""


def never_preempts(pod: Pod) -> bool:
    return pod.spec.preemption_policy == NEVER


def key_of(pod: Pod, bandwidth: Bandwidth = NOT_COUNTED, pin: str = "") -> Key:
    """Equal keys mean equal classes. Made of undecoded bytes, because it is called for every event of every pod. pin:
    the name of the node that the pod is pinned to, which is left out."""
    spec = pod.spec
    network = (spec.host_network, spec.host_users)
    parts: list[object] = [spec.priority, network]
    parts.append(never_preempts(pod))
    parts.append(spec.deadline if (expected := annotated(pod)) is None else expected)
    for raw in (spec.node_selector, spec.tolerations, spec.spread, spec.overhead, spec.resources):
        parts.append(None if raw is NOTHING else bytes(raw))
    affinity = without_name(bytes(spec.affinity), pin) if pin else bytes(spec.affinity)
    parts += (affinity, bool(pin), daemon(pod))
    for container in spec.containers or ():
        raws = (container.ports, container.resources, container.restart_rules)
        parts.append((container.image, *map(bytes, raws)))
    if spec.init_containers:
        for container in spec.init_containers:
            raws = (container.ports, container.resources, container.restart_rules)
            parts.append((container.restart_policy, container.image, *map(bytes, raws)))
    for volume in spec.volumes or ():
        # other volumes may have names that API servers generate
        if volume.special:
            disks = (volume.gce_disk, volume.aws_disk, volume.iscsi, volume.rbd, volume.image)
            parts.append(tuple(map(bytes, disks)))
    if spec.affinity is not NOTHING or spec.spread is not NOTHING:
        near = affinity + bytes(spec.spread)
        if spec.spread is not NOTHING or b'"podA' in near:
            parts.append(pod.metadata.namespace)
            if b'"matchLabelKeys"' in bytes(spec.spread):
                parts.append(bytes(pod.metadata.labels))
    if spec.node_name and _resizable(pod):
        parts.append(_status_key(pod))
    parts += (traits_key(pod), bandwidth.key(pod), node_pool.pool_of(pod))
    return tuple(parts)


def _resizable(pod: Pod) -> bool:
    """Whether the status affects the requests, which it does only if it has resources in force (requests.py)."""
    status = pod.status
    if status.resources is not NOTHING:
        return True
    for statuses in (status.containers, status.init_containers):
        for each in statuses or ():
            if each.resources is not NOTHING:
                return True
    return False


def _status_key(pod: Pod) -> Key:
    status, spec = pod.status, pod.spec
    statuses = {
        s.name: (bytes(s.resources), bytes(s.allocated))
        for s in (*(status.containers or ()), *(status.init_containers or ()))
    }
    order = [statuses.get(c.name) for c in (*(spec.containers or ()), *(spec.init_containers or ()))]
    pending = [c.reason for c in status.conditions or () if c.type == "PodResizePending"]
    return (*order, *pending, bytes(status.resources), bytes(status.allocated))


def describe_class(
    pod: Pod, added: firmament_pb2.NodeSelector | None = None, bandwidth: Bandwidth = NOT_COUNTED, pin: str = ""
) -> flow_pb2.TaskClass:
    """The task class of a pod. `added`: node affinity that is required of every pod. pin: the name of the node that the
    pod is pinned to, which is left out. Raises InvalidField."""
    spec = pod.spec
    message = flow_pb2.TaskClass(requests=requests(pod), priority=spec.priority or 0, traits=traits_of(pod))
    message.requests.update(bandwidth.requested(pod, message.requests))
    for key, value in sorted((decode(spec.node_selector, Labels, "spec.nodeSelector") or {}).items()):
        message.node_selector.add(key=key, operator="In", values=[value])
    _add_affinity(message, pod, pin)
    for toleration in decode(spec.tolerations, Tolerations, "spec.tolerations") or ():
        if toleration.operator not in (None, "", "Equal", "Exists", "Gt", "Lt"):
            raise InvalidField(
                "spec.tolerations.operator", f"{toleration.operator!r} is not valid; give Equal, Exists, Gt or Lt"
            )
        message.tolerations.add(
            key=toleration.key or "",
            operator=toleration.operator or "Equal",
            value=toleration.value or "",
            effect=toleration.effect or "",
        )
    if daemon(pod):
        message.tolerations.add(key=usage_thresholds.ANNOTATION, operator="Exists")
    message.tokens.extend(tokens(pod))
    message.images.extend(_images(pod))
    message.expected_seconds = expected_seconds(pod)
    message.never_preempts = never_preempts(pod)
    if added is not None:
        message.further_affinity.append(added)
        message.further_names.append(ENFORCED)
    if features := node_features.needed(pod):
        message.further_affinity.append(node_features.demand(features))
        message.further_names.append(FEATURES)
    if pool := node_pool.pool_of(pod):
        message.further_affinity.append(node_pool.demand(pool))
        message.further_names.append(NODE_POOL)
    seal(message)
    # for display only, not part of the id: the first pod of the class
    message.name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return message


def seal(message: flow_pb2.TaskClass) -> None:
    """Set the id of a class, which has neither id nor name yet: the hash of its content."""
    message.id = hash64(message.SerializeToString(deterministic=True))


def _add_affinity(message: flow_pb2.TaskClass, pod: Pod, pin: str) -> None:
    spec, namespace = pod.spec, pod.metadata.namespace
    affinity = decode(spec.affinity, Affinity, "spec.affinity") or Affinity()
    if affinity.node is not None:
        path = "spec.affinity.nodeAffinity"
        if affinity.node.required is not None:
            terms = affinity.node.required.terms or []
            if pin:
                terms = [term for term in map(unpinned, terms) if term.labels]
            if terms or not pin:
                message.node_affinity.CopyFrom(node_selector(terms, f"{path}.required"))
                message.node_affinity.SetInParent()
        for at, preferred in enumerate(affinity.node.preferred or ()):
            where = f"{path}.preferred[{at}]"
            if not 0 <= preferred.weight <= 100:
                raise InvalidField(f"{where}.weight", f"{preferred.weight} is not valid; give 1 to 100")
            if preferred.weight:
                term = node_term(preferred.preference, f"{where}.preference")
                message.preferred_nodes.add(weight=preferred.weight, preference=term)
    spread = decode(spec.spread, SpreadConstraints, "spec.topologySpreadConstraints") or ()
    if spread or affinity.near is not None or affinity.far is not None:
        add_pod_affinity(message, affinity.near, affinity.far, namespace)
        add_spread(message, spread, namespace, labels_of(pod.metadata))


def _images(pod: Pod) -> list[str]:
    """The images of a pod. As for kube-scheduler, an image that two containers share counts twice."""
    spec = pod.spec
    named = [c.image for c in (*(spec.init_containers or ()), *(spec.containers or ())) if c.image]
    for volume in spec.volumes or ():
        if volume.image is not NOTHING and (source := decode(volume.image, ImageSource, "spec.volumes.image")):
            named.append(source.reference)
    return sorted(with_tag(name) for name in named)


def with_tag(image: str) -> str:
    """An image's name as nodes report it: with the tag `latest` if it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
