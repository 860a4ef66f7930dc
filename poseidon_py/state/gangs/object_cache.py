"""The objects that conventions look up: found by API discovery, watched from the first lookup on.

    first lookup ──► discovery ──► served: listed and watched
                       │   ▲               │ no longer served, or in another version
                       ▼   └── later ◄─────┘
                  absent, or forbidden

A resource that is absent (its definition is not installed) is discovered again on the next lookup, and every few
seconds, since it may be installed at any time; a served one more rarely, since its version may change. A resource that
the scheduler may not read counts as absent, with a warning.

Watches lag behind each other: a pod can be observed before its owner. An owner that is not in the cache is fetched, and
counts as unknown until there is an answer.
"""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from msgspec import Struct

from poseidon_py.kube.client import ApiError, BusyError, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.list_watch import Kind, Watch, WatchOptions
from poseidon_py.state.gangs.by_owner import OWNERS
from poseidon_py.state.gangs.decode import Item
from poseidon_py.state.gangs.model import Owner, OwnerOrGroup, Resource, Unknown
from poseidon_py.state.gangs.resource_cache import Changed, ResourceCache
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.restarts import restarted

log = logging.getLogger(__name__)

RECHECK = 30.0
_RECHECK_ABSENT = 5.0
_RECHECK_MISSING_ON_DEMAND = 2.0
"""Minimum of seconds between two discoveries of an absent resource on demand."""
_SAY_AFTER = 30.0
"""Seconds after which the pods that wait for a lookup are told why it takes so long."""


class _ServedVersion(Struct):
    version: str


class _ServedGroup(Struct):
    """APIGroup."""

    versions: list[_ServedVersion]


class _ServedResource(Struct):
    name: str


class _ServedResources(Struct):
    """APIResourceList."""

    resources: list[_ServedResource]


