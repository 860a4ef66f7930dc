"""What is observed of a pod: its replica's state, its times, and why it ended. Pure."""

from typing import NamedTuple

from poseidon_py.describe.annotations.checkpoint import checkpoint_us
from poseidon_py.kube.object_details import ContainerRan, ContainerState
from poseidon_py.kube.objects import NOTHING, InvalidField, Pod, decode
from poseidon_py.kube.outcomes import Outcome, disruption_of, outcome_of
from poseidon_py.machines.states import ReplicaState
from poseidon_py.tracking.notice import NONE, WILL_EVICTED, Notice, notice_of
from poseidon_py.util.timestamps import instant_of

_R = ReplicaState
HAS_ENDED = frozenset((_R.SUCCEEDED, _R.FAILED, _R.EVICTED))
_STATES = {Outcome.SUCCEEDED: _R.SUCCEEDED, Outcome.FAILED: _R.FAILED, Outcome.EVICTED: _R.EVICTED}


class Observation(NamedTuple):
    """Times are seconds since the epoch, 0: unknown, or it has not happened."""

    state: ReplicaState
    bound: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    deletion_requested: float = 0.0
    checkpoint: float = 0.0
    reason: str = ""
    """Why it failed or is evicted."""
    notice: Notice = NONE
    disrupted: bool = False
    """Whether it is evicted, not deleted."""
    exit_code: int = 0


def observe(pod: Pod) -> Observation:
    """Invalid fields count as missing."""
    metadata, status = pod.metadata, pod.status
    phase = status.phase or "Pending"
    bound = changed = 0.0
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            bound = instant_of(condition.changed)
        elif condition.type == "Ready":
            changed = instant_of(condition.changed)
    at_kubelet = instant_of(status.started)
    bound = bound or at_kubelet
    deletion = max(0.0, instant_of(metadata.deleting) - (metadata.grace or 0)) if metadata.deleting else 0.0
    notice = notice_of(pod)
    disruption = disruption_of(pod)
    if phase == "Pending" and not metadata.deleting:
        if not pod.spec.node_name:
            return Observation(_R.PENDING, notice=notice)
        state = _R.WILL_EVICTED if notice.state == WILL_EVICTED else _R.BOUND
        return Observation(state, bound, notice=notice, disrupted=bool(disruption), reason=disruption)
    ran = _containers(pod)
    started = min((instant_of(each.started) for each in ran if each.started), default=0.0)
    checkpoint = checkpoint_us(pod) / 1e6
    if phase == "Running":
        started = started or at_kubelet
    outcome = outcome_of(pod)
    if outcome is None:
        state = _R.UNKNOWN if phase == "Unknown" else _R.RUNNING
        if metadata.deleting:
            state = _R.TERMINATING
        elif notice.state == WILL_EVICTED:
            state = _R.WILL_EVICTED
        return Observation(
            state, bound, started, 0.0, deletion, checkpoint, disruption, notice, disrupted=bool(disruption)
        )
    ended = max((instant_of(each.finished) for each in ran if each.finished), default=0.0) or changed
    failed = next((each for each in ran if each.exit_code), None)
    code = failed.exit_code if failed is not None else 0
    state, reason = _STATES[outcome], disruption
    if outcome is Outcome.FAILED:
        reason = status.reason or (failed.reason if failed is not None else "") or ""
    if metadata.deleting and outcome is not Outcome.EVICTED and ended > deletion:
        state = _R.TERMINATING  # it ran until it was deleted
    return Observation(state, bound, started, ended, deletion, checkpoint, reason, notice, bool(disruption), code)


def _containers(pod: Pod) -> list[ContainerRan]:
    """The containers that run or have run; init containers do not count."""
    found = []
    for each in pod.status.containers or ():
        if each.state is NOTHING:
            continue
        try:
            state = decode(each.state, ContainerState, "state")
        except InvalidField:
            continue
        if state is not None and (ran := state.terminated or state.running) is not None:
            found.append(ran)
    return found
