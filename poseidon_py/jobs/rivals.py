"""Whether Volcano's own controller is at work: two controllers would delete each other's pods.

    its lease (vc-controller-manager) was renewed           a replica of it leads
    its Deployment (volcano-controllers) has ready pods     it may run without a lease
    a status of a job changes, and not by this process      another controller is at work

Each is a reason to stand by, until none was seen for a while.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct, field

from poseidon_py.kube.client import ApiError, KubeError, decode_answer
from poseidon_py.kube.objects import Metadata
from poseidon_py.util.timestamps import instant_of

log = logging.getLogger(__name__)

LEASE = "vc-controller-manager"
DEPLOYMENT = "volcano-controllers"
_PERIOD = 5.0
_STRANGER = 60.0
"""Seconds to stand by after a foreign change of a status."""


class _LeaseSpec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class _Lease(Struct):
    metadata: Metadata
    spec: _LeaseSpec | None = None


class _Leases(Struct):
    items: list[_Lease] | None = None


class _DeploymentStatus(Struct):
    ready: int | None = field(default=None, name="readyReplicas")


class _Deployment(Struct):
    metadata: Metadata
    status: _DeploymentStatus | None = None


class _Deployments(Struct):
    items: list[_Deployment] | None = None


class RivalApi(Protocol):
    """The part of kube.Kube that is used here."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...


class Rivals:
    """`poll` once, then `run` until cancelled. `changed` is called when `problem` changes."""

    def __init__(
        self,
        api: RivalApi,
        changed: Callable[[], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._changed = changed
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._renewed: dict[str, tuple[str, float]] = {}
        """UID of a lease -> its renew time, and when that was first seen."""
        self._stranger = ""
        self._stranger_until = 0.0
        self._denied = False
        self.problem: str | None = None
        """Why this controller must not work; empty: it may; None: not known yet."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self.poll()
            await self._sleep(_PERIOD)

    async def poll(self) -> None:
        """Asks for leases and Deployments. An error changes nothing: what was known is kept."""
        try:
            found = await self._lease() or await self._deployment()
        except KubeError as error:
            log.warning("cannot find out whether Volcano's controller runs: %s", error)
            return
        if not found and self._monotonic() < self._stranger_until:
            found = self._stranger
        self._set(found)

    def stranger(self, what: str) -> None:
        """The status of a job was changed by another process."""
        self._stranger = (
            f"{what}, and not by this controller: another controller of jobs runs, or another client edits statuses; "
            "stop it"
        )
        self._stranger_until = self._monotonic() + _STRANGER
        self._set(self._stranger)

    def _set(self, found: str) -> None:
        if found == self.problem:
            return
        self.problem = found
        if found:
            log.warning("standing by: %s", found)
        else:
            log.info("no other controller of jobs is at work")
        self._changed()

    async def _lease(self) -> str:
        path = "/apis/coordination.k8s.io/v1/leases"
        body = await self._api.page(path, {"fieldSelector": f"metadata.name={LEASE}"})
        for lease in decode_answer(body, _Leases, "leases").items or ():
            spec, uid = lease.spec or _LeaseSpec(), lease.metadata.uid
            renewed = spec.renew_time or ""
            if self._renewed.get(uid, ("", 0.0))[0] != renewed:
                # first seen: the clocks of the machines decide; afterwards only whether it is renewed
                since = self._monotonic() if uid in self._renewed else self._monotonic() - self._age(renewed)
                self._renewed[uid] = renewed, since
            duration = 2.0 * (spec.lease_duration_seconds or 15)
            if spec.holder_identity and self._monotonic() < self._renewed[uid][1] + duration:
                return (
                    f"Volcano's controller is at work ({spec.holder_identity} renews lease "
                    f"{lease.metadata.namespace}/{LEASE}); stop it to run jobs here: "
                    f"kubectl -n {lease.metadata.namespace} scale deployment {DEPLOYMENT} --replicas=0"
                )
        return ""

    def _age(self, renewed: str) -> float:
        return max(self._now() - instant_of(renewed), 0.0)

    async def _deployment(self) -> str:
        try:
            body = await self._api.page("/apis/apps/v1/deployments", {"fieldSelector": f"metadata.name={DEPLOYMENT}"})
        except ApiError as error:
            if error.code != 403:
                raise
            if not self._denied:
                log.warning("may not list Deployments, so only the lease shows whether Volcano's controller runs")
            self._denied = True
            return ""
        for each in decode_answer(body, _Deployments, "deployments").items or ():
            if each.status is not None and each.status.ready:
                return (
                    f"Volcano's controller is at work (Deployment {each.metadata.namespace}/{DEPLOYMENT} has "
                    f"{each.status.ready} ready pods); stop it to run jobs here: "
                    f"kubectl -n {each.metadata.namespace} scale deployment {DEPLOYMENT} --replicas=0"
                )
        return ""
