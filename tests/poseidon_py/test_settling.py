import asyncio

import pytest

from tests.poseidon_py.settling import settle, turns_until


async def test_a_chain_of_tasks_and_callbacks_is_followed_to_its_end():
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    async def task(left: int) -> None:
        if left:
            loop.call_soon(later, left - 1)
        else:
            seen.append("the end")

    def later(left: int) -> None:
        tasks.append(loop.create_task(task(left)))

    tasks: list[asyncio.Task[None]] = []
    later(500)
    await settle()
    assert seen == ["the end"]


async def test_a_task_that_waits_for_the_test_is_settled():
    go = asyncio.Event()
    waiting = asyncio.create_task(go.wait())
    timer = asyncio.get_running_loop().call_later(3600, go.set)
    await settle(turns=5)
    assert not waiting.done()
    go.set()
    await settle(turns=5)
    assert waiting.done()
    timer.cancel()


async def test_a_timer_without_delay_is_no_passing_of_time():
    loop = asyncio.get_running_loop()
    seen: list[str] = []
    loop.call_soon(lambda: loop.call_later(0, lambda: loop.call_later(0, seen.append, "fired")))
    await settle()
    assert seen == ["fired"]


async def test_work_without_end_fails_and_is_named():
    async def step() -> None:
        await asyncio.sleep(0)

    async def spin() -> None:
        while True:
            await step()

    spinning = asyncio.create_task(spin())
    waiting = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(AssertionError, match=r"not settled after 50 turns.*spin at .*test_settling\.py:\d+$"):
        await settle(turns=50)
    for task in (spinning, waiting):
        task.cancel()
    await asyncio.gather(spinning, waiting, return_exceptions=True)


async def test_a_callback_that_repeats_itself_is_named():
    loop = asyncio.get_running_loop()
    handles: list[asyncio.Handle] = []

    def repeat() -> None:
        handles[:] = [loop.call_soon(repeat)]

    repeat()
    with pytest.raises(AssertionError, match="repeat"):
        await settle(turns=50)
    handles[0].cancel()


async def test_work_that_repeats_itself_runs_until_a_condition_holds():
    count = 0

    async def spin() -> None:
        nonlocal count
        while True:
            count += 1
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    await turns_until(lambda: count == 7)
    assert count == 7
    with pytest.raises(AssertionError, match="does not hold after 50 turns"):
        await turns_until(lambda: False, turns=50)
    spinning.cancel()
