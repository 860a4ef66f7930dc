"""Carries out placements: binds pods to nodes concurrently, each to a definite outcome.

A pod is assumed on its node from `bind` on; the watch confirms it (state/store.py). A placement has one of these
outcomes:

    bound       the API server confirmed it, or the pod was found on our node although the answer was lost
    elsewhere   the pod was found on another node: the watch will report it
    gone        the pod is deleted, being deleted, or replaced by another of the same name
    overtaken   the state had changed before the bind was sent
    given back  it could not be carried out: the engine leaves the pod out of rounds for a while

A pod with volumes to bind or devices to claim is prepared first (bind/preparing.py), which may take minutes and
occupies no slot.
Temporary failures are retried with growing delays, which occupy no slot either: no connection, 429 (not before
Retry-After), 5xx. `halt` takes effect at once: only requests that are already in flight complete.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import Protocol

from poseidon_py.bind.attempt import BindApi, Outcome, Result, read_back, send_bind
from poseidon_py.bind.gate import End, GangGate, OpenGate, SendDecision
from poseidon_py.bind.placement import Placement, PlacementState
from poseidon_py.bind.slots import BindSlots
from poseidon_py.kube.client import KubeError
from poseidon_py.state.claim_use import PreparationError, TakenError
from poseidon_py.state.records import PodRecord, Reject
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_DEPOSED = "another replica leads"
_RETRY_FIRST, _RETRY_MAX = 0.1, 5.0
_GIVE_BACK_FIRST, _GIVE_BACK_MAX = 1.0, 60.0
_MANY = 15
"""Attempts from which on the metric does not tell them apart, as in kube-scheduler."""
_TAKEN_SECONDS = 0.2
"""Delay before a pod is placed again after its volume was given to another pod."""

Prepare = Callable[[PodRecord, str], Awaitable[None] | None]
"""Pod, name of the node -> an awaitable for the time before the bind. Both may raise PreparationError."""


class BindReporter(Protocol):
    """Publishes the outcomes of binds."""

    def scheduled(self, known: PodRecord, node: str) -> None: ...
    def failed(self, known: PodRecord, message: str) -> None: ...


class Binder:
    """`start`, `bind` any number, `drain` or `halt`, `stop`."""

    def __init__(
        self,
        api: BindApi,
        store: Store,
        reject: Reject,
        reporter: BindReporter,
        *,
        slots: BindSlots | None = None,
        prepare: Prepare = lambda known, node: None,
        leads: Callable[[], bool] = lambda: True,
        gate: "Callable[[Binder], GangGate]" = lambda binder: OpenGate(),
        concurrency: int = 100,
        timeout: float = 30.0,
        patience: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`prepare` is called for pods with claims. `leads` is called before each bind is sent and before claims are
        written, because a suspended process learns late that another replica is the leader. `gate` creates the gate of
        this binder. `concurrency`: slots. `timeout`: seconds for one request; `patience`: seconds for all retries."""
        self._api = api
        self._store = store
        self._metrics = store.metrics
        self._reject = reject
        self._reporter = reporter
        self._slots = slots if slots is not None else BindSlots()
        self._prepare = prepare
        self._leads = leads
        self._concurrency = concurrency
        self._timeout = timeout
        self._patience = patience
        self._monotonic = monotonic
        self._now = now
        self._call_later = call_later
        self._rng = rng
        self._placements: dict[str, Placement] = {}
        """By UID: the newest placement of each pod, until it has ended."""
        self._preparing: dict[Placement, asyncio.Task[None]] = {}
        """Also of placements that have ended by now."""
        self._failures: dict[str, Backoff] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._halted = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.bound = 0
        """Number of pods bound since the start."""
        self._durations = {r: self._metrics.bind.labels(r) for r in ("bound", "lost", "busy", "conflict", "error")}
        self._attempts = cache(self._metrics.attempts.labels)
        self._attempt_seconds = cache(self._metrics.attempt_seconds.labels)
        self._sli = cache(self._metrics.sli.labels)
        self._metrics.binds_in_flight.set_function(lambda: self.in_flight)
        self._gate = gate(self)

    @property
    def in_flight(self) -> int:
        return self._slots.in_flight

    def start(self) -> None:
        self._workers = [
            asyncio.create_task(self._worker(), name=f"binder {number}") for number in range(self._concurrency)
        ]

    async def stop(self) -> None:
        """Cancels the workers; the outcome of requests in flight stays unknown."""
        await end_tasks(*self._workers, *self._preparing.values())
        self._workers.clear()

    async def drain(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for all placements to end; those that wait for volumes, which may take minutes,
        are given back at once. Returns whether they did."""
        for placement in [each for each in self._placements.values() if each.state is PlacementState.PREPARING]:
            self._withdraw(placement, "", report=False)
        try:
            async with asyncio.timeout(timeout):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def halt(self) -> None:
        """Sends no further binds until `resume`; gives back placements that were not sent."""
        self._halted = True
        for placement in list(self._placements.values()):
            self._withdraw(placement, _DEPOSED, report=False)
        self._note_quiet()

    def resume(self) -> None:
        self._halted = False

    def bind(self, known: PodRecord, node: str, node_id: str) -> None:
        """The engine has placed a pending pod on a node."""
        if self._halted or not self._store.assume(known, node):
            self._reject(known, node_id, 0)
            return
        self._quiet.clear()
        work = self._begin_preparing(known, node) if known.has_claims else None
        placement = Placement(known, node, node_id, self._monotonic() + self._patience, prepared=work is None)
        self._placements[known.uid] = placement
        if work is None:
            self._slots.put(placement)
        else:
            self._store.set_revocable(known, True)
            self._preparing[placement] = asyncio.create_task(self._run_preparation(placement, work))

    def settled(self, known: PodRecord) -> None:
        """The watch reports the pod bound or deleted."""
        self._failures.pop(known.uid, None)
        placement = self._placements.get(known.uid)
        if placement is not None and placement.known is known and placement.state is not PlacementState.SENDING:
            self._metrics.bind_stale.labels(placement.overtaken()).inc()
            self._finish(placement)
        if known.gang.id:
            self._gate.ended(known, End.BOUND if known.node else End.FAILED)
        self._note_quiet()

    # -- members of gangs -------------------------------------------------------------------------------------

    def preparing(self, uids: Iterable[str]) -> bool:
        """Whether volumes of any of these pods are not ready."""
        if not self._preparing:
            return False
        found = (self._placements.get(uid) for uid in uids)
        return any(placement is not None and placement.state is PlacementState.PREPARING for placement in found)

    def release(self, uids: Iterable[str]) -> None:
        """Releases the parked binds of these pods."""
        for uid in uids:
            placement = self._placements.get(uid)
            if placement is not None and placement.state is PlacementState.PARKED:
                self._queue(placement)

    def withdraw(self, uids: Iterable[str], why: str) -> None:
        """Gives back the placements of these pods that were not sent; empty `why`: not reported on the pods."""
        for uid in list(uids):
            placement = self._placements.get(uid)
            if placement is not None:
                self._withdraw(placement, why, report=bool(why))
        self._note_quiet()

    def _withdraw(self, placement: Placement, why: str, *, report: bool) -> None:
        if not placement.ended and placement.state is not PlacementState.SENDING:
            self._give_back(placement, why, report=report)

    # -- volumes and devices ----------------------------------------------------------------------------------

    def _begin_preparing(self, known: PodRecord, node: str) -> Awaitable[None] | None:
        """An awaitable, which also raises errors of this call, after the gang's other members are registered."""
        try:
            return self._prepare(known, node)
        except PreparationError as error:
            return _failed(error)

    async def _run_preparation(self, placement: Placement, work: Awaitable[None]) -> None:
        try:
            why, taken = await self._outcome_of(placement, work)
            if placement.ended:
                return
            if taken:
                self._give_back(placement, why, report=False, end=End.TAKEN)
            elif why and not self._leads():
                self._give_back(placement, _DEPOSED, report=False)
            elif why:
                self._give_back(placement, why)
            else:
                placement.give_up = self._monotonic() + self._patience
                self._queue(placement)
        finally:
            del self._preparing[placement]
            self._note_quiet()

    async def _outcome_of(self, placement: Placement, work: Awaitable[None]) -> tuple[str, bool]:
        """Why the pod cannot be bound (empty: it can), and whether what it needs was given to another pod."""
        try:
            await work
        except (PreparationError, KubeError) as error:
            return str(error), isinstance(error, TakenError)
        except Exception:
            log.exception("preparing the volumes and devices of %s failed", placement.known.full_name)
            return "internal error", False
        return "", False

    # -- one placement ----------------------------------------------------------------------------------------

    async def _worker(self) -> None:
        while True:
            placement = await self._slots.take()
            placement.move(PlacementState.SENDING)
            try:
                await self._carry_out(placement)
            except Exception:
                log.exception("binding %s failed", placement.known.full_name)
                if not placement.ended:
                    self._give_back(placement, "internal error")
            finally:
                self._slots.done()
                self._note_quiet()

    async def _carry_out(self, placement: Placement) -> None:
        known = placement.known
        if why := placement.overtaken():
            self._end_overtaken(placement, why)
            return
        if placement.in_doubt:
            found = await read_back(self._api, placement)
            if found.result is not Result.UNBOUND:
                self._act_on(placement, found)
                return
        if self._halted or not self._leads():
            self._give_back(placement, _DEPOSED, report=False)
            return
        decision = self._gate.may_send(known) if known.gang.id else SendDecision.SEND
        if decision is SendDecision.WAIT:
            placement.move(PlacementState.PARKED)
            self._store.set_revocable(known, True)
        elif decision is SendDecision.DROP:
            self._give_back(placement, "", report=False)
        else:
            started, request = self._monotonic(), "error"
            try:
                outcome = await send_bind(self._api, placement, self._timeout)
                request = outcome.request
                self._act_on(placement, outcome)
            finally:
                self._durations[request].observe(self._monotonic() - started)

    def _act_on(self, placement: Placement, outcome: Outcome) -> None:
        match outcome.result:
            case Result.BOUND:
                self._succeed(placement)
            case Result.RETRY:
                self._retry(placement, outcome)
            case Result.OTHER_NODE:
                self._metrics.bind_stale.labels("elsewhere").inc()
                log.info("%s was bound to %s by another scheduler", placement.known.full_name, outcome.node)
                self._finish(placement, End.FAILED)
            case Result.GONE:
                self._end_gone(placement, "gone")
            case Result.DELETING:
                self._end_gone(placement, "deleting")
            case _:
                self._give_back(placement, str(outcome.error))

    def _succeed(self, placement: Placement) -> None:
        self.bound += 1
        known = placement.known
        self._count_attempt("scheduled", known)
        self._sli(str(known.attempts) if known.attempts < _MANY else f"{_MANY}+").observe(
            self._monotonic() - known.first_seen
        )
        self._metrics.pod_attempts.observe(known.attempts)
        self._failures.pop(known.uid, None)
        self._reporter.scheduled(known, placement.node)
        self._finish(placement, End.BOUND)

    def _count_attempt(self, result: str, known: PodRecord) -> None:
        known.attempts += 1
        self._attempts(result, known.observed.scheduler).inc()
        self._attempt_seconds(result, known.observed.scheduler).observe(self._monotonic() - known.attempt_began)

    def _retry(self, placement: Placement, outcome: Outcome) -> None:
        if placement.backoff is None:
            placement.backoff = Backoff(_RETRY_FIRST, _RETRY_MAX, self._rng)
        delay = max(placement.backoff.next(), outcome.retry_after)
        if self._halted or self._monotonic() + delay > placement.give_up:
            self._give_back(placement, str(outcome.error), report=not self._halted)
            return
        log.debug("binding %s: %s; retry in %.1f s", placement.known.full_name, outcome.error, delay)
        placement.move(PlacementState.DEFERRED)
        self._store.set_revocable(placement.known, not placement.in_doubt)

        def due() -> None:
            if placement.state is PlacementState.DEFERRED:
                self._queue(placement)

        (self._call_later or asyncio.get_running_loop().call_later)(delay, due)

    def _end_overtaken(self, placement: Placement, why: str) -> None:
        self._metrics.bind_stale.labels(why).inc()
        if why == "deleting" and placement.holds:
            self._release(placement.known)
        self._finish(placement, End.BOUND if why == "bound" else End.FAILED)

    def _end_gone(self, placement: Placement, why: str) -> None:
        """The pod was found deleted. Until the watch reports that, it must not count as assumed."""
        self._metrics.bind_stale.labels(why).inc()
        placement.known.observed.deleting = True
        if placement.holds:
            self._release(placement.known)
        self._finish(placement, End.FAILED)

    def _give_back(self, placement: Placement, why: str, *, report: bool = True, end: End = End.FAILED) -> None:
        """Gives the placement back. `report`: with an event, and a growing delay before the pod is placed again."""
        known = placement.known
        self._finish(placement)
        if not placement.holds:
            return
        self._store.release(known)
        delay = _TAKEN_SECONDS if end is End.TAKEN else 0.0
        if report:
            backoff = self._failures.setdefault(known.uid, Backoff(_GIVE_BACK_FIRST, _GIVE_BACK_MAX, self._rng))
            delay = backoff.next()
            self._count_attempt("error", known)
            log.warning("cannot bind %s to %s: %s; retried after %.1f s", known.full_name, placement.node, why, delay)
            self._reporter.failed(known, f"binding to {placement.node} failed: {why}")
        self._reject(known, placement.node_id, int((self._now() + delay) * 1_000_000) if delay else 0)
        if known.gang.id:
            self._gate.ended(known, end)

    def _release(self, known: PodRecord) -> None:
        self._store.release(known)
        self._store.touch_pod(known.uid)

    def _queue(self, placement: Placement) -> None:
        placement.move(PlacementState.READY)
        self._store.set_revocable(placement.known, False)
        self._slots.put(placement)

    def _finish(self, placement: Placement, end: End | None = None) -> None:
        """`end`: the outcome passed to the gate; None: the caller informs it."""
        known = placement.known
        if placement.state is PlacementState.READY:
            self._slots.remove(placement)
        elif placement.state is PlacementState.PREPARING:
            # later, because a task that is cancelled before its first step never runs its `finally`
            asyncio.get_running_loop().call_soon(self._preparing[placement].cancel)
        placement.move(PlacementState.ENDED)
        if self._placements.get(known.uid) is placement:
            del self._placements[known.uid]
        if end is not None and known.gang.id:
            self._gate.ended(known, end)

    def _note_quiet(self) -> None:
        if not (self._placements or self._preparing or self._slots.in_flight):
            self._quiet.set()


async def _failed(error: PreparationError) -> None:
    raise error
