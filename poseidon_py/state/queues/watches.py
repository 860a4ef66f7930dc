"""Watches the objects of all kinds of queues that the server serves, and finds those that are installed later.

A kind whose definition is removed is empty then. A kind that may not be read, or is served in versions alone that are
not supported, is not known, and takes no pods; if --queues names it, nothing is scheduled until it can be read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.informers.informers import RECHECK, SAY_AFTER, Informers
from poseidon_py.kube.informers.resource import path_of
from poseidon_py.kube.objects import Metadata
from poseidon_py.kube.other_controllers import ListApi
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.yunikorn import FILE
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.object_handler import ObjectHandler, by_namespace
from poseidon_py.state.queues.others import GRACE, Others
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.queues.yunikorn import CONFIG, YuniKorn

log = logging.getLogger(__name__)

_RETRY = 1.0
_WITHOUT = "pods that name queues of this kind wait"
_WITHOUT_NAMED = "nothing is scheduled until it can be read"
_WITHOUT_SETTINGS = "its settings are ignored"


class QueueWatches:
    """`run` in a separate task; `listed` is set once all queues that exist at the start are known."""

    def __init__(
        self,
        api: ListApi,
        informers: Informers,
        registry: QueueRegistry,
        metrics: Metrics,
        *,
        file: Path | None = None,
        grace: float = GRACE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`informers`: run elsewhere. `file`: holds the data of the ConfigMap of YuniKorn, which is not watched then;
        it is read again from time to time. `grace`: seconds for which a controller that is gone keeps its queues."""
        self._others = Others(api, registry, grace)
        self._file = file
        self._registry = registry
        self._metrics = metrics
        self._sleep = sleep
        self._text = ""
        self._wake = asyncio.Event()
        self._known = asyncio.Event()
        """Set once the objects of all kinds are known."""
        registry.kinds.unchecked = self._wake.set
        self._informers = {
            (kind, resource): self._informer(kind, resource)
            for kind, source in registry.kinds.sources.items()
            for resource in source.resources
            if file is None or kind != YuniKorn.kind
        }
        for informer in self._informers.values():
            informers.add(informer)
        self.listed = asyncio.Event()
        if not registry.kinds.sources:
            self.listed.set()
        if not self._informers:
            self._known.set()

    def _informer(self, kind: str, resource: Resource) -> Informer:
        source = self._registry.kinds.sources[kind]
        limits = resource not in source.limit_nothing
        required = limits and self._registry.mode == kind
        without = _WITHOUT_NAMED if required else _WITHOUT if limits else _WITHOUT_SETTINGS
        handler: ObjectHandler[QueueObject] = ObjectHandler(
            resource.label,
            by_namespace,
            lambda item: self._registry.put(kind, resource, item),
            lambda key: self._registry.drop(kind, resource, *key),
            self._metrics,
            counted_as=resource.plural,
        )
        informer = Informer(
            resource,
            handler,
            QueueObject,
            without,
            required=required,
            settled=lambda: self._settled(kind),
            selector=source.selectors.get(resource, ""),
            patience=SAY_AFTER,
        )
        informer.awaited = False
        return informer

    def _settled(self, kind: str) -> None:
        """Something is known of a kind: tells the registry whether its limits are."""
        source = self._registry.kinds.sources[kind]
        limiting = [
            informer
            for (of, resource), informer in self._informers.items()
            if of == kind and resource not in source.limit_nothing
        ]
        self._registry.set_unreadable(kind, next((each.unreadable for each in limiting if each.unreadable), ""))
        if all(informer.ready for informer in self._informers.values()):
            self._known.set()

    async def run(self) -> None:
        """Never returns."""
        self._read_file()
        await self._known.wait()
        while True:
            self._wake.clear()
            checked = await self._others.check()
            self.listed.set()
            await self._pause(RECHECK if checked else _RETRY)
            self._read_file()

    async def _pause(self, seconds: float) -> None:
        """Until the next check of other controllers, which comes at once if somebody waits for it, but no sooner than a
        retry."""
        if seconds == _RETRY:
            await self._sleep(seconds)
            return
        tasks = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._wake.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _read_file(self) -> None:
        """A file that cannot be read keeps its last content."""
        if self._file is None or YuniKorn.kind not in self._registry.kinds.sources:
            return
        try:
            text = self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            log.warning("cannot read the queues in %s: %s", self._file, error)
            return
        if text != self._text:
            self._text = text
            data = msgspec.Raw(msgspec.json.encode({FILE: text}))
            self._registry.put(YuniKorn.kind, CONFIG, QueueObject(Metadata(name=str(self._file)), data=data))

    @property
    def unsupported(self) -> list[str]:
        """Resources that are served in unsupported versions only."""
        return sorted(each.unsupported for each in self._informers.values() if each.unsupported)

    def path_of(self, resource: Resource, namespace: str, name: str) -> str:
        """The path of an object; empty: its resource is not served, or cannot be read."""
        found = next((each.path for (_, known), each in self._informers.items() if known == resource), "")
        return path_of(found, namespace, name) if found else ""
