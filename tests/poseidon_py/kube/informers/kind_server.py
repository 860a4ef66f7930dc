"""A small API server of kinds that come and go, with faults that last until they are mended."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

from poseidon_py.kube.client import ApiError, BusyError, GoneError, LostAnswerError, NotFoundError, UnreachableError

FAULTS = ("denied", "failing", "malformed", "hanging")
"""What can be wrong with the lists and watches of a kind."""


class Kind:
    """A definition with its objects, and the changes since it was installed."""

    def __init__(self, versions: list[str], began: int) -> None:
        self.versions = versions
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, bytes]] = []
        self.compacted = began


class KindServer:
    """Its watches see each change at once. Kinds are named plural.group, in the core group plural."""

    def __init__(self) -> None:
        self.version = 1
        self.kinds: dict[str, Kind] = {}
        self.faults: dict[str, str] = {}
        """Kind, or path of discovery -> one of FAULTS."""
        self.unreachable = False
        self.forgotten = ""
        """A kind that the next discovery of its group misses, as a server does that starts."""
        self.asked: Counter[str] = Counter()
        self.open_watches: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._broken = 0
        """How often all watches were broken."""
        self._expired = 0

    # -- what happens to it -----------------------------------------------------------------------------------

    def install(self, kind: str, *versions: str) -> None:
        """A new definition, or other versions of it."""
        self.version += 1
        if kind in self.kinds:
            self.kinds[kind].versions = [*versions]
            self.break_watches()
        else:
            self.kinds[kind] = Kind([*versions], self.version)

    def remove(self, kind: str) -> None:
        if self.kinds.pop(kind, None) is not None:
            self.break_watches()

    def put(self, kind: str, name: str, value: object) -> None:
        self.version += 1
        objects = self.kinds[kind].objects
        uid = objects[name]["metadata"]["uid"] if name in objects else f"{name}-{self.version}"
        metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version)}
        what = "MODIFIED" if name in objects else "ADDED"
        objects[name] = {"metadata": metadata, "value": value}
        self._tell(kind, what, objects[name])

    def delete(self, kind: str, name: str) -> None:
        gone = self.kinds[kind].objects.pop(name, None)
        if gone is not None:
            self.version += 1
            gone["metadata"]["resourceVersion"] = str(self.version)
            self._tell(kind, "DELETED", gone)

    def fail(self, what: str, fault: str) -> None:
        """All connections break."""
        self.faults[what] = fault
        self.break_watches()

    def mend(self) -> None:
        self.faults.clear()
        self.unreachable = False
        self.break_watches()

    def compact(self) -> None:
        for kind in self.kinds.values():
            kind.compacted = self.version

    def break_watches(self) -> None:
        self._broken += 1
        self._wake()

    def expire_watches(self) -> None:
        """410, in the stream."""
        self.compact()
        self._expired += 1
        self._wake()

    def _tell(self, kind: str, what: str, obj: dict[str, Any]) -> None:
        line = json.dumps({"type": what, "object": obj}).encode() + b"\n"
        self.kinds[kind].log.append((self.version, line))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # -- what clients ask -------------------------------------------------------------------------------------

    async def call(self, verb: str, path: str) -> bytes:
        await self._ask(path, path)
        if self.faults.get(path) == "malformed":
            return b"<html>"
        if path == "/apis":
            groups = {group: self._versions(group) for group in sorted(map(_group_of, self.kinds)) if group}
            listed = [{"name": each, "versions": [{"version": v} for v in found]} for each, found in groups.items()]
            return json.dumps({"groups": listed}).encode()
        _, _, group, version = path.split("/")
        names = [
            kind.partition(".")[0]
            for kind, each in self.kinds.items()
            if _group_of(kind) == group and version in each.versions and kind != self.forgotten
        ]
        if _group_of(self.forgotten) == group:
            self.forgotten = ""
        if not names:
            raise NotFoundError(404, "NotFound", path)
        return json.dumps({"resources": [{"name": name} for name in names]}).encode()

    def _versions(self, group: str) -> list[str]:
        found = [version for kind, each in self.kinds.items() if _group_of(kind) == group for version in each.versions]
        return sorted(set(found), reverse=True)

    @property
    def metadata(self) -> "KindServer":
        return self

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes:
        kind = await self._served(path)
        if self.faults.get(_kind_at(path)) == "malformed":
            return b"<html>"
        items = [*kind.objects.values()]
        return json.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": items}).encode()

    async def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]:
        kind = await self._served(path)
        at, broken, expired = int(parameters["resourceVersion"]), self._broken, self._expired
        self.open_watches[path] += 1
        try:
            while True:
                if at < kind.compacted:
                    raise GoneError(410, "Expired", "")
                news = self._news
                for version, line in kind.log:
                    if version > at:
                        at = version
                        yield line
                await news.wait()
                if self._expired != expired:
                    yield b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n'
                if self._broken != broken or self.unreachable:
                    raise LostAnswerError("broken")
        finally:
            self.open_watches[path] -= 1

    async def _served(self, path: str) -> Kind:
        name = _kind_at(path)
        await self._ask(path, name)
        kind, version = self.kinds.get(name), path.split("/")[-2]
        if kind is None or version not in kind.versions:
            raise NotFoundError(404, "NotFound", path)
        return kind

    async def _ask(self, path: str, what: str) -> None:
        self.asked[path] += 1
        await asyncio.sleep(0)
        if self.unreachable:
            raise UnreachableError("refused")
        match self.faults.get(what):
            case "denied":
                raise ApiError(403, "Forbidden", "no")
            case "failing":
                raise BusyError(500, "InternalError", "conversion webhook failed")
            case "hanging":
                while self.faults.get(what) == "hanging":
                    await self._news.wait()
                raise LostAnswerError("broken")


def _group_of(kind: str) -> str:
    return kind.partition(".")[2]


def _kind_at(path: str) -> str:
    """/apis/a.io/v1/apples -> apples.a.io; /api/v1/configmaps -> configmaps."""
    *_, group, _version, plural = path.split("/")
    return plural if group == "api" else f"{plural}.{group}"
