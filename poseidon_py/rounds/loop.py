"""Paces rounds: waits for work, gathers a little more of it, asks for a round, hands its placements on.

Binding overlaps with the next rounds: placements are handed to the binder, nobody waits for binds. While work pours in,
gathering goes on for some windows, or for as long as two rounds take if that is longer: a round that costs little may
come soon. And between rounds there is at least as much time as the last one took.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.report import messages
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

_IDLE_SECONDS = 10.0
"""How often the engine is asked although nothing is known to have changed: finds out that it was replaced."""


_BY_GANG = (flow_pb2.Reason.GANG_INCOMPLETE, flow_pb2.Reason.GANG_FULL)
"""Why pods wait whom no node could help."""
_WINDOWS, _ROUNDS = 4, 2
"""For how many windows, and times the last round, is gathered while work pours in."""


class Placements(Protocol):
    """What the loop needs of binder.Binder."""

    def bind(self, known: PodRecord, node: str, node_id: str) -> None: ...


Placed = list[tuple[PodRecord, str, str]]
"""Pods, each with the name and the id of its node."""


class Loop:
    """`run` in a task of its own; `wake` when something has changed; `lead` and `stand_by` switch rounds."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        session: Session,
        binder: Placements,
        reject: Callable[[PodRecord, str, int], None],
        unscheduled: Callable[[PodRecord, str], None],
        *,
        window: float = 0.005,
        window_max: float = 0.25,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._store = store
        self._metrics = store.metrics
        self._engine = engine
        self._session = session
        self._binder = binder
        self._reject = reject
        self._unscheduled = unscheduled
        self._window = window
        self._window_max = window_max
        self._sleep = sleep
        self._monotonic = monotonic
        self._now_us = now_us
        self._work = asyncio.Event()
        self._leading = asyncio.Event()
        self._stopped = False
        self._epoch = 0
        self._acknowledged = 0
        self._wake_us = 0
        self._last_seconds = 0.0
        self._last_end = 0.0
        self._fallback = ""
        self.rounds = 0
        """Rounds that had something to place, ever."""
        self.last: flow_pb2.RoundStats | None = None
        self.place: Callable[[Placed], None] = self._bind_each
        """Takes what a round has placed, all at once."""
        self.waits_for_gang: Callable[[PodRecord, str], None] = unscheduled
        """Told of pods that wait for other members of their gang to come, or to go."""

    def wake(self) -> None:
        """Something has changed that a round could act upon."""
        self._work.set()

    @property
    def leads(self) -> bool:
        return self._leading.is_set()

    def lead(self) -> None:
        if self._stopped:
            return  # the lease came too late
        self._leading.set()
        self._work.set()

    def stand_by(self) -> None:
        self._leading.clear()

    def stop(self) -> None:
        """No further round begins."""
        self._stopped = True
        self.stand_by()

    async def run(self) -> None:
        backoff = Backoff(0.1, 10.0)
        while not self._stopped:
            await self._leading.wait()
            await self._wait_for_work()
            if not self._leading.is_set():
                continue
            try:
                await self.round()
                backoff.reset()
            except EngineError as error:
                delay = backoff.next()
                self._metrics.rounds.labels("failed").inc()
                log.warning("a round failed: %s; again in %.1f s", error, delay)
                if error.code in ("UNAVAILABLE", "CLOSED"):
                    self._session.lost()
                await self._sleep(delay)
                self._work.set()

    async def _wait_for_work(self) -> None:
        rest = _IDLE_SECONDS
        if self._wake_us:
            rest = min(rest, max(0.01, (self._wake_us - self._now_us()) / 1e6))
        try:
            async with asyncio.timeout(rest):
                await self._work.wait()
        except TimeoutError:
            return
        began, queue = self._monotonic(), self._store.pod_queue
        gathering = max(_WINDOWS * self._window, _ROUNDS * self._last_seconds)
        await self._sleep(self._window)
        while (elapsed := self._monotonic() - began) < self._window_max:
            pouring = elapsed < gathering and queue.urgent + queue.working > 0
            resting = self._monotonic() - self._last_end < self._last_seconds
            if not (pouring or resting):
                break
            await self._sleep(self._window or 0.001)

    async def round(self) -> None:
        """One round, from the request to handing everything on. Raises EngineError."""
        async with self._session.call() as epoch:
            self._work.clear()
            if epoch != self._epoch:
                self._epoch, self._acknowledged = epoch, 0
            started = self._monotonic()
            reply = await self._engine.round(
                flow_pb2.RoundRequest(epoch=epoch, acknowledged=self._acknowledged, now_us=self._now_us())
            )
            self._last_end = self._monotonic()
            self._last_seconds = self._last_end - started
            if reply.status == flow_pb2.STALE_EPOCH:
                self._session.stale(epoch)
                self._work.set()
                return
            self._wake_us = reply.wake_us
            if not reply.round:
                self._metrics.rounds.labels("idle").inc()
                return
            self._place(reply.placed)
            self._acknowledged = reply.round
        self._metrics.round_call.observe(self._last_seconds)
        self._note(reply.stats)
        self._report(reply)

    def _place(self, placed: flow_pb2.Placements) -> None:
        names = [self._store.node_with_id(node) for node in placed.nodes]
        leading = self._leading.is_set()
        accepted: Placed = []
        for task, at in zip(placed.task_uid, placed.node, strict=True):
            known, name = self._store.pod_of_task(task), names[at]
            if known is None:
                self._metrics.bind_stale.labels("gone").inc()  # the engine is about to be told
            elif (
                name is None
                or not leading
                or not known.schedulable
                or known.assumed
                or known.volumes.blocked
                or known.gang.blocked
            ):
                self._metrics.bind_stale.labels("node gone" if name is None else "not wanted").inc()
                self._reject(known, placed.nodes[at], 0)
            else:
                accepted.append((known, name, placed.nodes[at]))
        if accepted:
            self.place(accepted)

    def _bind_each(self, placed: Placed) -> None:
        for known, node, node_id in placed:
            self._binder.bind(known, node, node_id)

    def _report(self, reply: flow_pb2.RoundReply) -> None:
        for group in reply.unscheduled:
            if not group.task_uid:
                continue
            by_gang = any(why.kind in _BY_GANG for why in group.reasons)
            tell = self.waits_for_gang if by_gang else self._unscheduled
            message = ""
            for task in group.task_uid:
                known = self._store.pod_of_task(task)
                # one that was blocked meanwhile was told why
                if known is not None and known.schedulable and not known.volumes.blocked:
                    if not message:  # all of them are of one gang, or of none
                        gang = self._store.gangs.group_of(known)
                        message = messages.unscheduled(group.nodes, group.reasons, gang.minimum if gang else 0)
                    self._metrics.attempts.labels("unschedulable").inc()
                    tell(known, message)

    def _note(self, stats: flow_pb2.RoundStats) -> None:
        self.last = stats
        self.rounds += 1
        self._metrics.rounds.labels("placed").inc()
        self._metrics.round.observe(stats.seconds)
        for stage, seconds in stats.stage_seconds.items():
            self._metrics.round_stage.labels(stage).observe(seconds)
        for by in ("measured", "missing", "stale"):
            self._metrics.usage_tasks.labels(by).set(getattr(stats, f"usage_{by}"))
        if stats.dropped:
            self._metrics.dropped.inc(stats.dropped)
            log.error("the engine's check refused %d placements: a defect, please report it", stats.dropped)
        if stats.fallback:
            self._metrics.fallbacks.labels(stats.policy).inc()
            if stats.fallback != self._fallback:
                log.error("rounds place pods anywhere they fit, until this is mended: %s", stats.fallback)
        elif self._fallback:
            log.info("policy %s prices rounds again", stats.policy)
        self._fallback = stats.fallback
        if stats.placed:
            log.info("round placed=%d waiting=%d ms=%.1f", stats.placed, stats.waiting, 1000 * stats.seconds)
