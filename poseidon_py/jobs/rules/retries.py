"""Retries of single replicas, by the retry policies of their tasks. Pure.

A pod that has failed is deleted after the delay, and created again, without a retry of the job. Until its retries are
used up it raises no PodFailed, and does not count as failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.status import JobStatus, ReplicaRetries
from poseidon_py.jobs.rules.world import World


@dataclass(frozen=True)
class Retries:
    """The replicas that are retried, those of them to delete now, the status that notes it, and when another is due."""

    status: JobStatus
    replicas: tuple[Replica, ...] = ()
    deletions: tuple[Replica, ...] = ()
    again_in: float | None = None


def plan_retries(world: World, staying: Sequence[Replica]) -> Retries:
    """`staying`: the replicas that no restart deletes."""
    noted = dict(world.status.retries)
    retried, deletions, waits = [], [], []
    for replica in staying:
        policy = world.spec.extensions.replica_retry.get(replica.task)
        if policy is None or not policy.retry or replica.phase != ReplicaState.FAILED:
            continue
        before = noted.get(replica.name, ReplicaRetries())
        if before.uid == replica.uid:
            retried.append(replica)
            deletions.append(replica)
        elif policy.max_retry_count is None or before.count < policy.max_retry_count:
            retried.append(replica)
            wait = (replica.ended or replica.created) + policy.delay - world.now
            if wait > 0:
                waits.append(wait)
            else:
                noted[replica.name] = ReplicaRetries(before.count + 1, replica.uid)
    status = world.status if noted == world.status.retries else replace(world.status, retries=noted)
    return Retries(status, tuple(retried), tuple(deletions), min(waits, default=None))
