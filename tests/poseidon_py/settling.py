"""Waits until the event loop is idle, without real time: no clock, and no guessed number of iterations."""

import asyncio
from collections.abc import Callable
from types import CoroutineType
from typing import Any, cast

TURNS = 20_000
"""Far more than any test needs: work that has not ended by then does not end by itself."""


async def settle(turns: int = TURNS) -> None:
    """Waits until the event loop has only the caller to run: every other task waits for an action of the test (an
    answer that is held back, a timer, an event). Connections and threads are not considered.

    Raises AssertionError after `turns` iterations of the loop, with the names of the tasks that still run. Works on
    asyncio's own event loops.
    """
    loop = cast(Any, asyncio.get_running_loop())
    for _ in range(turns):
        await asyncio.sleep(0)
        if not (loop._ready or _due(loop)):
            return
    raise AssertionError(f"not settled after {turns} turns of the event loop; still running: {_running(loop)}")


async def turns_until(condition: Callable[[], object], turns: int = TURNS) -> None:
    """For periodic work, which never settles: lets it run until `condition` holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError(f"the condition does not hold after {turns} turns of the event loop")


def _due(loop: Any) -> list[asyncio.TimerHandle]:
    """Timers that the next iteration fires, such as those of call_later(0)."""
    now = loop.time()
    return [timer for timer in loop._scheduled if timer.when() <= now and not timer.cancelled()]


def _running(loop: Any) -> str:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and _is_runnable(task)]
    return "; ".join(sorted(map(_place, tasks)) or map(repr, [*loop._ready, *_due(loop)]))


def _is_runnable(task: asyncio.Task[Any]) -> bool:
    waiter = cast(Any, task)._fut_waiter
    return waiter is None or waiter.done()


def _place(task: asyncio.Task[Any]) -> str:
    """The task's coroutine, and the line in the innermost one that is not asyncio's own."""
    outer = coroutine = cast(Any, task.get_coro())
    frame = outer.cr_frame
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        if not coroutine.cr_frame.f_globals["__name__"].startswith("asyncio."):
            frame = coroutine.cr_frame
        coroutine = coroutine.cr_await
    return f"{outer.__qualname__} at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else outer.__qualname__
