"""Single tasks that have waited for long: which of them have their turn among the gangs, and get a reservation if they
do not fit (admission/backfill.py).

A small task fits into what is released; a large one may wait for as long as small ones keep coming: without this step
it starves (`pytest tests/firmament_py/admission/test_overdue_tasks.py tests/firmament_py/engine/test_fairness.py`: 12
tests fail). A single task is a job of minimum 1, so the order of jobs, their reservations and the proofs that they can
never fit are those of gangs.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.state.gangs import NO_GANG

CLASSES_OF_A_PRIORITY = 4
"""Of how many classes the oldest task is considered. Only classes count of which the nodes could take a task some day,
judging by sums; the oldest of them may still be infeasible beside tasks that stay."""


def overdue(snapshot: Snapshot, after_us: int | None) -> I64:
    """(K,), ascending, the tasks in no gang that have waited for `after_us`; None: never."""
    if after_us is None:
        return NO_ROWS
    old = snapshot.task_created_us <= snapshot.now_us - after_us
    return np.flatnonzero(old & (snapshot.task_gang == NO_GANG) & ~snapshot.withheld)


def demands(snapshot: Snapshot, tasks: I64) -> Iterator[JobDemand]:
    """The oldest of `tasks` (K,), ascending, of each of some classes, the oldest of all first."""
    _, first = np.unique(snapshot.task_class[tasks], return_index=True)
    oldest = tasks[first]  # tasks of a class are ordered by age
    order = np.lexsort((oldest, snapshot.task_created_us[oldest]))
    free = snapshot.allocatable - snapshot.releases.staying(NO_GANG - 1)[1]
    able = (t for t in oldest[order].tolist() if _could_go(snapshot, int(snapshot.task_class[t]), free))
    for t in islice(able, CLASSES_OF_A_PRIORITY):
        created_us, priority = snapshot.task_created_us[t], snapshot.priority[snapshot.task_class[t]]
        yield JobDemand.of_task(int(snapshot.tasks[t]), t, int(created_us), int(priority))


def _could_go(snapshot: Snapshot, c: int, free: I64) -> bool:
    """Whether a node with `free` (N, R) could take a task of class c, intertask constraints aside."""
    return bool(task_slots(free, snapshot.requests[[c]], snapshot.suitable[[c]], np.ones(1, np.int64)).any())
