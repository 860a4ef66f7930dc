"""Lists and watches in which objects have nothing but their metadata."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

JSON = "application/json"
METADATA = ";as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
"""Of a media type: of each object the metadata alone; in braces `List` for a list."""


class Streams(Protocol):
    """The part of kube.client.Kube that this needs."""

    async def page(self, path: str, parameters: Mapping[str, str], accept: str) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float, accept: str) -> AsyncIterator[bytes]: ...


class MetadataStreams:
    """The lists and watches of a Kube, of metadata alone."""

    def __init__(self, kube: Streams) -> None:
        self._kube = kube

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes:
        return await self._kube.page(path, parameters, JSON + METADATA.format("List"))

    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]:
        return self._kube.watch(path, parameters, silence, JSON + METADATA.format(""))
