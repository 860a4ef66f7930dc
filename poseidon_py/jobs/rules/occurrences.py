"""The events of a job at one moment, with the reactions of its policies to them. Pure.

Events are read from what is there, not from changes, so that none is lost when the controller restarts: a pod that has
failed raises PodFailed until the action has removed it, or ended the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.policies import IDLE, Action, Event, Reaction, reaction
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.tasks import exceeds_failures, exceeds_restarts, has_succeeded
from poseidon_py.jobs.rules.world import World


@dataclass(frozen=True)
class Occurrence:
    """An event, the reaction to it, and when that is due, in seconds since the epoch."""

    event: str
    reaction: Reaction
    due: float
    task: str = ""
    replica: Replica | None = None
    index: int = -1
    """Of the replica, or of the one that is gone; -1: it is about the whole task or job."""

    @property
    def about(self) -> str:
        """For users."""
        if self.replica is not None:
            return f"pod {self.replica.name}"
        if self.index >= 0:
            return f"pod {self.index} of task {self.task}"
        return f"task {self.task}" if self.task else "the job"


def occurrences(world: World, replicas: Sequence[Replica]) -> Iterator[Occurrence]:
    """Events that lead to an action, the first to be taken first. `replicas`: of the present version of the job,
    without those that are retried anyway."""
    for each in _all(world, replicas):
        if each.reaction.action not in IDLE:
            yield each


def _all(world: World, replicas: Sequence[Replica]) -> Iterator[Occurrence]:
    stays = [each for each in replicas if not each.deleting]
    for replica in stays:
        if replica.phase == ReplicaState.FAILED:
            yield _of_replica(world, Event.POD_FAILED, replica, replica.ended or replica.created)
    for eviction in world.evictions:
        task = world.spec.task(eviction.task)
        if task is None or eviction.index >= task.replicas:
            continue  # superfluous, or of another specification
        found = _of_task(world, Event.POD_EVICTED, eviction.task, eviction.at)
        if not found.reaction.delay:  # else the pod that replaces it has the time
            yield replace(found, index=eviction.index)
    for replica in stays:
        if replica.evicted_at and replica.phase == ReplicaState.PENDING:
            late = _of_replica(world, Event.POD_EVICTED, replica, replica.evicted_at)
            if late.reaction.delay:
                yield late
    yield from _of_tasks(world, replicas)
    if world.group_unknown:
        yield _of_task(world, Event.JOB_UNKNOWN, "", world.status.changed)
    for replica in stays:
        if replica.phase == ReplicaState.PENDING:
            yield _of_replica(world, Event.POD_PENDING, replica, replica.created)


def _of_tasks(world: World, replicas: Sequence[Replica]) -> Iterator[Occurrence]:
    spec = world.spec
    for task in spec.tasks:
        mine = [each for each in replicas if each.task == task.name]
        at = max((each.ended for each in mine), default=0.0) or world.status.changed
        if has_succeeded(spec, task, mine):
            if task.name == spec.extensions.main_task:
                yield _of_task(world, Event.MAIN_TASK, task.name, at)
            yield _of_task(world, Event.TASK_COMPLETED, task.name, at)
        elif exceeds_failures(spec, task, mine):
            found = _of_task(world, Event.TASK_FAILED, task.name, at)
            if found.reaction == Reaction(Action.SYNC_JOB):  # no policy; NoAction is one
                found = replace(found, reaction=Reaction(Action.FAIL_JOB))
            yield found
        elif exceeds_restarts(task, mine):
            yield _of_task(world, Event.TASK_FAILED, task.name, at)


def _of_replica(world: World, event: Event, replica: Replica, at: float) -> Occurrence:
    code = replica.exit_code if event == Event.POD_FAILED else 0
    found = _reaction(world, event, replica.task, code)
    return Occurrence(event, found, at + found.delay, replica.task, replica, replica.index)


def _of_task(world: World, event: Event, task: str, at: float) -> Occurrence:
    found = _reaction(world, event, task)
    return Occurrence(event, found, at + found.delay, task)


def _reaction(world: World, event: str, task_name: str, exit_code: int = 0) -> Reaction:
    task = world.spec.task(task_name)
    return reaction(event, exit_code, task.policies if task is not None else (), world.spec.policies)


def reaction_to_custom(world: World, event: str, task_name: str) -> Action:
    """The action of a custom event; timeouts do not apply to it."""
    return _reaction(world, event, task_name).action
