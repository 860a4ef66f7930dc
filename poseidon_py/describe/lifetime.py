"""How long a pod expects to run: what its annotation says, else its deadline. Pure.

The annotation holds a Go duration (`90s`, `1h30m`, `1.5h`, `250ms`) or plain seconds. What is expected is rounded to
two significant digits, so that pods whose expectations differ little are still of one class.
"""

import math
import re

from durationpy import DurationError, from_str

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Pod, decode, micros

ANNOTATION = "poseidon.io/expected-duration"
MOST = 320_000_000
"""Seconds, ten years; longer expectations count as this."""

_PATH = f"metadata.annotations[{ANNOTATION}]"
_ANNOTATION_BYTES = ANNOTATION.encode()
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SECONDS = re.compile(_NUMBER)
_GO_DURATION = re.compile(rf"(?:{_NUMBER}(?:ns|us|µs|μs|ms|s|m|h))+")
"""durationpy takes more than Go does: days and years, and anything at all between the parts."""
_LONGEST_TEXT = 64


def annotated(pod: Pod) -> str | None:
    """The annotation as it stands; None: there is none, or annotations make no sense. Asked of every pod."""
    raw = pod.metadata.annotations
    if raw is NOTHING or _ANNOTATION_BYTES not in bytes(raw):
        return None
    try:
        return (decode(pod.metadata.annotations, Labels, "metadata.annotations") or {}).get(ANNOTATION)
    except InvalidField:
        return None


def expected_seconds(pod: Pod) -> int:
    """Seconds, 0: unknown. An annotation that makes no sense counts as unknown, whatever the deadline."""
    text = annotated(pod)
    if text is None and not pod.spec.deadline:
        return 0
    try:
        seconds = pod.spec.deadline or 0 if text is None else duration(text)
    except InvalidField:
        return 0
    return _rounded(min(max(math.ceil(seconds), 0), MOST))


def complaint(pod: Pod) -> str:
    """What is wrong with the annotation, and what to do; empty: nothing, or there is none."""
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
    seconds = 0.0
    if len(stripped) <= _LONGEST_TEXT:
        go = f"{stripped}s" if _SECONDS.fullmatch(stripped) else stripped
        if _GO_DURATION.fullmatch(go):
            try:
                seconds = from_str(go).total_seconds()
            except DurationError:  # longer than a timedelta can be
                seconds = float(MOST)
    if seconds <= 0:
        shown = repr(stripped[:_LONGEST_TEXT])
        raise InvalidField(_PATH, f"{shown} is no duration above 0, so it is ignored; give one like 90s, 1h30m or 5400")
    return seconds


def _rounded(seconds: int) -> int:
    unit: int = 10 ** max(len(str(seconds)) - 2, 0)
    return (seconds + unit // 2) // unit * unit


def begun(pod: Pod) -> int:
    """When it began to run, microseconds since the epoch; 0: not yet, or it does not say how long it expects to."""
    if not pod.status.started or not expected_seconds(pod):
        return 0
    try:
        return micros(pod.status.started)
    except InvalidField:
        return 0


def lasting(pod: Pod, *, ours: bool) -> bool:
    """Whether nothing that can be known of will make it go while its node is there.

    So it is with pods of a DaemonSet, those that a kubelet makes itself, and those that are always restarted: of a
    controller, which would make them anew, or of another scheduler. Others that are always restarted were made by
    somebody who will delete them.
    """
    kinds = {owner.kind for owner in pod.metadata.owners or () if owner.controller}
    if kinds & {"DaemonSet", "Node"}:
        return True
    return pod.spec.restart_policy in (None, "Always") and (bool(kinds) or not ours)
