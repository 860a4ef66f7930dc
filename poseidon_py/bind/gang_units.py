"""Binds gangs as units, and takes back what stays half.

    placed ──► whole? ──no──► rejected, all of it
                 │ yes
                 ▼
              closed ──first bind about to be sent: still whole, and all volumes ready?──► open ──► all bound: done
                 │ no longer whole: a member is gone                                         │
                 ▼                                                                           │ a bind ends in failure
              rejected, all of it                                                            ▼
                                               placed again, bound ◄── engine ──────────── half ──► timeout: unwound

No bind of a gang is sent before its whole minimum is placed. After that a bind can still fail for good; then the gang
is half bound, what is bound stays, and the engine places the failed member again in its next round: alone, because it
is all that the gang lacks. If the gang is not whole within its timeout, all that is not bound is given back and, if it
is to be so, what is bound is evicted, so that its controller makes it anew and the gang begins from nothing.

Members of one gang can be placed where they want the same volume. The one that gets it and the others that are ready
wait while those that do not are placed anew: if all began anew they would want the same one again.

A gang that was whole once and lost a member (its node died) is not unwound: its members work, and only they know
whether they can do so without the one that is missing. It is if it says that it can only be disrupted as a whole, and
what was evicted or deleted is not replaced within the timeout.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from poseidon_py.bind.gate import End, SendDecision
from poseidon_py.bind.placement import PlacedPod
from poseidon_py.kube.client import ApiError, KubeError, NotFoundError
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord
from poseidon_py.util.metrics import Metrics

log = logging.getLogger(__name__)

_AGAIN_US = 200_000
_EVICT_AGAIN_FIRST, _EVICT_AGAIN_MOST = 0.5, 60.0
"""Seconds until an eviction that was refused is asked for again."""


class UnitBinder(Protocol):
    """What is needed of binder.Binder."""

    def bind(self, known: PodRecord, node: str, node_id: str) -> None: ...
    def preparing(self, uids: Iterable[str]) -> bool: ...
    def release(self, uids: Iterable[str]) -> None: ...
    def withdraw(self, uids: Iterable[str], why: str) -> None: ...


class Timer(Protocol):
    def cancel(self) -> Any: ...


@dataclass(slots=True)
class GangBind:
    """A gang that is being bound, or stands half bound."""

    group: Group
    waiting: dict[str, PlacedPod] = field(default_factory=dict)
    """By UID: with the binder, and not ended."""
    open: bool = False
    """Whether a bind may have been sent."""
    parked: set[str] = field(default_factory=set)
    turned_away: dict[str, PodRecord] = field(default_factory=dict)
    """By UID: others were given their volumes, and they are placed anew."""
    timer: Timer | None = None


class GangBinder:
    """`place` what a round has placed; the binder asks `may_send` and tells `ended`."""

    def __init__(
        self,
        registry: GangRegistry,
        binder: UnitBinder,
        reject: Callable[[PodRecord, str, int], None],
        *,
        evict: Callable[[PodRecord], Awaitable[None]],
        bound_since: Callable[[PodRecord], Awaitable[int]],
        say: Callable[[PodRecord, str, str], None] = lambda known, reason, message: None,
        timeout: float = 60.0,
        unwind: str = "evict",
        now_us: Callable[[], int],
        metrics: Metrics | None = None,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`unwind`: "evict" or "keep", what becomes of bound members; `bound_since`: microseconds; `say`: an event."""
        self._registry = registry
        self._binder = binder
        self._reject = reject
        self._evict = evict
        self._bound_since = bound_since
        self._say = say
        self._timeout = timeout
        self._unwind = unwind
        self._now_us = now_us
        self._metrics = metrics if metrics is not None else Metrics()
        self._call_later = call_later
        self._sleep = sleep
        self._units: dict[int, GangBind] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._evicting: set[str] = set()
        """UIDs of those that are being evicted, which can take for ever."""

    def __len__(self) -> int:
        """Gangs that are being bound, or stand half bound."""
        return len(self._units)

    # -- placing ----------------------------------------------------------------------------------------------

    def place(self, placements: Iterable[PlacedPod]) -> None:
        """Hands single pods to the binder, and gangs that are whole with these placements."""
        gangs: dict[int, list[PlacedPod]] = {}
        for placement in placements:
            known = placement.known
            if known.gang.id and known.gang.id in self._registry.groups:
                gangs.setdefault(known.gang.id, []).append(placement)
            else:
                self._binder.bind(*placement)
        for gang_id, members in gangs.items():
            self._place(self._registry.groups[gang_id], members)

    def _place(self, group: Group, members: list[PlacedPod]) -> None:
        whole = {known.uid: known.gang.role for known in group.settled()}
        whole.update({known.uid: known.gang.role for known, _, _ in members})
        self._registry.message(group.id)  # brings it up to date
        if group.short(whole):
            self._metrics.gang_units.labels("refused").inc()
            log.info(
                "gang %s: %d of %d members were placed, nothing of it is bound", group.name, len(whole), group.minimum
            )
            for known, _, node_id in members:
                self._reject(known, node_id, self._now_us() + _AGAIN_US)
            return
        unit = self._units.setdefault(group.id, GangBind(group))
        unit.waiting.update({placement.known.uid: placement for placement in members})
        for known, _, _ in members:
            unit.turned_away.pop(known.uid, None)
        unit.open = unit.open or bool(group.bound)
        if unit.open:
            self._release(unit)
        self._arm(unit)
        for placement in members:
            self._binder.bind(*placement)

    # -- what the binder asks and tells -----------------------------------------------------------------------

    def may_send(self, known: PodRecord) -> SendDecision:
        """Whether the bind of a pod may be sent."""
        unit = self._units.get(known.gang.id) if known.gang.id else None
        if unit is None or unit.open or known.uid not in unit.waiting:
            return SendDecision.SEND
        if self._is_hopeless(unit):
            self._abort(unit)
            return SendDecision.DROP
        if self._is_short(unit.group) or self._binder.preparing(unit.waiting):
            unit.parked.add(known.uid)
            return SendDecision.WAIT
        unit.open = True
        self._release(unit)
        return SendDecision.SEND

    def ended(self, known: PodRecord, end: End) -> None:
        """The placement of a pod has come to its end."""
        unit = self._units.get(known.gang.id) if known.gang.id else None
        if unit is None:
            return
        unit.parked.discard(known.uid)
        away = unit.turned_away.pop(known.uid, None)
        if unit.waiting.pop(known.uid, None) is None and away is None:
            return
        if not unit.open:
            if end is End.TAKEN:
                unit.turned_away[known.uid] = known
            if self._is_hopeless(unit):
                self._abort(unit)
            elif not self._is_short(unit.group) and not self._binder.preparing(unit.waiting):
                self._release(unit)
        if not unit.waiting and not self._is_short(unit.group):
            self._metrics.gang_units.labels("bound").inc()
            self._drop(unit)

    def clear(self) -> None:
        """Somebody else leads: what was begun is theirs to end."""
        for unit in list(self._units.values()):
            self._drop(unit)
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        self.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_short(self, group: Group) -> bool:
        return group.short({known.uid: known.gang.role for known in group.settled()})

    def _is_hopeless(self, unit: GangBind) -> bool:
        """Whether too few are placed, and none will be in a moment."""
        return self._is_short(unit.group) and not any(known.schedulable for known in unit.turned_away.values())

    def _release(self, unit: GangBind) -> None:
        parked, unit.parked = unit.parked, set()
        if parked:
            self._binder.release(parked)

    def _abort(self, unit: GangBind) -> None:
        """Before anything was sent: nothing of it is."""
        self._metrics.gang_units.labels("aborted").inc()
        log.info("gang %s: members went before it was bound, nothing of it is bound", unit.group.name)
        waiting = list(unit.waiting)
        self._drop(unit)
        self._binder.withdraw(waiting, "")

    def _drop(self, unit: GangBind) -> None:
        if self._units.get(unit.group.id) is unit:
            del self._units[unit.group.id]
        if unit.timer is not None:
            unit.timer.cancel()

    # -- half gangs -------------------------------------------------------------------------------------------

    def found_half(self, group: Group) -> None:
        """A gang was found half bound: begun before this process, or its members went."""
        if group.id not in self._units:
            unit = self._units[group.id] = GangBind(group, open=True)
            self._arm(unit)

    def _arm(self, unit: GangBind) -> None:
        if unit.timer is None:
            seconds = self._timeout if unit.group.timeout is None else unit.group.timeout
            later = self._call_later or asyncio.get_running_loop().call_later
            unit.timer = later(seconds, lambda: self._expire(unit))

    def _expire(self, unit: GangBind) -> None:
        group = unit.group
        if self._units.get(group.id) is not unit:
            return
        for uid in [uid for uid, (known, *_) in unit.waiting.items() if not known.assumed]:
            del unit.waiting[uid]  # ended while nobody looked
        if not self._is_short(group):
            if not unit.waiting:
                self._drop(unit)
            else:  # the rest is on its way, and enough is there with it
                unit.timer = None
                self._arm(unit)
                if unit.open or not self._binder.preparing(unit.waiting):
                    self._release(unit)  # it became whole while nobody looked: it needs fewer, or others were bound
            return
        self._drop(unit)
        task = asyncio.create_task(self._take_back(unit), name=f"unwind {group.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_back(self, unit: GangBind) -> None:
        group = unit.group
        bound = [known for known in group.settled() if known.uid not in unit.waiting]
        self._binder.withdraw(list(unit.waiting), "its gang was not bound in time")
        broken = group.broken and any(m.known.schedulable for m in group.members.values())
        if all(known.uid in self._evicting for known in bound) or (
            not broken and (group.started or not await self._began_whole(group, bound))
        ):
            return
        self._metrics.gang_units.labels("unwound").inc()
        what = f"pod group {group.name}: only {len(bound)} of {group.minimum} members could be bound in time"
        if broken:
            what = (
                f"pod group {group.name}: only {len(bound)} of {group.minimum} members are left and the others could "
                "not be replaced in time, while it is to be disrupted as a whole"
            )
        log.warning("%s", what)
        evictable = []
        for known in bound:
            if self._unwind != "evict":
                self._say(known, "GangHalfBound", f"{what}; they stay bound, as configured")
            elif not known.owner:
                self._say(known, "GangHalfBound", f"{what}; it stays bound, because no controller would make it anew")
            elif known.uid not in self._evicting:
                evictable.append(known)
        uids = {known.uid for known in evictable}
        self._evicting |= uids
        try:
            await self._evict_all(group, evictable, what)
        finally:
            self._evicting -= uids

    async def _began_whole(self, group: Group, bound: list[PodRecord]) -> bool:
        """Whether a half gang is one whose binding did not come to its end, and not one that has lost members since.

        Members that wait and are younger than the last bind replace others: then it was whole. Nobody waits: nothing
        is missing, or nobody will come.
        """
        waiting = [m.known for m in group.members.values() if m.known.schedulable]
        if not waiting:
            return False
        try:
            since = max([await self._bound_since(known) for known in bound])
        except KubeError as error:
            log.warning("cannot find out since when gang %s is half bound: %s", group.name, error)
            return False
        return min(known.created_us for known in waiting) <= since

    async def _evict_all(self, group: Group, pods: list[PodRecord], what: str) -> None:
        """Asks again for those that cannot be evicted yet, until they went, the gang is whole after all, or nobody
        waits any more to whom that would be of use."""
        told: set[str] = set()
        pause = _EVICT_AGAIN_FIRST
        while pods and self._is_short(group) and any(m.known.schedulable for m in group.members.values()):
            refused, after = [], 0.0
            for known in pods:
                if not self._is_short(group):
                    return  # it became whole while an eviction was waited for
                if known not in group.settled():
                    continue  # it ended meanwhile: evicted, it would be deleted
                try:
                    await self._evict(known)
                except NotFoundError:
                    continue
                except KubeError as error:  # a disruption budget, most likely
                    refused.append(known)
                    after = max(after, (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0)
                    if known.uid not in told:
                        told.add(known.uid)
                        log.warning("cannot evict %s yet: %s", known.full_name, error)
                        self._say(known, "GangHalfBound", f"{what}; it cannot be evicted yet: {error}")
                else:
                    self._say(known, "GangUnwound", f"{what}; it is evicted, to be scheduled with its gang again")
            if refused:
                await self._sleep(max(pause, after))
                pause = min(2 * pause, _EVICT_AGAIN_MOST)
            there = {known.uid for known in group.settled()}
            pods = [known for known in refused if known.uid in there]
