"""The phase that follows for an active job from the ends of its pods. Pure."""

from collections.abc import Sequence

from poseidon_py.jobs.rules.machines import JobPhase, ReplicaState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.tasks import count, has_succeeded
from poseidon_py.jobs.rules.world import Cause, World


def next_phase(world: World, replicas: Sequence[Replica]) -> tuple[JobPhase, Cause]:
    """The phase, the present one if nothing follows, and why. `replicas`: of the present version of the job."""
    spec, phase = world.spec, world.status.phase
    succeeded, failed = count(replicas, ReplicaState.SUCCEEDED), count(replicas, ReplicaState.FAILED)
    if phase == JobPhase.PENDING:
        present = count(replicas, ReplicaState.RUNNING) + succeeded + failed
        if present < spec.min_available:
            return phase, _cause("")
        return JobPhase.RUNNING, _cause(
            "", f"{present} pods run or have ended, at least {spec.min_available} are needed"
        )
    total = spec.replicas
    if total == 0:
        return phase, _cause("")
    if spec.min_success is not None and succeeded >= spec.min_success:
        return JobPhase.COMPLETED, _cause("MinSuccess", f"{succeeded} pods succeeded, minSuccess is {spec.min_success}")
    if _all_tasks_succeeded(world, replicas):
        return JobPhase.COMPLETING, _cause("TasksSucceeded", "all tasks succeeded by their completion policies")
    if succeeded + failed >= total:
        return _of_ended(world, replicas, succeeded)
    pending = count(replicas, ReplicaState.PENDING)
    if pending > total - spec.min_available:
        detail = f"{pending} of {total} pods are pending, at least {spec.min_available} are to run"
        return JobPhase.PENDING, _cause("", detail)
    return phase, _cause("")


def _all_tasks_succeeded(world: World, replicas: Sequence[Replica]) -> bool:
    """Whether there are completion policies, and all tasks have succeeded by them."""
    spec = world.spec
    return bool(spec.extensions.completion) and all(
        has_succeeded(spec, task, [each for each in replicas if each.task == task.name]) for task in spec.tasks
    )


def _of_ended(world: World, replicas: Sequence[Replica], succeeded: int) -> tuple[JobPhase, Cause]:
    """All pods have ended."""
    spec = world.spec
    if spec.min_available >= sum(task.min_available for task in spec.tasks):
        for task in spec.tasks:
            mine = [each for each in replicas if each.task == task.name]
            own = count(mine, ReplicaState.SUCCEEDED)
            if own < task.min_available and not (mine and has_succeeded(spec, task, mine)):
                detail = f"{own} pods of task {task.name} succeeded, minAvailable is {task.min_available}"
                return JobPhase.FAILED, _cause("TaskFailed", detail)
    if spec.min_success is not None:
        return JobPhase.FAILED, _cause("MinSuccess", f"{succeeded} pods succeeded, minSuccess is {spec.min_success}")
    least = spec.min_available
    if succeeded >= least:
        return JobPhase.COMPLETED, _cause("AllEnded", f"{succeeded} pods succeeded, minAvailable is {least}")
    return JobPhase.FAILED, _cause("AllEnded", f"{succeeded} pods succeeded, minAvailable is {least}")


def _cause(event: str, detail: str = "") -> Cause:
    return Cause(event, "", detail)
