"""Whether a pod may be evicted in order to run on another node. Pure.

The pod's annotation says so, or the label of the same name on its namespace. Annotations by which other tools are told
not to evict a pod hold here, too.
"""

from collections.abc import Mapping

from poseidon_py.describe.lifetime import OF_NODES, unevictable
from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Pod, annotations_of

MOVABLE = "poseidon.io/movable"

_AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_KARPENTER = "karpenter.sh/do-not-disrupt"
_DESCHEDULER = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
_BYTES = tuple(name.encode() for name in (MOVABLE, _AUTOSCALER, _KARPENTER, _DESCHEDULER))
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def movable(pod: Pod, *, assigned_to_us: bool) -> bool | None:
    """None: if its namespace says so. Called for every pod.

    A pod without a controller would not be created again, and the successor of another scheduler's pod could return to
    the same node.
    """
    kinds = [owner.kind for owner in pod.metadata.owners or () if owner.controller]
    if not (assigned_to_us and kinds) or kinds[0] in OF_NODES:
        return False
    if pod.spec.priority_class in _SYSTEM_CLASSES or unevictable(pod):
        return False
    try:
        annotations = _annotations(pod)
        return False if _opts_out(annotations) else _opts_in(annotations)
    except InvalidField:
        return False


def namespace_is_movable(labels: Mapping[str, str]) -> bool:
    """Whether pods may be moved that do not say so themselves. `labels`: those of their namespace."""
    return labels.get(MOVABLE) == "true"


def problem_of(pod: Pod) -> str:
    """The error in the annotation and its remedy; empty: it is valid or missing."""
    try:
        annotations = _annotations(pod)
    except InvalidField:
        return ""
    try:
        _opts_in(annotations)
    except InvalidField as problem:
        return str(problem)
    return ""


def _annotations(pod: Pod) -> Labels:
    """Empty if none of them matters here. Raises InvalidField."""
    raw = pod.metadata.annotations
    if raw is NOTHING:
        return {}
    data = bytes(raw)
    return annotations_of(pod.metadata) if any(name in data for name in _BYTES) else {}


def _opts_in(annotations: Labels) -> bool | None:
    """None: the pod has no such annotation. Raises InvalidField."""
    text = annotations.get(MOVABLE)
    if text in (None, "true", "false"):
        return None if text is None else text == "true"
    reason = f"{text[:64]!r} is ignored, and the pod is not moved; give true or false"
    raise InvalidField(f"metadata.annotations[{MOVABLE}]", reason)


def _opts_out(annotations: Labels) -> bool:
    """Whether other tools are told not to evict the pod."""
    return (
        annotations.get(_AUTOSCALER) == "false" or annotations.get(_KARPENTER) == "true" or _DESCHEDULER in annotations
    )
