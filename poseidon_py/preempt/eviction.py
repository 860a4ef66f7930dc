"""Evictions: what has been written of each so far; and what leaves as a whole: gangs that are preempted entirely, and
workloads that lose all of their pods.

All bound members of such a gang are deleted, or none:

    chosen --all members have DisruptionTarget--> decided --> each is deleted, even if its preemptor is gone
       |
       | the API server refuses the condition of one, or no preemptor waits for their nodes any more
       v
    dropped: none is deleted

No member is deleted before the gang is decided. The conditions record the decision: if this process exits, the next
leader finds a gang whose bound members all have the condition, and deletes the remaining ones. Where the pods are all
that their workload has, it is suspended instead, and its controller deletes them.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from poseidon_py.describe.annotations.preemption_terms import Announcement
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord
from poseidon_py.state.workloads.lookup import Suspender


@dataclass(slots=True, eq=False)
class Eviction:
    """Of a bound pod."""

    known: PodRecord
    preemptor: PodRecord | None
    """None: an earlier leader decided on it."""
    node: str
    """Name of the victim's node."""
    marked: bool = False
    """Whether the pod has its condition."""
    announcement: Announcement | None = None
    """None: it is deleted at once."""
    announced: bool = False
    """Whether the pod has the announcement."""
    for_quota: bool = False
    """Whether its preemptor is nominated on another node, and needs its quota alone."""
    gang: "GangEviction | None" = None
    sending: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def decided(self) -> bool:
        """Whether it is carried out even if its preemptor no longer needs it."""
        return self.gang is not None and self.gang.decided

    @property
    def together(self) -> "list[Eviction]":
        """Itself and those of its gang that have not ended, a new list."""
        return [self] if self.gang is None else list(self.gang.evictions)


@dataclass(slots=True, eq=False)
class LeavingWorkload:
    """The victims that are all pods of a workload."""

    pods: list[PodRecord]
    suspension: asyncio.Task[bool] | None = None
    """Whether it is suspended; None: that has not begun."""


class GangEviction:
    """The victims that leave together: those of one gang that is preempted entirely, or of a workload."""

    def __init__(self, uids: Iterable[str] = (), workloads: Iterable[list[PodRecord]] = ()) -> None:
        """`uids`: of victims whose condition is not set. `workloads`: those among them that are all pods of one."""
        self._unmarked = set(uids)
        self.workloads = {known.uid: each for pods in workloads for each in [LeavingWorkload(pods)] for known in pods}
        """By UID of the victims."""
        self.evictions: list[Eviction] = []
        """Those that have not ended; the Evictor maintains it."""
        self._settled = asyncio.Event()
        self.dropped = False

    @property
    def decided(self) -> bool:
        """Whether all of them leave."""
        return not (self.dropped or self._unmarked)

    def marked(self, uid: str) -> None:
        """The pod has its condition, or is gone."""
        self._unmarked.discard(uid)
        if not self._unmarked:
            self._settled.set()

    def drop(self) -> None:
        self.dropped = True
        self._settled.set()

    async def wait(self) -> None:
        """Waits until it is decided or dropped."""
        await self._settled.wait()


def gang_evictions(gangs: GangRegistry, victims: Iterable[PodRecord], suspender: Suspender) -> dict[str, GangEviction]:
    """By UID, the victims that leave together by these decisions and earlier ones: their gang loses all bound members,
    or their workload all pods, so that it can be suspended."""
    fresh = [known for known in victims if not known.preempting]
    workloads = [pods for pods in suspender.leaving(fresh) if len({known.announced for known in pods}) == 1]
    units = [{known.uid for known in pods} for pods in workloads]
    chosen: dict[int, set[str]] = {}
    for known in fresh:
        if known.gang.id:
            chosen.setdefault(known.gang.id, set()).add(known.uid)
    for gang_id, uids in chosen.items():
        group = gangs.groups.get(gang_id)
        if group is not None and all(uid in uids or group.members[uid].known.preempting for uid in group.bound):
            units.append(uids)
    found: dict[str, GangEviction] = {}
    for unit in _disjoint(units):
        eviction = GangEviction(unit, [pods for pods in workloads if pods[0].uid in unit])
        found |= dict.fromkeys(unit, eviction)
    return found


def _disjoint(sets: Iterable[set[str]]) -> list[set[str]]:
    """Sets with common elements become one: a gang can have pods of several workloads, and a workload several gangs."""
    of: dict[str, set[str]] = {}
    for each in sets:
        merged = set(each)
        for element in each:
            merged |= of.get(element, set())
        of |= dict.fromkeys(merged, merged)
    return list({id(each): each for each in of.values()}.values())
