"""Writes whether a workload is suspended, each to a definite outcome, as long as this process leads.

Each patch carries the UID and the resource version of the object, so that it concerns neither a successor nor what a
user has decided in between. After 409 and lost answers the object is read.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    ConflictError,
    KubeError,
    NotFoundError,
    decode_answer,
)
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.workload_objects import Suspension
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.gangs.model import OwnerOrGroup
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

_RETRY_FIRST, _RETRY_MAX = 0.2, 10.0
Annotations = Mapping[str, str | None]
"""Annotations; None: it is removed."""


class WorkloadApi(Protocol):
    """The requests of kube.Kube that suspensions need."""

    async def call(self, verb: str, path: str) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...


class Ending(Enum):
    """How the writing of one suspension ends; values of the metric's label."""

    WRITTEN = "written"
    OVERTAKEN = "overtaken"
    """The object is so already, by somebody else."""
    GONE = "gone"
    REFUSED = "refused"
    GIVEN_UP = "given up"
    """No clear answer for too long, or another replica leads."""


class Written(NamedTuple):
    ending: Ending
    why: str = ""
    """If it is refused, or given up."""

    @property
    def holds(self) -> bool:
        """Whether the object is as it was to be, or gone."""
        return self.ending in (Ending.WRITTEN, Ending.OVERTAKEN, Ending.GONE)


class WorkloadWriter:
    """`write` any number."""

    def __init__(
        self,
        api: WorkloadApi,
        path_of: Callable[[OwnerOrGroup], str],
        may_write: Callable[[], bool],
        *,
        patience: float = 20.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`path_of`: empty if the kind is not served. `may_write`: whether, by the clock, no other replica can be the
        leader. `patience`: seconds for all attempts."""
        self._api = api
        self._path_of = path_of
        self._may_write = may_write
        self._patience = patience
        self._sleep = sleep
        self._monotonic = monotonic
        self._rng = rng

    async def write(self, workload: OwnerOrGroup, suspended: bool, annotations: Annotations) -> Written:
        """Suspends or resumes an object, and sets annotations with that."""
        backoff = Backoff(_RETRY_FIRST, _RETRY_MAX, self._rng)
        give_up = self._monotonic() + self._patience
        read_again = False
        while True:
            if not self._may_write():
                return Written(Ending.GIVEN_UP, "another replica leads")
            path, suspension = self._path_of(workload), workload.suspension
            if not path or suspension is None:
                return Written(Ending.REFUSED, "its kind is not served any more")
            if suspension.suspended == suspended and (suspended or not suspension.note):
                return Written(Ending.OVERTAKEN)
            try:
                if read_again:
                    found = self._decoded(workload, await self._api.call("GET", path))
                    if found.uid != workload.uid:
                        return Written(Ending.GONE)
                    workload, read_again = found, False
                    continue
                found = self._decoded(
                    workload, await self._api.merge(path, _patch(workload, suspension, suspended, annotations))
                )
                if found.suspended == suspended:
                    return Written(Ending.WRITTEN)
                return Written(Ending.REFUSED, f"its kind has no field {suspension.path} in this cluster")
            except NotFoundError:
                return Written(Ending.GONE)
            except InvalidField as problem:
                return Written(Ending.REFUSED, str(problem))
            except KubeError as error:
                if isinstance(error, ApiError) and not isinstance(error, BusyError | ConflictError):
                    return Written(Ending.REFUSED, str(error))
                delay = max(backoff.next(), (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0)
                if self._monotonic() + delay > give_up:
                    return Written(Ending.GIVEN_UP, str(error))
                if isinstance(error, ConflictError) and not read_again:
                    delay = 0.0
                read_again = True
            await self._sleep(delay)

    @staticmethod
    def _decoded(workload: OwnerOrGroup, body: bytes) -> OwnerOrGroup:
        return owner_or_group_of(workload.resource, decode_answer(body, Item, workload.name))


def _patch(workload: OwnerOrGroup, suspension: Suspension, suspended: bool, annotations: Annotations) -> dict[str, Any]:
    return {
        "metadata": {"uid": workload.uid, "resourceVersion": workload.version, "annotations": dict(annotations)},
        "spec": suspension.patch(suspended),
    }
