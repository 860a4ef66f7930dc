"""The gangs: when they exist, when they are complete, and what the engine has to know of them."""

from collections.abc import Callable

from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.index import Index, NoObjects
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.gangs.model import Declaration, Objects, Unknown
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2


class GroupBook:
    """All gangs. `objects` is set when the watches of PodGroups and owners start, `listener` before."""

    def __init__(self, touch: Callable[[str], None], metrics: Metrics) -> None:
        """`touch`: called with the UIDs of pods to describe again."""
        self.objects: Objects = NoObjects()
        self.queue: KeyedQueue[int] = KeyedQueue("gangs", metrics=metrics)
        """Ids of gangs that have changed or are gone."""
        self.groups: dict[int, Group] = {}
        """By id."""
        self.removed: set[int] = set()
        """Ids of gangs that are gone and that the engine has yet to remove."""
        self.listener = GangListener()
        self._touch = touch
        self._index = Index()

    def message(self, gang_id: int) -> flow_pb2.Gang | None:
        """The message for the engine; None: there is no such gang."""
        group = self.groups.get(gang_id)
        if group is None:
            return None
        self._merge(group)
        return group.message

    def _group(self, key: str) -> Group:
        fresh = Group(key)
        group = self.groups.setdefault(fresh.id, fresh)
        self.removed.discard(group.id)
        return group

    def _announce(self, uid: str, before: Declaration | None, declaration: Declaration | None) -> None:
        announced = dict(declaration.announced) if declaration is not None else {}
        for key, minimum in announced.items():
            group = self._group(key)
            if group.announced.get(uid) != minimum:
                group.announced[uid] = minimum
                group.dirty = True
                self._touch_members(group)
        for key, _ in before.announced if before is not None else ():
            if key not in announced and (found := self.groups.get(Group(key).id)) is not None:
                found.announced.pop(uid, None)
                self._sweep(found)

    def _define(self, group: Group, declaration: Declaration, created_us: int) -> None:
        """Take over what a member's declaration says about its gang."""
        group.name, group.object_ref = declaration.name, declaration.object_ref or group.object_ref
        if group.object_ref is not None:
            self._index.link(group.id, group.object_ref)
        group.first_us = min(group.first_us or created_us, created_us)

    def _changed_group(self, group: Group, *, lost: bool = True) -> None:
        """Take note of members that have come, changed or gone. `lost`: whether those that are gone are missed."""
        self._below(group, lost=lost)
        group.dirty = True
        self.queue.add(group.id)
        self.listener.gang_changed(group)

    def _below(self, group: Group, *, lost: bool = True) -> None:
        """Update whether the gang is complete, and announce that it fell below its minimum."""
        if group.message is None:
            return
        settled = bool(group.bound or group.ended.succeeded)
        group.disrupted = group.disrupted and bool(group.bound)
        was_complete, group.complete = group.complete, settled and not group.short(group.bound)
        group.started = settled and (group.started or group.complete)
        if was_complete and not group.complete and not group.preempted and lost:
            self.listener.below_minimum(group)
        group.disrupted = group.disrupted and not group.complete
        if group.broken or (not group.started and group.is_half_bound):
            self.listener.half_bound(group)

    def _note_preemption(self, group: Group) -> None:
        """Update whether all bound members are victims, after one has become a victim or is gone; without bound members
        the last state is kept."""
        if not group.preempted and group.bound:
            bound = (group.members[uid].known for uid in group.bound)  # those that have changed come last
            group.preempted = all(known.preempting or known.observed.disrupted for known in bound)
        if group.preempted and group.bound:
            self.listener.preempted(group)

    def _sweep(self, group: Group) -> None:
        """Remove a group without members that no object declares."""
        if group.members or group.ended or group.announced or self._alive(group):
            return
        self.groups.pop(group.id, None)
        self._index.forget(group.id)
        self.removed.add(group.id)
        self.queue.add(group.id)

    def _alive(self, group: Group) -> bool:
        try:
            if group.object_ref is not None and self.objects.find(*group.object_ref) is not None:
                return True
        except Unknown:
            return True
        return bool(group.owner_uid) and self.objects.has_owner(group.owner_uid)

    def _merge(self, group: Group) -> None:
        if not group.dirty:
            return
        problem = group.problem
        if group.merge():
            self.queue.add(group.id)
        self._below(group)
        if group.problem and group.problem != problem:
            for member in group.members.values():
                if not member.known.node:
                    self.listener.gang_invalid(member.known, f"pod group {group.name}: {group.problem}")

    def _touch_members(self, group: Group) -> None:
        for uid in group.members:
            self._touch(uid)
