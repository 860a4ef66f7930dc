"""Resources that are discovered, listed and watched from the moment in which somebody asks for them.

    added ──► discovery ──► served: listed and watched
                │   ▲               │ no longer served, or in another version
                ▼   └── later ◄─────┘
           absent, or forbidden

A resource that is absent (its definition is not installed) is discovered again when it is asked for, and every few
seconds, since it may be installed at any time; a served one more rarely, since its version may change, and so is an
absent one that nobody asks for. A resource that may not be read counts as absent, with a warning that says what
follows.
"""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from poseidon_py.kube.client import ApiError, BusyError, KubeError
from poseidon_py.kube.informers.discovery import served
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.kube.list_watch import Handler, Kind, Source, Watch, WatchOptions
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.restarts import restarted
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

RECHECK = 30.0
"""Seconds between two discoveries of a resource that is served."""
_RECHECK_ABSENT = 5.0
_RECHECK_ON_DEMAND = 2.0
"""Minimum of seconds between two discoveries of an absent resource that is asked for."""
SAY_AFTER = 30.0
"""Seconds after which it is said why a resource is not known yet."""


class InformerApi(Protocol):
    """The part of kube.Kube that informers use."""

    @property
    def metadata(self) -> Source: ...
    async def call(self, verb: str, path: str) -> bytes: ...
    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class ClearedHandler(Handler[Any], Protocol):
    """The handler of a watch of a resource that can disappear."""

    def clear(self) -> None:
        """Forget all objects: the resource is not served any more, or may not be read."""


class Informer:
    """One resource, and whether its objects are known."""

    def __init__(
        self, resource: Resource, handler: ClearedHandler, item: type[Any], without: str, *, metadata_only: bool = False
    ) -> None:
        """`item`: the type of the objects. `without`: what follows if they cannot be read. `metadata_only`: the server
        sends nothing but their metadata."""
        self.resource = resource
        self.handler = handler
        self.item = item
        self.without = without
        self.metadata_only = metadata_only
        self.path = ""
        """API path; empty: not served, as far as it is known."""
        self.ready = False
        """Whether its objects are known: it is listed, absent or forbidden."""
        self.delayed = ""
        """Why it takes long until it is ready; empty: it does not."""
        self.forbidden = ""
        """Why it may not be read, as the last discovery found; empty: it may, or is absent."""
        self.added_at = 0.0
        """Monotonic seconds."""
        self.checked_at = -1e9
        """Monotonic seconds of the last discovery."""
        self.awaited = True
        """Whether somebody looks for its objects: as long as it is absent, it is then discovered often."""
        self.demanded = False
        """Whether something waits for the next discovery."""
        self.missing_once = False
        """Whether the last discovery missed it although it was served, as happens while a server starts."""
        self.task: asyncio.Task[None] | None = None


