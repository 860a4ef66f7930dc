"""Forecasts beside the rounds: one after the other, each on a copy of the state and in a thread of low priority.

A forecast is made while tasks wait for long, at most once in EVERY_US, and so rarely that forecasts take a fiftieth of
one processor; sooner if somebody asks and the last one is older than FRESH_US, a fifth of one at most. So there is
always one, with which new ones are compared when its tasks start (start_errors.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import perf_counter

import numpy as np

from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import Execution
from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.scheduler import Scheduler
from firmament_py.forecast.future import Future, future_of, gang_ids, trial_of
from firmament_py.forecast.run_times import RunTimes
from firmament_py.forecast.start_errors import StartErrors
from firmament_py.model.arrays import I64
from firmament_py.model.events import Event, TasksEnded
from firmament_py.rebalance.what_if import PlanError, WhatIf
from firmament_py.state.cluster import ClusterState

log = logging.getLogger(__name__)

EVERY_US, FRESH_US = 60_000_000, 10_000_000

PATIENCE_US = 15_000_000
"""No forecast is made, unless somebody asks, while nothing has waited for as long: most of a burst starts sooner, and a
forecast competes with its rounds for the interpreter."""

IDLE, ASKED_IDLE = 50, 5
"""The next forecast begins so many times as long after a forecast began as that took; and if somebody asks."""


class _Forecast:
    """One that is being made."""

    def __init__(self, trial: Scheduler, made_us: int, run_times: RunTimes, clock: Callable[[], float]) -> None:
        self._of, self._clock = (trial, made_us, run_times), clock
        self.future: Future | None = None
        self.failed, self.seconds = False, 0.0

    def work(self) -> None:
        started = self._clock()
        try:
            future = future_of(*self._of)
        except Exception:  # whatever it is, rounds go on
            log.exception("a forecast of starts has failed")
            self.failed = True
            return
        self.seconds = self._clock() - started
        self.future = future


class Forecasts:
    """Of one engine, whose lock is held during every use."""

    def __init__(self, engine: Engine, execution: Execution | None, clock: Callable[[], float] = perf_counter) -> None:
        """execution: None: no forecasts are made. clock: measures how long they take, in seconds."""
        self._engine, self._execution, self._clock = engine, execution, clock
        self.run_times, self.errors = RunTimes(), StartErrors()
        self.last: Future | None = None
        """The last forecast that has ended."""
        self.problem = "" if execution is not None else "this service makes no forecasts"
        """Why none is made; empty: nothing prevents it."""
        self._making: _Forecast | None = None
        self._not_before_us = self._asked_not_before_us = 0

    def note_events(self, events: Iterable[Event]) -> None:
        """These are about to be applied."""
        state, now_us = self._engine.state, self._engine.now_us()
        for event in events:
            if isinstance(event, TasksEnded):
                rows = state.task_rows(event.uid)
                self.run_times.note_ends(state, rows[rows >= 0], now_us)

    def round_ended(self, result: RoundResult, now_us: int) -> None:
        """After each round at `now_us`, microseconds since the epoch."""
        if len(result.tasks) and self.errors.awaits_starts:
            self.errors.note_starts(_units(self._engine.state, result.tasks), now_us)
        self._take()
        if now_us >= self._not_before_us and self._some_wait_for_long(now_us):
            self._begin(now_us)

    def asked(self, now_us: int) -> Future | None:
        """The last forecast; None: there is none yet. A new one is begun if it is old."""
        self._take()
        if len(self._engine.state.tasks.waiting) and now_us >= self._asked_not_before_us:
            self._begin(now_us)
            self._take()  # an execution at once
        return self.last

    def _begin(self, now_us: int) -> None:
        if self._execution is None or self._making is not None or self._execution.running:
            return
        scheduler = self._engine.scheduler
        self._not_before_us, self._asked_not_before_us = now_us + EVERY_US, now_us + FRESH_US
        try:
            what_if = WhatIf.of(scheduler, now_us)
        except PlanError as error:
            self.problem = str(error)
            return
        trial = trial_of(what_if, scheduler)
        self._making, self.problem = _Forecast(trial, now_us, self.run_times.copy(), self._clock), ""
        self._execution.start(self._making.work)

    def _take(self) -> None:
        making = self._making
        if making is None or (making.future is None and not making.failed):
            return
        self._making, future = None, making.future
        if future is None:
            return
        made_us = future.made_us
        took_us = round(1e6 * making.seconds)
        self._not_before_us = made_us + max(EVERY_US, IDLE * took_us)
        self._asked_not_before_us = made_us + max(FRESH_US, ASKED_IDLE * took_us)
        self.last = future
        units = np.where(future.gang_of != 0, future.gang_of, future.uids)
        state = self._engine.state
        self.errors.forget(frozenset(_units(state, state.tasks.waiting)))
        self.errors.note_forecast(made_us, units, future.starts_us)

    def _some_wait_for_long(self, now_us: int) -> bool:
        tasks = self._engine.state.tasks
        return bool((tasks.created_us[tasks.waiting] <= now_us - PATIENCE_US).any())


def _units(state: ClusterState, rows: I64) -> list[int]:
    """The units of task rows (K,), each once: see StartErrors."""
    gangs = gang_ids(state, rows)
    return list(dict.fromkeys(np.where(gangs != 0, gangs, state.tasks.uid[rows]).tolist()))
