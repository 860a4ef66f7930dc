"""A bounded log of what happened to tasks, kept by batch so that writing it costs nothing per task."""

from collections import deque

import numpy as np

from firmament_py.arrays import I64, U64

_TASKS_KEPT = 1_000_000


class History:
    """The newest batches, together about a million entries; `of` searches them."""

    def __init__(self) -> None:
        self._batches: deque[tuple[str, U64, I64]] = deque()
        self._size = 0

    def add(self, what: str, uids: U64, nodes: I64 | None = None) -> None:
        """`what` happened to tasks `uids` (K,), on node rows `nodes` (K,) where there are any (-1: none)."""
        if not len(uids):
            return
        self._batches.append((what, uids, np.full(len(uids), -1) if nodes is None else nodes))
        self._size += len(uids) + 1
        while self._size > _TASKS_KEPT and len(self._batches) > 1:
            self._size -= len(self._batches.popleft()[1]) + 1

    def of(self, uid: int) -> list[tuple[str, int]]:
        """(what, node row or -1) of each entry about a task, oldest first."""
        return [
            (what, int(nodes[i]))
            for what, uids, nodes in self._batches
            for i in np.flatnonzero(uids == np.uint64(uid)).tolist()
        ]
