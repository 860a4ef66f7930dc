"""The deliveries of one hook: what waits, what is in flight, what is dead. No hook waits for another."""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.config.hook_config import Hook
from poseidon_py.hooks.dead_letters import DeadLetters
from poseidon_py.hooks.delivery_queue import DeliveryQueue
from poseidon_py.hooks.journal import Journal
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.records import MAX_ERROR, Record
from poseidon_py.hooks.sending.outcome import Outcome
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_LOG_SECONDS = 10.0
"""At least so long between two lines about dead letters of a hook."""

Send = Callable[[Record], Awaitable[Outcome]]


class Lane:
    """`run` in a task of its own. A record is sent only after `written` was called for it."""

    def __init__(
        self,
        hook: Hook,
        send: Send,
        journal: Journal,
        dead: DeadLetters,
        clock: Clock,
        metrics: HookMetrics,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.hook = hook
        self.dead = dead
        self._send = send
        self._journal = journal
        self._clock = clock
        self._metrics = metrics
        self._rng = rng
        self._queue = DeliveryQueue()
        self._pending: OrderedDict[str, Record] = OrderedDict()
        self._unwritten: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._failing = False
        self._logged_at = float("-inf")
        self._unlogged = 0
        metrics.watch(hook.name, lambda: len(self._pending), self._oldest, lambda: len(dead))

    def __contains__(self, key: str) -> bool:
        """Whether the record waits or is a dead letter."""
        return key in self._pending or key in self.dead

    def report(self, record: Record) -> None:
        """Take a new delivery. Above the limit the oldest one that is not in flight becomes a dead letter."""
        self._pending[record.key] = record
        self._unwritten.add(record.key)
        self._journal.put(record.key, record)
        if len(self._pending) > self.hook.max_pending:
            oldest = next((each for each in self._pending.values() if not self._in_flight(each)), record)
            if oldest.key not in self._unwritten:
                self._queue.discard(oldest)
            self._metrics.overflow.labels(self.hook.name).inc()
            self._bury(oldest, f"more than {self.hook.max_pending} deliveries were waiting")

    def restore(self, record: Record) -> None:
        """Take what the store has, in the order of the sequences."""
        if record.dead:
            self.dead.add(record)
            return
        self._pending[record.key] = record
        self._enqueue(record)

    def written(self, record: Record) -> None:
        """The record is durable."""
        if record.key in self._unwritten:
            self._unwritten.discard(record.key)
            if not record.dead:
                self._enqueue(record)

    def retry_dead(self, key: str) -> bool:
        """Deliver a dead letter after all, behind what waits of its job. Returns whether there is one."""
        record = self.dead.take(key)
        if record is None:
            return False
        record.dead, record.attempts, record.due = 0.0, 0, 0.0
        self.report(record)
        return True

    async def run(self) -> None:
        """Deliver until cancelled. Attempts in flight go on then: see `finish`."""
        while True:
            self._wake.clear()
            now = self._clock.monotonic()
            while len(self._tasks) < self.hook.concurrency and (record := self._queue.take(now)) is not None:
                task = asyncio.create_task(self._attempt(record), name=f"hook {self.hook.name}")
                self._tasks.add(task)
                task.add_done_callback(self._ended)
            due = self._queue.next_due() if len(self._tasks) < self.hook.concurrency else None
            await self._clock.wait(self._wake, None if due is None else due - now)

    async def finish(self, grace: float) -> None:
        """Wait for the attempts in flight, for at most `grace` seconds, and cancel the others."""
        if self._tasks and grace > 0:
            await asyncio.wait(self._tasks, timeout=grace)
        tasks = list(self._tasks)
        await end_tasks(*tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()

    def _enqueue(self, record: Record) -> None:
        # a clock that was wrong when `due` was stored must not delay it for ever
        delay = min(max(0.0, record.due - self._clock.now()), self.hook.retry.longest)
        self._queue.add(record, self._clock.monotonic() + delay if delay else 0.0)
        self._wake.set()

    def _in_flight(self, record: Record) -> bool:
        return record.key not in self._unwritten and self._queue.in_flight(record)

    async def _attempt(self, record: Record) -> None:
        started = self._clock.monotonic()
        try:
            outcome = await self._send(record)
        except Exception:
            log.exception("hook %s: the attempt to deliver %s failed", self.hook.name, record.id)
            outcome = Outcome("internal error; the log has the details")
        self._metrics.duration.labels(self.hook.name).observe(self._clock.monotonic() - started)
        if outcome.error:
            self._failed(record, outcome)
        else:
            self._delivered(record)

    def _delivered(self, record: Record) -> None:
        self._metrics.attempts.labels(self.hook.name, "delivered").inc()
        self._metrics.latency.labels(self.hook.name).observe(max(0.0, self._clock.now() - record.reported))
        del self._pending[record.key]
        self._journal.remove(record.key)
        self._queue.sent(record)
        if self._failing:
            self._failing = False
            log.info("hook %s: deliveries succeed again", self.hook.name)

    def _failed(self, record: Record, outcome: Outcome) -> None:
        retry = self.hook.retry
        record.attempts += 1
        record.error = outcome.error[:MAX_ERROR]
        if outcome.permanent or record.attempts >= retry.attempts:
            self._metrics.attempts.labels(self.hook.name, "dead").inc()
            self._queue.sent(record)
            self._bury(record, record.error)
            return
        self._metrics.attempts.labels(self.hook.name, "failed").inc()
        if not self._failing:
            self._failing = True
            log.warning("hook %s: delivery %s failed: %s; trying again", self.hook.name, record.id, record.error)
        backoff = Backoff(retry.first, retry.longest, self._rng)
        backoff.attempts = record.attempts - 1
        now, delay = self._clock.monotonic(), backoff.next()
        if outcome.pause is not None:
            pause = min(outcome.pause, retry.longest)
            delay = max(delay, pause)
            self._queue.pause(now + pause)
        record.due = self._clock.now() + delay
        self._queue.retry(record, now + delay)
        self._journal.progress(record)

    def _bury(self, record: Record, error: str) -> None:
        del self._pending[record.key]
        self._unwritten.discard(record.key)
        record.dead, record.error = self._clock.now(), error
        self._journal.put_late(record.key, record)
        self.dead.add(record)
        now = self._clock.monotonic()
        if now < self._logged_at + _LOG_SECONDS:
            self._unlogged += 1
            return
        others = f" ({self._unlogged} others since the last such line)" if self._unlogged else ""
        self._logged_at, self._unlogged = now, 0
        log.error(
            "hook %s: delivery %s, %s, is a dead letter after %d attempts: %s; `poseidon hooks --dead` shows it%s",
            self.hook.name,
            record.id,
            record.subject,
            record.attempts,
            error,
            others,
        )

    def _oldest(self) -> float:
        oldest = next(iter(self._pending.values()), None)
        return 0.0 if oldest is None else max(0.0, self._clock.now() - oldest.reported)
