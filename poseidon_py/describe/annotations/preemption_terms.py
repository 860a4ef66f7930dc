"""What a pod's annotations say about its preemption: whether it may be preempted, after which notice, and what has been
announced. Pure.

The scheduler writes the announcement, so that it survives any process: a pod that will be evicted has the state
WillEvicted, the time and the preemptor; a preemptor that waits for such pods is Privileged.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from poseidon_py.describe.annotations.class_terms import NO_OPT_OUTS, OptOuts, opt_out_problems, opt_outs
from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Pod, annotations_with, labels_of, micros
from poseidon_py.util.durations import seconds_of

PREEMPT = "poseidon.io/preempt"
VOLCANO = "volcano.sh/preemptable"
KOORDINATOR = "scheduling.koordinator.sh/disable-preemptible"
COOLDOWN = "volcano.sh/cooldown-time"
PROTECTION = "godel.bytedance.com/protection-duration-from-preemption"
NOTICE = "poseidon.io/preemption-notice"
STATE = "poseidon.io/preemption-state"
EVICTION_TIME = "poseidon.io/eviction-time"
PREEMPTED_BY = "poseidon.io/preempted-by"
ANNOUNCED = "PreemptionAnnounced"
"""The reason of the conditions of both states."""
_COMMON_BYTES = b"preempt", b"volcano.sh/cooldown"
_BY_LABEL = f"label {KOORDINATOR}"
"""Where it is among the annotations: one of that name says nothing."""
_DIGITS = 10
"""As many has no number of seconds."""
_LABEL_BYTES = b"/preemptable", b"/disable-preemptible", b"volcano.sh/cooldown"


class PreemptionState(Enum):
    """The two states of a delayed preemption; the values are those of the annotation."""

    PRIVILEGED = "Privileged"
    WILL_EVICTED = "WillEvicted"

    @property
    def condition(self) -> str:
        """The type of its condition."""
        return f"poseidon.io/{self.value}"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A pod will be evicted. `eviction_us`: when, microseconds since the epoch; `preemptor`: namespace and name of a
    pod that it is evicted for."""

    eviction_us: int
    preemptor: str

    @property
    def time(self) -> str:
        """In RFC 3339."""
        return datetime.fromtimestamp(self.eviction_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PreemptionTerms(NamedTuple):
    """What users say. `preemptible`: None: they say nothing. `notice`: seconds, None: likewise. `opt_outs`: what counts
    before their PriorityClass alone."""

    preemptible: bool | None = None
    notice: float | None = None
    opt_outs: OptOuts = NO_OPT_OUTS
    protected: float = 0.0
    """For how many seconds after it was scheduled the pod is not preempted."""


SILENT = PreemptionTerms()


def preemption_terms(pod: Pod) -> PreemptionTerms:
    """Without what is invalid. Called for every pod."""
    annotations = _annotations(pod)
    if not annotations:
        return SILENT
    preemptible, notice = None, None
    with suppress(InvalidField):
        preemptible = _preemptible(annotations)
    with suppress(InvalidField):
        notice = _notice(annotations)
    protected = 0.0
    for read in (_cooldown, _protection):
        with suppress(InvalidField):
            protected = max(protected, read(annotations))
    return PreemptionTerms(preemptible, notice, opt_outs(annotations), protected)


def problem_of(pod: Pod) -> str:
    """The errors in the annotations and their remedies; empty: they are valid or missing."""
    annotations = _annotations(pod)
    problems: list[str] = []
    for read in (_preemptible, _notice, _cooldown, _protection):
        try:
            read(annotations)
        except InvalidField as problem:
            problems.append(str(problem))
    return "; ".join((*problems, *opt_out_problems(annotations)))


def announcement_of(pod: Pod) -> Announcement | None:
    """When and for what the pod will be evicted; None: it will not be. A time that is invalid counts as past."""
    annotations = _annotations(pod)
    if annotations.get(STATE) != PreemptionState.WILL_EVICTED.value:
        return None
    try:
        eviction_us = micros(annotations.get(EVICTION_TIME))
    except (InvalidField, OverflowError):
        eviction_us = 0
    return Announcement(eviction_us, annotations.get(PREEMPTED_BY, ""))


def is_privileged(pod: Pod) -> bool:
    return _annotations(pod).get(STATE) == PreemptionState.PRIVILEGED.value


def _annotations(pod: Pod) -> Labels:
    """Empty if none of them matters here. Volcano's may be labels, Koordinator's is one."""
    found: Labels = {}
    for each in _COMMON_BYTES:
        if found := annotations_with(pod.metadata, each):
            break
    labels = pod.metadata.labels
    if labels is not NOTHING and any(each in bytes(labels) for each in _LABEL_BYTES):
        with suppress(InvalidField):
            given = labels_of(pod.metadata)
            found = {VOLCANO: given.get(VOLCANO, ""), **found, _BY_LABEL: given.get(KOORDINATOR, "")}
            if COOLDOWN in given:  # Volcano reads the label first
                found[COOLDOWN] = given[COOLDOWN]
    return found


def _cooldown(annotations: Labels) -> float:
    """Seconds."""
    text = annotations.get(COOLDOWN, "0")
    seconds = seconds_of(text)
    if seconds is None:
        reason = f"{text[:64]!r} is not a duration and is ignored; give one like 90s or 10m"
        raise InvalidField(f"metadata.annotations[{COOLDOWN}]", reason)
    return seconds


def _protection(annotations: Labels) -> float:
    """Seconds."""
    text = annotations.get(PROTECTION, "0")
    if not (text.isdecimal() and len(text) < _DIGITS):
        reason = f"{text[:64]!r} is ignored; give a whole number of seconds"
        raise InvalidField(f"metadata.annotations[{PROTECTION}]", reason)
    return float(text)


def _preemptible(annotations: Labels) -> bool | None:
    text = annotations.get(PREEMPT)
    if text is None:  # Volcano's default is true, which tells nothing about the job as a whole
        out = annotations.get(VOLCANO) == "false" or annotations.get(_BY_LABEL) == "true"
        return False if out else None
    if text in ("true", "false"):
        return text == "true"
    raise InvalidField(f"metadata.annotations[{PREEMPT}]", f"{text[:64]!r} is ignored; give true or false")


def _notice(annotations: Labels) -> float | None:
    text = annotations.get(NOTICE)
    seconds = None if text is None else seconds_of(text)
    if text is not None and seconds is None:
        reason = f"{text[:64]!r} is not a duration and is ignored; give one like 90s, 10m or 600"
        raise InvalidField(f"metadata.annotations[{NOTICE}]", reason)
    return seconds
