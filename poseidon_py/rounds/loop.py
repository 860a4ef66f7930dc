"""Runs rounds: waits for changes, requests a round of the engine, and passes on its placements and reasons.

If a round would follow changes at once, it runs in the same call (`attached`), which saves a single pod the time of a
second one. Binds overlap with later rounds: the loop does not wait for placements to be carried out.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache

from poseidon_py.bind.placement import PlacedPod
from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.preempt.decisions import Decisions
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.rounds.listener import RoundListener
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.rounds.preemptions import decisions_of
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord, Reject
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)


class Loop:
    """`run` in a separate task; `lead` and `stand_by` switch rounds on and off."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        session: Session,
        place: Callable[[list[PlacedPod]], None],
        reject: Reject,
        unscheduled: Callable[[Iterable[flow_pb2.Unscheduled], float], None],
        *,
        preempt: Callable[[Decisions], None] = lambda decisions: None,
        listeners: Sequence[RoundListener] = (),
        changed: asyncio.Event,
        leadership: Leadership,
        pacer: Pacer,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """`place` takes the accepted placements of a round, `reject` a rejected one, `unscheduled` the reasons for the
        pods without a placement and the seconds that the round took, `preempt` the decisions on preemption and
        migration; `listeners` are told of these and of the statistics. `changed` is set by every change that can
        affect a round."""
        self._store = store
        self._metrics = store.metrics
        self._stage_seconds = cache(store.metrics.round_stage.labels)
        self._engine = engine
        self._session = session
        self._hand_on = place
        self._reject = reject
        self._unscheduled = unscheduled
        self._preempt = preempt
        self._listeners = listeners
        self._changed = changed
        self._leadership = leadership
        self._pacer = pacer
        self._sleep = sleep
        self._monotonic = monotonic
        self._now_us = now_us
        self._epoch = 0
        self._acknowledged = 0
        self._none_runs = asyncio.Event()
        self._none_runs.set()
        self._last_failed = False
        self._collecting_since: float | None = None
        self._idle: asyncio.Timeout | None = None
        self._fallback = ""
        self.rounds = 0
        """Number of rounds with pending tasks since the start."""
        self.last: flow_pb2.RoundStats | None = None

    @property
    def due(self) -> bool:
        """Whether a round runs, or begins as soon as it may."""
        return not self._none_runs.is_set() or self._changed.is_set() or self._collecting_since is not None

    @property
    def next_seconds(self) -> float | None:
        """Seconds until the round that the engine has asked for; None: it waits for changes."""
        return self._pacer.next_seconds(self._now_us() / 1e6)

    def lead(self) -> None:
        if self._leadership.lead():
            self._changed.set()

    def stand_by(self) -> None:
        self._leadership.stand_by()

    def stop(self) -> None:
        """Starts no further round."""
        self._leadership.stop()

    async def run(self) -> None:
        backoff = Backoff(0.1, 10.0)
        while not self._leadership.stopped:
            await self._leadership.wait()
            await self._gather_changes()
            if not self._leadership.leads:
                continue
            try:
                await self.round()
                backoff.reset()
            except EngineError as error:
                delay = backoff.next()
                self._metrics.rounds.labels("failed").inc()
                log.warning("round failed: %s; retry in %.1f s", error, delay)
                if error.code in ("UNAVAILABLE", "CLOSED"):
                    self._session.lost()
                await self._sleep(delay)
                self._changed.set()

    async def _gather_changes(self) -> None:
        """Waits until the next round should start."""
        pacer, queue = self._pacer, self._store.pod_queue
        while True:
            try:
                async with asyncio.timeout(self._idle_seconds()) as self._idle:
                    await self._changed.wait()
            except TimeoutError:
                return
            finally:
                self._idle = None
            self._collecting_since = began = self._monotonic()
            while delay := pacer.delay(began, self._monotonic(), arriving=queue.urgent + queue.working > 0):
                await self._sleep(delay)
            self._collecting_since = None
            if self._changed.is_set():  # no attached round has included the changes meanwhile
                return

    def _idle_seconds(self) -> float:
        return self._pacer.idle_seconds(self._now_us() / 1e6)

    async def round(self) -> None:
        """One round, from the request to the processing of its results. Raises EngineError."""
        async with self._session.call() as epoch:
            while not self._none_runs.is_set():
                await self._none_runs.wait()
            with self._running(epoch) as (request, finish):
                finish(await self._engine.round(request))

    @asynccontextmanager
    async def attached(self, update: flow_pb2.Update) -> AsyncIterator[Callable[[flow_pb2.UpdateReply], None]]:
        """Adds a round to an update if one would follow at once. Yields what takes the reply, as the last
        step of the block. A short round that runs is waited for: the engine would take the update no sooner, and the
        round after it would be another call."""
        if not self._none_runs.is_set() and self._pacer.rounds_are_short:
            await self._none_runs.wait()
        now = self._monotonic()
        began = now if self._collecting_since is None else self._collecting_since
        arriving = self._store.pod_queue.urgent > 0
        at_once = self._pacer.at_once(began, now, arriving=arriving)
        if not (at_once and self._none_runs.is_set() and self._leadership.leads) or self._last_failed:
            yield lambda reply: None if reply.quiet else self._changed.set()
            return
        with self._running(update.epoch) as (request, finish):
            update.round.CopyFrom(request)
            yield lambda reply: finish(reply.round)
        if self._idle is not None and not self._idle.expired():
            self._idle.reschedule(asyncio.get_running_loop().time() + self._idle_seconds())

    @contextmanager
    def _running(self, epoch: int) -> Iterator[tuple[flow_pb2.RoundRequest, Callable[[flow_pb2.RoundReply], None]]]:
        """The request of a round, and what processes the reply. No other round runs meanwhile. Without a reply the next
        round gets the same placements again, which must not be taken for those of new changes."""
        self._none_runs.clear()
        self._last_failed = True
        self._changed.clear()
        if epoch != self._epoch:
            self._epoch, self._acknowledged = epoch, 0
        started = self._monotonic()

        def finish(reply: flow_pb2.RoundReply) -> None:
            self._last_failed = False
            self._pacer.round_ended(started, self._monotonic())
            self._process(reply, epoch, started)

        request = flow_pb2.RoundRequest(epoch=epoch, acknowledged=self._acknowledged, now_us=self._now_us())
        try:
            yield request, finish
        finally:
            self._none_runs.set()
            if self._last_failed:
                self._changed.set()

    def _process(self, reply: flow_pb2.RoundReply, epoch: int, started: float) -> None:
        if reply.status == flow_pb2.STALE_EPOCH:
            self._session.stale(epoch)
            self._changed.set()
            return
        self._pacer.wake_at(reply.wake_us / 1e6)
        self._place(reply.placed, started)
        if decisions := decisions_of(self._store, reply, self._is_wanted, leads=self._leadership.leads):
            self._preempt(decisions)
            for listener in self._listeners:
                listener.decided(decisions)
        if not reply.round:
            self._metrics.rounds.labels("idle").inc()
            return
        self._acknowledged = reply.round
        asyncio.get_running_loop().call_soon(self._note, reply.stats, self._pacer.last_seconds)  # once binds are sent
        self._unscheduled(reply.unscheduled, self._pacer.last_seconds)

    def _place(self, placed: flow_pb2.Placements, started: float) -> None:
        names = [self._store.node_with_id(node) for node in placed.nodes]
        accepted: list[PlacedPod] = []
        for task, at, step in zip(placed.task_uid, placed.node, placed.by, strict=True):
            known, name, node_id = self._store.pod_of_task(task), names[at], placed.nodes[at]
            if known is None:
                self._metrics.bind_stale.labels("gone").inc()  # its removal is about to be sent
            elif name is None or not self._is_wanted(known):
                self._metrics.bind_stale.labels("node gone" if name is None else "not wanted").inc()
                self._reject(known, node_id, 0)
            else:
                known.placed_by, known.attempt_began, known.unschedulable_by = step, started, ()
                accepted.append(PlacedPod(known, name, node_id))
        if accepted:
            self._hand_on(accepted)

    def _is_wanted(self, known: PodRecord) -> bool:
        """Whether the pod can still be placed."""
        blocked = known.blocked or known.gang.blocked
        takes = self._store.queues.takes(known, started=self._store.gangs.keeps(known))
        may = known.schedulable and not blocked and takes
        return self._leadership.leads and may and known.state is PodState.WAITING

    def _note(self, stats: flow_pb2.RoundStats, seconds: float) -> None:
        """Publishes the statistics of a round whose call took so many seconds."""
        self._metrics.round_call.observe(seconds)
        self.last = stats
        self.rounds += 1
        for listener in self._listeners:
            listener.round_ended(stats, seconds)
        self._metrics.rounds.labels("placed").inc()
        self._metrics.round.observe(stats.seconds)
        for stage, seconds in stats.stage_seconds.items():
            self._stage_seconds(stage).observe(seconds)
        for step, count in stats.placed_by.items():
            self._metrics.placed_by.labels(step).inc(count)
        self._metrics.gap.set(stats.gap)
        self._metrics.moves_decided.inc(stats.migrated_for_waiting)
        self._metrics.moves_needed.inc(stats.least_moves)
        for by in ("measured", "missing", "stale"):
            self._metrics.usage_tasks.labels(by).set(getattr(stats, f"usage_{by}"))
        if stats.dropped:
            self._metrics.dropped.inc(stats.dropped)
            log.error("the engine's check rejected %d placements: a defect, please report it", stats.dropped)
        self._metrics.compressed.inc(stats.compressed)
        for status, count in stats.unsolved.items():
            self._metrics.unsolved.labels(status).inc(count)
            placed = "whose pods are placed one by one"
            log.error(
                "the solver found no flow for %d networks, %s: %s; a defect, please report it", count, placed, status
            )
        if stats.fallback:
            self._metrics.fallbacks.labels(stats.policy).inc()
            if stats.fallback != self._fallback:
                log.error("the policy failed, so pods are placed wherever they fit: %s", stats.fallback)
        elif self._fallback:
            log.info("policy %s works again", stats.policy)
        self._fallback = stats.fallback
        if stats.placed or stats.preempted or stats.migrated:
            evicted = f" preempted={stats.preempted}" if stats.preempted else ""
            evicted += f" migrated={stats.migrated}" if stats.migrated else ""
            log.info("round placed=%d waiting=%d%s ms=%.1f", stats.placed, stats.waiting, evicted, 1000 * stats.seconds)
