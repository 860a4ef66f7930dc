"""The state of a task by its replicas, and whether it may start. Pure."""

from collections.abc import Iterable, Sequence

from poseidon_py.jobs.rules.machines import STOPPED, STOPPING, JobPhase, ReplicaState, TaskState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.spec import JobSpec, Task

_ENDS = (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.STOPPED)


def count(replicas: Iterable[Replica], *states: ReplicaState) -> int:
    return sum(replica.state in states for replica in replicas)


def has_succeeded(spec: JobSpec, task: Task, replicas: Sequence[Replica]) -> bool:
    """All replicas have succeeded, or as many as the completion policy demands."""
    policy = spec.extensions.completion.get(task.name)
    least = policy.min_succeeded if policy is not None and policy.min_succeeded is not None else task.replicas
    return task.replicas > 0 and count(replicas, ReplicaState.SUCCEEDED) >= least


def has_failed(spec: JobSpec, task: Task, replicas: Sequence[Replica]) -> bool:
    """By the completion policy, or because containers were restarted too often, or because all replicas have ended and
    too few of them succeeded. Success is to be tested first."""
    if exceeds_failures(spec, task, replicas) or exceeds_restarts(task, replicas):
        return True
    succeeded, failed = count(replicas, ReplicaState.SUCCEEDED), count(replicas, ReplicaState.FAILED)
    return 0 < task.replicas <= succeeded + failed and succeeded < task.min_available


def exceeds_failures(spec: JobSpec, task: Task, replicas: Sequence[Replica]) -> bool:
    policy = spec.extensions.completion.get(task.name)
    if policy is None or policy.max_failed is None:
        return False
    return count(replicas, ReplicaState.FAILED) >= policy.max_failed


def exceeds_restarts(task: Task, replicas: Sequence[Replica]) -> bool:
    if task.max_retry < 0 or not task.replicas:
        return False
    alive = (each for each in replicas if not each.has_ended and not each.deleting)
    return sum(each.restarts for each in alive) >= task.max_retry


def may_start(spec: JobSpec, task: Task, replicas: Sequence[Replica]) -> bool:
    """Whether it has started, or the tasks that it depends on are ready. `replicas`: of the job."""
    if not task.depends_on or any(each.task == task.name for each in replicas):
        return True
    ready = [_is_ready(spec.task(name), replicas) for name in task.depends_on]
    return any(ready) if task.depends_on_any else all(ready)


def _is_ready(task: Task | None, replicas: Sequence[Replica]) -> bool:
    """Whether its minimum of replicas runs with ready containers, or has succeeded."""
    if task is None:
        return False
    mine = [each for each in replicas if each.task == task.name and not each.deleting]
    running = sum(each.phase == ReplicaState.RUNNING and each.ready for each in mine)
    return running + count(mine, ReplicaState.SUCCEEDED) >= task.min_available


def state_of(
    spec: JobSpec,
    task: Task,
    phase: JobPhase,
    replicas: Sequence[Replica],
    *,
    leaving: bool,
    started: bool,
    old: TaskState,
) -> TaskState:
    """The state of a task. `replicas`: those that stay; `leaving`: whether others are deleted by a restart."""
    ends = phase in STOPPED or phase in STOPPING
    if ends and old in _ENDS:
        return old
    if phase == JobPhase.RESTARTING and leaving:
        return TaskState.RESTARTING
    if has_succeeded(spec, task, replicas):
        return TaskState.SUCCEEDED
    if has_failed(spec, task, replicas):
        return TaskState.FAILED
    if ends:
        return TaskState.STOPPED
    if not started:
        return TaskState.WAITING
    present = count(replicas, ReplicaState.RUNNING, ReplicaState.SUCCEEDED, ReplicaState.FAILED)
    return TaskState.RUNNING if 0 < present >= task.min_available else TaskState.PENDING
