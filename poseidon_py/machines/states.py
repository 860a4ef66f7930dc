"""States and transitions of jobs, tasks (roles of a job) and replicas (pods of a task), each machine one table.

    job       Pending -> Running -> Succeeded | Failed
              Pending -> Privileged (its victims have notice) -> Running
              Running -> WillEvicted (it has notice) -> Pending | Stopped
    task      Pending -> Running -> Succeeded | Failed
    replica   Absent -> Pending -> Bound -> Running -> Succeeded | Failed -> Deleted
                                                    -> Terminating -> Evicted | Deleted

The scheduler observes all of them, and derives the states of jobs and tasks from pods. The controller of Volcano's Jobs
(poseidon_py/jobs) decides on the phases of its jobs, which have a table of their own; it has the same machines of tasks
and replicas. It has no Bound, and its replicas end where they began, as Absent: another pod takes their place.

The tables have all that can be seen between two observations. What they do not have is reported as a defect.
"""

from collections.abc import Mapping
from enum import StrEnum


class JobState(StrEnum):
    """The states of a job that the scheduler observes; NEW: it was not observed yet."""

    NEW = ""
    PENDING = "Pending"
    PRIVILEGED = "Privileged"
    RUNNING = "Running"
    WILL_EVICTED = "WillEvicted"
    UNKNOWN = "Unknown"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"


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
    """The states of a replica. Each pod starts at ABSENT."""

    ABSENT = "Absent"
    PENDING = "Pending"
    BOUND = "Bound"
    RUNNING = "Running"
    WILL_EVICTED = "WillEvicted"
    UNKNOWN = "Unknown"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    EVICTED = "Evicted"
    DELETED = "Deleted"


_J, _T, _R = JobState, TaskState, ReplicaState

_ENDED = {_J.SUCCEEDED, _J.FAILED, _J.STOPPED}
JOB: Mapping[JobState, frozenset[JobState]] = {
    _J.NEW: frozenset({_J.PENDING}),
    _J.PENDING: frozenset({_J.PRIVILEGED, _J.RUNNING, _J.UNKNOWN, _J.FAILED, _J.STOPPED}),
    _J.PRIVILEGED: frozenset({_J.PENDING, _J.RUNNING, _J.UNKNOWN, _J.FAILED, _J.STOPPED}),
    _J.RUNNING: frozenset({_J.PENDING, _J.PRIVILEGED, _J.WILL_EVICTED, _J.UNKNOWN, *_ENDED}),
    _J.WILL_EVICTED: frozenset({_J.PENDING, _J.RUNNING, _J.UNKNOWN, *_ENDED}),
    _J.UNKNOWN: frozenset({_J.PENDING, _J.PRIVILEGED, _J.RUNNING, _J.WILL_EVICTED, *_ENDED}),
    **{state: frozenset({_J.PENDING}) for state in _ENDED},  # its owner creates pods again
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
_LEAVES = {_R.TERMINATING, _R.EVICTED, _R.DELETED, _R.ABSENT}
REPLICA: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _R.ABSENT: frozenset(_R) - {_R.ABSENT},
    _R.PENDING: frozenset({_R.BOUND, _R.RUNNING, _R.WILL_EVICTED, _R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.BOUND: frozenset({_R.PENDING, _R.RUNNING, _R.WILL_EVICTED, _R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.RUNNING: frozenset({_R.WILL_EVICTED, _R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.WILL_EVICTED: frozenset({_R.BOUND, _R.RUNNING, _R.UNKNOWN, *_ENDS, *_LEAVES}),
    _R.UNKNOWN: frozenset({_R.BOUND, _R.RUNNING, _R.WILL_EVICTED, *_ENDS, *_LEAVES}),
    _R.SUCCEEDED: frozenset(_LEAVES - {_R.EVICTED}),
    _R.FAILED: frozenset(_LEAVES),
    _R.TERMINATING: frozenset({_R.ABSENT, _R.EVICTED, _R.DELETED}),
    _R.EVICTED: frozenset({_R.DELETED}),
    _R.DELETED: frozenset(),
}
