"""Delayed preemption as it is noted on pods: the only place that reads these annotations.

poseidon.io/preemption-state   Privileged: it preempts others, which have notice; WillEvicted: it has notice
poseidon.io/eviction-time      when it is evicted, or its victims are
poseidon.io/preempted-by       the pod or job that it leaves for
"""

from typing import NamedTuple

from poseidon_py.kube.objects import NOTHING, InvalidField, Pod, annotations_of
from poseidon_py.tracking.times import seconds

STATE, TIME, BY = "poseidon.io/preemption-state", "poseidon.io/eviction-time", "poseidon.io/preempted-by"
PRIVILEGED, WILL_EVICTED = "Privileged", "WillEvicted"
_STATE_BYTES = STATE.encode()


class Notice(NamedTuple):
    """`state`: PRIVILEGED, WILL_EVICTED or empty: none. `at`: seconds since the epoch, 0: unknown."""

    state: str = ""
    at: float = 0.0
    by: str = ""


NONE = Notice()


def notice_of(pod: Pod) -> Notice:
    """The notice on a pod. An unknown state, or annotations that cannot be read, count as none."""
    raw = pod.metadata.annotations
    if raw is NOTHING or _STATE_BYTES not in bytes(raw):
        return NONE
    try:
        annotations = annotations_of(pod.metadata)
    except InvalidField:
        return NONE
    state = annotations.get(STATE, "")
    if state not in (PRIVILEGED, WILL_EVICTED):
        return NONE
    return Notice(state, seconds(annotations.get(TIME)), annotations.get(BY, ""))
