"""A bounded log of the events of tasks, stored by batch so that the cost of writing does not depend on their number.

How tasks ended is counted, too.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from firmament_py.model.arrays import U8, U64
from firmament_py.model.copying import Copyable
from firmament_py.model.events import TasksEnded, TasksRemoved
from firmament_py.model.lifecycle import ENDED

REMOVED, SUCCEEDED, FAILED = "removed", "succeeded", "failed"
_MAX_ENTRIES = 1_000_000


class History(Copyable):
    """The newest batches, with about _MAX_ENTRIES entries in total."""

    FLAT: ClassVar = frozenset({"_batches"})

    def __init__(self) -> None:
        self._batches: deque[tuple[str, U64, list[str]]] = deque()
        self._size = 0

    def add(self, what: str, uids: U64, nodes: list[str] | None = None) -> None:
        """Adds `what` of the tasks `uids` (K,). nodes: K names, empty for none; None: the event concerns no nodes."""
        if not len(uids):
            return
        self._batches.append((what, uids, nodes or []))
        self._size += len(uids) + 1
        while self._size > _MAX_ENTRIES and len(self._batches) > 1:
            self._size -= len(self._batches.popleft()[1]) + 1

    def story(self, uid: int) -> list[str]:
        """Each entry of a task with the name of its node, if it has one, oldest first; searches all batches."""
        return [
            f"{what} on {nodes[i]}" if nodes and nodes[i] else what
            for what, uids, nodes in self._batches
            for i in np.flatnonzero(uids == np.uint64(uid)).tolist()
        ]


@dataclass(slots=True)
class Outcomes:
    """Since the service began. `removed`: without an end of their own. A task counts once, with its first end."""

    counts: dict[str, int] = field(default_factory=lambda: {SUCCEEDED: 0, FAILED: 0, REMOVED: 0})

    def note(self, outcome: str, states: U8) -> None:
        """Tasks that were in these states (K,) have ended, or are gone."""
        self.counts[outcome] += int(np.count_nonzero(states != ENDED))


def outcome_of(event: TasksEnded | TasksRemoved) -> str:
    """The key of Outcomes.counts."""
    if isinstance(event, TasksRemoved):
        return REMOVED
    return FAILED if event.failed else SUCCEEDED
