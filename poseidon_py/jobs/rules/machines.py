"""The three state machines: job, task (a role of the job) and replica (one pod of a task), each one table.

    job       Pending -> Running -> Completed | Failed; ...ing states wait until the pods are gone
    task      Waiting (for the tasks it depends on) -> Pending -> Running -> Succeeded | Failed
    replica   Absent -> Pending -> Running -> Succeeded | Failed -> Terminating -> Absent

A job changes its phase only by a decision of this controller, so an illegal transition is a defect, and is refused.
Tasks and replicas are observed: their tables have all that can be seen between two observations, and anything else is
accepted and reported.
"""

from collections.abc import Mapping
from enum import StrEnum


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


class TaskState(StrEnum):
    """The states of a task; NEW: it was not observed yet."""

    NEW = ""
    WAITING = "Waiting"
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"


class ReplicaState(StrEnum):
    """The states of a replica. Each pod starts at ABSENT and ends there."""

    ABSENT = "Absent"
    PENDING = "Pending"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TERMINATING = "Terminating"


_J, _T, _R = JobPhase, TaskState, ReplicaState

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

TASK: Mapping[TaskState, frozenset[TaskState]] = {
    _T.NEW: frozenset(_T) - {_T.NEW},
    _T.WAITING: frozenset({_T.PENDING, _T.RUNNING, _T.SUCCEEDED, _T.FAILED, _T.STOPPED}),
    _T.PENDING: frozenset({_T.WAITING, _T.RUNNING, _T.RESTARTING, _T.SUCCEEDED, _T.FAILED, _T.STOPPED}),
    _T.RUNNING: frozenset({_T.WAITING, _T.PENDING, _T.RESTARTING, _T.SUCCEEDED, _T.FAILED, _T.STOPPED}),
    _T.RESTARTING: frozenset({_T.WAITING, _T.PENDING, _T.RUNNING, _T.SUCCEEDED, _T.FAILED, _T.STOPPED}),
    _T.SUCCEEDED: frozenset(
        {_T.RESTARTING, _T.WAITING, _T.PENDING, _T.RUNNING}
    ),  # restarted, a pod was deleted, or scaled up
    _T.FAILED: frozenset({_T.RESTARTING, _T.WAITING, _T.PENDING, _T.RUNNING, _T.SUCCEEDED, _T.STOPPED}),
    _T.STOPPED: frozenset({_T.RESTARTING, _T.WAITING, _T.PENDING, _T.RUNNING, _T.SUCCEEDED}),  # the job was resumed
}

_ENDS = {_R.SUCCEEDED, _R.FAILED}
_LEAVES = {_R.TERMINATING, _R.ABSENT}
REPLICA: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _R.ABSENT: frozenset(_R) - {_R.ABSENT},
    _R.PENDING: frozenset({_R.RUNNING, _R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.RUNNING: frozenset({_R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.UNKNOWN: frozenset({_R.RUNNING, *_ENDS, *_LEAVES}),
    _R.SUCCEEDED: frozenset(_LEAVES),
    _R.FAILED: frozenset(_LEAVES),
    _R.TERMINATING: frozenset({_R.ABSENT}),
}

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
