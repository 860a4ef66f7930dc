"""Writes the nominations of pending pods to their status, and whether they are privileged.

The record of the pod has the truth (state/nominations.py); what is written is its newest value. A value that cannot be
written is not lost for scheduling, only for users and for the next leader.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from poseidon_py.describe.annotations.preemption_terms import PreemptionState
from poseidon_py.preempt.announcements import Retractor
from poseidon_py.preempt.attempt import PreemptApi, Result, nominate
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.retries import Retries
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store

log = logging.getLogger(__name__)

_RETRY_FIRST = 0.2
_PENDING = (PodState.WAITING, PodState.ASSUMED)


@dataclass(slots=True)
class Write:
    """The writing of one pod's nomination."""

    known: PodRecord
    written: tuple[str, bool] | None = None
    """The nomination in the last patch, and whether the pod is privileged; None: it failed, or there was none."""
    sending: bool = False
    version: str = ""
    """Resource version after the last patch that was answered."""
    node: str = ""
    """What that patch wrote."""
    task: asyncio.Task[None] | None = None


class Nominator:
    """`write` any number; `settled`, `halt`."""

    def __init__(
        self,
        api: PreemptApi,
        store: Store,
        permission: Permission,
        *,
        retractor: Retractor,
        patience: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`patience`: seconds for all attempts to write one nomination."""
        self._api = api
        self._nominations = store.nominations
        self._permission = permission
        self._retractor = retractor
        self._patience = patience
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._rng = rng
        self._privileged: set[str] = set()
        """UIDs of pods that are privileged on the API server."""
        self._writes: dict[str, Write] = {}
        """By UID."""

    def write(self, known: PodRecord) -> None:
        """The nomination of the pod has changed."""
        differs = known.nominated != self._nominations.on_server(known) or self._changes_state(known)
        if known.uid not in self._writes and differs:
            write = self._writes[known.uid] = Write(known)
            self._nominations.patch_begins(known)
            write.task = asyncio.create_task(self._carry_out(write), name=f"nominate {known.full_name}")

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted: its nomination is over, and it is not privileged any more."""
        write = self._writes.get(known.uid)
        if write is not None and write.known is known and not write.sending:
            self._end(write)
        known.privileged = False
        self._end_state(known)

    def adopt(self, known: PodRecord) -> None:
        """The API server says that the pod is privileged."""
        self._privileged.add(known.uid)

    def _end_state(self, known: PodRecord) -> None:
        """The pod is bound or deleted."""
        if known.uid not in self._privileged:
            return
        self._privileged.discard(known.uid)
        if known.state is PodState.BOUND:
            self._retractor.retract(known, PreemptionState.PRIVILEGED, "Placed", "it is bound to a node")

    def _changes_state(self, known: PodRecord) -> bool:
        return known.privileged != (known.uid in self._privileged)

    def halt(self) -> None:
        """What is not written yet is over: the next leader knows only what is."""
        for write in list(self._writes.values()):
            if not write.sending:
                self._end(write)
                self._nominations.follow_server(write.known)
        self._privileged.clear()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [write.task for write in self._writes.values() if write.task is not None]

    def _end(self, write: Write) -> None:
        if self._writes.get(write.known.uid) is not write:
            return
        del self._writes[write.known.uid]
        self._nominations.patch_ended(write.known, write.version, write.node)
        if write.task is not None and write.task is not asyncio.current_task():
            write.task.cancel()

    async def _carry_out(self, write: Write) -> None:
        known = write.known
        retries = Retries(_RETRY_FIRST, self._patience, self._monotonic, self._rng)
        try:
            while known.state in _PENDING:
                if write.written == (known.nominated, known.privileged):
                    return
                async with self._permission.slots:
                    if not self._permission.may_write():
                        self._nominations.follow_server(known)
                        return
                    node, privileged = write.written = known.nominated, known.privileged
                    state = privileged if self._changes_state(known) else None
                    write.sending = True
                    try:
                        outcome = await nominate(self._api, known, node, state, self._now())
                    finally:
                        write.sending = False
                if outcome.result is Result.DONE and state is not None:
                    (self._privileged.add if privileged else self._privileged.discard)(known.uid)
                    if known.state not in _PENDING:  # `settled` came before the answer
                        self._end_state(known)
                if outcome.version:
                    write.version, write.node = outcome.version, node
                if outcome.result is Result.RETRY:
                    write.written = None
                    if self._permission.halted:
                        self._nominations.follow_server(known)
                        return
                    delay = retries.delay(outcome)
                    if delay is None:
                        log.warning("cannot write the nomination of %s: %s", known.full_name, outcome.error)
                        return
                    await self._sleep(delay)
                elif outcome.result is Result.REFUSED:
                    log.warning("cannot write the nomination of %s: %s", known.full_name, outcome.error)
                elif outcome.result is Result.GONE:
                    return
        except Exception:
            log.exception("writing the nomination of %s failed", known.full_name)
        finally:
            self._end(write)
