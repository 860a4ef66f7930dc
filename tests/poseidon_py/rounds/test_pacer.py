"""When a round begins: soon after a change, later while work pours in, and never more than half of the time."""

from typing import Any

import pytest

from poseidon_py.rounds.loop import Loop
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod

WINDOW = 1 / 128
"""Seconds; a power of two, so that sums are exact. The limit is 32 windows."""


class Bench:
    """A loop whose clock moves only when it sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.store = Store(["poseidon"])
        nobody: Any = None  # is asked before the round begins
        self.loop = Loop(
            self.store,
            nobody,
            nobody,
            nobody,
            nobody,
            nobody,
            window=WINDOW,
            window_max=32 * WINDOW,
            sleep=self.sleep,
            monotonic=lambda: self.now,
        )
        self.loop.wake()

    async def sleep(self, seconds):
        self.now += seconds

    async def wait(self):
        """Windows until the round begins."""
        start = self.now
        await self.loop._wait_for_work()
        return (self.now - start) / WINDOW

    def pour(self):
        self.store.observe_pod(pod())  # nobody takes it from the queue

    def last_round(self, windows, ago=1000.0):
        self.loop._last_seconds, self.loop._last_end = windows * WINDOW, self.now - ago * WINDOW


async def test_a_single_change_waits_for_one_window():
    assert await Bench().wait() == 1


async def test_while_work_pours_in_a_cheap_round_waits_for_some_windows():
    bench = Bench()
    bench.pour()
    assert await bench.wait() == 4


async def test_news_that_can_wait_is_no_work_that_pours_in():
    bench = Bench()
    bench.store.pod_queue.add("bound", urgent=False)
    assert await bench.wait() == 1


@pytest.mark.parametrize(("windows", "waits"), [(6, 12), (400, 32)])
async def test_while_work_pours_in_a_costly_round_waits_twice_as_long_as_it_takes_up_to_the_limit(windows, waits):
    bench = Bench()
    bench.last_round(windows)
    bench.pour()
    assert await bench.wait() == waits


async def test_a_round_leaves_as_much_time_as_the_last_one_took():
    bench = Bench()
    bench.last_round(10, ago=4)
    assert await bench.wait() == 6


async def test_the_rest_has_a_limit():
    bench = Bench()
    bench.last_round(4000, ago=0)
    assert await bench.wait() == 32
