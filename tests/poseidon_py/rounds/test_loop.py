"""The loop waits as the pacer computes from the state of the queue of pods; it does not run after `stop`."""

import asyncio
from typing import Any

import pytest

from poseidon_py.rounds.leadership import Leadership
from poseidon_py.rounds.loop import Loop
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.state.store import Store
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
