"""Evictions that happened while no controller ran. Pure."""

from collections.abc import Sequence

from poseidon_py.jobs.rules.machines import ACTIVE, ReplicaState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.spec import JobSpec
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.world import Eviction

_ALIVE = (ReplicaState.PENDING, ReplicaState.RUNNING, ReplicaState.UNKNOWN)


def missed_evictions(spec: JobSpec, status: JobStatus, replicas: Sequence[Replica], now: float) -> tuple[Eviction, ...]:
    """The pods that the status counts, and that are not there, the first missing indices of each task.

    The counts of a task do not name its pods: if some of its replicas were not created yet, the index may be another
    one's. Only pods that had not ended count.
    """
    if status.phase not in ACTIVE:
        return ()
    found: list[Eviction] = []
    for task in spec.tasks:
        counts = status.task_counts.get(task.name, {})
        counted = sum(counts.values())
        alive = sum(counts.get(state, 0) for state in _ALIVE)
        present = {each.index for each in replicas if each.task == task.name}
        missing = [index for index in range(task.replicas) if index not in present]
        gone = min(counted - len(present), alive, len(missing))
        found += [Eviction(task.name, index, now) for index in missing[: max(gone, 0)]]
    return tuple(found)
