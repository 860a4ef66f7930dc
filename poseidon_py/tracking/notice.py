"""Delayed preemption as it is announced on pods (docs/delayed-preemption.md)."""

from typing import NamedTuple

from poseidon_py.describe.annotations.preemption_terms import PreemptionState, announcement_of, is_privileged
from poseidon_py.kube.objects import Pod

PRIVILEGED, WILL_EVICTED = (state.value for state in PreemptionState)


class Notice(NamedTuple):
    """`state`: PRIVILEGED, WILL_EVICTED or empty: none. `at`: seconds since the epoch, 0: unknown."""

    state: str = ""
    at: float = 0.0
    by: str = ""


NONE = Notice()


def notice_of(pod: Pod) -> Notice:
    """The notice on a pod. An unknown state, or annotations that cannot be read, count as none."""
    announced = announcement_of(pod)
    if announced is not None:
        return Notice(WILL_EVICTED, announced.eviction_us / 1_000_000, announced.preemptor)
    return Notice(PRIVILEGED) if is_privileged(pod) else NONE
