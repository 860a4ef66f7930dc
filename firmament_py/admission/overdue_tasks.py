"""Single tasks that have waited for long, as gangs of one: so they keep room by the same rules (admission/backfill.py).

A small task fits into what is released; a large one may wait for as long as small ones keep coming.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.events import GangObserved
from firmament_py.snapshot.gang_demand import GangDemand
from firmament_py.snapshot.snapshot import Snapshot
from firmament_py.snapshot.solo_capacity import task_slots
from firmament_py.state.gangs import NO_GANG

CLASSES_OF_A_PRIORITY = 4
"""Of so many classes, of which the nodes could take a task some day as far as sums say, the oldest task is looked at:
those before it may be such that can never be placed beside others."""

NOBODY: I64 = np.zeros(0, np.int64)

_NO_ROW = NO_GANG - 1
"""From here down no number is a row of the gang table, or says of a task that it is in none."""


def overdue(snapshot: Snapshot, after_us: int | None) -> I64:
    """The tasks (K,), ascending, in no gang that have waited for so long; None: there is no such time."""
    if after_us is None:
        return NOBODY
    return np.flatnonzero((snapshot.task_created_us <= snapshot.now_us - after_us) & (snapshot.task_gang == NO_GANG))


def claims(snapshot: Snapshot, tasks: I64) -> Iterator[GangDemand]:
    """The oldest of the tasks (K,), ascending, of each of some classes, the oldest of all first."""
    _, first = np.unique(snapshot.task_class[tasks], return_index=True)
    oldest = tasks[first]  # tasks of a class are ordered by age
    order = np.lexsort((oldest, snapshot.task_created_us[oldest]))
    room = snapshot.allocatable - snapshot.releases.staying(_NO_ROW)[1]
    able = (t for t in oldest[order].tolist() if _could_go(snapshot, int(snapshot.task_class[t]), room))
    for t in islice(able, CLASSES_OF_A_PRIORITY):
        task = int(snapshot.tasks[t])
        yield GangDemand(
            row=_NO_ROW - task,
            definition=GangObserved(0, 1, int(snapshot.task_created_us[t])),
            members=np.array([t], np.int64),
            role=np.zeros(1, np.int64),
            lacking=1,
            lacking_of_role=(),
            settled=NOBODY,
            priority=int(snapshot.priority[snapshot.task_class[t]]),
            task=task,
        )


def _could_go(snapshot: Snapshot, c: int, room: I64) -> bool:
    """Whether a task of class c finds a node with `room` (N, R), whoever else is there."""
    return bool(task_slots(room, snapshot.requests[[c]], snapshot.suitable[[c]], np.ones(1, np.int64)).any())
