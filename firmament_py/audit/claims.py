"""The independent check of preemptions by the rules of queues: what must hold for each victim, whatever the others."""

from firmament_py.model.arrays import I64
from firmament_py.model.lifecycle import WAITING
from firmament_py.model.queues import QueueDefinition, Reclaim, ReclaimRules, Within
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG


def claim_problems(state: ClusterState, victims: I64, preemptors: I64, now_us: int) -> list[str]:
    """What is wrong with the eviction of task rows (V,) for task rows (V,), which all have queues, at `now_us`; empty:
    nothing."""
    problems: dict[str, None] = {}
    tasks = state.tasks
    queues = {queue.id: queue for queue in state.queues.definitions}
    rules = state.queues.tree.reclaim_rules
    for victim, preemptor in zip(victims.tolist(), preemptors.tolist(), strict=True):
        priority = int(state.classes.priority[tasks.cls[victim]])
        job_priority, job_created_us = _of_job(state, preemptor)
        if tasks.exempt_until_us[victim] > now_us and job_priority < tasks.least_preemptor[victim]:
            problems["a victim is exempt from preemption by a job of that priority"] = None
        queue, own = queues.get(int(tasks.queue[victim])), queues.get(int(tasks.queue[preemptor]))
        if queue is None or own is None:
            problems["a victim, or its preemptor, is in an unknown queue"] = None
        elif queue is own:
            newer = bool(tasks.created_us[victim] > job_created_us)
            if not _within(own, priority, job_priority, newer=newer):
                problems["a queue does not permit the preemption of one of its tasks"] = None
        elif not _between(queues, queue, own, rules, priority, job_priority):
            problems["a queue may not reclaim from another one"] = None
        elif _root(queues, queue) is not _root(queues, own) and rules is ReclaimRules.QUOTA:
            problems["a queue reclaims from one of another tree"] = None
    return list(problems)


def _of_job(state: ClusterState, row: int) -> tuple[int, int]:
    """The priority of the job of a task row, and when it was created. A gang has the highest priority of its waiting
    members, and may be older than all of them."""
    tasks, gang = state.tasks, int(state.tasks.gang[row])
    if gang == NO_GANG:
        return int(state.classes.priority[tasks.cls[row]]), int(tasks.created_us[row])
    waits = (tasks.gang == gang) & (tasks.state == WAITING)
    return int(state.classes.priority[tasks.cls[waits]].max()), state.gangs.definition(gang).created_us


def _within(queue: QueueDefinition, victim: int, preemptor: int, *, newer: bool) -> bool:
    if victim < preemptor:
        return queue.within is not Within.NEVER
    return victim == preemptor and newer and queue.within is Within.LOWER_OR_NEWER_EQUAL_PRIORITY


def _between(
    queues: dict[int, QueueDefinition],
    queue: QueueDefinition,
    own: QueueDefinition,
    rules: ReclaimRules,
    victim: int,
    preemptor: int,
) -> bool:
    if not queue.reclaimable:
        return False
    if rules is ReclaimRules.GUARANTEE:
        path, own_path = _path(queues, queue), _path(queues, own)
        return _outside(path, own_path, victim) <= _outside(own_path, path, preemptor)
    if rules is not ReclaimRules.QUOTA:
        return True
    return own.reclaim is Reclaim.ANY or (own.reclaim is Reclaim.LOWER_PRIORITY and victim < preemptor)


def _outside(path: list[QueueDefinition], other: list[QueueDefinition], priority: int) -> int:
    """The priority of a task of the first queue of a path, where the path meets another one."""
    for queue in path:
        if queue in other:
            break
        priority = queue.priority_offset + (0 if queue.priority_fence else priority)
    return priority


def _path(queues: dict[int, QueueDefinition], queue: QueueDefinition) -> list[QueueDefinition]:
    """A queue and those above it, up to its root."""
    found = [queue]
    while found[-1].parent in queues:
        found.append(queues[found[-1].parent])
    return found


def _root(queues: dict[int, QueueDefinition], queue: QueueDefinition) -> QueueDefinition:
    return _path(queues, queue)[-1]
