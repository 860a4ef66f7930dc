"""Carries placements out: binds pods to nodes, many at once, each to a clear end.

A pod is assumed to be on its node from `bind` on; the watch confirms it (state/store.py). The end of a placement is one
of

    bound       the API server said so, or the pod is found on our node although the answer was lost
    elsewhere   the pod is found on another node: the watch will say so
    gone        the pod is deleted, being deleted, or another one by the same name
    stale       before it was sent, the state had moved on
    given back  it could not be carried out: the engine is told, and leaves the pod out of rounds for a while

A pod whose volumes are not all there yet is prepared first (bind/volumes.py), which may take minutes and occupies no
slot.

What may be repeated is repeated, with growing delays that occupy no slot: no connection, 429 (as long as the server
asks), 5xx. A bind carries the pod's UID, and the API server binds a pod once, so that repeating cannot bind twice or
bind the successor of a deleted pod. 404, 409 and lost answers are settled by reading the pod.

`halt` stops at once: nothing that is not on its way yet is sent any more.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Protocol

from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    ConflictError,
    KubeError,
    LostAnswerError,
    NotFoundError,
    UnreachableError,
)
from poseidon_py.kube.objects import TERMINAL, Pod
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.volumes.gate import VolumeError, VolumesTakenError
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

_DEPOSED = "another replica leads"
_RETRY_FIRST, _RETRY_MOST = 0.1, 5.0
_GIVE_BACK_FIRST, _GIVE_BACK_MOST = 1.0, 60.0
_TAKEN = 0.2
"""After so many seconds a pod is placed anew that wanted a volume which another one was given."""


class BindApi(Protocol):
    """What the binder needs of kube.Kube."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, timeout: float) -> None: ...
    async def pod(self, namespace: str, name: str) -> Pod: ...


Prepare = Callable[[PodRecord, str], Awaitable[None] | None]
"""Pod, name of the node: what to wait for before the bind. It and the wait may raise VolumeError."""


class SendDecision(Enum):
    """Whether a bind may be sent."""

    SEND = "now"
    WAIT = "after `release`"
    DROP = "never"


class End(Enum):
    """What has become of a placement."""

    BOUND = "the pod has a node, this one or another"
    FAILED = "it has none from this"
    TAKEN = "others were given its volumes; it is placed anew, elsewhere, in a moment"


Reject = Callable[[PodRecord, str, int], None]
"""Pod, id of the node, not before (microseconds since the epoch)."""


class _Placement:
    __slots__ = ("backoff", "doubt", "ended", "give_up", "known", "node", "node_id")

    def __init__(self, known: PodRecord, node: str, node_id: str, give_up: float) -> None:
        self.known = known
        self.node = node
        self.node_id = node_id
        self.give_up = give_up
        """Monotonic seconds."""
        self.backoff: Backoff | None = None
        self.doubt = False
        """Whether it may have been carried out already."""
        self.ended = False
        """Given back, or settled by the watch, while its volumes were being prepared."""


