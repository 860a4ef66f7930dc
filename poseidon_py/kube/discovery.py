"""Which resources an API server serves, group by group."""

from typing import Protocol

from msgspec import Struct

from poseidon_py.kube.client import NotFoundError, decode_answer


class _Version(Struct):
    version: str


class _Group(Struct):
    """APIGroup."""

    versions: list[_Version]


class _Resource(Struct):
    name: str


class _Resources(Struct):
    """APIResourceList."""

    resources: list[_Resource]


class DiscoveryApi(Protocol):
    """The part of kube.Kube that discovery uses."""

    async def call(self, verb: str, path: str) -> bytes: ...


async def served(api: DiscoveryApi, group: str) -> dict[str, set[str]]:
    """Version -> plural names of its resources, in the server's order of preference. Raises KubeError."""
    try:
        answer = decode_answer(await api.call("GET", f"/apis/{group}"), _Group, group)
    except NotFoundError:
        return {}
    found: dict[str, set[str]] = {}
    for each in answer.versions:
        path = f"/apis/{group}/{each.version}"
        try:
            listing = decode_answer(await api.call("GET", path), _Resources, path)
        except NotFoundError:
            continue  # it was removed in between
        found[each.version] = {resource.name for resource in listing.resources}
    return found
