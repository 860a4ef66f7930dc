"""Remaining members of gangs that are preempted entirely: they have the condition of victims and are not deleted.

Either an earlier leader exited before it deleted them, or the API server refused to delete them. They are deleted if
the gang is below its minimum or can only be disrupted as a whole; otherwise they keep running.
"""

import asyncio
from collections.abc import Callable

from poseidon_py.preempt.permission import Permission
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.timers import Timer

_DELAY = 1.0
"""Seconds until a gang is checked, again and again on a standby: after a start its members are described one by one."""


class Remainders:
    """`note` any number; `stop`."""

    def __init__(
        self,
        store: Store,
        permission: Permission,
        evict: Callable[[list[PodRecord]], None],
        *,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
    ) -> None:
        self._store = store
        self._permission = permission
        self._evict = evict
        self._call_later = call_later
        self._timers: dict[int, Timer] = {}
        """By id of the gang."""

    def note(self, group: Group) -> None:
        """All bound members of a gang are victims."""
        if group.id not in self._timers and self._left(group):
            later = self._call_later or asyncio.get_running_loop().call_later
            self._timers[group.id] = later(_DELAY, lambda: self._check(group))

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _check(self, group: Group) -> None:
        self._timers.pop(group.id, None)
        if not self._permission.may_write():
            return self.note(group)  # another replica leads and deletes them, or this one will
        self._store.gangs.message(group.id)  # brings its minimum up to date
        if not (group.disrupted_whole or group.short(group.bound)):
            return
        left = self._left(group)
        namespaces = {known.namespace for known in left}
        if any(known.dirty and known.node and known.namespace in namespaces for known in self._store.pods.values()):
            return self.note(group)  # one of them may be another member, which is no victim
        self._evict(left)

    @staticmethod
    def _left(group: Group) -> list[PodRecord]:
        members = [group.members[uid].known for uid in group.bound if group.preempted]
        return [known for known in members if known.state is PodState.BOUND and not (known.leaving or known.spared)]
