"""Delayed preemption: when the victims of a round are evicted, and the end of states that do not hold any more.

Victims that share a preemptor leave together, since one that left earlier would lose work in vain; so do the pods of
one job. The time is that of the longest notice among them. It is an annotation of each victim, so that the next leader
goes on where this process ends.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from poseidon_py.describe.annotations.preemption_terms import Announcement, PreemptionState
from poseidon_py.preempt.attempt import PreemptApi, Result, retract
from poseidon_py.preempt.decisions import VictimPod
from poseidon_py.preempt.eviction import GangEviction
from poseidon_py.preempt.permission import Permission
from poseidon_py.preempt.retries import Retries
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from poseidon_py.state.records import PodRecord

log = logging.getLogger(__name__)

_RETRY_FIRST = 0.2
_Job = tuple[str, int]


def announcements(
    rules: PreemptionRules, victims: Sequence[VictimPod], now: float, units: Mapping[str, GangEviction]
) -> dict[str, Announcement]:
    """By UID, the victims whose eviction is announced first; the others leave at once. `now`: seconds since the
    epoch. `units`: by UID, the victims that leave together."""
    joined: dict[_Job, _Job] = {}

    def job_of(victim: PodRecord) -> _Job:
        unit = units.get(victim.uid)
        return ("unit", id(unit)) if unit is not None else _job(victim)

    def group_of(job: _Job) -> _Job:
        while (above := joined.get(job, job)) != job:
            job = above
        return job

    for known, preemptor in victims:
        joined[group_of(job_of(known))] = group_of(_job(preemptor))
    notice: dict[_Job, float] = {}
    for known, _ in victims:
        group = group_of(job_of(known))
        notice[group] = max(notice.get(group, 0.0), rules.notice_of(known))
    found: dict[str, Announcement] = {}
    for known, preemptor in victims:
        seconds = notice[group_of(job_of(known))]
        if seconds > 0:
            found[known.uid] = Announcement(math.ceil(now + seconds) * 1_000_000, preemptor.full_name)
    return found


def _job(known: PodRecord) -> _Job:
    """What is preempted, or preempts, together with the pod."""
    return ("gang", known.gang.id) if known.gang.id else ("pod", known.task)


@dataclass(slots=True)
class _End:
    """The end of a state."""

    known: PodRecord
    state: PreemptionState
    reason: str
    message: str
    task: asyncio.Task[None] | None = None


class Retractor:
    """`retract` any number; `halt`. Removes the states of delayed preemptions that are over from their pods."""

    def __init__(
        self,
        api: PreemptApi,
        permission: Permission,
        *,
        patience: float,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        now: Callable[[], float],
        rng: Callable[[], float],
    ) -> None:
        """`patience`: seconds for all attempts to write one end."""
        self._api = api
        self._permission = permission
        self._patience = patience
        self._sleep = sleep
        self._monotonic = monotonic
        self._now = now
        self._rng = rng
        self._ends: dict[str, _End] = {}
        """By UID, until they are written."""

    def retract(self, known: PodRecord, state: PreemptionState, reason: str, message: str) -> None:
        """The state of the pod is over."""
        if known.uid not in self._ends:
            end = self._ends[known.uid] = _End(known, state, reason, message)
            end.task = asyncio.create_task(self._carry_out(end), name=f"retract {known.full_name}")

    async def written(self, known: PodRecord) -> None:
        """Waits for an earlier end of the pod's state, so that a new state is written after it."""
        end = self._ends.get(known.uid)
        if end is not None and end.task is not None:
            await asyncio.wait([end.task])

    def halt(self) -> None:
        """What is not written yet is left to the next leader, which finds the state and decides on it."""
        for end in self._ends.values():
            if end.task is not None:
                end.task.cancel()
        self._ends.clear()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [end.task for end in self._ends.values() if end.task is not None]

    async def _carry_out(self, end: _End) -> None:
        known = end.known
        retries = Retries(_RETRY_FIRST, self._patience, self._monotonic, self._rng)
        try:
            while known.announced is None and not known.privileged:
                async with self._permission.slots:
                    if not self._permission.may_write():
                        return
                    outcome = await retract(self._api, known, end.state, end.reason, end.message, self._now())
                if outcome.result in (Result.DONE, Result.GONE):
                    return
                delay = retries.delay(outcome)
                if delay is None:
                    log.warning("cannot remove the state of %s: %s", known.full_name, outcome.error)
                    return
                await self._sleep(delay)
        except Exception:
            log.exception("removing the state of %s failed", known.full_name)
        finally:
            if self._ends.get(known.uid) is end:
                del self._ends[known.uid]
