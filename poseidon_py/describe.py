"""Pod -> task class, Node -> node message: what the engine needs to know, in its words. Pure.

Pods that want the same thing belong to one class. A class is described once; which class a pod belongs to is
looked up by the bytes of the fields that matter, so a pod of a known template costs one dictionary lookup and no
decoding. Bytes that differ for the same meaning only cost another description: the class id is a hash of what
the description says. Labels and names do not matter and are not in it; neither is anything about the owner, for
admission plug-ins may have changed one pod of a template and not the next.
"""

from collections.abc import Iterable

from poseidon_py.ids import hash64
from poseidon_py.objects import (
    NOTHING,
    Affinity,
    Labels,
    Node,
    Nonsense,
    Pod,
    Requirement,
    Taints,
    Tolerations,
    decode,
)
from poseidon_py.quantity import PODS
from poseidon_py.requests import offered_by, requests
from protos.gen import firmament_pb2, flow_pb2

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELDS = ("metadata.name",)

Key = tuple[object, ...]


class Classes:
    """The task classes that pods belong to, by the bytes of their pods. Owns the descriptions."""

    def __init__(self) -> None:
        self._by_key: dict[Key, int] = {}
        self._described: dict[int, flow_pb2.TaskClass] = {}

    def __len__(self) -> int:
        return len(self._described)

    def of(self, pod: Pod) -> int:
        """The id of the pod's class, described if it was not known. Raises Nonsense."""
        key = key_of(pod)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self._add(describe_class(pod))
        return found

    def unreadable(self, pod: Pod) -> int:
        """The class of a pod that runs, but whose description makes no sense: it holds a slot for pods."""
        message = flow_pb2.TaskClass(requests={PODS: 1}, priority=pod.spec.priority or 0, name="unreadable")
        message.id = hash64(message.SerializeToString(deterministic=True))
        return self._add(message)

    def _add(self, message: flow_pb2.TaskClass) -> int:
        self._described.setdefault(message.id, message)
        return message.id

    def get(self, class_id: int) -> flow_pb2.TaskClass | None:
        return self._described.get(class_id)

    def keep(self, in_use: set[int]) -> None:
        """Forgets all other classes."""
        self._described = {i: message for i, message in self._described.items() if i in in_use}
        self._by_key = {key: i for key, i in self._by_key.items() if i in in_use}


def key_of(pod: Pod) -> Key:
    """Equal keys mean equal classes."""
    spec = pod.spec
    parts: list[object] = [spec.priority]
    for raw in (spec.node_selector, spec.affinity, spec.tolerations, spec.overhead, spec.resources):
        parts.append(None if raw is NOTHING else bytes(raw))
    for container in spec.containers or ():
        parts.append(bytes(container.resources))
    if spec.init_containers:
        for container in spec.init_containers:
            parts.append((container.restart_policy, bytes(container.resources)))
    if spec.node_name and _resizable(pod):
        parts.append(_status_key(pod))
    return tuple(parts)


def _resizable(pod: Pod) -> bool:
    """Whether the status says anything that counts (requests.py); pods that were just made have nothing there."""
    return bool(pod.status.containers or pod.status.init_containers or pod.status.resources is not NOTHING)


def _status_key(pod: Pod) -> Key:
    status, spec = pod.status, pod.spec
    statuses = {
        s.name: (bytes(s.resources), bytes(s.allocated))
        for s in (*(status.containers or ()), *(status.init_containers or ()))
    }
    order = [statuses.get(c.name) for c in (*(spec.containers or ()), *(spec.init_containers or ()))]
    pending = [c.reason for c in status.conditions or () if c.type == "PodResizePending"]
    return (*order, *pending, bytes(status.resources), bytes(status.allocated))


def describe_class(pod: Pod) -> flow_pb2.TaskClass:
    """What matters of a pod to where it can be placed. Raises Nonsense naming the field."""
    spec = pod.spec
    message = flow_pb2.TaskClass(requests=requests(pod), priority=spec.priority or 0)
    for key, value in sorted((decode(spec.node_selector, Labels, "spec.nodeSelector") or {}).items()):
        message.node_selector.add(key=key, operator="In", values=[value])
    affinity = decode(spec.affinity, Affinity, "spec.affinity")
    if affinity is not None and affinity.node is not None and affinity.node.required is not None:
        path = "spec.affinity.nodeAffinity.required"
        message.node_affinity.SetInParent()
        for at, term in enumerate(affinity.node.required.terms or ()):
            message.node_affinity.nodeSelectorTerms.add(
                matchExpressions=_requirements(term.labels or (), f"{path}[{at}].matchExpressions", None),
                matchFields=_requirements(term.fields or (), f"{path}[{at}].matchFields", _FIELDS),
            )
    for toleration in decode(spec.tolerations, Tolerations, "spec.tolerations") or ():
        if toleration.operator not in (None, "", "Equal", "Exists"):
            raise Nonsense("spec.tolerations.operator", f"{toleration.operator!r} is neither Equal nor Exists")
        message.tolerations.add(
            key=toleration.key or "",
            operator=toleration.operator or "Equal",
            value=toleration.value or "",
            effect=toleration.effect or "",
        )
    message.id = hash64(message.SerializeToString(deterministic=True))
    # for people, and not part of what makes a class: named after the first of its pods that was seen
    message.name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return message


def _requirements(
    given: Iterable[Requirement], path: str, keys: tuple[str, ...] | None
) -> list[firmament_pb2.NodeSelectorRequirement]:
    result = []
    for each in given:
        values = each.values or []
        if each.operator not in _OPERATORS:
            raise Nonsense(path, f"operator {each.operator!r} is none of {', '.join(_OPERATORS)}")
        if keys is not None and each.key not in keys:
            raise Nonsense(path, f"{each.key!r} is not a field that can be selected by; {', '.join(keys)} is")
        if each.operator in ("Gt", "Lt") and (len(values) != 1 or not _is_integer(values[0])):
            raise Nonsense(path, f"{each.operator} needs one integer, not {values}")
        result.append(firmament_pb2.NodeSelectorRequirement(key=each.key, operator=each.operator, values=values))
    return result


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()


def node_key(node: Node) -> Key:
    """Equal keys mean equal descriptions of the same node."""
    return (
        bytes(node.status.allocatable),
        bytes(node.metadata.labels),
        bytes(node.spec.taints),
        bool(node.spec.unschedulable),
    )


def describe_node(node: Node, node_id: str) -> flow_pb2.Node:
    """A node as the engine sees it; without allocatable it offers nothing. Raises Nonsense naming the field."""
    message = flow_pb2.Node(id=node_id, name=node.metadata.name)
    allocatable = decode(node.status.allocatable, dict[str, str | int | float | None], "status.allocatable") or {}
    message.allocatable.update(offered_by(allocatable.items()))
    message.labels.update(decode(node.metadata.labels, Labels, "metadata.labels") or {})
    for taint in decode(node.spec.taints, Taints, "spec.taints") or ():
        message.taints.add(key=taint.key, value=taint.value or "", effect=taint.effect)
    cordoned = any(t.key == UNSCHEDULABLE_TAINT and t.effect == "NoSchedule" for t in message.taints)
    if node.spec.unschedulable and not cordoned:
        message.taints.add(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")
    return message
