"""The expected duration of a pod: its annotation, else its deadline. Pure.

The annotation holds a Go duration (`90s`, `1h30m`, `1.5h`, `250ms`) or plain seconds. It is rounded to two significant
digits, so that pods with similar durations belong to one class.
"""

import math

from poseidon_py.kube.objects import InvalidField, Pod, annotations_with, micros
from poseidon_py.util.durations import seconds_of

ANNOTATION = "poseidon.io/expected-duration"
MAX_SECONDS = 320_000_000
"""Ten years; longer durations count as this."""

_PATH = f"metadata.annotations[{ANNOTATION}]"
_ANNOTATION_BYTES = ANNOTATION.encode()
_MIRROR = "kubernetes.io/config.mirror"
_MIRROR_BYTES = _MIRROR.encode()
OF_NODES = ("DaemonSet", "Node")
"""Kinds of controllers whose pods belong to their nodes."""

_LONGEST_TEXT = 64


def annotated(pod: Pod) -> str | None:
    """The text of the annotation; None: missing, or the annotations are invalid. Called for every pod."""
    return annotations_with(pod.metadata, _ANNOTATION_BYTES).get(ANNOTATION)


def expected_seconds(pod: Pod) -> int:
    """Seconds; 0: unknown. With an invalid annotation the duration is unknown, even with a deadline."""
    text = annotated(pod)
    if text is None and not pod.spec.deadline:
        return 0
    try:
        seconds = pod.spec.deadline or 0 if text is None else duration(text)
    except InvalidField:
        return 0
    return _rounded(min(max(math.ceil(seconds), 0), MAX_SECONDS))


def problem_of(pod: Pod) -> str:
    """The error in the annotation and its remedy; empty: it is valid or missing."""
    text = annotated(pod)
    if text is None:
        return ""
    try:
        duration(text)
    except InvalidField as problem:
        return str(problem)
    return ""


def duration(text: str) -> float:
    """Seconds > 0, to the microsecond, of a Go duration or of a plain number of seconds. Raises InvalidField."""
    stripped = text.strip()
    seconds = seconds_of(stripped) or 0.0
    if seconds <= 0:
        shown = repr(stripped[:_LONGEST_TEXT])
        raise InvalidField(_PATH, f"{shown} is not a duration above 0 and is ignored; give one like 90s, 1h30m or 5400")
    return seconds


def _rounded(seconds: int) -> int:
    unit: int = 10 ** max(len(str(seconds)) - 2, 0)
    return (seconds + unit // 2) // unit * unit


def started_us(pod: Pod) -> int:
    """When the kubelet started the pod, microseconds since the epoch; 0: unknown."""
    if not pod.status.started:
        return 0
    try:
        return micros(pod.status.started)
    except InvalidField:
        return 0


def scheduled_us(pod: Pod) -> int:
    """When the pod was bound, as its condition says, microseconds since the epoch; 0: unknown."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            try:
                return micros(condition.changed)
            except InvalidField:
                return 0
    return 0


def lasting(pod: Pod, *, assigned_to_us: bool) -> bool:
    """Whether the pod is expected to stay as long as its node exists.

    That holds for pods of DaemonSets, for static pods, and for pods with restartPolicy Always that have a controller,
    which would recreate them, or belong to another scheduler. A pod with restartPolicy Always and no controller is
    expected to be deleted by its creator.
    """
    if daemon(pod):
        return True
    kinds = {owner.kind for owner in pod.metadata.owners or () if owner.controller}
    return pod.spec.restart_policy in (None, "Always") and (bool(kinds) or not assigned_to_us)


def daemon(pod: Pod) -> bool:
    """Whether the pod belongs to its node: it is of a DaemonSet, or mirrors a static pod."""
    return any(owner.controller and owner.kind in OF_NODES for owner in pod.metadata.owners or ())


def unevictable(pod: Pod) -> bool:
    """Whether the pod mirrors a static pod: its kubelet runs that as long as its manifest is on the node, whatever is
    deleted on the API server."""
    if any(owner.controller and owner.kind == "Node" for owner in pod.metadata.owners or ()):
        return True
    return _MIRROR in annotations_with(pod.metadata, _MIRROR_BYTES)
