"""Resources that are discovered, listed and watched from the moment in which somebody asks for them.

    added ──► discovery ──► served in a supported version: listed and watched
                │   ▲               │ no longer served, or in another version
                ▼   └── later ◄─────┘
           absent, or served in versions that are not supported

One task per API group asks what is served of it, for all its resources; each resource is listed and watched on its own.
So nothing that fails for one resource or group delays another. A resource that is absent (its definition is not
installed) is discovered again when it is asked for, and every few seconds, since it may be installed at any time; a
served one more rarely, since its version may change, and so is an absent one that nobody asks for. One that was served
is absent only when it is missed twice: a server that starts does not know all definitions at once.

What is served in versions that are not supported alone is refused, with a warning that names them and says what
follows. What may not be read is named in the same way, and tried again by its watch.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from poseidon_py.kube.client import KubeError
from poseidon_py.kube.informers.defect_guard import DefectGuard
from poseidon_py.kube.informers.discovery import FRESH, Discovery, ServedGroup
from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.list_watch import Kind, Source, Watch, WatchOptions
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.backoff import Backoff
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
_FIRST_RELIST, _LAST_RELIST = 1.0, 60.0
"""Seconds until all objects are listed again after a defect, at first and at most."""


class InformerApi(Protocol):
    """The part of kube.Kube that informers use."""

    @property
    def metadata(self) -> Source: ...
    async def call(self, verb: str, path: str) -> bytes: ...
    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class _Group:
    """The resources of an API group."""

    def __init__(self, name: str, pause: float) -> None:
        self.name = name
        self.informers: list[Informer] = []
        self.wake = asyncio.Event()
        self.since = -1e9
        """The next answer must not be older, in seconds of the event loop."""
        self.backoff = Backoff(pause, max(pause, _RECHECK_ABSENT))
        self.failing = False
        """Whether the last discovery has failed: the next one comes after the pause, whoever asks."""
        self.task: asyncio.Task[None] | None = None


class Informers:
    """`run` in a separate task."""

    def __init__(
        self,
        api: InformerApi,
        *,
        watching: WatchOptions,
        metrics: ProcessMetrics,
        pause: float = 1.0,
        say_after: float = SAY_AFTER,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`pause`: seconds before a failed discovery is repeated. `sleep`: between the attempts of what a defect has
        ended."""
        self._api = api
        self._watching = watching
        self._metrics = metrics
        self._pause = pause
        self._say_after = say_after
        self._sleep = sleep
        self._groups: dict[str, _Group] = {}
        self._runs = False
        self.discovery = Discovery(api)

    def add(self, informer: Informer) -> None:
        informer.added_at = _now()
        group = self._groups.get(informer.resource.group)
        if group is None:
            group = self._groups[informer.resource.group] = _Group(informer.resource.group, self._pause)
            if self._runs:
                self._start(group)
        group.informers.append(informer)
        group.wake.set()

    def demand(self, informer: Informer) -> None:
        """Something refers to an object of an absent resource, so that it may have been installed just now: it is
        discovered again, and `settled` is called even if it is still absent."""
        now, group = _now(), self._groups[informer.resource.group]
        informer.awaited = True
        if informer.demanded_at is not None:
            return  # those that are too late for that discovery ask again when it has settled the others
        informer.demanded_at = group.since = now
        if not group.failing:
            delay = max(informer.checked_at + _RECHECK_ON_DEMAND - now, 0.0)
            asyncio.get_running_loop().call_later(delay, group.wake.set)

    def ask(self, informer: Informer) -> None:
        """Somebody looks for an object of the resource: if it is absent, it is discovered again soon."""
        group = self._groups[informer.resource.group]
        if not (informer.location or group.failing) and _now() - informer.checked_at > _RECHECK_ON_DEMAND:
            group.wake.set()

    async def run(self) -> None:
        """Discovers and watches the resources that were added, and those that will be. Never returns."""
        self._runs = True
        try:
            for group in self._groups.values():
                self._start(group)
            await asyncio.Event().wait()
        finally:
            self._runs = False
            groups = self._groups.values()
            await end_tasks(*(group.task for group in groups if group.task is not None))
            informers = [informer for group in groups for informer in group.informers]
            await end_tasks(*(informer.task for informer in informers if informer.task is not None))

    def _start(self, group: _Group) -> None:
        name = f"discovery of {group.name or 'the core group'}"
        follow = restarted(name, lambda: self._follow_group(group), sleep=self._sleep)
        group.task = asyncio.create_task(follow, name=name)

    # -- discovery --------------------------------------------------------------------------------------------

    async def _follow_group(self, group: _Group) -> None:
        while True:
            group.wake.clear()
            pause = await self._discover(group)
            try:
                async with asyncio.timeout(pause):
                    await group.wake.wait()
            except TimeoutError:
                pass

    async def _discover(self, group: _Group) -> float | None:
        """Follows what is served of a group. Returns the seconds until it is to be repeated; None: it is not."""
        if not group.name:  # the core group, which every server has
            for informer in list(group.informers):
                await self._take(informer, list(informer.resource.versions), _now())
            return None
        try:
            found = await self.discovery.group(group.name, max(_now() - FRESH, group.since))
        except KubeError as error:
            self._note_failure(group, error)
            return group.backoff.next()
        group.backoff.reset()
        group.failing = False
        unsure = [each for each in list(group.informers) if not await self._believe(each, found)]
        if unsure:
            group.since = _now()
            return self._pause
        absent = any(informer.awaited and not informer.location for informer in group.informers)
        return _RECHECK_ABSENT if absent else RECHECK

    def _note_failure(self, group: _Group, error: KubeError) -> None:
        """The known objects are kept: without theirs, the pods of gangs would be single ones."""
        level = logging.DEBUG if group.failing else logging.WARNING
        log.log(level, "cannot find out what is served of %s: %s; asking until there is an answer", group.name, error)
        group.failing = True
        group.since = _now()
        for informer in group.informers:
            if not informer.ready and _now() - informer.added_at >= self._say_after:
                self._delay(informer, f"cannot find out whether {informer.resource.label} is served: {error}")

    async def _believe(self, informer: Informer, found: ServedGroup) -> bool:
        """Follows what was found of a resource. Returns whether it is certain."""
        served = found.versions_of(informer.resource.plural)
        if informer.location and not served and not informer.missing_once:
            log.warning("%s was served, and is not found any more; asking again", informer.resource.label)
            informer.missing_once = True
            return False
        informer.missing_once = False
        await self._take(informer, served, found.asked_at)
        return True

    async def _take(self, informer: Informer, served: list[str], asked_at: float) -> None:
        """A resource is served in these versions."""
        label, unsupported_before = informer.resource.label, informer.unsupported
        informer.checked_at = asked_at
        version = informer.choose(served)
        location = informer.resource.collection(version, informer.namespace) if version else ""
        if informer.unsupported and informer.unsupported != unsupported_before:
            follows = "only the metadata of its objects is read" if version else informer.without
            log.warning("%s; until then %s", informer.left_out, follows)
        news = location != informer.location
        if news:
            await self._move(informer, location)
        if location:
            if news and informer.unreadable:
                informer.settled()
            return
        unreadable = informer.left_out if informer.unsupported else ""
        news = news or unreadable != informer.unreadable or not informer.ready
        informer.unreadable = unreadable
        informer.ready = informer.ready or not (unreadable and informer.required)
        if news and not unreadable:
            log.log(
                logging.INFO if informer.awaited else logging.DEBUG,
                "%s is not served, and is looked for again every %g s",
                label,
                _RECHECK_ABSENT if informer.awaited else RECHECK,
            )
        if informer.demanded_at is not None and informer.demanded_at <= asked_at:
            informer.demanded_at, news = None, True
        if news:
            informer.settled()

    # -- watches ----------------------------------------------------------------------------------------------

    async def _move(self, informer: Informer, location: str) -> None:
        """The resource is served at another path; empty: it is not served."""
        if informer.task is not None:
            await end_tasks(informer.task)
            informer.task = None
        label = informer.resource.label
        slow = f"cannot list {label} yet; see the scheduler's log"
        # what could not be read so far stays closed until it is listed
        informer.unreadable = slow if location and informer.unreadable else ""
        informer.location, informer.demanded_at = location, None
        guard = DefectGuard(label, informer.handler)
        if not location:
            guard.clear()
            return
        log.info("watching %s at %s", label, location)
        source = self._api.metadata if informer.metadata_only else self._api
        kind: Kind[Any] = Kind(
            label,
            location,
            informer.item,
            informer.selector,
            without="" if informer.required else informer.without,
            labels=informer.labels,
            patience=informer.patience,
        )
        watch: Watch[Any] = Watch(
            source,
            kind,
            guard,
            self._watching,
            metrics=self._metrics,
            changed=lambda: self._note(informer, watch),
            monotonic=asyncio.get_running_loop().time,
        )
        informer.task = asyncio.create_task(self._follow(watch, guard), name=f"informer of {label}")
        if not informer.ready:
            asyncio.get_running_loop().call_later(self._say_after, self._delay, informer, slow)

    async def _follow(self, watch: Watch[Any], guard: DefectGuard) -> None:
        """Lists and watches; after a defect that an object has triggered, all are listed again before long."""
        name, backoff, now = f"watch {watch.name}", Backoff(_FIRST_RELIST, _LAST_RELIST), _now
        while True:
            began = now()
            run = asyncio.create_task(restarted(name, watch.run, sleep=self._sleep), name=name)
            try:
                await guard.failed.wait()
                if now() - began >= 2 * _LAST_RELIST:
                    backoff.reset()
                await self._sleep(backoff.next())
            finally:
                await end_tasks(run)
            guard.failed.clear()

    def _note(self, informer: Informer, watch: Watch[Any]) -> None:
        """The objects were listed, or it turned out that they cannot be."""
        informer.unreadable = watch.unreadable
        informer.ready = informer.ready or watch.listed.is_set()
        informer.settled()

    def _delay(self, informer: Informer, why: str) -> None:
        if not informer.ready and not informer.delayed:
            informer.delayed = why
            informer.settled()


def _now() -> float:
    return asyncio.get_running_loop().time()
