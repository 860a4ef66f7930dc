"""When a pod has saved its work last, by an annotation that the pod or its operator updates. Pure.

What a victim of preemption loses counts from there. Volcano's annotation counts where ours is missing.
"""

from poseidon_py.kube.objects import InvalidField, Pod, annotations_with, micros

ANNOTATIONS = ("poseidon.io/last-checkpoint", "volcano.sh/last-checkpoint-time")
_COMMON_BYTES = b"/last-checkpoint"


def checkpoint_us(pod: Pod) -> int:
    """Microseconds since the epoch; 0: never, or the annotation is invalid."""
    try:
        return _read(pod)
    except InvalidField:
        return 0


def problem_of(pod: Pod) -> str:
    """The error in the annotation and its remedy; empty: it is valid or missing."""
    try:
        _read(pod)
    except InvalidField as problem:
        return str(problem)
    return ""


def _read(pod: Pod) -> int:
    annotations = annotations_with(pod.metadata, _COMMON_BYTES)
    for name in ANNOTATIONS:
        if (text := annotations.get(name)) is not None:
            try:
                return max(micros(text), 0)
            except (InvalidField, OverflowError):
                reason = f"{text[:64]!r} is not a time and is ignored; give one like 2006-01-02T15:04:05Z"
                raise InvalidField(f"metadata.annotations[{name}]", reason) from None
    return 0
