"""Batches of writes: urgent and late changes, failures, order."""

import asyncio

import pytest

from poseidon_py.hooks.journal import MIN_INTERVAL, PROGRESS_SECONDS, REMOVAL_SECONDS, Journal
from poseidon_py.hooks.records import Record
from tests.poseidon_py.hooks.world import ProcessStore, VirtualTime, make_transition
from tests.poseidon_py.settling import settle


def record(number):
    return Record("h", f"{number:02d}", number, 0.0, make_transition("j", number))


class Rig:
    def __init__(self):
        self.time = VirtualTime()
        self.store = ProcessStore({}, [])
        self.written: list[int] = []
        self.results: list[str] = []
        self.journal = Journal(self.store, self.time.clock(), self._note, self.results.append)

    def _note(self, records):
        self.written += [each.sequence for each in records]

    async def __aenter__(self):
        self.task = asyncio.create_task(self.journal.run())
        await settle()
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def put(self, *numbers):
        for number in numbers:
            self.journal.put(f"h.{number:02d}", record(number))


async def test_thousands_of_records_are_few_writes():
    async with Rig() as rig:
        for number in range(5000):
            rig.put(number)
            if number % 500 == 0:
                await rig.time.advance(0.01)
        await rig.time.advance(1)
        # ten steps of 10 ms, one write every 50 ms
        assert rig.store.writes <= 1 + 10 * 0.01 / MIN_INTERVAL + 1
        assert rig.written == list(range(5000))


async def test_a_record_is_written_at_once():
    async with Rig() as rig:
        rig.put(1)
        await settle()
        assert rig.written == [1]


@pytest.mark.parametrize("mode", ["failing", "partial", "lost"])
async def test_records_that_were_put_during_a_write_that_fails_come_after_its_own(mode):
    """Otherwise the later ones of a job would be sent first."""
    async with Rig() as rig:
        rig.store.set_mode("slow")
        rig.put(1, 2)
        await settle()
        rig.put(3)
        rig.store.set_mode(mode)
        await settle()
        assert rig.written == []
        rig.store.set_mode("ok")
        await rig.time.advance(60)
        assert rig.written == [1, 2, 3]
        assert rig.results == ["failed", "written"]


async def test_written_waits_for_what_was_put_before_and_not_for_later_records():
    async with Rig() as rig:
        rig.store.set_mode("slow")
        rig.put(1)
        first = asyncio.create_task(rig.journal.written())
        await settle()
        rig.put(2)
        second = asyncio.create_task(rig.journal.written())
        rig.store.set_mode("ok")
        await settle()
        assert (first.done(), second.done()) == (True, False)
        await rig.time.advance(MIN_INTERVAL)
        assert second.done()


async def test_removals_wait_for_each_other():
    async with Rig() as rig:
        rig.put(*range(100))
        await settle()
        for number in range(100):
            rig.journal.remove(f"h.{number:02d}")
            await rig.time.advance(0.001)
        assert rig.store.writes == 1
        await rig.time.advance(REMOVAL_SECONDS)
        assert (rig.store.writes, rig.store.texts) == (2, {})


async def test_attempts_are_written_some_time():
    async with Rig() as rig:
        one = record(1)
        rig.journal.put(one.key, one)
        await settle()
        one.attempts = 3
        rig.journal.progress(one)
        await rig.time.advance(PROGRESS_SECONDS - 0.1)
        assert '"attempts":0' in rig.store.texts[one.key]
        await rig.time.advance(0.2)
        assert '"attempts":3' in rig.store.texts[one.key]


async def test_a_removal_is_not_undone_by_the_repetition_of_a_failed_write():
    async with Rig() as rig:
        rig.store.set_mode("slow")
        rig.put(1)
        await settle()
        rig.journal.remove("h.01")
        rig.store.set_mode("lost")
        await settle()
        rig.store.set_mode("ok")
        await rig.time.advance(60)
        assert rig.store.texts == {}


async def test_stop_writes_all_at_once():
    async with Rig() as rig:
        rig.put(1)
        await settle()
        rig.journal.remove("h.01")
        rig.put(2)
        rig.journal.stop()
        await rig.time.advance(MIN_INTERVAL)
        assert rig.task.done()
        assert list(rig.store.texts) == ["h.02"]
