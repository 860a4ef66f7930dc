"""When the use of queues is polled, and what becomes of the answers."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from poseidon_py.app import queue_poll
from poseidon_py.app.queue_poll import QueuePoll
from poseidon_py.describe.queues.model import id_of
from poseidon_py.feed.client import EngineError
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.state.queues.own import QUEUES
from protos.gen import flow_pb2
from tests.poseidon_py.fakes import FakeEngine
from tests.poseidon_py.rig import Rig as BridgeRig
from tests.poseidon_py.settling import turns_until
from tests.poseidon_py.state.queues.rig import queue_object

GIB = 2**30


class Engine(FakeEngine):
    """Its queues are those that a function answers."""

    def __init__(self, answer):
        super().__init__()
        self._answer = answer

    async def list_queues(self):
        return self._answer()


class Rig(BridgeRig):
    """A poll whose period is over at once if `period` is 0, else never."""

    def __init__(self, period=1e9):
        super().__init__(queues="poseidon")
        self.leads = True
        self.polls = 0
        self.errors: list[EngineError] = []
        self.noted: list[Mapping[int, QueueUse]] = []
        self.epoch_of_reply = 0
        self.past_us = 0
        self.local = 0.0
        """What local queue 7 used of cpu."""
        self.engine = self.session._engine = self.feed._engine = self.loop._engine = Engine(self._list_queues)
        self.poll = QueuePoll(
            self.engine, self.session, self.store.queues, lambda: self.leads, self.noted.append, self.store.metrics,
            period=period, sleep=self._pause,
        )  # fmt: skip
        self.store.queues.delivered = self.poll.wake

    async def __aenter__(self):
        found = await super().__aenter__()
        self._running = asyncio.create_task(self.poll.run())
        return found

    async def __aexit__(self, *error):
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await super().__aexit__(*error)

    async def _pause(self, seconds):
        await asyncio.sleep(0)

    def _list_queues(self):
        self.polls += 1
        if self.errors:
            raise self.errors.pop(0)
        reply = flow_pb2.QueuesReply(epoch=self.epoch_of_reply or self.engine.epoch)
        for queue in self.store.queues.tree.queues:
            state = reply.queues.add(id=queue.id, name=queue.name, running=2, pending=1, share=500.0)
            state.amounts.add(
                flavor="f", resource="cpu", nominal=1000, used=2500, borrowed=1500, demand=500, fair=2**60
            )
            state.amounts.add(flavor="g", resource="cpu", nominal=1000, used=500, fair=700)
            state.amounts.add(flavor="f", resource="memory", nominal=GIB, used=GIB, fair=GIB)
            state.amounts.add(flavor="f", resource="pods", used=2, borrowed=2)
        if self.past_us:
            reply.past_use.at_us = self.past_us
        if self.local:
            reply.local_queues.add(id=7).amounts.add(flavor="f", resource="cpu", past=self.local)
        return reply

    def queue(self, name, **spec):
        self.store.queues.put("poseidon", QUEUES, queue_object(name, spec))

    def value(self, name, **labels):
        return self.store.metrics.registry.get_sample_value(f"poseidon_queue_{name}", labels)


async def quiet():
    for _ in range(500):
        await asyncio.sleep(0)


async def test_the_use_of_queues_is_noted_and_measured():
    async with Rig() as rig:
        rig.queue("a")
        await turns_until(lambda: rig.noted)
        assert rig.noted[-1] == {
            id_of("queue/a"): QueueUse(
                used={("f", "cpu"): 2500, ("g", "cpu"): 500, ("f", "memory"): GIB},
                borrowed={("f", "cpu"): 1500, ("g", "cpu"): 0, ("f", "memory"): 0},
                pending=1,
                running=2,
                share=0.5,
                fair_share={"memory": GIB},  # of cpu there is no limit in one flavor
                requested={"cpu": 3500, "memory": GIB},
            )
        }
        labels = {"queue": "a", "type": "Queue"}
        assert rig.value("used", **labels, resource="cpu") == 3.0
        assert rig.value("guaranteed", **labels, resource="memory") == GIB
        assert rig.value("borrowed", **labels, resource="cpu") == 1.5
        assert rig.value("used", **labels, resource="pods") is None
        found = [rig.value(name, **labels) for name in ("pending_pods", "running_pods", "share")]
        assert found == [1.0, 2.0, 0.5]


async def test_nothing_is_asked_without_queues_or_as_a_standby():
    async with Rig(period=0.0) as rig:
        rig.poll.wake()
        await quiet()
        assert rig.polls == 0
        rig.leads = False
        rig.queue("a")
        await quiet()
        assert rig.polls == 0
        rig.leads = True
        rig.poll.wake()
        await turns_until(lambda: rig.polls > 3)  # again and again
        assert rig.value("share", queue="a", type="Queue") == 0.5
        rig.leads = False
        rig.poll.wake()
        await quiet()
        assert rig.value("share", queue="a", type="Queue") is None


async def test_a_new_tree_is_asked_for_at_once():
    async with Rig() as rig:
        rig.queue("a")
        await turns_until(lambda: rig.noted)
        await quiet()
        before = rig.polls
        await quiet()
        assert rig.polls == before
        rig.queue("b")
        await turns_until(lambda: id_of("queue/b") in rig.noted[-1])


async def test_errors_are_logged_once_and_retried(caplog):
    async with Rig(period=0.0) as rig:
        rig.errors = [EngineError("GetQueues", "DEADLINE_EXCEEDED", "slow") for _ in range(3)]
        with caplog.at_level(logging.WARNING, queue_poll.__name__):
            rig.queue("a")
            await turns_until(lambda: rig.noted)
        assert [record.message for record in caplog.records if record.name == queue_poll.__name__] == [
            "cannot read the use of queues from the flow service, and will retry: GetQueues: DEADLINE_EXCEEDED: slow"
        ]


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CLOSED"])
async def test_a_service_that_is_gone_is_synchronised_again(code):
    async with Rig(period=0.0) as rig:
        await rig.settle()
        before = rig.engine.calls["hello"]
        rig.errors = [EngineError("GetQueues", code, "gone")]
        rig.queue("a")
        await turns_until(lambda: rig.noted)
        await turns_until(lambda: rig.engine.calls["hello"] > before)


async def test_the_answer_of_another_epoch_is_dropped():
    async with Rig(period=0.0) as rig:
        rig.epoch_of_reply = 7
        rig.queue("a")
        await turns_until(lambda: rig.polls > 3)
        assert rig.noted == []
        rig.epoch_of_reply = 0
        await turns_until(lambda: rig.noted)


async def test_past_use_is_kept_for_an_engine_that_restarts_also_by_a_standby(monkeypatch):
    monkeypatch.setattr(queue_poll, "STANDBY_PERIOD", 0.0)
    async with Rig() as rig:
        rig.leads = False
        rig.queue("a")
        await quiet()
        assert rig.polls == 0
        rig.store.queues.past_use.half_life_seconds = 60.0
        rig.past_us = 5
        rig.queue("a", weight=2)
        rig.poll.wake()
        await turns_until(lambda: rig.polls > 1)
        assert rig.store.queues.past_use.last.at_us == 5
        assert rig.noted == []


async def test_past_use_in_statuses_changes_every_few_minutes():
    async with Rig(period=0.0) as rig:
        rig.store.queues.past_use.half_life_seconds = 60.0
        rig.past_us, rig.local = 1_700_000_000_000_000, 1000.0
        rig.queue("a")
        await turns_until(lambda: rig.noted)
        assert (rig.noted[-1][7].past, rig.noted[-1][7].past_at) == ({"cpu": 1000.0}, "2023-11-14T22:13:20Z")
        rig.past_us, rig.local = rig.past_us + 299_000_000, 1500.0
        polls = rig.polls
        await turns_until(lambda: rig.polls > polls + 1)
        assert rig.noted[-1][7].past == {"cpu": 1000.0}
        rig.past_us += 1_000_000
        await turns_until(lambda: rig.noted[-1][7].past == {"cpu": 1500.0})
        assert rig.noted[-1][7].past_at == "2023-11-14T22:18:20Z"
