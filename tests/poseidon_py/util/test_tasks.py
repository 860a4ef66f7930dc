"""Tasks are ended even if they miss a cancellation."""

import asyncio
import logging

import pytest

from poseidon_py.util.tasks import end_tasks, together


async def resists(times: int) -> None:
    """Takes as many cancellations for the expiry of a time limit, and goes on."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not times:
                raise
            times -= 1


async def fails() -> None:
    raise ValueError("a defect")


async def test_tasks_end_and_their_errors_are_dropped():
    running, failed = asyncio.create_task(resists(0)), asyncio.create_task(fails())
    await asyncio.sleep(0)
    await end_tasks(running, failed)
    assert running.cancelled()
    assert failed.done()


async def test_a_cancellation_that_was_lost_is_repeated():
    """So a poller of the demo went on for ever: its client took the cancellation for the expiry of its time limit."""
    task = asyncio.create_task(resists(2))
    await asyncio.sleep(0)
    await end_tasks(task, patience=0.0)
    assert task.cancelled()


async def test_a_task_that_does_not_end_is_named_and_stops_nobody(caplog):
    task = asyncio.create_task(resists(4), name="the poller")
    await asyncio.sleep(0)
    with caplog.at_level(logging.ERROR):
        await end_tasks(task, patience=0.0)
    assert caplog.messages == ["the poller does not end although it was cancelled 4 times; it is left behind"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_task_does_not_end_itself():
    await end_tasks(asyncio.current_task())  # type: ignore[arg-type]


async def test_of_works_together_a_failure_ends_those_that_come_after_it_and_is_raised():
    ended = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("lasting")

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await together(failing(), lasting())
    assert ended == ["lasting"]


async def test_of_several_failures_that_of_the_earliest_work_is_raised():
    async def failing(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError(str(turns))

    with pytest.raises(ValueError, match="5"):
        await together(failing(5), failing(1))


async def test_works_together_end_when_all_have_ended():
    done = []

    async def work(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        done.append(turns)

    await together(work(3), work(1))
    assert done == [1, 3]
