"""Evictions: what has been written of each so far; and gangs that are preempted entirely.

All bound members of such a gang are deleted, or none:

    chosen --all members have DisruptionTarget--> decided --> each is deleted, even if its preemptor is gone
       |
       | the API server refuses the condition of one, or no preemptor waits for their nodes any more
       v
    dropped: none is deleted

No member is deleted before the gang is decided. The conditions record the decision: if this process exits, the next
leader finds a gang whose bound members all have the condition, and deletes the remaining ones.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from poseidon_py.describe.annotations.preemption_terms import Announcement
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord


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


class GangEviction:
    """The victims of one gang that is preempted entirely."""

    def __init__(self, uids: Iterable[str] = ()) -> None:
        """`uids`: of victims whose condition is not set."""
        self._unmarked = set(uids)
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


def gang_evictions(gangs: GangRegistry, victims: Iterable[PodRecord]) -> dict[str, GangEviction]:
    """By UID, the victims whose gangs lose all bound members by these decisions and earlier ones."""
    chosen: dict[int, set[str]] = {}
    for known in victims:
        if known.gang.id and not known.preempting:
            chosen.setdefault(known.gang.id, set()).add(known.uid)
    found: dict[str, GangEviction] = {}
    for gang_id, uids in chosen.items():
        group = gangs.groups.get(gang_id)
        if group is not None and all(uid in uids or group.members[uid].known.preempting for uid in group.bound):
            eviction = GangEviction(uids)
            found |= dict.fromkeys(uids, eviction)
    return found
