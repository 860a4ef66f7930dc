"""Reports do not delay binds, and none is lost."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poseidon_py.report.paced_queue import Outbox


class Bench:
    """An outbox with a virtual clock, and one worker that records the items it takes and their times."""

    def __init__(self, rate=100.0) -> None:
        self.now, self.busy, self.saturated = 50.0, False, False
        self.taken: list[tuple[float, str]] = []
        self.outbox: Outbox[str] = Outbox(self, rate, sleep=self.sleep, monotonic=lambda: self.now)

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    def put(self, *keys, urgent=False):
        for key in keys:
            self.outbox.put(key, key, urgent=urgent)

    async def _work(self):
        while True:
            self.taken.append((self.now, await self.outbox.take()))

    async def __aenter__(self):
        self._worker = asyncio.ensure_future(self._work())
        return self

    async def __aexit__(self, *_):
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)

    async def run(self, seconds):
        """The number of items taken in that time."""
        before, end = len(self.taken), self.now + seconds
        while self.now < end and len(self.outbox):  # noqa: ASYNC110
            await asyncio.sleep(0)
        return len(self.taken) - before


MANY = [f"p{number}" for number in range(3000)]


@pytest.mark.parametrize("urgent", [False, True])
async def test_without_binds_all_reports_are_sent_at_the_rate(urgent):
    async with Bench() as bench:
        bench.put(*MANY, urgent=urgent)
        assert 195 <= await bench.run(2) <= 215


async def test_without_a_limit_all_reports_are_sent_at_once():
    async with Bench(rate=0.0) as bench:
        bench.put(*MANY)
        await bench.run(1)
        assert (len(bench.taken), bench.now) == (3000, 50.0)


@pytest.mark.parametrize("saturated", [False, True])
async def test_during_binds_urgent_reports_are_sent_slowly(saturated):
    async with Bench() as bench:
        bench.busy, bench.saturated = True, saturated
        bench.put(*MANY, urgent=True)
        assert 15 <= await bench.run(2) <= 25


async def test_during_binds_calm_reports_wait_until_they_are_old():
    async with Bench() as bench:
        bench.busy = bench.saturated = True
        bench.put(*MANY)
        assert await bench.run(9.9) == 0
        await bench.run(0.1)
        assert 15 <= await bench.run(2) <= 25


async def test_urgent_reports_precede_older_calm_ones():
    async with Bench() as bench:
        bench.busy = bench.saturated = True
        bench.put("calm")
        await bench.run(20)
        bench.put("calm 2")
        await bench.run(11)
        bench.busy = False
        bench.put("calm 3")
        bench.put("urgent", urgent=True)
        await bench.run(1)
        assert [item for _, item in bench.taken] == ["calm", "calm 2", "urgent", "calm 3"]


async def test_free_bind_slots_let_old_reports_be_sent():
    async with Bench() as bench:
        bench.busy = True
        bench.put(*MANY)
        await bench.run(10)
        assert 195 <= await bench.run(2) <= 215


async def test_after_binds_the_full_rate_applies_at_once():
    async with Bench() as bench:
        bench.busy = bench.saturated = True
        bench.put(*MANY, urgent=True)
        await bench.run(2)
        bench.busy = bench.saturated = False
        assert 95 <= await bench.run(1) <= 115


async def test_hurry_removes_all_delays():
    async with Bench(rate=1.0) as bench:
        bench.busy = bench.saturated = True
        bench.put(*MANY)
        bench.outbox.hurry()
        await bench.run(1)
        assert (len(bench.taken), bench.now) == (3000, 50.0)


PUTS = st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.booleans(), st.booleans()), max_size=30)


@given(PUTS)
@settings(deadline=None)
def test_the_newest_item_of_each_key_is_taken_once(puts):
    async def run():
        bench = Bench()
        last: dict[str, str] = {}
        for number, (key, urgent, busy, dropped) in enumerate(puts):
            bench.busy = busy
            bench.outbox.put(key, f"{key}{number}", urgent=urgent)
            last[key] = f"{key}{number}"
            if dropped:
                bench.outbox.discard(key, calm=False)
                if urgent:
                    del last[key]
            assert (key in bench.outbox) == (key in last)
        async with bench:
            await bench.run(100)
        assert Counter(item for _, item in bench.taken) == Counter(last.values())

    asyncio.run(run())
