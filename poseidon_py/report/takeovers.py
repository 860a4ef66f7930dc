"""Events about queues that are taken over because their own controller is gone.

They are about the lease of the scheduler: `kubectl -n kube-system get events --field-selector reason=QueuesTakenOver`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from poseidon_py.kube.client import KubeError
from poseidon_py.util.ids import hash64
from poseidon_py.util.timestamps import timestamp

log = logging.getLogger(__name__)


class EventApi(Protocol):
    """The request of kube.Kube that events need."""

    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...


class TakeoverEvents:
    """`run` in a separate task; `add` sends one, if this process leads."""

    def __init__(
        self,
        api: EventApi,
        leads: Callable[[], bool],
        namespace: str,
        lease: str,
        *,
        component: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._leads = leads
        self._namespace, self._lease = namespace, lease
        self._component = component
        self._now = now
        self._pending: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def add(self, kind: str, name: str) -> None:
        """The queues of a kind are taken over from the controller of this name."""
        self._pending.put_nowait((kind, name))

    async def run(self) -> None:
        """Never returns."""
        while True:
            kind, name = await self._pending.get()
            if not self._leads():
                continue
            try:
                path = f"/api/v1/namespaces/{quote(self._namespace, safe='')}/events"
                await self._api.create(path, self._event(kind, name))
            except KubeError as error:
                log.warning("cannot report that the queues of kind %s are taken over: %s", kind, error)

    def _event(self, kind: str, name: str) -> dict[str, Any]:
        at = timestamp(self._now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self._lease}.{hash64(f'{kind}{at}'):016x}", "namespace": self._namespace},
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "name": self._lease,
                "namespace": self._namespace,
            },
            "reason": "QueuesTakenOver",
            "message": f"{name} is gone: its queues, of kind {kind}, are in force here from now on",
            "type": "Warning",
            "source": {"component": self._component},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
