"""Which resources an API server serves, group by group."""

from typing import Protocol

from msgspec import Struct

from poseidon_py.kube.client import NotFoundError, decode_answer


class _Version(Struct):
    version: str


class _Group(Struct):
    """APIGroup."""

    versions: list[_Version]


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


async def served(api: DiscoveryApi, group: str) -> dict[str, dict[str, ServedResource]]:
    """Version -> name of a resource -> the resource, in the server's order of preference. Raises KubeError.

    `group`: empty for the core group, whose only version is v1.
    """
    found: dict[str, dict[str, ServedResource]] = {}
    for version in await _versions(api, group):
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            listing = decode_answer(await api.call("GET", path), _Resources, path)
        except NotFoundError:
            continue  # it was removed in between
        found[version] = {resource.name: resource for resource in listing.resources}
    return found


async def _versions(api: DiscoveryApi, group: str) -> list[str]:
    if not group:
        return ["v1"]
    try:
        answer = decode_answer(await api.call("GET", f"/apis/{group}"), _Group, group)
    except NotFoundError:
        return []
    return [each.version for each in answer.versions]
