"""Finds the resources of kinds that are known from references to their objects alone, such as owners of pods."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from poseidon_py.kube.client import KubeError
from poseidon_py.kube.informers.discovery import Discovery
from poseidon_py.kube.informers.informers import RECHECK, SAY_AFTER
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)


class GroupKind(NamedTuple):
    """A kind as references name it."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class ServedKinds:
    """`find` starts a lookup; `stop` ends those that go on."""

    def __init__(
        self,
        discovery: Discovery,
        found: Callable[[GroupKind], None],
        *,
        pause: float = 1.0,
        say_after: float = SAY_AFTER,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`found`: called when a kind is found, when it turns out that it is not served, and when a lookup takes more
        than `say_after` seconds. `pause`: seconds before a failed lookup is repeated."""
        self.known: dict[GroupKind, Resource | None] = {}
        """None: no such kind is served; it is looked for from time to time."""
        self.delayed: dict[GroupKind, str] = {}
        """Why a lookup takes long."""
        self._discovery = discovery
        self._found = found
        self._pause = pause
        self._say_after = say_after
        self._sleep = sleep
        self._tasks: dict[GroupKind, asyncio.Task[None]] = {}
        self._resting: set[GroupKind] = set()
        """Kinds that are not served, until they are looked for again."""
        self._demanded: set[GroupKind] = set()
        self.checked_at: dict[GroupKind, float] = {}
        """When the server was asked for what the last lookup found, in seconds of the event loop."""

    def demand(self, kind: GroupKind) -> None:
        """Something refers to an object of a kind that was not served, so that it may be now: it is looked for again,
        and `found` is called even if it is still not served."""
        self._demanded.add(kind)
        if kind in self._resting:
            self._resting.discard(kind)
            self._tasks.pop(kind).cancel()
            self._start(kind, asyncio.get_running_loop().time())

    def find(self, kind: GroupKind) -> None:
        """Looks a kind up, unless that was begun before."""
        if kind not in self._tasks:
            self._start(kind, None)

    def _start(self, kind: GroupKind, since: float | None) -> None:
        self._tasks[kind] = asyncio.create_task(self._find(kind, since), name=f"discovery of {kind}")

    async def _find(self, kind: GroupKind, since: float | None) -> None:
        """`since`: what is served is asked for no earlier; None: it may be known by now."""
        now = asyncio.get_running_loop().time
        began, pause = now(), self._pause
        while True:
            try:
                asked_at, resource = await self._resource(kind, since)
            except KubeError as error:
                since = now()
                level = logging.WARNING if pause == self._pause else logging.DEBUG  # the first of a series
                log.log(level, "cannot find out whether %s is served: %s; asking until there is an answer", kind, error)
                if kind not in self.known and kind not in self.delayed and now() - began >= self._say_after:
                    self.delayed[kind] = f"cannot find out whether {kind} is served: {error}"
                    self._found(kind)
                await self._sleep(pause)
                pause = min(2 * pause, RECHECK)
                continue
            pause = self._pause
            self.delayed.pop(kind, None)
            self.checked_at[kind] = asked_at
            if kind not in self.known or resource is not None or kind in self._demanded:
                self.known[kind] = resource
                self._demanded.discard(kind)
                self._found(kind)
            if resource is not None:
                return
            self._resting.add(kind)
            await self._sleep(RECHECK)
            self._resting.discard(kind)

    async def _resource(self, kind: GroupKind, since: float | None) -> tuple[float, Resource | None]:
        """When it was asked for, and the resource."""
        found = await self._discovery.group(kind.group, since)
        for resources in found.versions.values():
            for each in resources.values():
                if each.kind == kind.kind and "/" not in each.name:
                    return found.asked_at, Resource(kind.group, each.name, (), each.namespaced)
        return found.asked_at, None

    async def stop(self) -> None:
        await end_tasks(*self._tasks.values())
