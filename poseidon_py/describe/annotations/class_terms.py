"""What annotations say about who may preempt a pod: those that its PriorityClass may have, too. Pure.

YuniKorn and Godel let pods opt out, by a pod's own annotation or else by that of its class. PreemptionToleration, a
plug-in of scheduler-plugins, exempts the pods of a class from preemption by pods below a priority, until some seconds
after they were scheduled.
"""

from typing import NamedTuple

from poseidon_py.kube.objects import InvalidField, Labels, Metadata, annotations_with

YUNIKORN = "yunikorn.apache.org/allow-preemption"
GODEL = "godel.bytedance.com/can-be-preempted"
_OPT_OUTS = ((YUNIKORN, None, "is ignored"), (GODEL, False, "counts as false"))
"""Annotations, and what other values than true and false mean."""

MINIMUM = "minimum-preemptable-priority"
SECONDS = "toleration-seconds"
_TOLERATION = ("preemption-toleration.scheduling.x-k8s.io", "preemption-toleration.scheduling.sigs.k8s.io")
"""The first one counts first."""
_COMMON_BYTES = b"preempt"
_INT32, _INT64 = 2**31, 2**63

OptOuts = tuple[bool | None, ...]
"""Of each convention, whether its annotation says that pods may be preempted; None: it says nothing."""
NO_OPT_OUTS: OptOuts = (None,) * len(_OPT_OUTS)


class ClassTerms(NamedTuple):
    """What a PriorityClass says about the preemption of its pods. `least`: pods of lower priority do not preempt them;
    None: none of at most their own one do. `seconds`: for how long after they were scheduled; below 0: for ever."""

    opt_outs: OptOuts = NO_OPT_OUTS
    least: int | None = None
    seconds: int = 0


SILENT_CLASS = ClassTerms()
UNREAD_CLASS = ClassTerms((False,) * len(_OPT_OUTS))
"""Of a class that cannot be read."""


def opt_outs(annotations: Labels) -> OptOuts:
    """Of a pod, or of a class."""
    return tuple(
        text == "true" if text in ("true", "false") else None if text is None else otherwise
        for text, otherwise in ((annotations.get(key), otherwise) for key, otherwise, _ in _OPT_OUTS)
    )


def opted_out(of_pod: OptOuts, of_class: OptOuts) -> bool:
    """Whether a pod is not preempted: for each convention its own word counts, then that of its class."""
    return any((own if own is not None else other) is False for own, other in zip(of_pod, of_class, strict=True))


def opt_out_problems(annotations: Labels) -> list[str]:
    """The errors in them, what follows, and the remedy."""
    found = ((f"metadata.annotations[{key}]", annotations.get(key), follows) for key, _, follows in _OPT_OUTS)
    return [
        f"{path}: {text[:64]!r} {follows}; give true or false"
        for path, text, follows in found
        if text not in (None, "true", "false")
    ]


def class_terms(metadata: Metadata) -> tuple[ClassTerms, tuple[str, ...]]:
    """What a PriorityClass says without what is invalid, and the errors, with what follows from them."""
    annotations = annotations_with(metadata, _COMMON_BYTES)
    if not annotations:
        return SILENT_CLASS, ()
    problems = opt_out_problems(annotations)
    least = seconds = None
    try:
        least = _whole(annotations, MINIMUM, _INT32, "is ignored, so that any higher priority preempts its pods")
    except InvalidField as problem:
        problems.append(str(problem))
    try:
        seconds = _whole(annotations, SECONDS, _INT64, "counts as 0, so that its pods are not exempt from preemption")
    except InvalidField as problem:
        problems.append(str(problem))
    else:
        if least is not None and not seconds:
            key = _found(annotations, MINIMUM)[0]
            without = f"{_TOLERATION[0]}/{SECONDS}: give -1 for pods that are to be exempt for ever"
            problems.append(f"metadata.annotations[{key}]: has no effect without a number of seconds in {without}")
    return ClassTerms(opt_outs(annotations), least, seconds or 0), tuple(problems)


def _found(annotations: Labels, name: str) -> tuple[str, str | None]:
    """The key of one of PreemptionToleration's annotations, and its value; None: it is missing."""
    keys = [f"{prefix}/{name}" for prefix in _TOLERATION]
    key = next((key for key in keys if key in annotations), keys[0])
    return key, annotations.get(key)


def _whole(annotations: Labels, name: str, limit: int, follows: str) -> int | None:
    """A number as Go's ParseInt reads it, at least -limit, below `limit`; None: it is missing. Raises InvalidField."""
    key, text = _found(annotations, name)
    if text is None:
        return None
    digits = text.removeprefix(text[:1]) if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit() and len(digits) <= len(str(limit)) and -limit <= int(text) < limit:
        return int(text)
    raise InvalidField(f"metadata.annotations[{key}]", f"{text[:64]!r} {follows}; give a whole number")
