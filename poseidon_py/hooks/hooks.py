"""Hooks of one controller: takes transitions, stores their deliveries, and delivers them.

    transitioned -> a record for each hook that selects it -> journal -> store (durable) -> lane of the hook -> endpoint

One `Hooks` object serves one term of a leader: `start` takes over the store from the former one.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from typing import Any

import msgspec

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.dead_letters import DeadLetters
from poseidon_py.hooks.journal import Journal
from poseidon_py.hooks.lane import Lane, Send
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.records import TOTALS_KEY, Record, Totals
from poseidon_py.hooks.sending.endpoint import Endpoint
from poseidon_py.hooks.storage.store import Request, Store, StoreError, StoreTakenError
from poseidon_py.hooks.transition import Transition, bounded, delivery_id
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
"""Seconds between two reads of the requests of users."""
STRAYS_SECONDS = 30.0
"""Seconds after the start at which what the former process has written last is taken over."""
MAX_EARLY = 100_000
"""Transitions that wait while the store cannot be read."""
_SEQUENCES = 1_000_000
"""Sequences that are reserved at once."""
_LOAD_FIRST, _LOAD_LONGEST = 0.5, 30.0


class HooksStoppedError(Exception):
    """The hooks were stopped, or another process has taken over: transitions are no longer taken."""


class Hooks:
    """Use from one event loop. `senders`: what sends the deliveries of a hook, instead of HTTP; for tests."""

    def __init__(
        self,
        config: HookConfig,
        store: Store,
        *,
        metrics: HookMetrics | None = None,
        clock: Clock | None = None,
        senders: Callable[[Hook], Send] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._store = store
        self._clock = clock or Clock()
        self._metrics = metrics or HookMetrics()
        self._journal = Journal(
            store, self._clock, self._written, lambda result: self._metrics.writes.labels(result).inc()
        )
        self._endpoints = [] if senders else [Endpoint(hook, self._clock) for hook in config.hooks]
        sends = map(senders, config.hooks) if senders else (endpoint.send for endpoint in self._endpoints)
        self._lanes = {
            hook.name: Lane(hook, send, self._journal, self._letters(hook.max_dead), self._clock, self._metrics, rng)
            for hook, send in zip(config.hooks, sends, strict=True)
        }
        self._orphans: dict[str, DeadLetters] = {}  # of hooks that are no longer configured
        self._totals = Totals()
        self._sequence = count(1)
        self._early: list[Transition] = []
        self._loaded = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._journal_task: asyncio.Task[None] | None = None
        self._over: asyncio.Future[str] | None = None

    # -- for controllers ----------------------------------------------------------------------------------------

    def transitioned(self, transition: Transition) -> None:
        """Take a transition. Never raises and never waits; `reported` tells when it is durable.

        Before `start` has read the store, transitions wait in memory; after `stop` they are lost.
        """
        try:
            if not any(hook.selects(transition) for hook in self._config.hooks):
                return
            taken = bounded(transition, self._clock.now())
            if self._over is not None and self._over.done():
                self._lose("the hooks were stopped")
            elif self._loaded.is_set():
                self._take(taken)
            elif len(self._early) < MAX_EARLY:
                self._early.append(taken)
            else:
                self._lose("the store cannot be read for too long")
        except Exception:  # a controller must not fail because of a hook
            log.exception("a transition was not taken: %r", transition)
            self._metrics.lost.inc()

    async def reported(self) -> None:
        """Until all transitions that were passed so far are durable. Raises HooksStoppedError.

        A controller that waits for this before it changes the state in the API server reports each transition at least
        once, wherever it is interrupted.
        """
        over = self._running()
        if over.done():
            raise HooksStoppedError(over.result())
        await self._until(self._written_all(), over)

    async def mark(self) -> float:
        """The mark that was set last, also by a former process; 0: none. Raises HooksStoppedError."""
        over = self._running()
        await self._until(self._loaded_all(), over)
        return self._totals.mark

    def set_mark(self, at: float) -> None:
        """Stores a mark some time, never before what was passed until now."""
        self._totals.mark = at
        self._journal.put_late(TOTALS_KEY, self._totals)

    async def start(self) -> None:
        """Take over the store and deliver, in the background: an API server that cannot be reached is tried again."""
        self._over = asyncio.get_running_loop().create_future()
        self._spawn(self._run(), "hooks")

    async def stop(self, grace: float = 5.0) -> None:
        """Stop delivering. Attempts in flight have `grace` seconds to end, and then the last write of the store."""
        self._end("the hooks were stopped")
        await end_tasks(*self._tasks)
        await asyncio.gather(*(lane.finish(grace) for lane in self._lanes.values()))
        self._journal.stop()
        if self._journal_task is not None:
            await asyncio.wait({self._journal_task}, timeout=grace)
            await end_tasks(self._journal_task)
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints))

    async def wait(self) -> str:
        """Until the hooks cannot go on, because another process has taken over or of a defect; or were stopped. Why."""
        return await asyncio.shield(self._running())

    # -- the life of the tasks ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        self._restore(await self._load())
        self._journal_task = asyncio.create_task(self._guarded(self._journal.run()), name="hooks: journal")
        for lane in self._lanes.values():
            self._spawn(lane.run(), f"hooks: {lane.hook.name}")
        self._spawn(self._poll_requests(), "hooks: requests")
        self._spawn(self._adopt_strays(), "hooks: strays")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(self._guarded(work), name=name))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Nothing is delivered any more after a task has failed."""
        try:
            await work
        except StoreTakenError as error:
            log.warning("hooks stop: %s", error)
            self._end(str(error))
        except Exception as error:
            log.exception("hooks stop because of a defect")
            self._end(f"defect: {error}")

    def _end(self, why: str) -> None:
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
        if not self._over.done():
            self._over.set_result(why)
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()

    def _running(self) -> asyncio.Future[str]:
        if self._over is None:
            raise HooksStoppedError("the hooks were not started")
        return self._over

    @staticmethod
    async def _until(work: Coroutine[Any, Any, None], over: asyncio.Future[str]) -> None:
        task = asyncio.create_task(work)
        try:
            waiting: list[asyncio.Future[Any]] = [task, over]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise HooksStoppedError(over.result())
        finally:
            task.cancel()

    async def _loaded_all(self) -> None:
        await self._loaded.wait()

    async def _written_all(self) -> None:
        await self._loaded.wait()
        await self._journal.written()

    # -- the store ----------------------------------------------------------------------------------------------

    async def _load(self) -> dict[str, str]:
        backoff = Backoff(_LOAD_FIRST, _LOAD_LONGEST)
        while True:
            try:
                return await self._store.load()
            except StoreError as error:
                if backoff.attempts == 0:
                    log.warning("cannot read deliveries of hooks: %s; trying again", error)
                await self._clock.sleep(backoff.next())

    def _restore(self, texts: Mapping[str, str]) -> None:
        try:
            self._totals = msgspec.json.decode(texts.get(TOTALS_KEY, "{}"), type=Totals)
        except (ValueError, RecursionError) as error:
            log.error("hooks: the stored totals cannot be read, so sequences may begin again: %s", error)
        records = self._decoded(texts)
        first = max([self._totals.sequence, *(record.sequence for record in records)]) + 1
        self._sequence = count(first)
        self._reserve(first)
        self._place(records)
        if records:
            log.info("hooks: %d deliveries and dead letters of former processes", len(records))
        self._loaded.set()
        early, self._early = self._early, []
        for transition in early:
            self._take(transition)

    def _decoded(self, texts: Mapping[str, str]) -> list[Record]:
        """The records in the order of their sequences, without those that cannot be read."""
        records = []
        for key, text in texts.items():
            if key == TOTALS_KEY:
                continue
            try:
                record = msgspec.json.decode(text, type=Record)
                if record.key != key:
                    raise ValueError(f"is of {record.key}")
            except (ValueError, RecursionError) as error:
                log.error("hooks: the stored delivery %s is removed, because it cannot be read: %s", key, error)
                self._journal.remove(key)
                continue
            records.append(record)
        return sorted(records, key=lambda record: (record.dead, record.sequence))

    def _place(self, records: list[Record]) -> None:
        for record in records:
            lane = self._lanes.get(record.hook)
            if lane is not None:
                if record.key not in lane:
                    lane.restore(record)
                continue
            if not record.dead:
                record.dead = self._clock.now()
                record.error = f"no hook named {record.hook} is configured"
                self._journal.put_late(record.key, record)
            self._orphans.setdefault(record.hook, self._letters(Hook("", "").max_dead)).add(record)

    def _letters(self, limit: int) -> DeadLetters:
        return DeadLetters(limit, self._dropped)

    def _dropped(self, record: Record) -> None:
        self._metrics.dropped.labels(record.hook).inc()
        self._totals.dropped[record.hook] = self._totals.dropped.get(record.hook, 0) + 1
        self._journal.put_late(TOTALS_KEY, self._totals)
        self._journal.remove(record.key)

    def _reserve(self, used: int) -> None:
        """Before a sequence is sent, it is durable that it may have been used."""
        self._totals.sequence = used + _SEQUENCES
        self._journal.put(TOTALS_KEY, self._totals)

    def _written(self, records: list[Record]) -> None:
        for record in records:
            lane = self._lanes.get(record.hook)
            if lane is not None:
                lane.written(record)

    # -- transitions and requests -------------------------------------------------------------------------------

    def _take(self, transition: Transition) -> None:
        identity = delivery_id(transition)
        now = self._clock.now()
        for hook in self._config.selecting(transition):
            lane = self._lanes[hook.name]
            record = Record(hook.name, identity, 0, now, transition)
            if record.key in lane:
                continue  # reported again, before it was delivered
            record.sequence = next(self._sequence)
            if record.sequence >= self._totals.sequence:
                self._reserve(record.sequence)
            lane.report(record)

    def _lose(self, why: str) -> None:
        self._metrics.lost.inc()
        log.debug("a transition was not taken: %s", why)

    async def _poll_requests(self) -> None:
        while True:
            try:
                requests = await self._store.requests()
                if requests:
                    for request in requests:
                        self._carry_out(request)
                    await self._journal.written()
                    await self._store.answered(requests)
            except StoreError as error:
                log.debug("cannot read the requests about dead letters: %s", error)
            await self._clock.sleep(POLL_SECONDS)

    def _carry_out(self, request: Request) -> None:
        name = request.key.partition(".")[0]
        lane = self._lanes.get(name)
        letters = lane.dead if lane is not None else self._orphans.get(name)
        if letters is None or request.key not in letters:
            log.info("hooks: there is no dead letter %s to %s", request.key, request.verb)
        elif request.verb == "drop":
            letters.take(request.key)
            self._journal.put(request.key, None)
            log.info("hooks: dead letter %s is dropped", request.key)
        elif lane is None:
            log.warning(
                "hooks: dead letter %s is not delivered, because no hook named %s is configured", request.key, name
            )
        else:
            lane.retry_dead(request.key)
            log.info("hooks: dead letter %s is delivered again", request.key)

    async def _adopt_strays(self) -> None:
        await self._clock.sleep(STRAYS_SECONDS)
        while True:
            try:
                texts = await self._store.strays()
            except StoreError as error:
                log.debug("cannot read what the former process has stored last: %s", error)
                await self._clock.sleep(STRAYS_SECONDS)
                continue
            self._place(self._decoded(texts))
            return
