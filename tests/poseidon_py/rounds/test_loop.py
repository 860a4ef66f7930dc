"""The loop waits as the pacer computes from the state of the queue of pods; it does not run after `stop`."""

import asyncio
from typing import Any

import pytest

from poseidon_py.rounds.leadership import Leadership
from poseidon_py.rounds.loop import Loop
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod

WINDOW = 1 / 128


class Bench:
    """A loop whose clock moves only when it sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.store = Store(["poseidon"])
        unused: Any = None
        self.changed = asyncio.Event()
        self.leadership = Leadership()
        self.loop = Loop(
            self.store,
            unused,
            unused,
            unused,
            unused,
            unused,
            changed=self.changed,
            leadership=self.leadership,
            pacer=Pacer(WINDOW, 32 * WINDOW),
            sleep=self.sleep,
            monotonic=lambda: self.now,
        )

    async def sleep(self, seconds):
        self.now += seconds

    async def windows(self):
        """Virtual time until the round starts."""
        self.changed.set()
        start = self.now
        await self.loop._gather_changes()
        return (self.now - start) / WINDOW


@pytest.mark.parametrize(("urgent", "windows"), [(True, 2), (False, 0)])
async def test_only_urgent_pods_delay_a_round(urgent, windows):
    bench = Bench()
    bench.store.observe_pod(pod(node="" if urgent else "n"))
    if not urgent:  # a bound pod is urgent when it is first seen
        await bench.store.pod_queue.get(1)
        bench.store.pod_queue.done(["uid-pod"])
        bench.store.observe_pod(pod(node="n"))
    assert await bench.windows() == windows


async def attaches(bench) -> bool:
    update = flow_pb2.Update(epoch=1)
    async with bench.loop.attached(update) as take_reply:
        take_reply(flow_pb2.UpdateReply(quiet=True))
    return update.HasField("round")


async def test_a_round_is_attached_if_it_would_start_at_once():
    bench = Bench()
    bench.loop.lead()
    assert await attaches(bench)
    bench.store.observe_pod(pod())
    assert not await attaches(bench)  # more pods arrive
    await bench.store.pod_queue.get(1)
    assert await attaches(bench)
    bench.now += 1
    bench.loop._pacer.round_ended(bench.now - 1, bench.now)
    assert not await attaches(bench)  # too soon after a long round
    bench.loop.stand_by()
    bench.now += 10
    assert not await attaches(bench)


async def test_changes_wait_for_a_short_round_that_runs_and_get_the_next_one():
    bench = Bench()
    bench.loop.lead()
    async with bench.loop.attached(flow_pb2.Update(epoch=1)) as take_reply:
        second = asyncio.create_task(attaches(bench))
        await asyncio.sleep(0.01)
        assert not second.done()
        take_reply(flow_pb2.UpdateReply(quiet=True))
    assert await second


async def test_changes_do_not_wait_for_a_round_where_rounds_are_long():
    bench = Bench()
    bench.loop.lead()
    bench.loop._pacer.round_ended(bench.now - 1, bench.now)
    bench.now += 10
    async with asyncio.timeout(10), bench.loop.attached(flow_pb2.Update(epoch=1)) as take_reply:
        assert not await attaches(bench)
        take_reply(flow_pb2.UpdateReply(quiet=True))


async def test_no_round_is_attached_after_one_without_a_reply():
    bench = Bench()
    bench.loop.lead()
    with pytest.raises(ValueError, match="lost"):
        async with bench.loop.attached(flow_pb2.Update(epoch=1)):
            raise ValueError("lost")
    assert not await attaches(bench)
    assert bench.changed.is_set()


async def test_a_round_may_be_attached_at_the_moment_at_which_the_next_one_is_due(monkeypatch):
    """Then the timeout of the loop can no longer be put off."""
    bench = Bench()
    bench.loop.lead()
    bench.changed.clear()
    monkeypatch.setattr(bench.loop, "_idle_seconds", lambda: 0.0)
    waiting = asyncio.create_task(bench.loop._gather_changes())
    attached = 0
    while not waiting.done():
        attached += await attaches(bench)
        await asyncio.sleep(0)
    await waiting
    assert attached >= 3


async def test_a_leader_that_has_stopped_does_not_lead_again():
    bench = Bench()
    bench.loop.lead()
    assert bench.leadership.leads
    assert bench.changed.is_set()
    bench.loop.stop()
    bench.changed.clear()
    bench.loop.lead()  # the lease came too late
    assert not bench.leadership.leads
    assert not bench.changed.is_set()
    await bench.loop.run()  # ends at once


async def test_a_round_is_due_from_the_change_on():
    bench = Bench()
    assert not bench.loop.due
    bench.changed.set()
    assert bench.loop.due
    await bench.loop._gather_changes()
    with bench.loop._running(1) as (_, finish):
        assert bench.loop.due
        finish(flow_pb2.RoundReply(wake_us=int(200e6)))
    assert not bench.loop.due


def test_when_the_next_round_comes():
    bench = Bench()
    bench.loop._now_us = lambda: int(150e6)
    assert bench.loop.next_seconds is None
    bench.loop._pacer.wake_at(200.0)
    assert bench.loop.next_seconds == 50.0
    bench.loop._pacer.wake_at(100.0)
    assert bench.loop.next_seconds == 0.0


def test_networks_without_a_solution_are_counted_and_logged(caplog):
    bench = Bench()
    bench.loop._note(flow_pb2.RoundStats(unsolved={"bad cost range": 2}), 0.1)
    assert bench.store.metrics.unsolved.labels("bad cost range")._value.get() == 2
    assert "the solver found no flow for 2 networks, whose pods are placed one by one: bad cost range" in caplog.text
