"""Binds gangs as a unit.

    placed --> whole? --no--> all rejected
                 | yes
                 v
              closed --first bind about to be sent: still whole, and all volumes ready?--> open --> all bound: done
                 | no longer whole: a member was deleted                                     |
                 v                                                                           | a bind fails permanently
              all rejected                                                                   v
                                               placed again, bound <-- engine ----------- half --> timeout: unwound

No bind of a gang is sent before its complete minimum is placed. A bind can still fail permanently after that; then the
gang is partly bound: its bound members stay, and the engine places only the failed member again in its next round.
bind/unwinding.py handles gangs that are not complete within their timeout.

Members of one gang can be placed such that they need the same volume. The member that gets it, and others that are
ready, wait until the remaining ones are placed again: if all were placed again, they would need the same volume again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from poseidon_py.bind.gate import End, SendDecision
from poseidon_py.bind.placement import PlacedPod
from poseidon_py.bind.unwinding import Unwinder, is_short
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord, Reject
from poseidon_py.util.timers import Timer

log = logging.getLogger(__name__)

Placed = Iterable[tuple[PodRecord, str]]

_REJECTED_FOR_US = 200_000
"""Microseconds for which the members of a partly placed gang are left out of rounds."""


class PodBinder(Protocol):
    """The part of binder.Binder that binding gangs needs."""

    def bind(self, known: PodRecord, node: str, node_id: str) -> None: ...
    def preparing(self, uids: Iterable[str]) -> bool: ...
    def release(self, uids: Iterable[str]) -> None: ...
    def withdraw(self, uids: Iterable[str], why: str) -> None: ...


@dataclass(slots=True)
class GangBind:
    """A gang that is being bound, or is partly bound."""

    group: Group
    waiting: dict[str, PlacedPod] = field(default_factory=dict)
    """By UID: placements in the pod binder that have not ended."""
    open: bool = False
    """Whether a bind may have been sent."""
    parked: set[str] = field(default_factory=set)
    """UIDs of members whose binds wait for the others."""
    turned_away: dict[str, PodRecord] = field(default_factory=dict)
    """By UID: members that are placed again because others were given their volumes."""
    timer: Timer | None = None


class GangBinder:
    """`place` the placements of a round; the pod binder calls `may_send` and `ended`."""

    def __init__(
        self,
        book: GangRegistry,
        binder: PodBinder,
        reject: Reject,
        unwinder: Unwinder,
        *,
        timeout: float = 60.0,
        now_us: Callable[[], int],
        metrics: Metrics | None = None,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        ahead: Callable[[Placed], None] = lambda placed: None,
    ) -> None:
        """`timeout`: seconds for a gang that declares none. `now_us`: microseconds since the epoch. `ahead`: is told of
        the placements of a gang, each pod with its node's name, before the first of them is passed on."""
        self._registry = book
        self._binder = binder
        self._reject = reject
        self._unwinder = unwinder
        self._timeout = timeout
        self._now_us = now_us
        self._metrics = metrics if metrics is not None else Metrics()
        self._call_later = call_later
        self._ahead = ahead
        self._gangs: dict[int, GangBind] = {}

    def __len__(self) -> int:
        """Gangs that are being bound, or are partly bound."""
        return len(self._gangs)

    # -- placing ----------------------------------------------------------------------------------------------

    def place(self, placements: Iterable[PlacedPod]) -> None:
        """Passes single pods to the pod binder, and gangs that are complete with these placements."""
        gangs: dict[int, list[PlacedPod]] = {}
        for placement in placements:
            gang_id = placement.known.gang.id
            if gang_id and gang_id in self._registry.groups:
                gangs.setdefault(gang_id, []).append(placement)
            else:
                self._binder.bind(*placement)
        for gang_id, members in gangs.items():
            self._place(self._registry.groups[gang_id], members)

    def _place(self, group: Group, members: list[PlacedPod]) -> None:
        placed = {known.uid: known.gang.role for known in group.settled()}
        placed.update({known.uid: known.gang.role for known, _, _ in members})
        self._registry.message(group.id)  # updates its state
        if group.short(placed):
            self._metrics.gang_units.labels("refused").inc()
            log.info("gang %s: only %d of %d members are placed; none is bound", group.name, len(placed), group.minimum)
            for known, _, node_id in members:
                self._reject(known, node_id, self._now_us() + _REJECTED_FOR_US)
            return
        gang = self._gangs[group.id] = self._current(group) or GangBind(group)
        gang.waiting.update({member.known.uid: member for member in members})
        for member in members:
            gang.turned_away.pop(member.known.uid, None)
        gang.open = gang.open or bool(group.bound)
        if gang.open:
            self._release(gang)
        self._arm(gang)
        self._ahead([(member.known, member.node) for member in members])
        for member in members:
            self._binder.bind(*member)

    def _current(self, group: Group) -> GangBind | None:
        """None: the gang is not being bound. What is left of a former gang with this key, whose members were all
        deleted, ends."""
        gang = self._gangs.get(group.id)
        if gang is None or gang.group is group:
            return gang
        self._drop(gang)
        return None

    # -- called by the pod binder -----------------------------------------------------------------------------

    def may_send(self, known: PodRecord) -> SendDecision:
        """Whether the bind of a pod may be sent."""
        gang = self._gangs.get(known.gang.id) if known.gang.id else None
        if gang is None or gang.open or known.uid not in gang.waiting:
            return SendDecision.SEND
        if self._is_hopeless(gang):
            self._abort(gang)
            return SendDecision.DROP
        if is_short(gang.group) or self._binder.preparing(gang.waiting):
            gang.parked.add(known.uid)
            return SendDecision.WAIT
        gang.open = True
        self._release(gang)
        return SendDecision.SEND

    def ended(self, known: PodRecord, end: End) -> None:
        """The placement of a pod has ended."""
        gang = self._gangs.get(known.gang.id) if known.gang.id else None
        if gang is None:
            return
        gang.parked.discard(known.uid)
        away = gang.turned_away.pop(known.uid, None)
        if gang.waiting.pop(known.uid, None) is None and away is None:
            return
        if not gang.open:
            if end is End.TAKEN:
                gang.turned_away[known.uid] = known
            if self._is_hopeless(gang):
                self._abort(gang)
            elif not is_short(gang.group) and not self._binder.preparing(gang.waiting):
                self._release(gang)
        if not gang.waiting and not is_short(gang.group):
            self._metrics.gang_units.labels("bound").inc()
            self._drop(gang)

    def clear(self) -> None:
        """Another replica is the leader, and completes the gangs."""
        for gang in list(self._gangs.values()):
            self._drop(gang)
        self._unwinder.cancel()

    async def stop(self) -> None:
        self.clear()
        await self._unwinder.stop()

    @staticmethod
    def _is_hopeless(gang: GangBind) -> bool:
        """Whether too few members are placed, and no rejected member is about to be placed again."""
        return is_short(gang.group) and not any(known.schedulable for known in gang.turned_away.values())

    def _release(self, gang: GangBind) -> None:
        parked, gang.parked = gang.parked, set()
        if parked:
            self._binder.release(parked)

    def _abort(self, gang: GangBind) -> None:
        """Gives up a gang of which no bind has been sent."""
        self._metrics.gang_units.labels("aborted").inc()
        log.info("gang %s: it lost members before it was bound; none is bound", gang.group.name)
        waiting = list(gang.waiting)
        self._drop(gang)
        self._binder.withdraw(waiting, "")

    def _drop(self, gang: GangBind) -> None:
        if self._gangs.get(gang.group.id) is gang:
            del self._gangs[gang.group.id]
        if gang.timer is not None:
            gang.timer.cancel()

    # -- partly bound gangs -----------------------------------------------------------------------------------

    def found_half(self, group: Group) -> None:
        """A gang was found partly bound: by an earlier process, or after it lost members."""
        if self._current(group) is None:
            gang = self._gangs[group.id] = GangBind(group, open=True)
            self._arm(gang)

    def _arm(self, gang: GangBind) -> None:
        if gang.timer is None:
            seconds = self._timeout if gang.group.timeout is None else gang.group.timeout
            later = self._call_later or asyncio.get_running_loop().call_later
            gang.timer = later(seconds, lambda: self._expire(gang))

    def _expire(self, gang: GangBind) -> None:
        group = gang.group
        if self._gangs.get(group.id) is not gang:
            return
        for uid in [uid for uid, (known, *_) in gang.waiting.items() if not known.assumed]:
            del gang.waiting[uid]  # it ended while it was not in a gang
        if is_short(group):
            self._drop(gang)
            waiting = set(gang.waiting)
            settled = (known for known in group.settled() if known.uid not in waiting)
            bound = [known for known in settled if known.observed.assigned_to_us]
            self._binder.withdraw(waiting, "its gang was not bound in time")
            self._unwinder.unwind(group, bound)
        elif not gang.waiting:
            self._drop(gang)
        else:  # the placements in progress complete the gang
            gang.timer = None
            self._arm(gang)
            if gang.open or not self._binder.preparing(gang.waiting):
                self._release(gang)  # it may be complete without a call: lower minimum, or bound by others
