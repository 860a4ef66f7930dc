"""Stores what queues used in the past in a ConfigMap, so that it outlives this process.

The leader writes it every few minutes, and when it stops. A replica reads it once, when it starts: from then on its own
flow service counts. Queues of each kind have a key of their own, since schedulers with queues of different kinds write
beside each other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from poseidon_py.kube.client import KubeError, NotFoundError, decode_answer
from poseidon_py.state.queues.past_use import Stored
from poseidon_py.state.queues.registry import QueueRegistry

log = logging.getLogger(__name__)

NAME = "poseidon-queue-usage"
_KEY_OF_ALL = "past-use.json"
"""Of whatever kind was in force, before each kind had its own."""
PERIOD = 300.0
"""Seconds between two writes."""
_LARGEST = 900_000
"""Bytes; a ConfigMap has a MiB at most."""


def key_of(kind: str) -> str:
    """The key of what queues of a kind used."""
    return f"past-use.{kind}.json"


class Api(Protocol):
    """The requests of kube.Kube that this needs."""

    async def call(self, verb: str, path: str) -> bytes: ...
    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...


class _Content(msgspec.Struct):
    at_us: int
    used: Stored


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class PastUseStore:
    """`load`, then `run` in a separate task; `save` at the end."""

    def __init__(
        self,
        api: Api,
        registry: QueueRegistry,
        leads: Callable[[], bool],
        *,
        namespace: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._registry = registry
        self._leads = leads
        self._folder = f"/api/v1/namespaces/{namespace}/configmaps"
        self._sleep = sleep
        self._written_us = 0

    async def load(self) -> None:
        """Takes over what was stored of the queues in force. What cannot be read counts as nothing."""
        if (active := self._registry.active) is None:
            return
        try:
            found = decode_answer(await self._api.call("GET", f"{self._folder}/{NAME}"), _ConfigMap, NAME)
            text = found.data.get(key_of(active.kind), found.data.get(_KEY_OF_ALL))
            if text is None:
                return
            content = msgspec.json.decode(text, type=_Content)
        except NotFoundError:
            return
        except (KubeError, msgspec.DecodeError) as error:
            log.warning("past use of queues starts at 0: cannot read ConfigMap %s: %s", NAME, error)
            return
        self._written_us = content.at_us
        self._registry.past_use.restore(content.at_us, content.used)

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._sleep(PERIOD)
            await self.save()

    async def save(self) -> None:
        """Writes what is known, if this process leads and past use counts."""
        past, active = self._registry.past_use, self._registry.active
        if active is None or not self._leads() or past.last is None or not past.counts(self._registry.tree):
            return
        if past.last.at_us <= self._written_us:
            return
        text = msgspec.json.encode(_Content(past.last.at_us, past.stored(self._registry.tree))).decode()
        if len(text) > _LARGEST:
            log.warning("what queues used in the past is not stored: it takes %d bytes of %d", len(text), _LARGEST)
            return
        at_us = past.last.at_us
        try:
            await self._write({key_of(active.kind): text})
        except KubeError as error:
            log.warning("cannot write ConfigMap %s with what queues used in the past: %s", NAME, error)
        else:
            self._written_us = at_us

    async def _write(self, data: dict[str, str]) -> None:
        try:
            await self._api.merge(f"{self._folder}/{NAME}", {"data": data})
        except NotFoundError:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}
            await self._api.create(self._folder, body)
