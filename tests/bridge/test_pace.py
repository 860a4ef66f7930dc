"""When a round begins: soon after a change, later while work pours in, and never more than half of the time."""

import pytest

from poseidon_py.loop import Loop
from poseidon_py.store import Store
from tests.bridge.builders import pod


class Bench:
    """A loop whose clock moves only when it sleeps."""

    def __init__(self, window=0.005, window_max=0.25) -> None:
        self.now = 100.0
        self.store = Store(["poseidon"])
        self.loop = Loop(
            self.store,
            None,
            None,
            None,
            None,
            None,
            window=window,
            window_max=window_max,
            sleep=self.sleep,
            monotonic=lambda: self.now,
        )
        self.loop.wake()

    async def sleep(self, seconds):
        self.now += seconds

    async def wait(self):
        """Milliseconds until the round begins."""
        start = self.now
        await self.loop._wait_for_work()
        return round(1000 * (self.now - start), 3)

    def pour(self):
        self.store.observe_pod(pod())  # nobody takes it from the queue

    def last_round(self, seconds, ago=1000.0):
        self.loop._last_seconds, self.loop._last_end = seconds, self.now - ago


async def test_a_single_change_waits_for_one_window():
    assert await Bench().wait() == 5


async def test_while_work_pours_in_a_cheap_round_waits_for_some_windows():
    bench = Bench()
    bench.pour()
    assert await bench.wait() == 20


@pytest.mark.parametrize(("seconds", "waits"), [(0.05, 100), (3.0, 250)])
async def test_while_work_pours_in_a_costly_round_waits_twice_as_long_as_it_takes_up_to_the_limit(seconds, waits):
    bench = Bench()
    bench.last_round(seconds)
    bench.pour()
    assert await bench.wait() == waits


async def test_a_round_leaves_as_much_time_as_the_last_one_took():
    bench = Bench()
    bench.last_round(0.1, ago=0.04)
    assert await bench.wait() == 60


async def test_the_rest_has_a_limit():
    bench = Bench()
    bench.last_round(60.0, ago=0.0)
    assert await bench.wait() == 250
