"""A bounded log of what happened to tasks, kept by batch so that writing it costs nothing per task."""

from collections import deque

import numpy as np

from firmament_py.model.arrays import U64

_TASKS_KEPT = 1_000_000


class History:
    """The newest batches, together about a million entries; `of` searches them."""

    def __init__(self) -> None:
        self._batches: deque[tuple[str, U64, list[str]]] = deque()
        self._size = 0

    def add(self, what: str, uids: U64, nodes: list[str] | None = None) -> None:
        """`what` happened to tasks `uids` (K,), on `nodes`: K names, empty for none, or None: nowhere."""
        if not len(uids):
            return
        self._batches.append((what, uids, nodes or []))
        self._size += len(uids) + 1
        while self._size > _TASKS_KEPT and len(self._batches) > 1:
            self._size -= len(self._batches.popleft()[1]) + 1

    def of(self, uid: int) -> list[tuple[str, str]]:
        """(what, name of the node or nothing) of each entry about a task, oldest first."""
        return [
            (what, nodes[i] if nodes else "")
            for what, uids, nodes in self._batches
            for i in np.flatnonzero(uids == np.uint64(uid)).tolist()
        ]
