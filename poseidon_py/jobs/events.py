"""Kubernetes events about jobs. They never delay the work on a job, and an event that is lost is only logged."""

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from poseidon_py.jobs.manifests.owner import Owner
from poseidon_py.jobs.rules.status import timestamp
from poseidon_py.kube.client import KubeError
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

COMPONENT = "poseidon-jobs"
_REPEAT = 600.0
"""Seconds after which the same event is sent again."""
_REMEMBERED = 10_000
_MAX_MESSAGE = 1024


class EventApi(Protocol):
    """The part of kube.Kube that events use."""

    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...


class JobEvents:
    """`send` any number; `stop`."""

    def __init__(
        self, api: EventApi, now: Callable[[], float] = time.time, rng: Callable[[], float] = random.random
    ) -> None:
        self._api = api
        self._now = now
        self._rng = rng
        self._instance = f"{COMPONENT}-{socket.gethostname()}"
        self._sent: dict[tuple[str, str, str], float] = {}
        """UID, reason and message of an event -> when it was last sent."""
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, owner: Owner, reason: str, message: str, *, warning: bool = False) -> None:
        """The same event is sent once in ten minutes."""
        now, message = self._now(), message[:_MAX_MESSAGE]
        key = owner.uid, reason, message
        if now < self._sent.get(key, -_REPEAT) + _REPEAT:
            return
        self._sent.pop(key, None)
        self._sent[key] = now
        if len(self._sent) > _REMEMBERED:
            del self._sent[next(iter(self._sent))]
        task = asyncio.create_task(self._create(owner, reason, message, warning, now), name=f"event {reason}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _create(self, owner: Owner, reason: str, message: str, warning: bool, now: float) -> None:
        stamp = timestamp(now)
        name = f"{owner.name[:200]}.{int(now * 1e9):x}{int(self._rng() * 16**4):04x}"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": owner.namespace},
            "involvedObject": owner.reference(),
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "action": reason,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            await self._api.create(f"/api/v1/namespaces/{quote(owner.namespace, safe='')}/events", body)
        except KubeError as error:
            log.warning("cannot send an event about job %s/%s: %s", owner.namespace, owner.name, error)

    async def stop(self, timeout: float = 2.0) -> None:
        """Waits for events that are on their way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)
        await end_tasks(*self._tasks)
