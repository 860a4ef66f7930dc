"""Which resources an API server serves.

    GET /apis                   all groups with their versions, for everybody who asks within a second
    GET /apis/GROUP/VERSION     the resources of a group that it names, for everybody who asks about the group

So a group that is not served costs no request of its own.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from poseidon_py.kube.client import KubeError, NotFoundError, decode_answer

FRESH = 1.0
"""Seconds for which an answer counts as current, for those who have no reason to believe that it is not."""

T = TypeVar("T")


class _Version(Struct):
    version: str


class _Group(Struct):
    """APIGroup."""

    name: str
    versions: list[_Version]


class _Groups(Struct):
    """APIGroupList."""

    groups: list[_Group]


class ServedResource(Struct):
    """A resource of an APIResourceList."""

    name: str
    """In plural, or `plural/subresource`."""
    kind: str = ""
    namespaced: bool = True


class _Resources(Struct):
    """APIResourceList."""

    resources: list[ServedResource]


class DiscoveryApi(Protocol):
    """The part of kube.Kube that discovery uses."""

    async def call(self, verb: str, path: str) -> bytes: ...


class ServedGroup(NamedTuple):
    """What a server serves of a group."""

    asked_at: float
    """Time of the event loop in seconds; what was served then, is in it."""
    versions: Mapping[str, Mapping[str, ServedResource]]
    """Version -> name of a resource -> the resource, in the server's order of preference."""

    def versions_of(self, plural: str) -> list[str]:
        """The versions in which a resource is served."""
        return [version for version, resources in self.versions.items() if plural in resources]


class _Shared(Generic[T]):
    """A question that is asked once for all who want to know at the same time; a failure is theirs, too."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._asked_at = -1e9
        self._answer: T | None = None
        self._error: KubeError | None = None

    async def get(self, since: float, ask: Callable[[], Awaitable[tuple[float, T]]]) -> tuple[float, T]:
        """The answer, and when it was asked for, `since` at the earliest. `ask` returns both. Raises KubeError."""
        async with self._lock:
            if self._asked_at < since:
                began, self._error = _now(), None
                try:
                    self._asked_at, self._answer = await ask()
                except KubeError as error:
                    self._asked_at, self._error = began, error
            if self._error is not None:
                raise self._error.with_traceback(None)
            assert self._answer is not None
            return self._asked_at, self._answer


_Versions = Mapping[str, Mapping[str, ServedResource]]


class Discovery:
    """Asks as seldom as those who want to know permit."""

    def __init__(self, api: DiscoveryApi) -> None:
        self._api = api
        self._index: _Shared[dict[str, list[str]]] = _Shared()
        self._groups: defaultdict[str, _Shared[_Versions]] = defaultdict(_Shared)

    async def group(self, name: str, since: float | None = None) -> ServedGroup:
        """What is served of a group; empty for the core group. `since`: the answer must not be older, in seconds of the
        event loop; None: it may be one that counts as current. Raises KubeError."""
        earliest = _now() - FRESH if since is None else since
        return ServedGroup(*await self._groups[name].get(earliest, lambda: self._ask(name, earliest)))

    async def _ask(self, group: str, earliest: float) -> tuple[float, _Versions]:
        asked_at, versions = _now(), ["v1"]
        if group:
            asked_at, index = await self._index.get(earliest, self._ask_for_groups)
            versions = index.get(group, [])
        found: dict[str, Mapping[str, ServedResource]] = {}
        for version in versions:
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            try:
                listing = decode_answer(await self._api.call("GET", path), _Resources, path)
            except NotFoundError:
                continue  # it was removed in between
            found[version] = {resource.name: resource for resource in listing.resources}
        return asked_at, found

    async def _ask_for_groups(self) -> tuple[float, dict[str, list[str]]]:
        asked_at = _now()
        answer = decode_answer(await self._api.call("GET", "/apis"), _Groups, "/apis")
        return asked_at, {group.name: [each.version for each in group.versions] for group in answer.groups}


def _now() -> float:
    return asyncio.get_running_loop().time()
