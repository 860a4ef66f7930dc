"""The gangs: when they exist, when they are complete, and what the engine has to know of them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.index import Index, NoObjects
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.gangs.members import Admission, Requests
from poseidon_py.state.gangs.model import Declaration, Objects, OwnerOrGroup, Unknown
from poseidon_py.state.records import PodRecord
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2


@dataclass(slots=True)
class Admissions:
    """Which workloads keep their quota between their pods, as Kueue's do: those that have started. That is so once the
    minimum is bound, or while any pod is, after a restart of this process. It ends when the workload has ended or is
    suspended, or when all its bound pods are victims of preemption.

    `in_force`: whether workloads are admitted here as a whole; `requests_of`: of a pod, empty while unknown;
    `id_of_node`: by name; `drains`: whether a queue evicts what runs."""

    in_force: Callable[[], bool] = lambda: False
    requests_of: Callable[[PodRecord], Requests] = lambda known: {}
    id_of_node: Callable[[str], str] = lambda name: ""
    drains: Callable[[int], bool] = lambda queue: False

    def renewed(
        self, before: Admission | None, bound: Collection[PodRecord], others: Iterable[PodRecord], *, whole: bool
    ) -> Admission | None:
        """The admission of a workload that has not ended, `before` this look at it. bound: its pods on nodes, with
        `others` that have yet to be bound; whole: whether those on nodes are its minimum."""
        queues = {known.queue.running_id for known in bound}
        queue = queues.pop() if len(queues) == 1 else before.queue if before is not None and not bound else 0
        if not self.in_force() or not queue or self.drains(queue):
            return None
        if before is not None and not before.whole and not bound:
            return None  # it was never complete
        same = before is not None and before.queue == queue and (before.whole or not whole)
        if before is not None and same and len(bound) <= len(before.places):
            return before
        places = [requests for known in bound if (requests := self.requests_of(known))]
        if len(places) < len(bound):
            return before
        if not whole:
            places += [requests for known in others if (requests := self.requests_of(known))]
        places.sort(key=lambda requests: sorted(requests.items()), reverse=True)
        node = next(iter(bound)).node
        return Admission(queue, self.id_of_node(node), tuple(places), whole)


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
        self.admissions = Admissions()
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
        group.is_workload, group.anchor = declaration.is_workload, declaration.anchor

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
        keeps, needed = group.keeps, group.needed()[0]
        self._admit(group)
        if group.merge():
            self.queue.add(group.id)
        self._below(group, lost=group.needed()[0] <= needed)  # else it has the same members, and needs others as well
        if self._admit(group) and group.merge():
            self.queue.add(group.id)
        if group.keeps != keeps:
            self._touch_members(group)  # while they wait, their queue may be another one
        if group.problem and group.problem != problem:
            for member in group.members.values():
                if not member.known.node:
                    self.listener.gang_invalid(member.known, f"pod group {group.name}: {group.problem}")

    def _admit(self, group: Group) -> bool:
        """Update what it keeps of the quota of its queue; whether that has changed."""
        before = group.admission
        ended = group.preempted or (before is None and not group.assigned_to_us)
        if not ended and group.anchor:
            ended = _has_ended(group.anchor, self.objects)
            owner = self.objects.known_owner(group.anchor)
            group.pods_left = owner.counts.left if owner is not None else None
        group.admission = None
        if group.is_workload and not ended and group.message is not None:
            bound = [group.members[uid].known for uid in group.bound]
            others = (each.known for uid, each in group.members.items() if uid not in group.bound)
            group.admission = self.admissions.renewed(before, bound, others, whole=group.complete)
        return group.admission != before

    def _touch_members(self, group: Group) -> None:
        for uid in group.members:
            self._touch(uid)


def _has_ended(anchor: str, objects: Objects) -> bool:
    """Whether the owner with this UID has ended, or is suspended."""
    owner = objects.known_owner(anchor)
    if owner is None:
        return True
    return bool(owner.counts.verdict) or any(each.suspended for each in _upwards(owner, objects))


def _upwards(owner: OwnerOrGroup | None, objects: Objects) -> Iterator[OwnerOrGroup]:
    """The owner and those above it."""
    while owner is not None:
        yield owner
        owner = objects.known_owner(owner.owner.uid) if owner.owner is not None else None
