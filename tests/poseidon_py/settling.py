"""Waits until the event loop is idle, without real time: no clock, and no guessed number of iterations."""

import asyncio
import math
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


class VirtualTime:
    """The clock of the running event loop, which stands still but for `elapse`, and a millionth of a second for each
    look at it: no two things happen at the same time. Create it before anything waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        cast(Any, asyncio.get_running_loop()).time = self._tick

    def _tick(self) -> float:
        self.now += 1e-6
        return self.now

    async def elapse(self, seconds: float) -> None:
        """Lets so much time pass: timers fire in their order, each when the loop has nothing else to run."""
        end, scheduled = self.now + seconds, cast(Any, asyncio.get_running_loop())._scheduled
        while True:
            await settle()
            due = min((timer.when() for timer in scheduled if not timer.cancelled()), default=math.inf)
            if due > end:
                break
            self.now = max(self.now, due)
        self.now = max(self.now, end)
        await settle()
