"""Expected starts as Slurm's backfill scheduler plans them, retold: jobs in the order of their submission, each at the
first time at which its tasks fit for as long as it declares, beside all that run until their declared ends and the jobs
before it.
Slurm 24.11: bf_max_job_test is 500, so later jobs have no expected start; bf_window is a day there, unlimited here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64

JOBS_TESTED = 500


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """tasks: how many start together. request (R,): of each. declared_us: for how long. suitable (N,): nodes."""

    tasks: int
    request: I64
    declared_us: int
    suitable: np.ndarray


def planned_starts(
    now_us: int, free: I64, ends_us: I64, nodes: I64, requests: I64, jobs: Sequence[QueuedJob]
) -> list[int]:
    """When each of the jobs starts, in their order; -1: never. free (N, R) now. What runs: ends_us, nodes (K,),
    requests (K, R). One that has run for longer than it declared ends now."""
    times = [now_us, *np.unique(np.maximum(ends_us, now_us + 1)).tolist()]
    profile = np.repeat(free[None], len(times), axis=0)  # (times, N, R), from each time on until the next
    at = np.searchsorted(times, np.maximum(ends_us, now_us + 1))
    for k in range(len(ends_us)):
        profile[at[k] :, nodes[k]] += requests[k]
    starts = []
    for job in jobs[:JOBS_TESTED]:
        start = -1
        for i, time_us in enumerate(times):
            until = int(np.searchsorted(times, time_us + job.declared_us))
            left = profile[i:until].min(axis=0)
            needed = job.request > 0
            fitting = np.min(left[:, needed] // job.request[needed], axis=1, initial=job.tasks)
            fitting = np.where(job.suitable, np.maximum(fitting, 0), 0)
            if fitting.sum() < job.tasks:
                continue
            start, lacking = time_us, job.tasks
            end_us = time_us + job.declared_us
            if until == len(times) or times[until] != end_us:
                times.insert(until, end_us)
                profile = np.insert(profile, until, profile[until - 1], axis=0)
            for node in np.argsort(-fitting, kind="stable").tolist():  # as few nodes as possible
                some = min(int(fitting[node]), lacking)
                profile[i:until, node] -= some * job.request
                lacking -= some
                if not lacking:
                    break
            break
        starts.append(start)
    return starts + [-1] * (len(jobs) - len(starts))
