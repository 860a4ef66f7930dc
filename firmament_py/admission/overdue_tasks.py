"""Single tasks that have waited for long, as gangs of one: capacity is reserved for them by the same rules
(admission/backfill.py).

A small task fits into what is released; a large one may wait for as long as small ones keep coming: without this step
it starves (`pytest tests/firmament_py/admission/test_overdue_tasks.py tests/firmament_py/engine/test_fairness.py`: 12
tests fail). Gangs of one share the reservations and the feasibility checks of gangs, so there is no second mechanism.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.model.events import GangObserved
from firmament_py.snapshot.gang_demand import GangDemand
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.state.gangs import NO_GANG

CLASSES_OF_A_PRIORITY = 4
"""Of how many classes the oldest task is considered. Only classes count of which the nodes could take a task some day,
judging by sums; the oldest of them may still be infeasible beside tasks that stay."""


_NO_ROW = NO_GANG - 1
"""From here down, numbers are neither rows of the gang table nor NO_GANG."""


def overdue(snapshot: Snapshot, after_us: int | None) -> I64:
    """(K,), ascending, the tasks in no gang that have waited for `after_us`; None: never."""
    if after_us is None:
        return NO_ROWS
    old = snapshot.task_created_us <= snapshot.now_us - after_us
    return np.flatnonzero(old & (snapshot.task_gang == NO_GANG) & ~snapshot.withheld)


def demands(snapshot: Snapshot, tasks: I64) -> Iterator[GangDemand]:
    """The oldest of `tasks` (K,), ascending, of each of some classes, the oldest of all first."""
    _, first = np.unique(snapshot.task_class[tasks], return_index=True)
    oldest = tasks[first]  # tasks of a class are ordered by age
    order = np.lexsort((oldest, snapshot.task_created_us[oldest]))
    free = snapshot.allocatable - snapshot.releases.staying(_NO_ROW)[1]
    able = (t for t in oldest[order].tolist() if _could_go(snapshot, int(snapshot.task_class[t]), free))
    for t in islice(able, CLASSES_OF_A_PRIORITY):
        task = int(snapshot.tasks[t])
        yield GangDemand(
            row=_NO_ROW - task,
            definition=GangObserved(0, 1, int(snapshot.task_created_us[t])),
            members=np.array([t], np.int64),
            role=np.zeros(1, np.int64),
            lacking=1,
            lacking_of_role=(),
            settled=NO_ROWS,
            priority=int(snapshot.priority[snapshot.task_class[t]]),
            task=task,
        )


def _could_go(snapshot: Snapshot, c: int, free: I64) -> bool:
    """Whether a node with `free` (N, R) could take a task of class c, intertask constraints aside."""
    return bool(task_slots(free, snapshot.requests[[c]], snapshot.suitable[[c]], np.ones(1, np.int64)).any())
