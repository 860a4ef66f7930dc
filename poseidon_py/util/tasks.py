"""The end of asyncio's tasks."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)

_ATTEMPTS = 4


async def end_tasks(*tasks: asyncio.Task[object], patience: float = 5.0) -> None:
    """Cancel tasks, and return when they have ended; their results and errors are dropped.

    A cancellation can get lost: if a time limit expires in the same turn of the event loop, the task may see a
    TimeoutError instead, which it handles, and goes on. So a task that has not ended after `patience` seconds is
    cancelled again. One that resists that, too, is a defect: it is logged, and left behind, so that it does not stop
    others from ending.
    """
    pending = {task for task in tasks if task is not asyncio.current_task()}
    for _ in range(_ATTEMPTS):
        if not pending:
            break
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=patience)
    for task in pending:
        log.error("%s does not end although it was cancelled %d times; it is left behind", task.get_name(), _ATTEMPTS)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # else asyncio reports that nobody has asked for it


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Returns when all have ended. A failure ends those that come after it, and is raised; one that comes before it is
    waited for, since its failure would count: so which of several is raised does not depend on which is the fastest."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for task in tasks:
            await task
    finally:
        await end_tasks(*tasks)
