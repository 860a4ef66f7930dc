"""Schedulers that serve one queue in strict order: a job that does not fit blocks all behind it.

fifo   the oldest first
sjf    the one of the shortest expected duration first, then the oldest; jobs need expected durations

A task goes to the node where it leaves the least of the scarcest resource, and gangs start whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from benchmarks.simulate.baselines import OneByOne, Waiting
from benchmarks.simulate.service import Round
from firmament_py.model.arrays import F64, I64


class StrictQueue(OneByOne):
    """by_duration: order by expected duration before age."""

    def __init__(self, name: str, *, by_duration: bool) -> None:
        super().__init__(name, _fullest, by_priority=False)
        self._by_duration = by_duration

    def round(self, now_us: int) -> Round | None:
        """Places jobs from the head of the queue, up to the first that does not fit."""
        began = perf_counter()
        placed: list[tuple[int, int]] = []
        gangs: set[int] = set()
        for task in sorted(self._waiting.values(), key=self._order):
            if task.gang in gangs:
                continue
            if task.gang:
                gangs.add(task.gang)
                found = self._place_gang(task.gang)
            else:
                found = [(task.uid, node)] if (node := self._place(task)) >= 0 else []
            if not found:
                break
            placed += found
        return self._round(placed, began)

    def _order(self, task: Waiting) -> tuple[int, int, int]:
        expected_us = self._classes[task.cls].expected_us if self._by_duration else 0
        return expected_us, task.created_us, task.uid


def _fullest(left: I64, offer: I64, resources: Sequence[str]) -> F64:
    return np.asarray(-(left / np.maximum(offer, 1)).min(axis=1), np.float64)


STRICT: dict[str, Callable[[], OneByOne]] = {
    "fifo": lambda: StrictQueue("fifo", by_duration=False),
    "sjf": lambda: StrictQueue("sjf", by_duration=True),
}
