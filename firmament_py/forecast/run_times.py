"""How long tasks run, learned from those that have ended.

Declared durations (ClassDefined.expected_us) are limits that users choose with a margin. What counts is which share of
them tasks take: the remaining time of a running task is the median over the shares of ended tasks that exceed what it
has run for already. Of tasks without a declared duration, run times of tasks with the same requests and priority count.
"""

from __future__ import annotations

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.model.lifecycle import BOUND
from firmament_py.snapshot.expected_releases import FOREVER
from firmament_py.state.cluster import ClusterState

SHARES = 512
"""Number of the last ended tasks with declared durations that count."""

LENGTHS, KINDS = 64, 1024
"""Number of the last ended tasks of a kind without declared durations that count, and of kinds."""

FEW = 8
"""From how many ended tasks of a kind on its tasks without declared durations have an expected end."""

OVERDUE = 0.25
"""The remaining time of a task that has run for longer than all known ones: this share of what it has run for."""


class RunTimes:
    """Of one cluster. Times are in microseconds."""

    def __init__(self) -> None:
        self._shares: list[float] = []
        self._lengths: dict[tuple[bytes, int], list[int]] = {}

    def copy(self) -> RunTimes:
        """One for another thread."""
        found = RunTimes()
        found._shares, found._lengths = self._shares.copy(), self._lengths.copy()
        return found

    @property
    def learned(self) -> int:
        """Of how many ended tasks it is known how long they ran."""
        return len(self._shares) + sum(map(len, self._lengths.values()))

    def note_ends(self, state: ClusterState, rows: I64, now_us: int) -> None:
        """Running task rows (K,) end by themselves at `now_us`."""
        tasks, classes = state.tasks, state.classes
        rows = rows[(tasks.state[rows] == BOUND) & (tasks.started_us[rows] > 0) & ~tasks.leaving[rows]]
        ran = np.maximum(now_us - tasks.started_us[rows], 1)
        cls = tasks.cls[rows]
        for row, length, declared in zip(cls.tolist(), ran.tolist(), classes.expected_us[cls].tolist(), strict=True):
            if declared:
                self._shares.append(length / declared)
            else:
                kind = _kind(state, row)
                known = self._lengths.pop(kind, [])  # the kinds used last are at the end
                self._lengths[kind] = [*known[1 - LENGTHS :], length]
        del self._shares[:-SHARES]
        while len(self._lengths) > KINDS:
            del self._lengths[next(iter(self._lengths))]

    def remaining(self, state: ClusterState, rows: I64, now_us: int) -> I64:
        """(K,) for how long task rows (K,) are expected to run on from `now_us`; those that have not started begin
        then. FOREVER: nothing is known, or they run as long as their nodes."""
        tasks, classes = state.tasks, state.classes
        started = tasks.started_us[rows]
        ran = np.where(started > 0, np.maximum(now_us - started, 0), 0)
        cls = tasks.cls[rows]
        declared = classes.expected_us[cls]
        left = np.full(len(rows), FOREVER)
        (some,) = (declared > 0).nonzero()
        shares = np.sort(np.array(self._shares or [1.0]))
        left[some] = _median_beyond(shares, ran[some] / declared[some], declared[some].astype(np.float64))
        (others,) = ((declared == 0) & ~tasks.lasting[rows]).nonzero()
        for row in np.unique(cls[others]).tolist():
            lengths = self._lengths.get(_kind(state, row), [])
            if len(lengths) >= FEW:
                of_class = others[cls[others] == row]
                left[of_class] = _median_beyond(np.sort(np.array(lengths, np.float64)), ran[of_class], np.ones(1))
        left[tasks.leaving[rows]] = 0
        return left


def _kind(state: ClusterState, row: int) -> tuple[bytes, int]:
    """What tasks of a class row have in common with others that run for about as long."""
    return state.classes.requests[row].tobytes(), int(state.classes.priority[row])


def _median_beyond(known: F64, ran: F64 | I64, unit: F64) -> I64:
    """(K,) what remains, in `unit` (K,) or (1,), after `ran` (K,): the median of the `known` (S,), ascending, that are
    above it, less it."""
    above = np.searchsorted(known, ran, side="right")
    median = known[np.minimum((above + len(known)) // 2, len(known) - 1)]
    left = np.where(above < len(known), median - ran, OVERDUE * ran)
    return np.rint(np.minimum(left * unit, FOREVER)).astype(np.int64)
