"""The states of tasks and jobs by their pods, and the ways between states. Pure.

A job has no memory here: its state follows from the pods that there are, from what its owner says, and from the time
for which no pod has changed, so that another process finds the same.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from poseidon_py.machines.states import JOB, TASK, JobState, ReplicaState, TaskState
from poseidon_py.tracking.records import Job, Replica, Task

_J, _T, _R = JobState, TaskState, ReplicaState
S = TypeVar("S", JobState, TaskState, ReplicaState)

WAITING = frozenset((_R.PENDING, _R.BOUND))
ON_NODE = frozenset((_R.RUNNING, _R.WILL_EVICTED, _R.UNKNOWN, _R.TERMINATING))
ALIVE = WAITING | ON_NODE
PENDING = frozenset((_R.PENDING,))
_UNKNOWN = frozenset((_R.UNKNOWN,))
_SUCCEEDED = frozenset((_R.SUCCEEDED,))
_ENDED_ITSELF = frozenset((_R.SUCCEEDED, _R.FAILED))
OVER = frozenset((_J.SUCCEEDED, _J.FAILED, _J.STOPPED))


def is_alive(task_or_job: Task | Job) -> bool:
    """Whether a pod waits or runs."""
    return task_or_job.count(ALIVE) > 0


def task_state(task: Task, *, over: bool, verdict: str = "") -> TaskState:
    """`over`: no further pods of its job are expected; `verdict`: what its owner says of the job then."""
    if task.count(ON_NODE):
        return _T.RUNNING
    if task.count(WAITING):
        return _T.PENDING
    ended = _ended((task,), verdict if verdict == _J.SUCCEEDED else "")
    # others of its job may still run; of a job with one task it is up to the owner whether others follow
    if over or (ended is _J.SUCCEEDED and len(task.job.tasks) > 1):
        return _T(ended.value)
    return _T.RUNNING if task.state is _T.RUNNING else _T.PENDING


def job_state(job: Job, *, over: bool, verdict: str, short: bool) -> JobState:
    """`over`, `verdict`: as above. `short`: whether a gang of its pods has fewer members than it needs."""
    running = job.count(ON_NODE)
    waiting = job.count(WAITING)
    if running or waiting:
        if any(task.evicting for task in job.tasks.values()):
            return _J.WILL_EVICTED
        if any(task.privileged for task in job.tasks.values()):
            return _J.PRIVILEGED
    if running:
        if running == job.count(_UNKNOWN):
            return _J.UNKNOWN
        return _J.UNKNOWN if job.count(PENDING) and short else _J.RUNNING
    if waiting:
        return _J.PENDING
    if over:
        return _ended(job.tasks.values(), verdict)
    # all pods have ended, and the owner has yet to say what follows, or has yet to create others
    return _J.RUNNING if job.count(_ENDED_ITSELF) else _J.PENDING


def _ended(tasks: Iterable[Task], verdict: str) -> JobState:
    """How pods ended together. A failed pod does not count if its task got another one afterwards."""
    if verdict:
        return _J(verdict)
    found = list(tasks)
    if any(task.open_failures for task in found):
        return _J.FAILED
    if any(task.open_evictions for task in found):
        return _J.STOPPED
    return _J.SUCCEEDED if any(task.count(_SUCCEEDED) for task in found) else _J.STOPPED


# -- ways between states --------------------------------------------------------------------------------------


def job_path(old: JobState, new: JobState, *, ran: bool) -> list[tuple[JobState, JobState]]:
    """The transitions from one state to another. `ran`: whether a pod ran since the first one."""
    through = (_J.RUNNING,) if ran and new in OVER and old in (_J.NEW, _J.PENDING) else ()
    return _path(JobState, old, new, through)


def task_path(old: TaskState, new: TaskState, *, ran: bool) -> list[tuple[TaskState, TaskState]]:
    """Likewise; a new task is Pending first."""
    if old is _T.NEW and new is not _T.PENDING:
        return [(old, _T.PENDING), *task_path(_T.PENDING, new, ran=ran)]
    ends = new in (_T.SUCCEEDED, _T.FAILED, _T.STOPPED)
    return _path(TaskState, old, new, (_T.RUNNING,) if ran and ends and old is _T.PENDING else ())


def replica_path(old: ReplicaState, new: ReplicaState, pod: Replica) -> list[tuple[ReplicaState, ReplicaState]]:
    """The transitions of a pod; what happened between two observations is filled in from its times."""
    if old is new:
        return []
    way = [_R.ABSENT, _R.PENDING]
    if pod.bound or pod.started:
        way.append(_R.BOUND)
    if pod.started:
        way.append(_R.RUNNING)
    if new in (_R.EVICTED, _R.DELETED) and pod.deletion_requested:
        way.append(_R.TERMINATING)
    if new in way:  # it is the last state of its way so far, or it went back
        at = way.index(new)
        return [*pairwise(way[way.index(old) : at + 1])] if old in way[:at] else [(old, new)]
    at = way.index(old) if old in way else -1
    return [*pairwise([*(way[at:] if at >= 0 else [old]), new])]


@lru_cache(maxsize=1024)
def _shortest(machine: str, old: str, new: str) -> tuple[str, ...]:
    """The states after `old` on a shortest way."""
    table: Mapping[Any, frozenset[Any]] = JOB if machine == "job" else TASK
    ways: dict[str, tuple[str, ...]] = {old: ()}
    front = [old]
    while front and new not in ways:
        reached = []
        for state in front:
            for after in sorted(table[state]):
                if after not in ways:
                    ways[after] = (*ways[state], after)
                    reached.append(after)
        front = reached
    return ways.get(new, (new,))


def _path(kind: type[S], old: S, new: S, through: tuple[S, ...]) -> list[tuple[S, S]]:
    machine = "job" if kind is JobState else "task"
    way: list[S] = [old]
    for goal in (*through, new):
        if way[-1] != goal:
            way += [kind(each) for each in _shortest(machine, way[-1], goal)]
    return list(pairwise(way))