class Binder:
    """`start`, `bind` any number, `drain` or `halt`, `stop`."""

    def __init__(
        self,
        api: BindApi,
        store: Store,
        reject: Reject,
        *,
        concurrency: int = 100,
        timeout: float = 30.0,
        patience: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._store = store
        self._metrics = store.metrics
        self._reject = reject
        self._concurrency = concurrency
        self._timeout = timeout
        self._patience = patience
        self._monotonic = monotonic
        self._now = now
        self._call_later = call_later
        self._rng = rng
        self._ready: deque[_Placement] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._later: set[_Placement] = set()
        self._preparing: dict[_Placement, asyncio.Task[None]] = {}
        self._parked: dict[str, _Placement] = {}
        """By UID: not allowed to be sent yet."""
        self._failures: dict[str, Backoff] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._halted = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.prepare: Prepare = lambda known, node: None
        """Asked for pods with claims."""
        self.leads: Callable[[], bool] = lambda: True
        """Asked before each bind is sent, and before volumes are written: a process that was stopped learns last that
        others lead."""
        self.in_flight = 0
        self.on_bound: Callable[[PodRecord, str], None] = lambda known, node: None
        self.on_failed: Callable[[PodRecord, str], None] = lambda known, why: None
        self.may_send: Callable[[PodRecord], SendDecision] = lambda known: SendDecision.SEND
        """Asked for pods of gangs before a bind is sent."""
        self.on_ended: Callable[[PodRecord, End], None] = lambda known, end: None
        """Called for pods of gangs when a placement has come to its end."""
        self.bound = 0
        """How many, ever."""
        self._durations = {r: self._metrics.bind.labels(r) for r in ("bound", "lost", "busy", "conflict", "error")}
        self._scheduled = self._metrics.attempts.labels("scheduled")
        self._metrics.binds_in_flight.set_function(lambda: self.in_flight)

    @property
    def busy(self) -> bool:
        """Whether binds wait for a slot or are on their way."""
        return bool(self._ready) or self.in_flight > 0

    @property
    def saturated(self) -> bool:
        """Whether binds wait for a slot."""
        return bool(self._ready) and not self._idle  # a worker between two binds takes one at once

    def start(self) -> None:
        self._workers = [
            asyncio.create_task(self._worker(), name=f"binder {number}") for number in range(self._concurrency)
        ]

    async def stop(self) -> None:
        """Ends the workers; what is on its way is left to its fate."""
        for worker in (*self._workers, *self._preparing.values()):
            worker.cancel()
        await asyncio.gather(*self._workers, *self._preparing.values(), return_exceptions=True)
        self._workers.clear()

    async def drain(self, timeout: float) -> bool:
        """Lets what is there come to its end, for so many seconds. Returns whether it did."""
        try:
            async with asyncio.timeout(timeout):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def halt(self) -> None:
        """Sends nothing more, until `resume`; gives back what was not sent."""
        self._halted = True
        self._cancel(list(self._preparing))
        for placement in (*self._ready, *self._later, *self._preparing, *self._parked.values()):
            self._give_back(placement, _DEPOSED, rest=False)
        self._parked.clear()
        self._ready.clear()
        self._later.clear()
        self._settle()

    def resume(self) -> None:
        self._halted = False

    def bind(self, known: PodRecord, node: str, node_id: str) -> None:
        """The engine has placed a pod that waits on a node."""
        if self._halted:
            self._reject(known, node_id, 0)
            return
        if not self._store.assume(known, node):
            self._reject(known, node_id, 0)
            return
        self._quiet.clear()
        placement = _Placement(known, node, node_id, self._monotonic() + self._patience)
        if known.volumes.claims and not self._begin_preparing(placement):
            return
        self._ready.append(placement)
        self._wake()

    def settled(self, known: PodRecord) -> None:
        """The watch says that the pod is bound, or gone."""
        self._failures.pop(known.uid, None)
        if self._preparing:
            self._cancel([p for p in self._preparing if p.known is known and not p.ended])
        parked = self._parked.get(known.uid)
        if parked is not None and parked.known is known:
            del self._parked[known.uid]
        if known.gang.id:
            self.on_ended(known, End.BOUND if known.node else End.FAILED)
        self._settle()

    # -- units ------------------------------------------------------------------------------------------------

    def preparing(self, uids: Iterable[str]) -> bool:
        """Whether volumes of any of these pods are not ready."""
        return bool(self._preparing) and not {p.known.uid for p in self._preparing}.isdisjoint(uids)

    def release(self, uids: Iterable[str]) -> None:
        """Binds of these pods that were not allowed to be sent may be now."""
        for uid in uids:
            placement = self._parked.pop(uid, None)
            if placement is not None:
                self._ready.append(placement)
                self._wake()

    def withdraw(self, uids: Iterable[str], why: str) -> None:
        """Gives back what has not been sent of these pods; empty `why`: for no fault of theirs."""
        wanted = set(uids)
        for placement in (*self._ready, *self._later, *self._preparing, *self._parked.values()):
            if placement.known.uid in wanted:
                if placement in self._preparing:
                    self._cancel([placement])
                self._later.discard(placement)
                self._give_back(placement, why, rest=bool(why))
        self._ready = deque(placement for placement in self._ready if placement.known.uid not in wanted)
        for uid in wanted:
            self._parked.pop(uid, None)
        self._settle()

    # -- volumes ----------------------------------------------------------------------------------------------

    def _begin_preparing(self, placement: _Placement) -> bool:
        """Whether the pod can be bound at once. If it never can, that ends later: the rest of its gang may follow."""
        try:
            work = self.prepare(placement.known, placement.node)
        except VolumeError as error:
            work = _failed(error)
        if work is None:
            return True
        self._preparing[placement] = asyncio.create_task(self._prepare(placement, work))
        return False

    async def _prepare(self, placement: _Placement, work: Awaitable[None]) -> None:
        try:
            why, taken = await self._prepared(placement, work)
            if placement.ended:
                return
            if taken:
                self._give_back(placement, why, rest=False, end=End.TAKEN)
            elif why and not self.leads():
                self._give_back(placement, _DEPOSED, rest=False)
            elif why:
                self._give_back(placement, why)
            else:
                placement.give_up = self._monotonic() + self._patience
                self._ready.append(placement)
                self._wake()
        finally:
            del self._preparing[placement]
            self._settle()

    async def _prepared(self, placement: _Placement, work: Awaitable[None]) -> tuple[str, bool]:
        """Why it cannot be bound, empty: it can; and whether somebody else was given its volumes."""
        try:
            await work
        except (VolumeError, KubeError) as error:
            return str(error), isinstance(error, VolumesTakenError)
        except Exception:
            log.exception("preparing the volumes of %s failed", placement.known.full_name)
            return "internal error", False
        return "", False

    def _cancel(self, placements: Iterable[_Placement]) -> None:
        """Ends preparing them, but not at once: a task that is cancelled before it began never comes to a `finally`."""
        for placement in placements:
            placement.ended = True
            asyncio.get_running_loop().call_soon(self._preparing[placement].cancel)

    def _wake(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _worker(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._ready:
                waiter = loop.create_future()
                self._idle.append(waiter)
                await waiter
            placement = self._ready.popleft()
            self.in_flight += 1
            try:
                await self._carry_out(placement)
            except Exception:
                log.exception("binding %s failed", placement.known.full_name)
                self._give_back(placement, "internal error")
            finally:
                self.in_flight -= 1
                self._settle()

    def _settle(self) -> None:
        if not (self._ready or self._later or self._preparing or self._parked or self.in_flight):
            self._quiet.set()

    # -- one placement ----------------------------------------------------------------------------------------

    def _stale(self, placement: _Placement) -> str:
        """Why it must not be carried out any more; empty: it may."""
        known = placement.known
        if self._store.pods.get(known.uid) is not known:
            return "gone"
        if known.node:
            return "bound"
        if known.observed.deleting:
            return "deleting"
        if known.assumed != placement.node:
            return "replaced"
        return ""

    async def _carry_out(self, placement: _Placement) -> None:
        known = placement.known
        if stale := self._stale(placement):
            self._metrics.bind_stale.labels(stale).inc()
            if stale == "deleting" and known.assumed == placement.node:
                self._release(known)
            if known.gang.id:
                self.on_ended(known, End.BOUND if stale == "bound" else End.FAILED)
            return
        if placement.doubt and not await self._look(placement, None):
            return
        if self._halted or not self.leads():
            self._give_back(placement, _DEPOSED, rest=False)
            return
        if known.gang.id and (leave := self.may_send(known)) is not SendDecision.SEND:
            if leave is SendDecision.WAIT:
                self._parked[known.uid] = placement
            else:
                self._give_back(placement, "", rest=False)
            return
        started = self._monotonic()
        result = "error"
        try:
            await self._api.bind(known.namespace, known.name, known.uid, placement.node, self._timeout)
            result = "bound"
            self._success(placement)
        except LostAnswerError as error:
            result = "lost"
            placement.doubt = True
            if await self._look(placement, error):
                self._again(placement, error)
        except (UnreachableError, BusyError) as error:
            result = "busy"
            self._again(placement, error, error.retry_after if isinstance(error, BusyError) else None)
        except (ConflictError, NotFoundError) as error:
            result = "conflict"
            if await self._look(placement, error):
                # the pod is there, not bound, and cannot be bound: gates, a version that moved, a hook that objects
                self._give_back(placement, str(error))
        except ApiError as error:
            self._give_back(placement, str(error))
        finally:
            self._durations[result].observe(self._monotonic() - started)

    async def _look(self, placement: _Placement, cause: KubeError | None) -> bool:
        """Settles by reading the pod. Returns whether it is still to be bound."""
        known = placement.known
        try:
            pod = await self._api.pod(known.namespace, known.name)
        except NotFoundError:
            self._end(placement, "gone")
            return False
        except KubeError as error:
            placement.doubt = True
            self._again(placement, error)
            return False
        placement.doubt = False
        if pod.metadata.uid != known.uid:
            self._end(placement, "gone")
        elif pod.spec.node_name == placement.node:
            self._success(placement)
        elif pod.spec.node_name:
            self._metrics.bind_stale.labels("elsewhere").inc()
            log.info("%s was bound to %s by somebody else", known.full_name, pod.spec.node_name)
            self.on_ended(known, End.FAILED)
        elif pod.metadata.deleting is not None or pod.status.phase in TERMINAL:
            self._end(placement, "deleting")
        else:
            return True
        return False

    def _success(self, placement: _Placement) -> None:
        self.bound += 1
        self._scheduled.inc()
        self._metrics.sli.observe(self._monotonic() - placement.known.first_seen)
        if self._failures:
            self._failures.pop(placement.known.uid, None)
        self.on_bound(placement.known, placement.node)
        if placement.known.gang.id:
            self.on_ended(placement.known, End.BOUND)

    def _end(self, placement: _Placement, why: str) -> None:
        self._metrics.bind_stale.labels(why).inc()
        if self._store.pods.get(placement.known.uid) is placement.known:
            # the watch is about to tell; until then it must not hold what it does not have
            placement.known.observed.deleting = True
            if placement.known.state is PodState.ASSUMED:
                self._release(placement.known)
        if placement.known.gang.id:
            self.on_ended(placement.known, End.FAILED)

    def _release(self, known: PodRecord) -> None:
        self._store.release(known)
        known.dirty = True
        self._store.pod_queue.add(known.uid)

    def _again(self, placement: _Placement, error: KubeError, rest: float | None = None) -> None:
        if placement.backoff is None:
            placement.backoff = Backoff(_RETRY_FIRST, _RETRY_MOST, self._rng)
        delay = max(placement.backoff.next(), rest or 0.0)
        if self._halted or self._monotonic() + delay > placement.give_up:
            self._give_back(placement, str(error), rest=not self._halted)
            return
        log.debug("binding %s: %s; again in %.1f s", placement.known.full_name, error, delay)
        self._later.add(placement)

        def ready() -> None:
            if placement in self._later:
                self._later.discard(placement)
                self._ready.append(placement)
                self._wake()

        (self._call_later or asyncio.get_running_loop().call_later)(delay, ready)

    def _give_back(self, placement: _Placement, why: str, *, rest: bool = True, end: End = End.FAILED) -> None:
        """rest: people are told, and the pod is placed again after a delay that grows."""
        known = placement.known
        if self._store.pods.get(known.uid) is not known or known.node or known.assumed != placement.node:
            return
        self._store.release(known)
        delay = _TAKEN if end is End.TAKEN else 0.0
        if rest:
            backoff = self._failures.setdefault(known.uid, Backoff(_GIVE_BACK_FIRST, _GIVE_BACK_MOST, self._rng))
            delay = backoff.next()
            self._metrics.attempts.labels("error").inc()
            log.warning("cannot bind %s to %s: %s; not before %.1f s", known.full_name, placement.node, why, delay)
            self.on_failed(known, f"binding to {placement.node} failed: {why}")
        self._reject(known, placement.node_id, int((self._now() + delay) * 1_000_000) if delay else 0)
        if known.gang.id:
            self.on_ended(known, end)


async def _failed(error: VolumeError) -> None:
    raise error
