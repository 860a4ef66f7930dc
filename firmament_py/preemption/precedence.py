"""Who gives way to whom: running tasks leave only for waiting ones of greater precedence.

A task that is exempt from preemption by tasks below a priority counts as just below that one: in whom it gives way to,
and among those that leave. So it is spared where others do.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.lifecycle import BOUND
from firmament_py.snapshot.snapshot import Snapshot

PROTECTED = 2**62
"""Greater than the precedence of all waiting tasks."""


@dataclass(frozen=True, slots=True)
class Precedence:
    """waiting (C,): of the waiting tasks of each class of a snapshot; placed (C,): of those tasks of the class that the
    round has placed or that are nominated; running (T,): of tasks by row of the task table; leaving (T,): of the same
    once it is decided that they leave."""

    waiting: I64
    placed: I64
    running: I64
    leaving: I64

    def lowest(self, snapshot: Snapshot, tasks: I64) -> int:
        """The lowest of tasks (K,) that wait; PROTECTED if there are none."""
        return int(self.waiting[snapshot.task_class[tasks]].min(initial=PROTECTED))

    def least(self, snapshot: Snapshot) -> int:
        """Of the running tasks."""
        bound = snapshot.releases.state.tasks.state == BOUND
        return int(self.running[bound].min(initial=PROTECTED))


def by_priority(snapshot: Snapshot) -> Precedence:
    """Tasks give way to those whose class has a higher priority, unless they are exempt."""
    state = snapshot.releases.state
    priority = snapshot.class_priority
    own = state.classes.priority[np.maximum(state.tasks.cls, 0)]
    exempt = np.maximum(own, state.tasks.least_preemptors(snapshot.now_us) - 1)
    return Precedence(priority, priority, np.where(state.tasks.leaving, own, exempt), own)
