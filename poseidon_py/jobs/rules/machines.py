"""The phases of Volcano's Job and their transitions, in one table.

    Pending -> Running -> Completed | Failed; ...ing phases wait until the pods are gone

A job changes its phase only by a decision of this controller, so an illegal transition is a defect, and is refused.
Tasks and replicas are observed: their machines are those of poseidon_py/machines, of which this controller has a part.
"""

from collections.abc import Mapping
from enum import StrEnum

from poseidon_py.machines.states import REPLICA as ANY_REPLICA
from poseidon_py.machines.states import TASK, ReplicaState, TaskState

__all__ = [
    "ACTIVE", "FINISHED", "JOB", "REPLICA", "STOPPED", "STOPPING", "TASK",
    "IllegalTransitionError", "JobPhase", "ReplicaState", "TaskState", "check_job",
]  # fmt: skip


class JobPhase(StrEnum):
    """The phases of Volcano's Job; NEW: it has none yet."""

    NEW = ""
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


_J = JobPhase

JOB: Mapping[JobPhase, frozenset[JobPhase]] = {
    _J.NEW: frozenset({_J.PENDING}),
    _J.PENDING: frozenset({_J.RUNNING, _J.RESTARTING, _J.ABORTING, _J.COMPLETING, _J.TERMINATING, _J.FAILED}),
    _J.RUNNING: frozenset(
        {
            _J.PENDING,
            _J.RESTARTING,
            _J.ABORTING,
            _J.COMPLETING,
            _J.COMPLETED,
            _J.TERMINATING,
            _J.FAILED,
        }
    ),
    _J.RESTARTING: frozenset({_J.PENDING, _J.ABORTING, _J.COMPLETING, _J.TERMINATING, _J.FAILED}),
    _J.ABORTING: frozenset({_J.ABORTED, _J.RESTARTING}),
    _J.ABORTED: frozenset({_J.RESTARTING}),
    _J.COMPLETING: frozenset({_J.COMPLETED}),
    _J.TERMINATING: frozenset({_J.TERMINATED}),
    _J.COMPLETED: frozenset(),
    _J.TERMINATED: frozenset(),
    _J.FAILED: frozenset(),
}

_OF_SCHEDULERS = {ReplicaState.BOUND, ReplicaState.WILL_EVICTED, ReplicaState.EVICTED, ReplicaState.DELETED}
REPLICA: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    state: after - _OF_SCHEDULERS for state, after in ANY_REPLICA.items() if state not in _OF_SCHEDULERS
}
"""A replica ends where it began: another pod takes its place."""

ACTIVE = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
"""Phases in which pods are created, and events of pods and tasks lead to actions."""
FINISHED = frozenset({JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})
"""Phases without a way out."""
STOPPED = FINISHED | {JobPhase.ABORTED}
STOPPING: Mapping[JobPhase, JobPhase] = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
}
"""Phases that wait until no pod runs, and what follows them."""


class IllegalTransitionError(Exception):
    """A job cannot go from one phase to the other; this is a defect."""


def check_job(old: JobPhase, new: JobPhase) -> None:
    """Raises IllegalTransitionError."""
    if new not in JOB[old]:
        raise IllegalTransitionError(f"a job cannot go from {old or 'no phase'} to {new}")
