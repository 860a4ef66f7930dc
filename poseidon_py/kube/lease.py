"""Leader election on a coordination.k8s.io Lease, compatible with client-go and its tools.

                     the lease is free, our own, or unchanged for its whole duration
    standing by  ---------------------------------------------------------------------->  leading
                 <----------------------------------------------------------------------
                     it was not renewed within `renew_deadline`, or has another holder

Times are compared only with the local clock at which a change of the lease was *observed*, so the clocks of replicas
need not agree. The leader stops after renew_deadline, standbys wait for lease_duration: the difference is the margin
for requests of the old leader that are still in flight.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from poseidon_py.kube.client import ApiError, ConflictError, KubeError, NotFoundError, decode_answer

log = logging.getLogger(__name__)

_JITTER = 1.2


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None


class _Lease(msgspec.Struct):
    """The fields whose types are validated."""

    metadata: dict[str, Any]
    spec: _LeaseSpec | None = None


class LeaseApi(Protocol):
    """The part of kube.Kube that the election uses."""

    async def call(
        self, verb: str, path: str, body: bytes = b"", content_type: str = "", timeout: float = 30.0
    ) -> bytes: ...
    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def update(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...


class Election:
    """`run` in a separate task; `release` after that has ended."""

    def __init__(
        self,
        api: LeaseApi,
        *,
        name: str,
        namespace: str,
        identity: str,
        started: Callable[[], None],
        stopped: Callable[[], None],
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        if not lease_duration > renew_deadline > retry_period * _JITTER:
            raise ValueError("lease_duration > renew_deadline > 1.2 * retry_period must hold")
        self._api = api
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._folder}/{quote(name, safe='')}"
        self._name, self._namespace = name, namespace
        self.identity = identity
        self._started, self._stopped = started, stopped
        self._duration = lease_duration
        self._deadline = renew_deadline
        self._period = retry_period
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._rng = rng
        self._lease: dict[str, Any] = {}
        self._spec: dict[str, Any] = {}
        self._seen = 0.0  # local time of the last observed change of _spec
        self._renewed = 0.0  # local time at which the lease that we hold was requested
        self.leading = False
        self.holder = ""

    def holds(self) -> bool:
        """Whether the lease is certainly ours, even right after this process was suspended for a while and has not
        yet noticed another leader."""
        return self.leading and self._monotonic() < self._renewed + self._deadline

    async def run(self) -> None:
        """Never returns."""
        while True:
            self._renewed = self._monotonic()
            while not await self._attempt():
                await self._sleep(self._period * (1 + _JITTER * self._rng()))
                self._renewed = self._monotonic()
            self.leading = True
            log.info("leading: %s holds lease %s/%s", self.identity, self._namespace, self._name)
            self._started()
            try:
                await self._renew()
            finally:
                self.leading = False
                self._stopped()
            log.warning("lost lease %s/%s, standing by", self._namespace, self._name)

    async def _renew(self) -> None:
        """Renew the lease until that fails for too long, or it has another holder.

        The time of the request counts, not that of the answer: other replicas may see the lease at once.
        """
        while True:
            left = self._renewed + self._deadline - self._monotonic()
            if left <= 0:
                return
            await self._sleep(min(self._period, left))
            try:
                # a request that hangs must not delay the end of leadership
                async with asyncio.timeout(self._renewed + self._deadline - self._monotonic()):
                    requested_at = self._monotonic()
                    if await self._attempt():
                        self._renewed = requested_at
                    elif self.holder not in ("", self.identity):
                        return
            except TimeoutError:
                return

    async def _attempt(self) -> bool:
        """Try to acquire or renew the lease. Returns whether we hold it."""
        try:
            return await self._try()
        except ConflictError:
            log.debug("another client changed the lease first")
        except KubeError as error:
            denied = isinstance(error, ApiError) and error.code == 403
            remedy = "; standing by until its Role (deploy/poseidon.yaml) allows that" if denied else ""
            log.warning("cannot use lease %s/%s: %s%s", self._namespace, self._name, error, remedy)
        return False

    async def _try(self) -> bool:
        try:
            lease = self._decode(await self._api.call("GET", self._path, timeout=self._deadline))
        except NotFoundError:
            spec = self._fresh(0)
            body = self._body({"name": self._name, "namespace": self._namespace}, spec)
            await self._api.create(self._folder, body, timeout=self._deadline)
            self._note(spec)
            return True
        self._lease, spec = lease, lease.get("spec") or {}
        if spec != self._spec:
            self._note(spec)
        held_by_other = self.holder not in ("", self.identity)
        duration = float(spec.get("leaseDurationSeconds") or self._duration)
        if held_by_other and self._monotonic() < self._seen + duration:
            return False
        transitions = int(spec.get("leaseTransitions") or 0)
        mine = self._fresh(transitions if self.holder == self.identity else transitions + 1)
        if self.holder == self.identity and spec.get("acquireTime"):
            mine["acquireTime"] = spec["acquireTime"]
        await self._api.update(self._path, self._body(lease["metadata"], mine), timeout=self._deadline)
        self._note(mine)
        return True

    def _decode(self, body: bytes) -> dict[str, Any]:
        """The whole lease, since it is written back. Raises MalformedAnswerError if a field has another type."""
        what = f"lease {self._namespace}/{self._name}"
        decode_answer(body, _Lease, what)
        return decode_answer(body, dict[str, Any], what)

    def _fresh(self, transitions: int) -> dict[str, Any]:
        stamp = _micro_time(self._now())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(
                self._duration
            ),  # rounded up: never less than the duration that we rely on
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions,
        }

    def _body(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    def _note(self, spec: dict[str, Any]) -> None:
        self._spec, self._seen = spec, self._monotonic()
        holder = str(spec.get("holderIdentity") or "")
        if holder != self.holder and holder and holder != self.identity:
            log.info("the leader is %s", holder)
        self.holder = holder

    async def release(self) -> None:
        """Release the lease if it is ours, so that a standby need not wait until it expires."""
        if self.holder != self.identity:
            return
        try:
            lease = self._decode(await self._api.call("GET", self._path, timeout=2.0))
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") != self.identity:
                return
            del spec["holderIdentity"]  # an empty one is not valid
            spec |= {"leaseDurationSeconds": 1, "renewTime": _micro_time(self._now())}
            await self._api.update(self._path, self._body(lease["metadata"], spec), timeout=2.0)
            self.holder = ""
        except KubeError as error:
            log.warning("cannot release lease %s/%s: %s", self._namespace, self._name, error)


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
