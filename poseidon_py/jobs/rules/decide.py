"""What to do about a job, decided from what is there. Pure: no I/O, no clock, no memory.

A job changes its phase by at most one transition per decision. The status is written before anything is done that
cannot be undone, so a controller that stops at any point continues where it was:

    restart of the job        the version in the status goes up; pods of older versions are deleted
    restart of some pods      they are marked with the number of the retry, the status counts it, they are deleted
    retry of a replica        the status notes the pod, it is deleted
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from poseidon_py.jobs.rules import outcome
from poseidon_py.jobs.rules.machines import ACTIVE, FINISHED, STOPPING, JobPhase, ReplicaState, TaskState, check_job
from poseidon_py.jobs.rules.occurrences import Occurrence, occurrences, reaction_to_custom
from poseidon_py.jobs.rules.policies import EFFECTS, TARGETED, Action, Event
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.retries import Retries, plan_retries
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.tasks import may_start, state_of
from poseidon_py.jobs.rules.world import Cause, Creation, Decision, Signal, World


def decide(world: World) -> Decision:
    """The decision on a job that is not being deleted."""
    found = _decide(world)
    old, new = world.status.phase, found.status.phase
    if old != new:
        check_job(old, new)
        found = replace(found, status=_entered(found, world.now))
    started = {task.name: may_start(world.spec, task, world.replicas) for task in world.spec.tasks}
    return replace(_with_tasks(world, found, started), started=started)


def _entered(found: Decision, now: float) -> JobStatus:
    """The status with reason and message of the transition."""
    cause = found.cause or Cause("", "", "")
    return replace(found.status, changed=now, reason=cause.event, message=cause.detail)


def _with_tasks(world: World, found: Decision, started: dict[str, bool]) -> Decision:
    spec, status = world.spec, found.status
    restarted = {each.uid for each in found.restarted}
    tasks = {}
    for task in spec.tasks:
        mine = [each for each in world.replicas if each.task == task.name and each.index < task.replicas]
        staying = [each for each in mine if not _leaves(status, each) and each.uid not in restarted]
        leaving = len(staying) < len(mine)
        old = world.status.tasks.get(task.name, TaskState.NEW)
        tasks[task.name] = state_of(
            spec, task, status.phase, staying, leaving=leaving, started=started[task.name], old=old
        )
    return replace(found, status=replace(status, tasks=tasks))


def _decide(world: World) -> Decision:
    status = world.status
    if status.phase == JobPhase.NEW:
        return Decision(replace(status, phase=JobPhase.PENDING))
    if status.phase == JobPhase.RESTARTING and status.retry_count >= world.spec.max_retry:
        detail = f"{status.retry_count} retries: the limit is maxRetry, {world.spec.max_retry}"
        return Decision(replace(status, phase=JobPhase.FAILED), cause=Cause("RetriesExhausted", "", detail))
    signal = world.signal
    if signal is None and status.handled:
        return Decision(replace(status, handled=""))
    if signal is not None and signal.token != status.handled:
        return _on_signal(world, signal)
    if status.phase in ACTIVE:
        return _while_active(world)
    if status.phase == JobPhase.RESTARTING:
        return _while_restarting(world)
    return _while_stopping(world)


# -- actions ---------------------------------------------------------------------------------------------------------


def _on_signal(world: World, signal: Signal) -> Decision:
    status = replace(world.status, handled=signal.token)
    action = signal.action if signal.action is not None else reaction_to_custom(world, signal.event, signal.task)
    if action not in EFFECTS.get(status.phase, {}):
        why = (
            ""
            if signal.action in (None, Action.NO_ACTION)
            else f"{action} has no effect on a job that is {status.phase}"
        )
        return Decision(status, no_effect=why)
    about = [each for each in world.replicas if signal.pod and each.name == signal.pod]
    targets = _targets(world, action, about, signal.task)
    what = f"event {signal.event}" if signal.action is None else "a command"
    return _act(replace(world, status=status), action, targets, Cause(signal.event, action, f"{action} by {what}"))


def _act(world: World, action: Action, targets: Iterable[Replica], cause: Cause) -> Decision:
    """The action is taken. `targets`: pods that a targeted restart deletes."""
    status = world.status
    phase = EFFECTS[status.phase][action]
    if action == Action.FAIL_JOB:
        return _fail(world, cause)
    if phase != JobPhase.RESTARTING:
        return Decision(replace(status, phase=phase), cause=cause)
    retries = status.retry_count + 1
    if action == Action.RESTART_JOB:
        again = replace(status, phase=phase, retry_count=retries, version=status.version + 1, retries={})
        return Decision(again, cause=cause)
    if action == Action.RESUME_JOB:  # what has succeeded stays
        targets = [each for each in world.replicas if each.phase != ReplicaState.SUCCEEDED]
    return Decision(replace(status, phase=phase, retry_count=retries), tuple(targets), cause=cause)


def _fail(world: World, cause: Cause) -> Decision:
    """The job fails, or is restarted by its retry policy."""
    retry, status = world.spec.extensions.retry, world.status
    again = Action.RESTART_JOB in EFFECTS.get(status.phase, {})
    if again and retry is not None and retry.retry and status.retry_count + 1 < world.spec.max_retry:
        return _act(world, Action.RESTART_JOB, (), replace(cause, action=Action.RESTART_JOB))
    return Decision(replace(status, phase=JobPhase.FAILED), cause=cause)


def _targets(world: World, action: Action, about: Sequence[Replica], task: str) -> list[Replica]:
    """The pods that a targeted restart deletes. `about`: the pod of the event; empty: it is about the task, or its pod
    is gone."""
    if action == Action.RESTART_POD:
        return [each for each in about if not each.deleting and not _leaves(world.status, each)]
    pods = [each for each in world.replicas if not each.deleting and not _leaves(world.status, each)]
    if action == Action.RESTART_TASK:
        return [each for each in pods if each.task == task]
    if action == Action.RESTART_PARTITION:
        found = world.spec.task(task)
        size = (found.partition_size if found is not None else 0) or 1
        partitions = {each.index // size for each in about}
        return [each for each in pods if each.task == task and each.index // size in partitions]
    return []


# -- phases ----------------------------------------------------------------------------------------------------------


def _leaves(status: JobStatus, replica: Replica) -> bool:
    """Whether a restart that the status has counted deletes the pod."""
    return replica.job_version < status.version or 0 < replica.restart_number <= status.retry_count


def _superfluous(world: World, replica: Replica) -> bool:
    """Whether the specification has no place for the pod."""
    task = world.spec.task(replica.task)
    return task is None or replica.index >= task.replicas


def _while_active(world: World) -> Decision:
    status = world.status
    staying = [each for each in world.replicas if not _leaves(status, each) and not _superfluous(world, each)]
    retries = plan_retries(world, staying)
    retried = {each.uid for each in retries.replicas}
    judged = [each for each in staying if each.uid not in retried]
    acted, wait = _on_events(world, judged)
    if acted is not None:
        return acted
    wait = _sooner(wait, retries.again_in)
    if retries.status != status:
        return Decision(retries.status, again_in=wait)
    interrupted = [each for each in staying if each.restart_number > status.retry_count]
    if interrupted:
        detail = "a restart of pods that was interrupted continues"
        cause = Cause(Event.OUT_OF_SYNC, Action.RESTART_POD, detail)
        return _act(world, Action.RESTART_POD, interrupted, cause)
    phase, cause = outcome.next_phase(world, judged)
    if phase == JobPhase.FAILED:
        return _fail(world, cause)
    if phase != status.phase:
        return Decision(replace(status, phase=phase), cause=cause)
    return _bring_up_to_date(world, retries, wait)


def _on_events(world: World, judged: Sequence[Replica]) -> tuple[Decision | None, float | None]:
    """The decision by the first event that is due; else the seconds until one is."""
    wait: float | None = None
    first: Occurrence | None = None
    targets: dict[str, Replica] = {}
    scopes: set[tuple[Action, str, int]] = set()
    for each in occurrences(world, judged):
        action = each.reaction.action
        if each.due > world.now:
            wait = _sooner(wait, each.due - world.now)
            continue
        if action not in EFFECTS[world.status.phase]:
            continue
        if first is None:
            first = each
        if first.reaction.action not in TARGETED:
            break
        scope = _scope(world, each)
        if action in TARGETED and scope not in scopes:  # one retry for all that is due
            scopes.add(scope)
            about = [each.replica] if each.replica is not None else _partition_of_the_gone(world, each)
            targets |= {pod.uid: pod for pod in _targets(world, action, about, each.task)}
    if first is None:
        return None, wait
    action = first.reaction.action
    detail = f"{action}: {first.event} of {first.about}"
    return _act(world, action, targets.values(), Cause(first.event, action, detail)), wait


def _scope(world: World, found: Occurrence) -> tuple[Action, str, int]:
    """What a targeted restart concerns: events of one scope have the same pods."""
    action, task = found.reaction.action, world.spec.task(found.task)
    size = task.partition_size if task is not None and task.partition_size else 1
    at = {Action.RESTART_POD: found.index, Action.RESTART_PARTITION: found.index // size}.get(action, 0)
    return action, found.task, at


def _partition_of_the_gone(world: World, found: Occurrence) -> list[Replica]:
    """A pod of the partition of one that is gone."""
    task = world.spec.task(found.task)
    if found.index < 0 or task is None or not task.partition_size:
        return []
    part = found.index // task.partition_size
    mates = (r for r in world.replicas if r.task == task.name and r.index // task.partition_size == part)
    return list(mates)[:1]


def _bring_up_to_date(world: World, retries: Retries, wait: float | None) -> Decision:
    """Missing pods are created, superfluous ones deleted."""
    spec, status = world.spec, world.status
    superfluous = {each.uid: each for each in retries.deletions}
    present: set[tuple[str, int]] = set()
    for each in world.replicas:
        if _leaves(status, each) or _superfluous(world, each):
            superfluous[each.uid] = each
        present.add((each.task, each.index))
    evicted = {(each.task, each.index): each.at for each in world.evictions}
    creations = [
        Creation(task.name, index, evicted.get((task.name, index), 0.0))
        for task in spec.tasks
        if not world.group_waits and may_start(spec, task, world.replicas)
        for index in range(task.replicas)
        if (task.name, index) not in present
    ]
    return Decision(status, (), _not_deleting(superfluous.values()), tuple(creations), again_in=wait)


def _while_restarting(world: World) -> Decision:
    """Waits until the pods of the restart are gone, as far as the job needs their places."""
    status, spec = world.status, world.spec
    leaving = [each for each in world.replicas if _leaves(status, each)]
    undeleted = _not_deleting(leaving)
    if undeleted:
        return Decision(status, (), undeleted)
    retry = spec.extensions.retry
    wait = status.changed + retry.delay - world.now if retry is not None else 0.0
    if wait > 0:
        return Decision(status, again_in=wait)
    if spec.replicas - len(leaving) < spec.min_available:
        return Decision(status)
    detail = f"retry {status.retry_count}"
    return Decision(replace(status, phase=JobPhase.PENDING), cause=Cause("Restarted", "", detail))


def _while_stopping(world: World) -> Decision:
    """Pods that have ended stay, as records; the others go. What has finished is deleted in time."""
    status = world.status
    alive = [each for each in world.replicas if not each.has_ended]
    leaving = [each for each in world.replicas if each.deleting]
    if not alive and not leaving and status.phase in STOPPING:
        cause = Cause(status.reason, "", status.message)
        return Decision(replace(status, phase=STOPPING[status.phase]), cause=cause)
    if status.phase in FINISHED and world.spec.ttl is not None:
        wait = status.changed + world.spec.ttl - world.now
        return Decision(status, (), _not_deleting(alive), again_in=max(wait, 0.0), delete_job=wait <= 0)
    return Decision(status, (), _not_deleting(alive))


def _not_deleting(replicas: Iterable[Replica]) -> tuple[Replica, ...]:
    return tuple(each for each in replicas if not each.deleting)


def _sooner(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
