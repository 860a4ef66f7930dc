"""Bandwidth that pods request and nodes offer, in bits per second. Pure.

kube-scheduler ignores bandwidth. It is counted here only if the policy counts links (`--bandwidth`). Then

- a pod requests the larger of its annotation kubernetes.io/ingress-bandwidth (the limit that the bandwidth plug-in of
  its network enforces) and its extended resource poseidon.io/ingress-bandwidth; likewise for egress;
- the capacity of a node's link is its annotation poseidon.io/ingress-bandwidth, else its label of that name, else its
  allocatable extended resource of that name, else the default (`--link-bandwidth`), else unlimited.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Node, Pod, annotations_of, decode
from poseidon_py.kube.quantity import NANO, QuantityError, nanos, offered

DIRECTIONS = ("ingress", "egress")
_KEY_SUFFIX = b"-bandwidth"
_MIN, _MAX = 1000, 10**15  # 1k and 1P: the bounds that Kubernetes has for the annotation


class _RawAnnotations(Struct, gc=False):
    """The bandwidth annotations of a pod, undecoded."""

    ingress: Raw = field(default=NOTHING, name="kubernetes.io/ingress-bandwidth")
    egress: Raw = field(default=NOTHING, name="kubernetes.io/egress-bandwidth")


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Whether bandwidth is counted, and the link capacity of nodes that declare none; None: no limit."""

    counted: bool = False
    default: int | None = None

    def mentioned_by(self, pod_or_node: Pod | Node) -> bool:
        """Whether the undecoded annotations of a pod or node may concern bandwidth; called for every event."""
        return self.counted and _KEY_SUFFIX in bytes(pod_or_node.metadata.annotations)

    def key(self, pod: Pod) -> tuple[object, ...] | None:
        """Equal keys mean equal bandwidth annotations; None: the pod has none that count."""
        if not self.mentioned_by(pod):
            return None
        waits = not pod.spec.node_name  # invalid annotations of a bound pod are ignored
        try:
            annotations = decode(pod.metadata.annotations, _RawAnnotations, "") or _RawAnnotations()
        except InvalidField:
            return (bytes(pod.metadata.annotations), waits)
        return (bytes(annotations.ingress), bytes(annotations.egress), waits)

    def requested(self, pod: Pod, requests: Mapping[str, int]) -> dict[str, int]:
        """What a pod with these `requests` requests of links. Raises InvalidField.

        An invalid annotation of a bound pod counts as 0, so that the pod's other requests still count.
        """
        if not self.counted:
            return {}
        annotations = _annotations(pod) if self.mentioned_by(pod) else {}
        found = {}
        for direction in DIRECTIONS:
            amount = requests.get(resource(direction), 0)
            key = f"kubernetes.io/{direction}-bandwidth"
            if key in annotations:
                try:
                    amount = max(amount, limit(annotations[key], f"metadata.annotations[{key}]"))
                except InvalidField:
                    if not pod.spec.node_name:
                        raise
            if amount:
                found[link(direction)] = amount
        return found

    def offered(self, node: Node, labels: Mapping[str, str], allocatable: Mapping[str, int]) -> dict[str, int]:
        """The capacities of a node's links; no entry for one without a limit. Raises InvalidField."""
        if not self.counted:
            return {}
        raw = node.metadata.annotations if self.mentioned_by(node) else NOTHING
        annotations = decode(raw, Labels, "metadata.annotations") or {}
        found = {}
        for direction in DIRECTIONS:
            key, amount = resource(direction), self.default
            if key in annotations:
                amount = capacity(annotations[key], f"metadata.annotations[{key}]")
            elif key in labels:
                amount = capacity(labels[key], f"metadata.labels[{key}]")
            elif key in allocatable:
                amount = allocatable[key]
            if amount is not None:
                found[link(direction)] = amount
        return found


NOT_COUNTED = Bandwidth()


def resource(direction: str) -> str:
    """The name of the extended resource, and of the annotation and label of nodes."""
    return f"poseidon.io/{direction}-bandwidth"


def link(direction: str) -> str:
    """The name of the resource in the contract."""
    return f"bandwidth.{direction}"


def limit(text: str, path: str) -> int:
    """A pod's annotation in bits per second, rounded up. Raises InvalidField outside the bounds of Kubernetes."""
    amount = -(-_nanos(text, path) // NANO)
    if not _MIN <= amount <= _MAX:
        raise InvalidField(path, f"{text!r} is not within bounds; give 1k to 1P bits per second")
    return amount


def capacity(text: str, path: str) -> int:
    """A link's capacity in bits per second, rounded down. Raises InvalidField."""
    amount = offered("bandwidth", _nanos(text, path))
    if not 0 <= amount <= _MAX:
        raise InvalidField(path, f"{text!r} is not within bounds; give 0 to 1P bits per second")
    return amount


def _nanos(text: str, path: str) -> int:
    try:
        return nanos(text)
    except QuantityError as error:
        raise InvalidField(path, f"{error}; give bits per second, like 100M") from error


def _annotations(pod: Pod) -> Labels:
    try:
        return annotations_of(pod.metadata)
    except InvalidField:
        if pod.spec.node_name:
            return {}
        raise
