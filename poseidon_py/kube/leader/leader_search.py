"""Finds the leader of a cluster by the lease, as a client that only reads."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from poseidon_py.kube.client import ApiError, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.leader.leader_record import LeaderRecord, record_of
from poseidon_py.util.timestamps import instant_of

_SECONDS = 10.0
_DOUBT_SECONDS, _POLL_SECONDS = 3.0, 0.5
"""For how long a lease that has expired by this machine's clock is read again: the clocks may differ, and a leader
renews it every two seconds."""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _LeaseRead(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class SearchApi(Protocol):
    """The part of kube.client.Kube that a search uses."""

    async def call(
        self, verb: str, path: str, body: bytes = b"", content_type: str = "", timeout: float = 30.0
    ) -> bytes: ...


class Leader(NamedTuple):
    """`lease`: NAMESPACE/NAME. `record` None: the holder does not say where it answers."""

    holder: str
    lease: str
    record: LeaderRecord | None


class NoLeaderError(Exception):
    """Nobody leads, or that cannot be found out; the message says why, and what to do if it is a right that lacks."""


async def find_leader(
    api: SearchApi,
    namespace: str,
    names: Sequence[str],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] = time.time,
) -> Leader:
    """The holder of the first of some leases that has one with a record; else the first that has a holder. Raises
    NoLeaderError."""
    found: list[Leader] = []
    problems: list[str] = []
    for name in names:
        try:
            leader = await _holder(api, namespace, name, sleep, now)
        except NoLeaderError as error:
            problems.append(str(error))
            continue
        if leader.record is not None:
            return leader
        found.append(leader)
    if found:
        return found[0]
    raise NoLeaderError(", and ".join(problems))


async def _holder(
    api: SearchApi, namespace: str, name: str, sleep: Callable[[float], Awaitable[None]], now: Callable[[], float]
) -> Leader:
    lease = await _read(api, namespace, name)
    holder, renewed = lease.spec.holder_identity or "", lease.spec.renew_time or ""
    if not holder:
        raise NoLeaderError(f"no process holds lease {namespace}/{name}")
    age, waited = now() - instant_of(renewed), 0.0
    while age >= (lease.spec.lease_duration_seconds or 0) and lease.spec.renew_time == renewed:
        if waited >= _DOUBT_SECONDS:
            raise NoLeaderError(f"{holder} has not renewed lease {namespace}/{name} since {renewed}")
        await sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
        lease = await _read(api, namespace, name)
    holder = lease.spec.holder_identity or ""
    if not holder:
        raise NoLeaderError(f"no process holds lease {namespace}/{name}")
    return Leader(holder, f"{namespace}/{name}", record_of(lease.metadata.annotations, holder))


async def _read(api: SearchApi, namespace: str, name: str) -> _LeaseRead:
    folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
    try:
        body = await api.call("GET", f"{folder}/{quote(name, safe='')}", timeout=_SECONDS)
        return decode_answer(body, _LeaseRead, f"lease {namespace}/{name}")
    except NotFoundError:
        raise NoLeaderError(f"there is no lease {namespace}/{name}") from None
    except KubeError as error:
        denied = isinstance(error, ApiError) and error.code == 403
        remedy = "; it takes get on leases (docs/rbac.md)" if denied else ""
        raise NoLeaderError(f"lease {namespace}/{name} cannot be read: {error}{remedy}") from error
