"""Keeps the status of objects that declare queues up to date, and reports their problems.

Where the scheduler or controller that a kind belongs to runs, the status is its own to write. Statuses have the lowest
priority: one request at a time, none while binds are in flight, only what has changed, and a change waits until others
are collected. Problems are conditions where the kind has conditions, and events on the object in any case.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from msgspec import Struct

from poseidon_py.describe.queues.model import id_of
from poseidon_py.kube.client import ConflictError, KubeError, NotFoundError, decode_answer
from poseidon_py.report.messages import note
from poseidon_py.report.paced_queue import Binds
from poseidon_py.report.queue_bodies import ACTIVE, Json, body_of, condition_of
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.queues.source import KINDS, Declared, Ref
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.ids import hash64

log = logging.getLogger(__name__)

_GATHER = 1.0
"""Seconds during which changes are collected before they are written."""
_PAUSE = 0.01
"""Seconds between two requests."""
_PATIENCE = 100
"""Pauses for which a request waits for binds."""


class StatusApi(Protocol):
    """The requests of kube.Kube that statuses need."""

    async def call(self, verb: str, path: str) -> bytes: ...
    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...


class _Status(Struct):
    conditions: list[Json] | None = None


class _Object(Struct):
    status: _Status | None = None


class QueueStatusWriter:
    """`run` in a separate task; `note` new figures; `changed` when objects or their problems have."""

    def __init__(
        self,
        api: StatusApi,
        registry: QueueRegistry,
        path_of: Callable[[Resource, str, str], str],
        binds: Binds,
        leads: Callable[[], bool],
        *,
        component: str = "poseidon",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`path_of`: the path of an object; empty: its resource is not served."""
        self._api = api
        self._registry = registry
        self._path_of = path_of
        self._binds = binds
        self._leads = leads
        self._component = component
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._uses: Mapping[int, QueueUse] = {}
        self._written: dict[Ref, tuple[Json, Json | None]] = {}
        self._reported: dict[Ref, tuple[str, ...]] = {}

    def note(self, uses: Mapping[int, QueueUse]) -> None:
        """The use of all queues, by id."""
        if uses != self._uses:
            self._uses = dict(uses)
            self._wake.set()

    def changed(self) -> None:
        """Objects, or what is known of them, have changed; or this process leads now."""
        self._wake.set()

    async def run(self) -> None:
        """Never returns."""
        backoff = Backoff(_GATHER, 60.0)
        while True:
            await self._wake.wait()
            await self._sleep(_GATHER)
            self._wake.clear()
            if not self._leads():
                continue
            if await self._write_all():
                backoff.reset()
            else:
                self._wake.set()
                await self._sleep(backoff.next())

    async def _write_all(self) -> bool:
        """Returns whether all was written."""
        present: set[Ref] = set()
        complete = True
        for declared in list(self._registry.declared()):
            present.add(declared.ref)
            try:
                await self._write(declared)
            except NotFoundError:
                pass  # deleted, or of a kind without a status
            except KubeError as error:
                log.warning("cannot write the status of %s: %s", declared.ref, error)
                complete = False
            if not self._leads():
                return True
        for known in (self._written, self._reported):
            for ref in [ref for ref in known if ref not in present]:
                known.pop(ref, None)
        return complete

    async def _write(self, declared: Declared) -> None:
        ref = declared.ref
        if declared.problems != self._reported.get(ref, ()):
            await self._report(ref, declared.problems, declared.remarks)
            self._reported[ref] = declared.problems
        if not self._registry.kinds.writes_status:
            return
        use = self._uses.get(id_of(declared.key)) if declared.key else None
        path = self._path_of(*ref[:3])
        version = _api_version(ref.resource, path).rpartition("/")[2]
        body, condition = body_of(ref.resource, use, version) if use is not None else {}, condition_of(declared)
        before = self._written.get(ref)
        if (body, condition) == before or not path or not (body or condition):
            return
        status = dict(body)
        await self._pause()
        if condition is not None and (before is None or before[1] != condition):
            found = decode_answer(await self._api.call("GET", path), _Object, path)
            present = found.status.conditions or [] if found.status is not None else []
            merged = _merged(present, condition)
            if merged != present:
                status["conditions"] = merged
        if status:
            await self._api.merge(f"{path}/status", {"metadata": {"uid": ref.uid}, "status": status})
        self._written[ref] = body, condition

    async def _report(self, ref: Ref, problems: tuple[str, ...], remarks: tuple[str, ...]) -> None:
        """An event on an object for each of its problems, and one for all remarks among these. A file has none."""
        for problem in problems:
            log.warning("%s: %s", ref, problem)
        if not ref.uid:
            return
        namespace = ref.namespace or "default"  # that of events on objects without a namespace
        path = self._path_of(*ref[:3])
        events = [("InvalidQueue", problem) for problem in problems if problem not in remarks]
        if remarks:
            events.append(("NotHonoured", "; ".join(remarks)))
        for reason, message in events:
            await self._pause()
            event = self._event(ref, namespace, path, reason, message)
            try:
                await self._api.create(f"/api/v1/namespaces/{quote(namespace, safe='')}/events", event)
            except ConflictError:
                pass  # another replica has reported it
            except NotFoundError:
                return  # the namespace is gone

    def _event(self, ref: Ref, namespace: str, path: str, reason: str, problem: str) -> Json:
        now = _now()
        involved = {"kind": KINDS[ref.resource.plural], "name": ref.name, "uid": ref.uid}
        if ref.namespace:
            involved["namespace"] = ref.namespace
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{ref.name}.{hash64(f'{ref.uid}{problem}'):016x}", "namespace": namespace},
            "involvedObject": {"apiVersion": _api_version(ref.resource, path), **involved},
            "reason": reason,
            "message": note(problem),
            "type": "Warning",
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def _pause(self) -> None:
        for _ in range(_PATIENCE):
            await self._sleep(_PAUSE)
            if not self._binds.busy:
                return


def _merged(present: list[Json], condition: Json) -> list[Json]:
    """The conditions of an object, with ours; the time of the last transition is kept if the status is the same."""
    before = next((each for each in present if each.get("type") == ACTIVE), {})
    if all(before.get(key) == value for key, value in condition.items()):
        return present
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    others = [each for each in present if each.get("type") != ACTIVE]
    return [*others, {**condition, "lastTransitionTime": since or _now()}]


def _api_version(resource: Resource, path: str) -> str:
    """group/version, of the path at which the resource is served."""
    if not resource.group:
        return "v1"
    _, _, tail = path.partition(f"/apis/{resource.group}/")
    return f"{resource.group}/{tail.partition('/')[0] or resource.versions[0]}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
