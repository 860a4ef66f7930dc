"""The bridge from store to binder, with fakes of flow service and API server, and virtual time."""

import asyncio
from collections.abc import Callable

from poseidon_py.bind.binder import Binder
from poseidon_py.feed.resync import Session
from poseidon_py.feed.workers import Feed
from poseidon_py.report.unscheduled import UnscheduledReports
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.rounds.loop import Loop
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.fakes import BindReports, FakeEngine, FakeKube, Problems
from tests.poseidon_py.settling import settle


class Rig:
    """`async with`; then change the world through `pod`, `gone`, ... and look at the engine and the API server."""

    def __init__(
        self, nodes=("n",), *, leads=True, batch_size=2000, defer_seconds=0.0, queues="off", **node_shape
    ) -> None:
        self.store = Store(["poseidon"], defer_seconds=defer_seconds, queues=queues)
        self.store.queues.queue._defer_seconds = 0.0
        self.engine = FakeEngine()
        self.kube = FakeKube()
        self.listed = asyncio.Event()
        self.changed = asyncio.Event()
        self.session = Session(self.engine, self.store, self.listed.wait, on_ready=self.changed.set, sleep=self._sleep)
        self.feed = Feed(self.store, self.engine, self.session, self.changed.set, batch_size, sleep=self._sleep)
        self.timers: list[Callable[[], None]] = []
        self.binder = Binder(
            self.kube,
            self.store,
            self.feed.reject,
            BindReports(),
            call_later=lambda seconds, call: self.timers.append(call),
            rng=lambda: 1.0,
            now=lambda: self.now_us / 1e6,
        )
        self.now_us = 1_000_000
        self.unscheduled: list[tuple[str, str]] = []
        self.loop = Loop(
            self.store,
            self.engine,
            self.session,
            self._bind,
            self.feed.reject,
            UnscheduledReports(self.store, *[self._unschedulable] * 4).report,
            changed=self.changed,
            leadership=Leadership(),
            pacer=Pacer(0.0, 0.0),
            sleep=self._sleep,
            now_us=lambda: self.now_us,
        )
        self.feed.round_with = self.loop.attached
        self.store.subscribe(self.binder)
        self.problems = Problems()
        self.store.problems.subscribe(self.problems)
        self.kube.on_bind = self._bound
        self.confirm = True
        self._leads = leads
        self._tasks: list[asyncio.Task[None]] = []
        for name in nodes:
            self.node(name, **node_shape)

    def _unschedulable(self, known, message):
        self.unscheduled.append((known.name, message))

    def _bind(self, placed):
        for each in placed:
            self.binder.bind(*each)

    async def _sleep(self, seconds):
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.binder.start()
        if self._leads:
            self.loop.lead()
        self._tasks = [
            asyncio.create_task(work)
            for work in (
                self.session.run(),
                self.feed.pod_worker(),
                self.feed.pod_worker(),
                self.feed.node_worker(),
                self.feed.queue_worker(),
                self.loop.run(),
            )
        ]
        self.listed.set()
        await self.settle()
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        await self.binder.stop()

    async def settle(self):
        await settle()

    def _bound(self, namespace, name):
        """The API server's watch confirms a bind."""
        there = self.kube.pods[f"{namespace}/{name}"]
        if self.confirm:
            self.store.observe_pod(pod(**there))

    def node(self, name, **fields):
        self.store.observe_node(node(name, **fields))

    def pod(self, name, uid=None, **fields):
        """Creates a pod."""
        self.kube.put(
            name, uid, **{key: value for key, value in fields.items() if key in ("node", "deleting", "gates")}
        )
        self.store.observe_pod(pod(name, uid=uid, **fields))

    async def bind_in_flight(self, name, **fields):
        """Creates a pod whose bind the API server does not answer until `answered`."""
        self.kube.hold = asyncio.Event()
        self.pod(name, **fields)
        await self.settle()
        assert self.kube.in_flight == 1

    async def answered(self):
        assert self.kube.hold is not None
        self.kube.hold.set()
        await self.settle()

    def gone(self, name, uid=None):
        self.kube.pods.pop(f"default/{name}", None)
        self.store.remove_pod(uid or f"uid-{name}")

    def task(self, name):
        """The engine's state of a pod."""
        found = [task for task in self.engine.tasks.values() if task["name"] == f"default/{name}"]
        assert len(found) <= 1
        return found[0] if found else None

    def state(self, name):
        task = self.task(name)
        return task["state"] if task else None

    @property
    def bound(self):
        """Names of the pods that were bound, in order."""
        return [uid.removeprefix("uid-") for uid, _ in self.kube.binds]

    def agrees(self):
        """Asserts that the engine has exactly the expected state."""
        for known in self.store.pods.values():
            task = self.engine.tasks.get(known.task)
            if known.node:
                assert task is not None
                assert (task["state"], task["node"]) == ("bound", self.store.id_of_node(known.node))
            elif known.schedulable and not known.described.problem:
                assert task is not None
                assert task["state"] in ("waiting", "assumed")
            else:
                assert task is None
        assert set(self.engine.tasks) <= {known.task for known in self.store.pods.values()}
        assert not self.store.gone_tasks
        assert not self.store.gone_nodes
        assert set(self.engine.nodes) == {known.id for known in self.store.nodes.values()}
        return True
