"""Runs hooks while a process leads: new `Hooks` for each term, which stop when the term is over."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from poseidon_py.hooks.hooks import Hooks, HooksStoppedError


class LeaderHooks(ABC):
    """`lead`, `stand_by`, `stop`. A subclass reports transitions to `_hooks`, and confirms what is stored."""

    def __init__(self, new_hooks: Callable[[], Hooks], name: str) -> None:
        """`new_hooks`: makes those of a term. `name`: of the tasks."""
        self._new_hooks = new_hooks
        self._name = name
        self._hooks: Hooks | None = None
        """Those of the current term; None while this process stands by."""
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: set[asyncio.Task[None]] = set()

    def lead(self) -> None:
        """A term begins."""
        self.stand_by()
        hooks = self._hooks = self._new_hooks()
        self._tasks = [self._task(self._run(hooks), "run"), self._task(self._follow(hooks), "confirm")]

    def stand_by(self) -> None:
        """The term is over."""
        hooks, self._hooks = self._hooks, None
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        if hooks is not None:
            closing = self._task(hooks.stop(), "stop")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        """Until what was reported is stored, or some seconds have passed."""
        self.stand_by()
        await asyncio.gather(*self._closing, return_exceptions=True)

    @abstractmethod
    async def _confirm(self, hooks: Hooks) -> None:
        """Notes what `hooks` has stored, for the whole term; may raise HooksStoppedError."""

    @abstractmethod
    def _ended(self, why: str) -> None:
        """The hooks of this term cannot go on."""

    def _task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=f"{self._name}: {name}")

    async def _run(self, hooks: Hooks) -> None:
        await hooks.start()
        self._ended(await hooks.wait())

    async def _follow(self, hooks: Hooks) -> None:
        await asyncio.sleep(0)  # after `start`
        with suppress(HooksStoppedError):
            await self._confirm(hooks)