class Informers:
    """`run` in a separate task."""

    def __init__(
        self,
        api: InformerApi,
        settled: Callable[[Informer], None],
        *,
        watching: WatchOptions,
        pause: float = 1.0,
        say_after: float = SAY_AFTER,
        metrics: ProcessMetrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`settled`: called when a resource is ready, and when that takes long. `pause`: seconds before a failed
        discovery is repeated."""
        self._api = api
        self._settled = settled
        self._watching = watching
        self._pause = pause
        self._say_after = say_after
        self._metrics = metrics
        self._sleep = sleep
        self._informers: dict[Resource, Informer] = {}
        self._wake = asyncio.Event()

    def add(self, informer: Informer) -> None:
        informer.added_at = _now()
        self._informers[informer.resource] = informer
        self._wake.set()

    def demand(self, informer: Informer) -> None:
        """Something refers to an object of an absent resource, so that it may have been installed just now: it is
        discovered again, and `settled` is called even if it is still absent."""
        informer.awaited = informer.demanded = True
        delay = max(informer.checked_at + _RECHECK_ON_DEMAND - _now(), 0.0)
        asyncio.get_running_loop().call_later(delay, self._wake.set)

    def ask(self, informer: Informer) -> None:
        """Somebody looks for an object of the resource: if it is absent, it is discovered again soon."""
        if not informer.path and _now() - informer.checked_at > _RECHECK_ON_DEMAND:
            self._wake.set()

    async def run(self) -> None:
        """Discovers the resources that were added, and repeats that from time to time. Never returns."""
        try:
            while True:
                self._wake.clear()
                for informer in list(self._informers.values()):
                    await self._discover(informer)
                absent = any(informer.awaited and not informer.path for informer in self._informers.values())
                try:
                    async with asyncio.timeout(_RECHECK_ABSENT if absent else RECHECK):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            tasks = [informer.task for informer in self._informers.values() if informer.task is not None]
            await end_tasks(*tasks)

    # -- discovery --------------------------------------------------------------------------------------------

    async def _discover(self, informer: Informer) -> None:
        now = _now()
        if now - informer.checked_at < (_RECHECK_ON_DEMAND if informer.awaited and not informer.path else RECHECK):
            return
        informer.checked_at = now
        label = informer.resource.label
        try:
            path = await self.locate(informer.resource)
            if path and path != informer.path:
                await self._api.page(path, {"limit": "1"})  # may we read it?
        except ApiError as error:
            if isinstance(error, BusyError):
                self._discover_again(informer, str(error))
                return
            if not informer.forbidden:
                log.warning("cannot watch %s, so %s: %s", label, informer.without, error)
            informer.forbidden = str(error)
            if informer.path:
                return  # an API server that has just started has not loaded its roles; the watch retries by itself
            path = ""
        except KubeError as error:
            self._discover_again(informer, str(error))
            return
        else:
            informer.forbidden = ""
        if informer.path and not path and not informer.missing_once:
            informer.missing_once = True
            self._discover_again(informer, "it was served, and is not found any more")
            return
        informer.missing_once = False
        if path != informer.path:
            self._move(informer, path)
        if informer.demanded and not path:
            self._settled(informer)
        informer.demanded = False
        if not path and not informer.ready:
            log.info("%s is not served, and is looked for again every %g s", label, _RECHECK_ABSENT)
            self._set_ready(informer)

    def _discover_again(self, informer: Informer, why: str) -> None:
        """Discovers again after a pause. The known objects are kept: without their group members would be single
        pods."""
        label = informer.resource.label
        log.warning("cannot find out whether %s is served: %s", label, why)
        if not informer.ready and _now() - informer.added_at >= self._say_after:
            self._delay(informer, f"cannot find out whether {label} is served: {why}")
        informer.checked_at = -1e9
        asyncio.get_running_loop().call_later(self._pause, self._wake.set)

    async def locate(self, resource: Resource) -> str:
        """The path of a resource in its preferred version; empty: it is not served. Raises KubeError."""
        if not resource.group:
            return f"/api/{resource.versions[0]}/{resource.plural}"  # the core group, which every server has
        versions = [version for version, names in (await served(self._api, resource.group)).items()
                    if resource.plural in names]  # fmt: skip
        preferred = [version for version in resource.versions if version in versions]
        version = next(iter(preferred + versions), "")
        return f"/apis/{resource.group}/{version}/{resource.plural}" if version else ""

    # -- watches ----------------------------------------------------------------------------------------------

    def _move(self, informer: Informer, path: str) -> None:
        """The resource is served at another path; empty: it is not served."""
        if informer.task is not None:
            informer.task.cancel()
            informer.task = None
        informer.path = path
        if not path:
            informer.handler.clear()
            return
        label = informer.resource.label
        log.info("watching %s at %s", label, path)
        follow = functools.partial(self._follow, informer)
        name = f"watch {label}"
        informer.task = asyncio.create_task(restarted(name, follow, sleep=self._sleep), name=name)

    async def _follow(self, informer: Informer) -> None:
        label = informer.resource.label
        source = self._api.metadata if informer.metadata_only else self._api
        kind = Kind(label, informer.path, informer.item)
        watch = Watch(source, kind, informer.handler, self._watching, metrics=self._metrics)

        async def when_listed() -> None:
            try:
                async with asyncio.timeout(self._say_after):
                    await watch.listed.wait()
            except TimeoutError:
                self._delay(informer, f"cannot list {label} yet; see the scheduler's log")
                await watch.listed.wait()
            self._set_ready(informer)

        async with asyncio.TaskGroup() as group:
            group.create_task(when_listed())
            group.create_task(watch.run())

    def _delay(self, informer: Informer, why: str) -> None:
        if not informer.ready and not informer.delayed:
            informer.delayed = why
            self._settled(informer)

    def _set_ready(self, informer: Informer) -> None:
        informer.ready = True
        self._settled(informer)


def _now() -> float:
    return asyncio.get_running_loop().time()
