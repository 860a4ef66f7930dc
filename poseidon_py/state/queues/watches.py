"""Watches the objects of all kinds of queues that the server serves, and discovers those that are installed later.

A kind whose definition is removed is empty then. A version that is not supported is named, and the other kinds go on. A
kind that may not be read is not known, and takes no pods; if --queues names it, nothing is scheduled until then.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from poseidon_py.kube.client import KubeError
from poseidon_py.kube.informers.discovery import served
from poseidon_py.kube.list_watch import Kind, Watch, WatchOptions
from poseidon_py.kube.objects import Metadata
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.yunikorn import FILE
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.object_handler import ObjectHandler, by_namespace
from poseidon_py.state.queues.others import GRACE, Others
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.queues.yunikorn import CONFIG, YuniKorn
from poseidon_py.util.restarts import restarted
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

RECHECK = 30.0
"""Seconds between two discoveries."""
_RETRY = 1.0
_WITHOUT = "pods that name queues of this kind wait"
_WITHOUT_SETTINGS = "its settings are ignored"


class QueueApi(Protocol):
    """The part of kube.Kube that the watches use."""

    async def call(self, verb: str, path: str) -> bytes: ...
    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class _Watched:
    """A resource that is served."""

    def __init__(
        self,
        path: str,
        watch: Watch[QueueObject],
        handler: ObjectHandler[QueueObject],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.path = path
        self.watch = watch
        self.handler = handler
        self.missed = False
        """Whether the last discovery missed it, as happens while a server starts."""
        name = f"watch {watch.name}"
        self.task = asyncio.create_task(restarted(name, watch.run, sleep=sleep), name=name)

    async def stop(self) -> None:
        await end_tasks(self.task)


class QueueWatches:
    """`run` in a separate task; `listed` is set once all queues that exist at the start are known."""

    def __init__(
        self,
        api: QueueApi,
        registry: QueueRegistry,
        watching: WatchOptions,
        metrics: Metrics,
        *,
        file: Path | None = None,
        grace: float = GRACE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`file`: holds the data of the ConfigMap of YuniKorn, which is not watched then; it is read again from time to
        time. `grace`: seconds for which a controller that is gone keeps its queues."""
        self._api = api
        self._others = Others(api, registry, grace)
        self._file = file
        self._registry = registry
        self._watching = watching
        self._metrics = metrics
        self._sleep = sleep
        self._watched: dict[tuple[str, Resource], _Watched] = {}
        self._text = ""
        self._named: set[str] = set()
        """Unsupported versions that were logged."""
        self._wake = asyncio.Event()
        registry.kinds.unchecked = self._wake.set
        self.listed = asyncio.Event()
        if not registry.kinds.sources:
            self.listed.set()

    async def run(self) -> None:
        """Never returns."""
        try:
            while True:
                complete = await self._discover()
                if complete and not self.listed.is_set():
                    for watched in list(self._watched.values()):
                        await watched.watch.listed.wait()
                self._note_unreadable()
                self._wake.clear()
                checked = await self._others.check()
                if complete:
                    self.listed.set()
                await self._pause(RECHECK if complete and checked else _RETRY)
        finally:
            for watched in self._watched.values():
                await watched.stop()

    async def _pause(self, seconds: float) -> None:
        """Until the next discovery, which comes at once if somebody waits for it, but no sooner than a retry."""
        if seconds == _RETRY:
            await self._sleep(seconds)
            return
        tasks = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._wake.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _note_unreadable(self) -> None:
        """Tells the registry of which kinds no limits are known."""
        for kind, source in self._registry.kinds.sources.items():
            watches = [
                each.watch
                for (of, resource), each in self._watched.items()
                if of == kind and resource not in source.limit_nothing
            ]
            self._registry.set_unreadable(kind, next((each.unreadable for each in watches if each.unreadable), ""))

    async def _discover(self) -> bool:
        """Starts and ends watches. Returns whether all groups were found out."""
        groups: dict[str, Mapping[str, Container[str]] | None] = {}
        for kind, source in self._registry.kinds.sources.items():
            for resource in source.resources:
                if kind == YuniKorn.kind and self._file is not None:
                    self._read_file(kind, self._file)
                    continue
                if resource.group and resource.group not in groups:
                    groups[resource.group] = await self._served(resource.group)
                found = groups.get(resource.group, {}) if resource.group else {resource.versions[0]: {resource.plural}}
                if found is not None:
                    await self._follow(kind, resource, self._path(resource, found))
        return None not in groups.values()

    def _read_file(self, kind: str, file: Path) -> None:
        """A file that cannot be read keeps its last content."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            log.warning("cannot read the queues in %s: %s", file, error)
            return
        if text != self._text:
            self._text = text
            data = msgspec.Raw(msgspec.json.encode({FILE: text}))
            self._registry.put(kind, CONFIG, QueueObject(Metadata(name=str(file)), data=data))

    async def _served(self, group: str) -> Mapping[str, Container[str]] | None:
        """What is served of a group; None: that cannot be found out now."""
        try:
            return await served(self._api, group)
        except KubeError as error:
            log.warning("cannot find out which queues of %s are served: %s", group, error)
            return None

    def _path(self, resource: Resource, found: Mapping[str, Container[str]]) -> str:
        """The path of a resource; empty: it is not served in a supported version."""
        versions = [version for version, plurals in found.items() if resource.plural in plurals]
        for version in resource.versions:
            if version in versions:
                root = f"/apis/{resource.group}" if resource.group else "/api"
                return f"{root}/{version}/{resource.plural}"
        if versions:
            problem = f"{resource.label} is served in {', '.join(versions)}, not in {' or '.join(resource.versions)}"
            if problem not in self._named:
                self._named.add(problem)
                log.warning("%s, which are supported: its queues are ignored", problem)
        return ""

    @property
    def unsupported(self) -> list[str]:
        """Resources that are served in unsupported versions only."""
        return sorted(self._named)

    async def _follow(self, kind: str, resource: Resource, path: str) -> None:
        """Watches a resource at a path, and no longer at another one."""
        watched = self._watched.get((kind, resource))
        if watched is not None:
            if watched.path == path:
                watched.missed = False
                return
            if not path and not watched.missed:
                watched.missed = True
                return
            del self._watched[kind, resource]
            await watched.stop()
            if not path:
                watched.handler.clear()
                return
        if not path:
            return
        log.info("watching %s at %s", resource.label, path)
        handler = watched.handler if watched else self._handler(kind, resource)
        source = self._registry.kinds.sources[kind]
        without = _WITHOUT_SETTINGS if resource in source.limit_nothing else _WITHOUT
        if self._registry.mode == kind and without == _WITHOUT:
            without = ""
        selector = source.selectors.get(resource, "")
        served_at = Kind(resource.label, path, QueueObject, selector, without=without)
        watch = Watch(self._api, served_at, handler, self._watching, metrics=self._metrics)
        self._watched[kind, resource] = _Watched(path, watch, handler, self._sleep)

    def _handler(self, kind: str, resource: Resource) -> ObjectHandler[QueueObject]:
        return ObjectHandler(
            resource.label,
            by_namespace,
            lambda item: self._registry.put(kind, resource, item),
            lambda key: self._registry.drop(kind, resource, *key),
            self._metrics,
            counted_as=resource.plural,
        )

    def path_of(self, resource: Resource, namespace: str, name: str) -> str:
        """The path of an object; empty: its resource is not served."""
        watched = next((watched for (_, known), watched in self._watched.items() if known == resource), None)
        if watched is None:
            return ""
        root, _, plural = watched.path.rpartition("/")
        return f"{root}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{watched.path}/{name}"
