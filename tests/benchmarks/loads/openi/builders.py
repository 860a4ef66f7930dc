"""Small workloads in which every job is stated."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.openi.cluster import Cluster, State
from benchmarks.loads.openi.rules import Timeline
from benchmarks.loads.openi.workload import GIB, MINUTE, ORDINARY, QUEUES, SECOND, URGENT, Spec, Workload

VISION, MEDICINE = 0, 3
"""Queues of the first and the second group."""


def job(
    gpus, *, pods=1, at_s=0, minutes=60, queue=VISION, urgent=False, preemptible=True, checkpoints=False, save_s=20
):
    return {
        "arrival_us": at_s * SECOND,
        "queue": queue,
        "user": 0,
        "priority": URGENT if urgent else ORDINARY,
        "pods": pods,
        "request": [gpus, 1000 * gpus, GIB * gpus],
        "work_us": minutes * MINUTE,
        "preemptible": preemptible and not urgent,
        "checkpoints": checkpoints,
        "save_us": save_s * SECOND,
    }


def workload(*jobs, nodes=(8,), limit=100):
    """Jobs in the order of arrival; nodes: GPUs of those of the first group. The other groups have one node each."""
    gpus = np.array([*nodes, 8, 8])
    columns = {name: np.array([each[name] for each in jobs]) for name in jobs[0]}
    return Workload(
        spec=Spec(len(jobs), len(gpus)),
        capacity=gpus[:, None] * np.array([1, 12_000, 96 * GIB]),
        node_group=np.array([*[0] * len(nodes), 1, 2]),
        queue_group=np.array([group for _, group, _ in QUEUES]),
        guarantee=np.zeros(len(QUEUES), np.int64),
        limit=np.full(len(QUEUES), limit),
        **columns,
    )


def running(cluster: Cluster) -> set[int]:
    return set(np.flatnonzero(cluster.state == State.RUNNING).tolist())


def made(load: Workload) -> tuple[Cluster, Timeline]:
    return Cluster(load), Timeline()
