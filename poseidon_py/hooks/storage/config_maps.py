"""The store in the API server: ConfigMaps, which every cluster serves.

The process that delivers is the only writer of the segments, and each write has the resource version of the last one as
a precondition. A process that takes over writes its name into every segment, so the next write of the former one fails,
and it stops. Each segment has the lease by which its writer leads; that of another lease is nobody else's. Users write
to another object, which holds their requests about dead letters.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from poseidon_py.hooks.storage.segments import SEGMENT_BYTES, Segment, Segments
from poseidon_py.hooks.storage.store import Request, StoreError, StoreTakenError
from poseidon_py.kube.client import (
    JSON,
    MERGE_PATCH,
    ApiError,
    ConflictError,
    KubeError,
    NotFoundError,
    decode_answer,
)

log = logging.getLogger(__name__)

LABEL = "poseidon.io/hooks"
"""Label of segments; its value is the name of the store."""
REQUESTS_LABEL = "poseidon.io/hooks-requests"
HOLDER = "poseidon.io/hooks-holder"
"""Annotation: the process that delivers."""
LEASE = "poseidon.io/hooks-lease"
"""Annotation: namespace and name of the lease by which it leads."""
_ATTEMPTS = 5
_PAGE = "16"
_encode = msgspec.json.Encoder().encode


class Api(Protocol):
    """The part of kube.Kube that the store uses."""

    async def call(
        self, verb: str, path: str, body: bytes = b"", content_type: str = "", timeout: float = 30.0
    ) -> bytes: ...
    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ConfigMap(msgspec.Struct):
    """The fields of a ConfigMap that are read."""

    metadata: _Meta
    data: dict[str, str] = {}


class _ListMeta(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[ConfigMap] = []


class Inheritance(NamedTuple):
    """What a store takes over, once, from those segments of another store that no lease is written into."""

    name: str
    """Of the other store."""
    belongs: Callable[[str], bool]
    """Whether a text does."""


class ConfigMapStore:
    """A store named `name` in a namespace. `holder`: unique to the process and its term as the leader. `lease`: that by
    which it leads; empty: none, for processes that share no namespace with others."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        holder: str,
        limit: int = SEGMENT_BYTES,
        *,
        lease: str = "",
        inheritance: Inheritance | None = None,
    ) -> None:
        self._api = api
        self._folder = folder(namespace)
        self._namespace = namespace
        self._name = name
        self._holder = holder
        self._limit = limit
        self._lease = lease
        self._inheritance = inheritance
        self._segments = Segments(limit)
        self._adopted: dict[str, str] = {}  # of strays, not yet returned

    async def load(self) -> dict[str, str]:
        with self._errors("read"):
            self._segments = Segments(self._limit)
            async for found in config_maps(self._api, self._namespace, f"{LABEL}={self._name}"):
                await self._take_over(found)
            if not len(self._segments):
                self._segments.open_one()
            inherited = [each async for each in self._inherited()]
            await self._sync()
            for segment, texts in inherited:
                await self._give_up(segment, texts)
        return self._segments.texts()

    async def _inherited(self) -> AsyncIterator[tuple[str, list[str]]]:
        """The names of segments of the other store, each with the keys that are now in our segments, too."""
        if self._inheritance is None:
            return
        stored = self._segments.texts().keys()
        async for found in config_maps(self._api, self._namespace, f"{LABEL}={self._inheritance.name}"):
            if found.metadata.annotations.get(LEASE):
                continue
            texts = {key: text for key, text in found.data.items() if self._inheritance.belongs(text)}
            for key in texts.keys() - stored:
                self._segments.set(key, texts[key])
            if texts:
                yield found.metadata.name, sorted(texts)

    async def _give_up(self, name: str, keys: list[str]) -> None:
        """Remove texts from a segment of the other store. A former version that still writes it puts back what it has
        not delivered: receivers get that twice, with the same ID."""
        try:
            await self._patch(name, {"data": dict.fromkeys(keys)})
        except NotFoundError:
            return
        log.info("took over %d deliveries from ConfigMap %s/%s", len(keys), self._namespace, name)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        for key, text in changes.items():
            self._segments.set(key, text)
        self._segments.compact()
        with self._errors("write"):
            await self._sync()

    async def strays(self) -> dict[str, str]:
        with self._errors("read"):
            async for found in config_maps(self._api, self._namespace, f"{LABEL}={self._name}"):
                number = self._number(found)
                if number in self._segments:
                    self._check_holder(found)
                else:
                    self._adopted |= await self._take_over(found)
            await self._sync()
        adopted, self._adopted = self._adopted, {}
        return adopted

    async def requests(self) -> list[Request]:
        with self._errors("read"):
            try:
                found = await self._get(requests_name(self._name))
            except NotFoundError:
                return []
        requests = [decode_request(key) for key in found.data]
        return [request for request in requests if request is not None]

    async def answered(self, requests: list[Request]) -> None:
        patch = {"data": {encode_request(request): None for request in requests}}
        with self._errors("write"):
            await self._patch(requests_name(self._name), patch)

    # -- segments ---------------------------------------------------------------------------------------------

    async def _take_over(self, found: ConfigMap) -> dict[str, str]:
        """Write our name into a segment. Returns its texts that are new."""
        number = self._number(found)
        if number is None:
            log.warning(
                "ConfigMap %s has the label %s, but holds no deliveries; remove the label", found.metadata.name, LABEL
            )
            return {}
        for _ in range(_ATTEMPTS):
            self._check_lease(found)
            try:
                metadata = {"resourceVersion": found.metadata.resource_version, "annotations": self._annotations()}
                taken = await self._patch(found.metadata.name, {"metadata": metadata})
            except NotFoundError:
                return {}
            except ConflictError:
                try:
                    found = await self._get(found.metadata.name)
                except NotFoundError:
                    return {}
            else:
                return self._segments.add(Segment(number, taken.metadata.resource_version, dict(taken.data)))
        raise StoreError(f"ConfigMap {found.metadata.name} changes all the time; stop its other writer")

    async def _sync(self) -> None:
        """Write the segments that differ from their objects."""
        for segment in self._segments.unwritten():
            for _ in range(_ATTEMPTS):
                if await self._push(segment):
                    break
            else:
                raise StoreError(f"ConfigMap {self._path_name(segment)} changes all the time; stop its other writer")

    async def _push(self, segment: Segment) -> bool:
        """Make the object of a segment equal to it. Returns whether it is; otherwise try again."""
        name = self._path_name(segment)
        try:
            if self._segments.is_empty(segment):
                if segment.version:
                    await self._delete(name, segment.version)
                self._segments.remove(segment)
                return True
            if segment.version:
                metadata = {"resourceVersion": segment.version}
                written = await self._patch(name, {"metadata": metadata, "data": segment.changes()})
            else:
                written = await self._create(segment)
        except NotFoundError:
            if not segment.version:
                raise StoreError(
                    f"there is no namespace {self._namespace}; create it, or correct the namespace of the hooks"
                ) from None
            if self._segments.is_empty(segment):
                self._segments.remove(segment)
                return True
            log.warning("ConfigMap %s/%s was deleted; creating it again", self._namespace, name)
            segment.version = ""
            return False
        except ConflictError:
            await self._reconcile(segment)
            return False
        segment.version = written.metadata.resource_version
        segment.dirty.clear()
        return True

    async def _reconcile(self, segment: Segment) -> None:
        """Another client has written the object of a segment, or we have, and the answer was lost."""
        try:
            found = await self._get(self._path_name(segment))
        except NotFoundError:
            segment.version = ""
            return
        if not segment.version and found.metadata.annotations.get(HOLDER) != self._holder:
            self._segments.renumber(segment)  # a stray, which `strays` takes over
            return
        self._check_holder(found)
        segment.version = found.metadata.resource_version
        segment.compare(found.data)

    def _check_holder(self, found: ConfigMap) -> None:
        holder = found.metadata.annotations.get(HOLDER, "")
        if holder != self._holder:
            raise StoreTakenError(f"{holder or 'another client'} has taken over ConfigMap {found.metadata.name}")

    def _check_lease(self, found: ConfigMap) -> None:
        other = found.metadata.annotations.get(LEASE, "")
        if other and self._lease and other != self._lease:
            raise StoreError(
                f"ConfigMap {self._namespace}/{found.metadata.name} has the deliveries of lease {other}, not of "
                f"{self._lease}: give the hooks a namespace of their own"
            )

    def _annotations(self) -> dict[str, str]:
        return {HOLDER: self._holder} | ({LEASE: self._lease} if self._lease else {})

    # -- requests of the API ----------------------------------------------------------------------------------

    async def _create(self, segment: Segment) -> ConfigMap:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self._path_name(segment),
                "namespace": self._namespace,
                "labels": {LABEL: self._name, "app.kubernetes.io/managed-by": "poseidon"},
                "annotations": self._annotations(),
            },
            "data": segment.texts,
        }
        return _decoded(await self._api.call("POST", self._folder, _encode(body), JSON))

    async def _patch(self, name: str, patch: Mapping[str, Any]) -> ConfigMap:
        return _decoded(await self._api.call("PATCH", f"{self._folder}/{name}", _encode(patch), MERGE_PATCH))

    async def _get(self, name: str) -> ConfigMap:
        return _decoded(await self._api.call("GET", f"{self._folder}/{name}"))

    async def _delete(self, name: str, version: str) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}}
        await self._api.call("DELETE", f"{self._folder}/{name}", _encode(body), JSON)

    def _path_name(self, segment: Segment) -> str:
        return f"poseidon-hooks-{self._name}-{segment.number}"

    def _number(self, found: ConfigMap) -> int | None:
        digits = found.metadata.name.removeprefix(f"poseidon-hooks-{self._name}-")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            if error.code == 403:
                remedy = "grant it as the chart does with hooks.enabled (docs/rbac.md)"
                raise StoreError(f"may not {verb} ConfigMaps in {self._namespace}: {error}; {remedy}") from error
            raise StoreError(f"cannot {verb} ConfigMaps in {self._namespace}: {error}") from error
        except KubeError as error:
            raise StoreError(f"cannot {verb} ConfigMaps in {self._namespace}: {error}") from error


async def config_maps(api: Api, namespace: str, selector: str) -> AsyncIterator[ConfigMap]:
    """The ConfigMaps of a namespace with a label. Raises KubeError."""
    token = ""
    while True:
        parameters = {"labelSelector": selector, "limit": _PAGE} | ({"continue": token} if token else {})
        found = decode_answer(await api.page(folder(namespace), parameters), _List, "ConfigMaps")
        for item in found.items:
            yield item
        token = found.metadata.token
        if not token:
            return


def folder(namespace: str) -> str:
    """The path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"


def requests_name(name: str) -> str:
    """The name of the ConfigMap with the requests of users to a store."""
    return f"poseidon-hooks-{name}-requests"


def encode_request(request: Request) -> str:
    """A request as the key of a ConfigMap."""
    return f"{request.verb}.{request.key}"


def decode_request(text: str) -> Request | None:
    """The request; None: it is none."""
    verb, _, key = text.partition(".")
    match verb:
        case "retry" | "drop":
            return Request(verb, key)
        case _:
            return None


def _decoded(body: bytes) -> ConfigMap:
    return decode_answer(body, ConfigMap, "ConfigMap")