class ObjectApi(Protocol):
    """The part of kube.Kube that the cache uses."""

    async def call(self, verb: str, path: str) -> bytes: ...
    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class ObjectCache:
    """Implements model.Objects. `run` in a separate task."""

    def __init__(
        self,
        api: ObjectApi,
        changed: Changed,
        resolved: Callable[[str], None],
        *,
        watching: WatchOptions = WatchOptions(),  # noqa: B008 (it is frozen)
        patience: float = 0.1,
        pause: float = 1.0,
        kinds: Mapping[tuple[str, str], Resource] | None = None,
        say_after: float = _SAY_AFTER,
        metrics: Metrics | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`resolved`: called with each lookup that was unknown and has ended, or takes long. `patience`: seconds to
        wait for the watch to show an owner before it is fetched. `kinds`: owners by group and kind, besides OWNERS.
        `say_after`: seconds after which a lookup takes long."""
        self._api = api
        self._changed = changed
        self._known_now = resolved
        self._watching = watching
        self._metrics = metrics if metrics is not None else Metrics()
        self._patience = patience
        self._pause = pause  # seconds before a failed discovery is repeated
        self._sleep = sleep
        self._caches: dict[Resource, ResourceCache] = {}
        self._wake = asyncio.Event()
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._kinds = {**OWNERS, **(kinds or {})}
        self._of_owners = frozenset(self._kinds.values())
        self._say_after = say_after
        self._delayed: dict[str, str] = {}
        """Lookups of owners that take long -> why."""

    # -- lookups ----------------------------------------------------------------------------------------------

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        cache = self._cache(resource)
        entry = cache.by_name.get((namespace, name))
        if entry is None and not cache.path and self._now() - cache.checked_at > _RECHECK_MISSING_ON_DEMAND:
            self._wake.set()
        return entry

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        resource = self._kinds.get((owner.group, owner.kind))
        if resource is None:
            return None
        cache = self._cache(resource)
        entry = cache.by_uid.get(owner.uid)
        if entry is None and cache.path and owner.uid not in cache.gone:
            what = f"{resource.label}/{owner.uid}"
            if what not in self._lookups:
                self._lookups[what] = asyncio.create_task(self._fetch_owner(cache, owner, namespace, what))
            raise Unknown(what, self._delayed.get(what, ""))
        return entry

    def has_owner(self, uid: str) -> bool:
        """Whether an owner with this UID is cached."""
        return self.known_owner(uid) is not None

    def known_owner(self, uid: str) -> OwnerOrGroup | None:
        """The cached owner with this UID."""
        caches = (cache for resource, cache in self._caches.items() if resource in self._of_owners)
        return next((cache.by_uid[uid] for cache in caches if uid in cache.by_uid), None)

    def serves(self, resource: Resource) -> bool:
        return bool(self._cache(resource).path)

    def path_of(self, resource: Resource, entry: OwnerOrGroup) -> str:
        """The path of an object; empty if its resource is not served."""
        cache = self._caches.get(resource)
        return _path(cache.path, entry.namespace, entry.name) if cache is not None and cache.path else ""

    def _cache(self, resource: Resource) -> ResourceCache:
        """The cache of a resource. Raises Unknown until it is ready."""
        cache = self._caches.get(resource)
        if cache is None:
            cache = self._caches[resource] = ResourceCache(resource, self._changed, self._metrics)
            cache.created_at = self._now()
            self._wake.set()
        if not cache.ready:
            raise Unknown(resource.label, cache.delayed)
        return cache

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _fetch_owner(self, cache: ResourceCache, owner: Owner, namespace: str, what: str) -> None:
        began = self._now()
        try:
            delay = self._patience
            while owner.uid not in cache.by_uid and cache.path:
                await self._sleep(delay)
                if owner.uid in cache.by_uid:
                    break
                try:
                    answer = await self._api.call("GET", _path(cache.path, namespace, owner.name))
                    item = decode_answer(answer, Item, what)
                except NotFoundError:
                    cache.missing(owner.uid)
                    break
                except KubeError as error:
                    log.warning("cannot look up %s %s/%s: %s", cache.resource.label, namespace, owner.name, error)
                    if self._now() - began >= self._say_after and what not in self._delayed:
                        self._delayed[what] = (
                            f"cannot look up its owner, {owner.kind} {namespace}/{owner.name}: {error}"
                        )
                        self._known_now(what)
                    delay = min(2 * delay, 5.0)
                    continue
                if item.metadata.uid != owner.uid:
                    cache.missing(owner.uid)
                else:
                    cache.observe(item)
                    if owner.uid not in cache.by_uid:
                        cache.missing(owner.uid)  # it is invalid
                break
        finally:
            self._lookups.pop(what, None)
            self._delayed.pop(what, None)
            self._known_now(what)

    # -- discovery --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Discover the resources that were looked up, and repeat that from time to time. Never returns."""
        try:
            while True:
                self._wake.clear()
                for cache in list(self._caches.values()):
                    await self._discover(cache)
                absent = any(not cache.path for cache in self._caches.values())
                try:
                    async with asyncio.timeout(_RECHECK_ABSENT if absent else RECHECK):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            await self._stop()

    async def _stop(self) -> None:
        tasks = [cache.task for cache in self._caches.values() if cache.task is not None]
        tasks += self._lookups.values()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _discover(self, cache: ResourceCache) -> None:
        now = self._now()
        if now - cache.checked_at < (RECHECK if cache.path else _RECHECK_MISSING_ON_DEMAND):
            return
        cache.checked_at = now
        try:
            path = await self.locate(cache.resource)
            if path and path != cache.path:
                await self._api.page(path, {"limit": "1"})  # may we read it?
        except ApiError as error:
            if isinstance(error, BusyError):
                self._discover_again(cache, str(error))
                return
            if not cache.forbidden:
                log.warning(
                    "cannot watch %s, so gangs that it declares are ignored, and its selector for spreading: %s",
                    cache.resource.label,
                    error,
                )
            cache.forbidden = True
            if cache.path:
                return  # an API server that has just started has not loaded its roles; the watch retries by itself
            path = ""
        except KubeError as error:
            self._discover_again(cache, str(error))
            return
        else:
            cache.forbidden = False
        if cache.path and not path and not cache.missing_once:
            cache.missing_once = True
            self._discover_again(cache, "it was served, and is not found any more")
            return
        cache.missing_once = False
        if path != cache.path:
            if cache.task is not None:
                cache.task.cancel()
                cache.task = None
            cache.path = path
            if path:
                log.info("watching %s at %s", cache.resource.label, path)
                name = f"watch {cache.resource.label}"
                follow = functools.partial(self._follow, cache)
                cache.task = asyncio.create_task(restarted(name, follow, sleep=self._sleep), name=name)
            else:
                cache.clear()
        if not path and not cache.ready:
            log.info("%s is not served, and is looked for again every %g s", cache.resource.label, _RECHECK_ABSENT)
            self._set_ready(cache)

    def _discover_again(self, cache: ResourceCache, why: str) -> None:
        """Discover again after a pause. The cached objects are kept: without them gang members would be single pods."""
        log.warning("cannot find out whether %s is served: %s", cache.resource.label, why)
        if not cache.ready and self._now() - cache.created_at >= self._say_after:
            self._delay(cache, f"cannot find out whether {cache.resource.label} is served: {why}")
        cache.checked_at = -1e9
        asyncio.get_running_loop().call_later(self._pause, self._wake.set)

    async def _follow(self, cache: ResourceCache) -> None:
        watch = Watch(
            self._api, Kind(cache.resource.label, cache.path, Item), cache, self._watching, metrics=self._metrics
        )

        async def when_listed() -> None:
            try:
                async with asyncio.timeout(self._say_after):
                    await watch.listed.wait()
            except TimeoutError:
                self._delay(cache, f"cannot list {cache.resource.label} yet; see the scheduler's log")
                await watch.listed.wait()
            self._set_ready(cache)

        async with asyncio.TaskGroup() as group:
            group.create_task(when_listed())
            group.create_task(watch.run())

    def _delay(self, cache: ResourceCache, why: str) -> None:
        """Tell the pods that wait for a resource why."""
        if not cache.ready and not cache.delayed:
            cache.delayed = why
            self._known_now(cache.resource.label)

    def _set_ready(self, cache: ResourceCache) -> None:
        cache.ready = True
        self._known_now(cache.resource.label)

    async def locate(self, resource: Resource) -> str:
        """The path of a resource in its preferred version; empty: it is not served. Raises KubeError."""
        if not resource.group:
            return f"/api/{resource.versions[0]}/{resource.plural}"  # the core group, which every server has
        try:
            group = decode_answer(await self._api.call("GET", f"/apis/{resource.group}"), _ServedGroup, resource.group)
        except NotFoundError:
            return ""
        served = [version.version for version in group.versions]
        order = [version for version in resource.versions if version in served]
        order += [version for version in served if version not in order]
        for version in order:
            path = f"/apis/{resource.group}/{version}"
            try:
                listing = decode_answer(await self._api.call("GET", path), _ServedResources, path)
            except NotFoundError:
                continue
            if any(each.name == resource.plural for each in listing.resources):
                return f"{path}/{resource.plural}"
        return ""


def _path(collection: str, namespace: str, name: str) -> str:
    root, _, plural = collection.rpartition("/")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"
