"""The objects that conventions and queues look up: PodGroups, and owners of any kind.

The first lookup of a resource starts its watch (kube/informers). An owner of a kind that no convention knows is found
by discovery, and only its metadata is read: its labels, annotations and own owner.

Watches lag behind each other: a pod can be observed before its owner. An owner that is not in the cache is fetched, and
counts as unknown until there is an answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from poseidon_py.kube.client import KubeError, NotFoundError, decode_answer
from poseidon_py.kube.informers.informers import SAY_AFTER, Informers
from poseidon_py.kube.informers.kinds import GroupKind, ServedKinds
from poseidon_py.kube.informers.resource import Resource, path_of
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.by_pod_group import GROUP_KINDS
from poseidon_py.state.gangs.decode import Item
from poseidon_py.state.gangs.model import Owner, OwnerOrGroup, Unknown
from poseidon_py.state.gangs.owner_kinds import KNOWN_KINDS
from poseidon_py.state.gangs.resource_cache import Changed, ResourceCache
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_MAX_ASKED = 20_000
_NOT_WORKLOADS = frozenset((GroupKind("", "Node"), GroupKind("", "Pod")))
"""Owners that are not looked up: nodes own mirror pods, and pods are known from their own watch."""


class ObjectApi(Protocol):
    """The part of kube.Kube that lookups use."""

    async def call(self, verb: str, path: str) -> bytes: ...


class ObjectCache:
    """Implements model.Objects. `run` in a separate task."""

    def __init__(
        self,
        api: ObjectApi,
        informers: Informers,
        changed: Changed,
        resolved: Callable[[str], None],
        *,
        patience: float = 0.1,
        pause: float = 1.0,
        say_after: float = SAY_AFTER,
        metrics: Metrics | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`informers`: run elsewhere. `resolved`: called with each lookup that was unknown and has ended, or takes
        long. `patience`: seconds to wait for the watch to show an owner before it is fetched. `say_after`: seconds
        after which a lookup takes long."""
        self._api = api
        self._tell = changed
        self._children: dict[str, set[str]] = {}
        """UID of an owner -> UIDs of the owners that it controls."""
        self._known_now = resolved
        self._metrics = metrics if metrics is not None else Metrics()
        self._patience = patience
        self._sleep = sleep
        self._informers = informers
        self._kinds = ServedKinds(informers.discovery, self._found, pause=pause, say_after=say_after, sleep=sleep)
        self._kinds.known.update(KNOWN_KINDS)
        self._caches: dict[Resource, ResourceCache] = {}
        self._of_owners: list[ResourceCache] = []
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._say_after = say_after
        self._asked_at: dict[str, float] = {}
        """Objects whose kinds are not served, owners by UID and others by resource, namespace and name -> monotonic
        seconds of the first lookup."""
        self._delayed: dict[str, str] = {}
        """Lookups of owners that take long -> why."""

    # -- lookups ----------------------------------------------------------------------------------------------

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        cache = self._looked_for(resource, f"{resource.label}/{namespace}/{name}")
        entry = cache.by_name.get((namespace, name))
        if entry is None:
            self._informers.ask(cache.informer)
            if cache.informer.unsupported and not cache.informer.path:
                raise Unknown(resource.label, cache.informer.left_out)
        return entry

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        resource = self._resource_of(owner)
        if resource is None:
            return None
        cache = self._looked_for(resource, owner.uid)
        entry = cache.by_uid.get(owner.uid)
        if entry is None and cache.informer.path and owner.uid not in cache.gone:
            what = f"{resource.label}/{owner.uid}"
            if what not in self._lookups:
                self._lookups[what] = asyncio.create_task(self._fetch_owner(cache, owner, namespace, what))
            raise Unknown(what, self._delayed.get(what, ""))
        return entry

    def _looked_for(self, resource: Resource, what: str) -> ResourceCache:
        """The cache of a resource that is served, or was looked for after the first lookup of `what`, one of its
        objects. Raises Unknown until then: its definition may have been installed just before the object."""
        served = resource in self._caches and self._caches[resource].informer.path
        asked_at = 0.0 if served else self._first_asked(what)
        cache = self._cache(resource)
        if not (served or cache.informer.unreadable) and cache.informer.checked_at <= asked_at:
            self._informers.demand(cache.informer)
            raise Unknown(resource.label)
        return cache

    def _first_asked(self, what: str) -> float:
        """Monotonic seconds of the first lookup of an object whose kind is not served, as far as it is known."""
        while len(self._asked_at) > _MAX_ASKED:
            del self._asked_at[next(iter(self._asked_at))]
        return self._asked_at.setdefault(what, asyncio.get_running_loop().time())

    def unreadable(self, owner: Owner) -> str:
        """Why an owner may not be read, and the remedy; empty: it may, or there is nothing to read."""
        resource = self._kinds.known.get(GroupKind(owner.group, owner.kind))
        cache = self._caches.get(resource) if resource is not None else None
        return cache.informer.unreadable if cache is not None else ""

    def has_owner(self, uid: str) -> bool:
        """Whether an owner with this UID is cached."""
        return self.known_owner(uid) is not None

    def known_owner(self, uid: str) -> OwnerOrGroup | None:
        """The cached owner with this UID."""
        return next((cache.by_uid[uid] for cache in self._of_owners if uid in cache.by_uid), None)

    def children(self, uid: str) -> Iterable[OwnerOrGroup]:
        """The cached owners that an object controls."""
        return [found for each in self._children.get(uid, ()) if (found := self.known_owner(each)) is not None]

    def all_of(self, resource: Resource) -> Iterable[OwnerOrGroup]:
        """The cached objects of a resource."""
        cache = self._caches.get(resource)
        return cache.by_uid.values() if cache is not None else ()

    def follow(self, resources: Iterable[Resource]) -> None:
        """Watches resources whose objects matter although nobody looks them up: those that are not served are looked
        for rarely."""
        for resource in resources:
            if resource not in self._caches:
                self._add(resource).informer.awaited = False

    def serves(self, resource: Resource) -> bool:
        informer = self._cache(resource).informer
        return bool(informer.path and not informer.unsupported)

    def is_known(self, resource: Resource) -> bool:
        """Whether all objects of a resource are cached, or it is not served: it may be read."""
        cache = self._caches.get(resource)
        return cache is not None and cache.informer.ready and not cache.informer.unreadable

    def path_of(self, resource: Resource, entry: OwnerOrGroup) -> str:
        """The path of an object; empty if its resource is not served."""
        cache = self._caches.get(resource)
        path = cache.informer.path if cache is not None else ""
        return path_of(path, entry.namespace, entry.name) if path else ""

    def path_of_owner(self, owner: Owner, namespace: str) -> str:
        """The path of an owner; empty: its kind is not served, or may not be read. Raises Unknown until that is
        known."""
        resource = self._resource_of(owner)
        path = self._cache(resource).informer.path if resource is not None else ""
        if resource is None or not path:
            return ""
        return path_of(path, namespace if resource.namespaced else "", owner.name)

    def all(self, resource: Resource) -> list[OwnerOrGroup]:
        """The objects of a resource that are known."""
        cache = self._caches.get(resource)
        return list(cache.by_uid.values()) if cache is not None else []

    def kind_of(self, resource: Resource) -> tuple[str, str]:
        """API version and kind of the objects of a resource; empty if it is not served."""
        cache = self._caches.get(resource)
        root, _, _ = cache.informer.path.rpartition("/") if cache is not None else ("", "", "")
        kind = next((each.kind for each, found in self._kinds.known.items() if found == resource), "")
        return root.removeprefix("/apis/").removeprefix("/api/"), kind or GROUP_KINDS.get(
            resource.plural, "PriorityClass"
        )

    def _resource_of(self, owner: Owner) -> Resource | None:
        """The resource of an owner's kind; None: it is not served. Raises Unknown until that is known."""
        kind = GroupKind(owner.group, owner.kind)
        if kind in _NOT_WORKLOADS:
            return None
        if kind not in self._kinds.known:
            self._first_asked(owner.uid)
            self._kinds.find(kind)
            raise Unknown(f"kind {kind}", self._kinds.delayed.get(kind, ""))
        if self._kinds.known[kind] is None and self._kinds.checked_at[kind] <= self._first_asked(owner.uid):
            self._kinds.demand(kind)  # its definition may have been installed just before it
            raise Unknown(f"kind {kind}")
        return self._kinds.known[kind]

    def _found(self, kind: GroupKind) -> None:
        resource = self._kinds.known.get(kind)
        if resource is not None and resource not in self._caches:
            self._add(resource)  # also where nobody asks any more, because the kind was not served before
        self._known_now(f"kind {kind}")

    def _cache(self, resource: Resource) -> ResourceCache:
        """The cache of a resource. Raises Unknown until it is ready."""
        cache = self._caches.get(resource) or self._add(resource)
        cache.informer.awaited = True
        if not cache.informer.ready:
            raise Unknown(resource.label, cache.informer.delayed)
        return cache

    def _add(self, resource: Resource) -> ResourceCache:
        is_owner = resource in self._kinds.known.values()
        metadata_only = is_owner and resource not in KNOWN_KINDS.values()
        cache = ResourceCache(
            resource,
            self._changed,
            self._metrics,
            lambda: self._known_now(resource.label),
            is_owner=is_owner,
            metadata_only=metadata_only,
        )
        self._caches[resource] = cache
        if is_owner:
            self._of_owners.append(cache)
        self._informers.add(cache.informer)
        return cache

    def _changed(self, resource: Resource, owner_or_group: OwnerOrGroup, *, gone: bool = False) -> None:
        above = owner_or_group.owner
        if above is not None:
            below = self._children.setdefault(above.uid, set())
            (below.discard if gone else below.add)(owner_or_group.uid)
            if not below:
                del self._children[above.uid]
        self._tell(resource, owner_or_group, gone=gone)

    async def _fetch_owner(self, cache: ResourceCache, owner: Owner, namespace: str, what: str) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        if not cache.resource.namespaced:
            namespace = ""
        try:
            delay = self._patience
            while owner.uid not in cache.by_uid and cache.informer.path:
                await self._sleep(delay)
                if owner.uid in cache.by_uid:
                    break
                try:
                    answer = await self._api.call("GET", path_of(cache.informer.path, namespace, owner.name))
                    item = decode_answer(answer, Item, what)
                except NotFoundError:
                    cache.missing(owner.uid)
                    break
                except KubeError as error:
                    full = f"{namespace}/{owner.name}" if namespace else owner.name
                    log.warning("cannot look up %s %s: %s", cache.resource.label, full, error)
                    if now() - began >= self._say_after and what not in self._delayed:
                        self._delayed[what] = f"cannot look up its owner, {owner.kind} {full}: {error}"
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

    async def run(self) -> None:
        """Ends the lookups when it is cancelled. Never returns."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._kinds.stop()
            await end_tasks(*self._lookups.values())
