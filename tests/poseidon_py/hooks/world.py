"""Hooks in virtual time: a store that survives processes, an endpoint with faults, and a controller that reports."""

import asyncio
import heapq
from itertools import count

import msgspec

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.records import TOTALS_KEY, Record
from poseidon_py.hooks.sending.outcome import DELIVERED, Outcome
from poseidon_py.hooks.storage.store import MemoryStore, StoreError
from poseidon_py.hooks.transition import Transition, delivery_id
from tests.poseidon_py.settling import settle

EPOCH = 1_767_225_600.0


class VirtualTime:
    """A clock that advances when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def clock(self) -> Clock:
        return Clock(lambda: EPOCH + self.seconds, lambda: self.seconds, self._sleep)

    async def _sleep(self, seconds):
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._numbers), future))
        await future

    async def advance(self, seconds):
        """Every sleeper wakes at its time, and all that follows from it happens then."""
        await settle()
        end = self.seconds + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                self.seconds = max(self.seconds, at)
                future.set_result(None)
                await settle()
        self.seconds = end


class ProcessStore(MemoryStore):
    """The view of one process on what is stored. After `kill` its calls have no effect and never return."""

    def __init__(self, texts, asked):
        super().__init__()
        self.texts, self.asked = texts, asked
        self.mode = "ok"
        self.gate = asyncio.Event()
        self.dead = False
        self.writes = 0
        self.largest_write = 0

    def kill(self):
        self.dead = True

    async def _alive(self):
        if self.dead:
            await asyncio.get_running_loop().create_future()

    async def load(self):
        await self._alive()
        if self.mode == "failing":
            raise StoreError("the server is down")
        return await super().load()

    async def write(self, changes):
        await self._alive()
        self.writes += 1
        self.largest_write = max(self.largest_write, len(changes))
        if self.mode == "slow":
            await self.gate.wait()
            await self._alive()
        if self.mode == "failing":
            raise StoreError("the server is down")
        if self.mode == "partial":
            half = dict(list(changes.items())[: len(changes) // 2])
            await super().write(half)
            raise StoreError("the server went down")
        await super().write(changes)
        if self.mode == "lost":
            raise StoreError("the answer was lost")
        await asyncio.sleep(0)
        await self._alive()

    def set_mode(self, mode):
        self.mode = mode
        gate, self.gate = self.gate, asyncio.Event()
        gate.set()


class Endpoint:
    """What the receivers do, by hook and job; and what they saw."""

    def __init__(self):
        self.modes = {}
        self.attempts = []
        self.acknowledged = set()
        self.failed = {}
        self.permanent = set()
        self.on_attempt = lambda hook, record: None
        self.gate = asyncio.Event()

    def mode(self, hook, job):
        return self.modes.get((hook, job), self.modes.get((hook, None), "ok"))

    def set_mode(self, hook, job, mode):
        self.modes[hook, job] = mode
        gate, self.gate = self.gate, asyncio.Event()
        gate.set()

    async def receive(self, hook, record: Record):
        key = (hook.name, record.id)
        self.on_attempt(hook.name, record)
        self.attempts.append((hook.name, record.transition.job, record.id, record.sequence))
        mode = self.mode(hook.name, record.transition.job)
        while mode == "hang":
            await self.gate.wait()
            mode = self.mode(hook.name, record.transition.job)
        await asyncio.sleep(0)
        if mode == "ok":
            self.acknowledged.add(key)
            return DELIVERED
        if mode == "ack lost":
            self.acknowledged.add(key)
        self.failed[key] = self.failed.get(key, 0) + 1
        if mode == "permanent":
            self.permanent.add(key)
            return Outcome("status 400", permanent=True)
        if mode == "busy":
            return Outcome("status 429", pause=30.0)
        return Outcome("status 500")


class Process:
    """One life of a controller with hooks. It notes a transition as reported once `reported` has returned."""

    def __init__(self, world):
        self.world = world
        self.alive = True
        self.store = ProcessStore(world.texts, world.asked)
        self.hooks = Hooks(world.config, self.store, clock=world.time.clock(), senders=self._sender, rng=lambda: 1.0)
        self._waiting = set()

    def _sender(self, hook):
        async def send(record):
            if not self.alive:
                await asyncio.get_running_loop().create_future()
            return await self.world.endpoint.receive(hook, record)

        return send

    def report(self, transition):
        self.hooks.transitioned(transition)
        task = asyncio.ensure_future(self._reported(transition))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _reported(self, transition):
        await self.hooks.reported()
        self.world.unreported.pop(delivery_id(transition), None)

    async def kill(self):
        self.alive = False
        self.store.kill()
        for task in list(self._waiting):
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        await self.hooks.stop(0)


class World:
    def __init__(self, *hooks: Hook):
        self.config = HookConfig(hooks)
        self.time = VirtualTime()
        self.texts: dict[str, str] = {}
        self.asked: list = []
        self.endpoint = Endpoint()
        self.unreported: dict[str, Transition] = {}
        self.numbers = count()

    async def start(self):
        self.process = Process(self)
        await self.process.hooks.start()
        for transition in list(self.unreported.values()):  # the controller decides the same once more
            self.process.report(transition)

    async def restart(self):
        """The process is killed wherever it is, and another one starts."""
        await self.process.kill()
        await self.start()

    def report(self, job, **fields):
        transition = make_transition(job, next(self.numbers), **fields)
        self.unreported[delivery_id(transition)] = transition
        self.process.report(transition)
        return transition

    def records(self):
        """What is stored."""
        return [msgspec.json.decode(text, type=Record) for key, text in self.texts.items() if key != TOTALS_KEY]

    def dead(self):
        return [record for record in self.records() if record.dead]


def make_transition(job="j", number=0, *, before="Pending", after="Running", machine="job", namespace="ns", **fields):
    values = {
        "id": f"uid-{job}",
        "name": job,
        "user_id": "anna",
        "job": job,
        "at": EPOCH + number,
        "details": {"number": str(number)},
        "occasion": str(number),
    }
    return Transition(machine, namespace=namespace, before=before, after=after, **(values | fields))
