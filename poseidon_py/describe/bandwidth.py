"""Bandwidth that pods request and nodes have, in bits a second. Pure.

kube-scheduler does not look at it, so neither do we, unless the policy counts links (`--bandwidth`). Then

- a pod requests the larger of its annotation kubernetes.io/ingress-bandwidth (what the bandwidth plugin of its network
  limits it to) and its extended resource poseidon.io/ingress-bandwidth; likewise egress;
- a node's link has what its annotation poseidon.io/ingress-bandwidth says, else its label of that name, else its
  allocatable extended resource of that name, else the default (`--link-bandwidth`), else there is no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Node, Pod, decode
from poseidon_py.kube.quantity import NANO, QuantityError, nanos, offered

DIRECTIONS = ("ingress", "egress")
_MARK = b"-bandwidth"
_LEAST, _MOST = 1000, 10**15  # 1k and 1P: the bounds that Kubernetes has for the annotation


class _Said(Struct, gc=False):
    """A pod's annotations, undecoded."""

    ingress: Raw = field(default=NOTHING, name="kubernetes.io/ingress-bandwidth")
    egress: Raw = field(default=NOTHING, name="kubernetes.io/egress-bandwidth")


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Whether bandwidth is counted, and what the links of nodes have that do not say, None: no limit."""

    counted: bool = False
    default: int | None = None

    def mentioned_by(self, thing: Pod | Node) -> bool:
        """Whether the annotations of a pod or node, undecoded, may speak of it; asked of every event."""
        return self.counted and _MARK in bytes(thing.metadata.annotations)

    def key(self, pod: Pod) -> tuple[object, ...] | None:
        """Equal keys mean equal annotations, as far as they matter here; None: they do not."""
        if not self.mentioned_by(pod):
            return None
        waits = not pod.spec.node_name  # what is said wrongly counts for nothing once the pod runs
        try:
            said = decode(pod.metadata.annotations, _Said, "") or _Said()
        except InvalidField:
            return (bytes(pod.metadata.annotations), waits)
        return (bytes(said.ingress), bytes(said.egress), waits)

    def asked(self, pod: Pod, requests: Mapping[str, int]) -> dict[str, int]:
        """What a pod with these `requests` wants of links. Raises InvalidField.

        Of a pod that runs an annotation that makes no sense asks for nothing: all else of it is to count.
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
        """What a node's links have, those without a limit left out. Raises InvalidField."""
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
    """The extended resource, and the annotation and label of nodes."""
    return f"poseidon.io/{direction}-bandwidth"


def link(direction: str) -> str:
    """What the flow service calls it."""
    return f"bandwidth.{direction}"


def limit(text: str, path: str) -> int:
    """A pod's annotation in bits a second, rounded up. Raises InvalidField if it is none or out of Kubernetes'
    bounds."""
    amount = -(-_nanos(text, path) // NANO)
    if not _LEAST <= amount <= _MOST:
        raise InvalidField(path, f"{text!r} is not within 1k .. 1P (bits a second)")
    return amount


def capacity(text: str, path: str) -> int:
    """What a link has, in bits a second, rounded down. Raises InvalidField."""
    amount = offered("bandwidth", _nanos(text, path))
    if not 0 <= amount <= _MOST:
        raise InvalidField(path, f"{text!r} is not within 0 .. 1P (bits a second)")
    return amount


def _nanos(text: str, path: str) -> int:
    try:
        return nanos(text)
    except QuantityError as error:
        raise InvalidField(path, f"{error}; give bits a second, like 100M") from error


def _annotations(pod: Pod) -> Labels:
    try:
        return decode(pod.metadata.annotations, Labels, "metadata.annotations") or {}
    except InvalidField:
        if pod.spec.node_name:
            return {}
        raise
