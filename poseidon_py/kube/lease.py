"""Leader election on a coordination.k8s.io Lease, compatible with client-go and its tools.

                     the lease is free, our own, or unchanged for its whole duration
    standing by  ---------------------------------------------------------------------->  leading
                 <----------------------------------------------------------------------
                     it was not renewed within `renew_deadline`, or has another holder

Times are compared only with the local clock at which a change of the lease was *observed*, so the clocks of replicas
need not agree. The leader stops after renew_deadline, standbys wait for lease_duration: the difference is the margin
for requests of the old leader that are still in flight.

A process that takes no part in the election reads the lease only: it leads while nobody else holds a fresh one, and it
has read that within `renew_deadline`.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from poseidon_py.kube.client import ApiError, ConflictError, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.leader.leader_record import record_of
from poseidon_py.util.timestamps import instant_of

log = logging.getLogger(__name__)

SCHEDULER_NAMES = "poseidon.io/scheduler-names"
"""Annotation of a lease: whose pods its holder schedules."""
_JITTER = 1.2
REMEDY = (
    "stop it, or run with --leader-elect, which waits for its turn; a scheduler of other pods needs a --lease-name of "
    "its own"
)
"""What to do about the holder of a lease, for a process that takes no part in the election."""
_LATE = 1.0
"""Seconds by which a pause took longer than it should, from which on that is named as the cause of a loss."""


class Gain(StrEnum):
    """Why a process began to lead."""

    FREE = "free"
    """Nobody had the lease."""
    EXPIRED = "expired"
    """Its holder did not renew it."""
    OWN = "own"
    """This process had it before, as after an error."""


class Loss(StrEnum):
    """Why a leader stopped leading."""

    TAKEN = "taken"
    """Another process holds the lease."""
    ERROR = "error"
    """The API server refused the requests, or could not be reached."""
    UNANSWERED = "unanswered"
    """A request was not answered in time."""
    LATE = "late"
    """This process did not run in time."""


_GAINS = {
    Gain.FREE: "which had no holder",
    Gain.EXPIRED: "whose holder did not renew it",
    Gain.OWN: "which it had before",
}


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
        changed: Callable[[bool, Gain | Loss], None] = lambda leads, cause: None,
        takes_part: bool = True,
        description: Mapping[str, str] | None = None,
        role: str = "",
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`changed`: called when leadership begins and ends, with the cause. `takes_part`: False: the lease is only
        read. `description`: annotations of the lease while this process holds it. `role`: what the holder is, as the
        log shows it; empty: the leader."""
        if not lease_duration > renew_deadline > retry_period * _JITTER:
            raise ValueError("lease_duration > renew_deadline > 1.2 * retry_period must hold")
        self._api = api
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._folder}/{quote(name, safe='')}"
        self._name, self._namespace, self._full = name, namespace, f"{namespace}/{name}"
        self.identity = identity
        self._started, self._stopped, self._changed = started, stopped, changed
        self._takes_part = takes_part
        self._description = dict(description or {})
        self._role = role
        self._duration = lease_duration
        self._deadline = renew_deadline
        self._period = retry_period
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._rng = rng
        self._stranger = ""  # the scheduler names of a holder that does other work
        self._spec: dict[str, Any] = {}
        self._seen = 0.0  # local time of the last observed change of _spec
        self._renewed = 0.0  # local time at which the lease that we hold was requested
        self._obstacle = ""  # why the last attempt failed
        self._warned = ""  # the error of the attempts since the last one without, which is in the log
        self._late = 0.0  # by how much the pauses since the last renewal took longer than they should
        self._gain = Gain.FREE  # why the last attempt succeeded
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
            if self._takes_part:
                why = _GAINS[self._gain]
                log.info("%s: %s holds lease %s, %s", self._role or "leading", self.identity, self._full, why)
            else:
                log.info("leading without an election: no process holds lease %s", self._full)
            self._changed(True, self._gain)
            self._started()
            try:
                loss, why = await self._renew()
            finally:
                self.leading = False
                self._stopped()
            self._changed(False, loss)
            waits = f"no {self._role}" if self._role else "standing by"
            log.warning("%s, because lease %s is lost: %s", waits, self._full, why)

    async def rival(self) -> str:
        """Who else holds the lease, and since when by the clock of this machine; empty: nobody, or it has expired.
        Raises KubeError."""
        try:
            lease = self._decode(await self._api.call("GET", self._path, timeout=self._deadline))
        except NotFoundError:
            return ""
        spec = lease.get("spec") or {}
        holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
        duration = float(spec.get("leaseDurationSeconds") or self._duration)
        age = self._now() - instant_of(renewed)
        if holder in ("", self.identity) or age >= duration:
            return ""
        names = (lease["metadata"].get("annotations") or {}).get(SCHEDULER_NAMES, "")
        of = f", scheduler of {names}," if names else ""
        return f"{holder}{of} holds lease {self._full}, renewed at {renewed}"

    async def _renew(self) -> tuple[Loss, str]:
        """Renew the lease until that fails for too long, or it has another holder. Returns the cause.

        The time of the request counts, not that of the answer: other replicas may see the lease at once.
        """
        self._obstacle, self._late = "", 0.0
        while True:
            left = self._renewed + self._deadline - self._monotonic()
            if left <= 0:
                return self._expired()
            pause = min(self._period, left)
            end = self._monotonic() + pause
            await self._sleep(pause)
            self._late += max(0.0, self._monotonic() - end)
            requested_at = self._monotonic()
            try:
                # a request that hangs must not delay the end of leadership
                async with asyncio.timeout(self._renewed + self._deadline - requested_at):
                    if await self._attempt():
                        self._renewed, self._late = requested_at, 0.0
                    elif self.holder not in ("", self.identity):
                        return Loss.TAKEN, self._rival()
            except TimeoutError:
                return self._expired(self._monotonic() - requested_at)

    def _expired(self, unanswered: float = 0.0) -> tuple[Loss, str]:
        """The cause of a lease that was not renewed in time. `unanswered`: seconds for which the last request has
        waited, which after failed ones may have been sent just before the end."""
        since = self._monotonic() - self._renewed
        self._late = max(self._late, since - self._deadline)
        loss, causes = Loss.ERROR, [self._obstacle]
        if unanswered >= self._period or (unanswered and not self._obstacle):
            loss = Loss.UNANSWERED
            causes.append(f"the last request was not answered within {unanswered:.1f} s")
        if self._late >= _LATE:
            loss = Loss.LATE
            causes.append(f"this process was late by {self._late:.1f} s, as if suspended or short of CPU")
        what = "not renewed" if self._takes_part else "not read"
        return loss, "; ".join(filter(None, (f"it was {what} for {since:.1f} s", *causes)))

    def _rival(self) -> str:
        """Who holds the lease, and what to do about it."""
        if self._takes_part:
            return f"{self.holder} holds it"
        return f"{self.holder} holds it, and this process takes no part in the election: {REMEDY}"

    async def _attempt(self) -> bool:
        """Try to acquire or renew the lease. Returns whether we hold it."""
        try:
            leads = await self._try()
            self._warned = ""
            return leads
        except ConflictError:
            self._obstacle = "another client changed it first"
            log.debug("another client changed the lease first")
        except KubeError as error:
            self._obstacle = str(error)
            denied = isinstance(error, ApiError) and error.code == 403
            remedy = "; standing by until its Role (docs/rbac.md) allows that" if denied else ""
            level = logging.DEBUG if self._obstacle == self._warned else logging.WARNING
            log.log(level, "cannot use lease %s: %s%s", self._full, error, remedy)
            self._warned = self._obstacle
        return False

    async def _try(self) -> bool:
        try:
            lease = self._decode(await self._api.call("GET", self._path, timeout=self._deadline))
        except NotFoundError:
            self._gain = Gain.FREE
            if not self._takes_part:
                self._note({})
                return True
            spec = self._fresh(0)
            identity = {"name": self._name, "namespace": self._namespace, "annotations": self._description}
            await self._api.create(self._folder, self._body(identity, spec), timeout=self._deadline)
            self._note(spec)
            return True
        spec = lease.get("spec") or {}
        if spec != self._spec:
            annotations = lease["metadata"].get("annotations") or {}
            self._note(spec, annotations)
            self._compare(annotations)
        held_by_other = self.holder not in ("", self.identity)
        duration = float(spec.get("leaseDurationSeconds") or self._duration)
        if held_by_other and self._monotonic() < self._seen + duration:
            return False
        self._gain = Gain.EXPIRED if held_by_other else Gain.OWN if self.holder else Gain.FREE
        if not self._takes_part:
            return True
        transitions = int(spec.get("leaseTransitions") or 0)
        mine = self._fresh(transitions if self.holder == self.identity else transitions + 1)
        if self.holder == self.identity and spec.get("acquireTime"):
            mine["acquireTime"] = spec["acquireTime"]
        metadata: dict[str, Any] = dict(lease["metadata"])
        if self._description:
            metadata["annotations"] = (metadata.get("annotations") or {}) | self._description
        await self._api.update(self._path, self._body(metadata, mine), timeout=self._deadline)
        self._note(mine)
        return True

    def _decode(self, body: bytes) -> dict[str, Any]:
        """The whole lease, since it is written back. Raises MalformedAnswerError if a field has another type."""
        what = f"lease {self._full}"
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

    def _note(self, spec: dict[str, Any], annotations: Mapping[str, str] | None = None) -> None:
        self._spec, self._seen = spec, self._monotonic()
        holder = str(spec.get("holderIdentity") or "")
        if holder != self.holder and holder and holder != self.identity:
            record = record_of(annotations, holder)
            about = f" ({record.where}, version {record.version})" if record is not None else ""
            log.info("the %s is %s%s", self._role or "leader", holder, about)
        self.holder = holder

    def _compare(self, annotations: Mapping[str, str]) -> None:
        """Warns if the holder of the lease does other work, which nobody does for this process then."""
        names, own = annotations.get(SCHEDULER_NAMES, ""), self._description.get(SCHEDULER_NAMES, "")
        stranger = names if self.holder not in ("", self.identity) and names != own else ""
        if stranger and own and stranger != self._stranger:
            log.warning(
                "%s holds lease %s and is the scheduler of %s, so nobody schedules the pods of %s: give this scheduler "
                "a --lease-name of its own, and allow it in the Role",
                self.holder,
                self._full,
                stranger,
                own,
            )
        self._stranger = stranger

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
            log.warning("cannot release lease %s: %s", self._full, error)


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
