"""Gangs that are preempted entirely: all bound members are deleted, or none.

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

from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.records import PodRecord


class GangEviction:
    """The victims of one gang that is preempted entirely."""

    def __init__(self, uids: Iterable[str] = ()) -> None:
        """`uids`: of victims whose condition is not set."""
        self._unmarked = set(uids)
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
