"""Whether Volcano's own controller is at work: two controllers would delete each other's pods.

    its lease (vc-controller-manager) was renewed           a replica of it leads
    its Deployment (volcano-controllers) is not scaled to 0 it may run without a lease
    a status of a job changes, and not by this process      another controller is at work

Each is a reason to stand by, until none was seen for a while.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from poseidon_py.kube.client import ApiError, KubeError
from poseidon_py.kube.other_controllers import Detector, ListApi, Sign, Signs

log = logging.getLogger(__name__)

LEASE = "vc-controller-manager"
DEPLOYMENT = "volcano-controllers"
_SIGNS = Signs("volcano-controllers", (LEASE,), (DEPLOYMENT,), ("app=volcano-controller",))
_PERIOD = 5.0
_STRANGER = 60.0
"""Seconds to stand by after a foreign change of a status."""


class Rivals:
    """`poll` once, then `run` until cancelled. `changed` is called when `problem` changes."""

    def __init__(
        self,
        api: ListApi,
        changed: Callable[[], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._changed = changed
        self._sleep = sleep
        self._monotonic = monotonic
        self._detector = Detector(api, monotonic=monotonic, now=now)
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
            sign = await self._sign()
        except KubeError as error:
            log.warning("cannot find out whether Volcano's controller runs: %s", error)
            return
        if sign is not None:
            self._set(
                f"Volcano's controller is at work ({sign.text}); stop it to run jobs here: "
                f"kubectl -n {sign.namespace} scale deployment {DEPLOYMENT} --replicas=0"
            )
        else:
            self._set(self._stranger if self._monotonic() < self._stranger_until else "")

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

    async def _sign(self) -> Sign | None:
        found = await self._detector.lease(_SIGNS)
        if found is not None:
            return found
        try:
            return await self._detector.deployment(_SIGNS)
        except ApiError as error:
            if error.code != 403:
                raise
            if not self._denied:
                log.warning("may not list Deployments, so only the lease shows whether Volcano's controller runs")
            self._denied = True
            return None
