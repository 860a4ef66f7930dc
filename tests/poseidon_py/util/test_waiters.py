"""Wake-ups reach the coroutines in order, and none is lost."""

import asyncio

from poseidon_py.util.waiters import Waiters
from tests.poseidon_py.settling import settle


class Queue:
    def __init__(self, names):
        self.waiters, self.woken = Waiters(), []
        self.tasks = {name: asyncio.create_task(self._wait(name)) for name in names}

    async def _wait(self, name):
        await self.waiters.wait()
        self.woken.append(name)


async def test_each_wake_up_is_for_the_first_that_waits():
    queue = Queue("abc")
    await asyncio.sleep(0)
    queue.waiters.wake_one()
    queue.waiters.wake_one()
    await asyncio.sleep(0)
    assert queue.woken == ["a", "b"]
    queue.waiters.wake_one()
    await settle()
    assert queue.woken == ["a", "b", "c"]


async def test_cancelled_ones_are_passed_over():
    queue = Queue("ab")
    await asyncio.sleep(0)
    queue.tasks["a"].cancel()
    await asyncio.sleep(0)
    queue.waiters.wake_one()
    await settle()
    assert queue.woken == ["b"]


async def test_a_wake_up_of_one_that_is_cancelled_before_it_runs_goes_to_the_next():
    queue = Queue("ab")
    await asyncio.sleep(0)
    queue.waiters.wake_one()
    queue.tasks["a"].cancel()
    await settle()
    assert queue.woken == ["b"]


async def test_all_are_woken():
    queue = Queue("abc")
    await asyncio.sleep(0)
    queue.tasks["b"].cancel()
    queue.waiters.wake_all()
    await settle()
    assert queue.woken == ["a", "c"]
