"""Background work that a defect ends."""

import asyncio

import pytest

from poseidon_py.util.restarts import restarted


async def ended(times, *, seconds=0.0):
    """The pauses after that many failures, each after `seconds`."""
    now = [0.0]
    slept: list[float] = []

    async def work():
        if len(slept) == times:
            raise asyncio.CancelledError
        now[0] += seconds
        raise RuntimeError("odd")

    async def sleep(delay):
        slept.append(delay)

    with pytest.raises(asyncio.CancelledError):
        await restarted("work", work, sleep=sleep, monotonic=lambda: now[0])
    return slept


async def test_each_failure_is_logged_and_the_pauses_grow_up_to_a_minute(caplog):
    slept = await ended(12)
    assert all(0.5 * 2**number <= delay <= 2**number for number, delay in enumerate(slept[:6]))
    assert all(30 <= delay <= 60 for delay in slept[6:])
    assert len(caplog.records) == 12
    assert "RuntimeError: odd" in caplog.text


async def test_after_a_minute_of_work_the_pauses_are_short_again():
    assert max(await ended(12, seconds=60.0)) <= 1
