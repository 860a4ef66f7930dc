"""The transitions of a replica, from what is observed of its pod.

Every pod goes the same path, whichever process observes it and however late, so its transitions have the same delivery
IDs: what happened between two observations is filled in from the times that the pod has.

    Absent -> Pending -> Running -> Succeeded | Failed -> Terminating -> Absent
"""

from itertools import pairwise

from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.replicas import Replica

R = ReplicaState
_ENDS = (R.SUCCEEDED, R.FAILED)


def steps(old: ReplicaState, new: ReplicaState, pod: Replica) -> list[tuple[ReplicaState, ReplicaState]]:
    """The transitions from one observed state to another; from Absent to Absent all of a pod that is gone. `pod`: as it
    was observed last."""
    if old == new != R.ABSENT:
        return []
    whole = path(new, pod)
    at = whole.index(old) if old in whole[:-1] else None
    if old == R.UNKNOWN or at is None:  # it came back, or its path shows no such state
        return [*pairwise([old, *_after_it(new)])]
    return [*pairwise(whole[at:])]


def _after_it(new: ReplicaState) -> list[ReplicaState]:
    return [R.TERMINATING, R.ABSENT] if new == R.ABSENT else [new]


def path(state: ReplicaState, pod: Replica) -> list[ReplicaState]:
    """All states of a pod from its creation to this one."""
    if state == R.PENDING:
        return [R.ABSENT, R.PENDING]
    ran = pod.started > 0 or pod.phase in (R.RUNNING, R.SUCCEEDED)
    found = [R.ABSENT, R.PENDING, *([R.RUNNING] if ran else [])]
    if state == R.RUNNING:
        return found
    if state == R.UNKNOWN or (pod.phase == R.UNKNOWN and state in (R.TERMINATING, R.ABSENT)):
        found.append(R.UNKNOWN)
    leaves = state in (R.TERMINATING, R.ABSENT)
    if state in _ENDS:
        found.append(state)
    elif leaves and pod.phase in _ENDS and not _ended_by_deletion(pod):
        found.append(pod.phase)
    if leaves:
        found.append(R.TERMINATING)
    if state == R.ABSENT:
        found.append(R.ABSENT)
    return found


def _ended_by_deletion(pod: Replica) -> bool:
    """Whether the pod ran until its deletion was requested."""
    return bool(pod.deletion_requested) and pod.ended > pod.deletion_requested


def began(state: ReplicaState, pod: Replica) -> float:
    """When the pod entered a state, in seconds since the epoch; 0: the pod does not say."""
    if state == R.PENDING:
        return pod.created
    if state == R.RUNNING:
        return pod.started
    if state in _ENDS:
        return pod.ended
    return pod.deletion_requested if state == R.TERMINATING else 0.0
