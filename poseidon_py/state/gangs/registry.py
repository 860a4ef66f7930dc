"""Which pod belongs to which gang, and the declaration of each gang: the only owner of these maps.

The gang of a pod is resolved when the pod is observed, and again when an object changes on which it depends. A pod is
*blocked*, and not sent to the engine, while its gang is unknown: its PodGroup or owner does not exist yet, or its
declaration is invalid. A bound pod is never blocked.
"""

import logging
from collections.abc import Callable, Collection, Mapping

from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.gangs import without_marks
from poseidon_py.state.gangs.group import Group, Member
from poseidon_py.state.gangs.index import Index, NoObjects
from poseidon_py.state.gangs.keys import gang_hints_of, may_declare_gang
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.gangs.model import (
    Convention,
    Declaration,
    GangHints,
    Objects,
    Owner,
    OwnerOrGroup,
    Resource,
    Unknown,
)
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.state.gangs.resolve import as_whole, has_no_hints, owners, resolve
from poseidon_py.state.records import PodRecord
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

LOOKUP_PENDING = "waits for the lookup of"
"""How the reason begins for which a pod is blocked while an object is being looked up."""


class GangRegistry:
    """See the module. `objects` is set when the watches of PodGroups and owners start, `listener` before."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        metrics: Metrics,
        by_job: Callable[[PodRecord], bool] = lambda known: False,
    ) -> None:
        """`by_job`: whether the job of a pod is preempted entirely or not at all."""
        self.objects: Objects = NoObjects()
        self.queue: KeyedQueue[int] = KeyedQueue("gangs", metrics=metrics)
        """Ids of gangs that have changed or are gone."""
        self.groups: dict[int, Group] = {}
        """By id."""
        self.removed: set[int] = set()
        """Ids of gangs that are gone and that the engine has yet to remove."""
        self.listener = GangListener()
        self._pods = pods
        self._touch = touch
        self._by_job = by_job
        self._members: dict[str, Member] = {}
        self._index = Index()
        self.without_marks: tuple[Convention, ...] = ()
        """Conventions for pods that declare nothing."""
        self._gang_owners: frozenset[Resource] = frozenset()

    def form_gangs_from(self, names: Collection[str], units: Callable[[], bool] = lambda: False) -> None:
        """Make the pods of each owner of these kinds, names of OWNER_KINDS, a gang without a declaration. `units`:
        whether owners with Kueue's queue label are admitted as a whole."""
        self.without_marks = (*without_marks.conventions(names), without_marks.QueuedWorkloads(units))
        self._gang_owners = frozenset(OWNER_KINDS[name].resource for name in names)

    def reconsider(self) -> None:
        """Resolves all pods again: other conventions are in force than before."""
        self._rescan({uid: owner for uid in list(self._index.plain) if (owner := self._index.forget_plain(uid))})
        for group in self.groups.values():
            self._touch_members(group)

    # -- lookups ----------------------------------------------------------------------------------------------

    def group_of(self, known: PodRecord) -> Group | None:
        """The gang of a pod; None: the engine places it as a single pod."""
        return self.groups.get(known.gang.id) if known.gang.id else None

    def message(self, gang_id: int) -> flow_pb2.Gang | None:
        """The message for the engine; None: there is no such gang."""
        group = self.groups.get(gang_id)
        if group is None:
            return None
        self._merge(group)
        return group.message

    # -- pods -------------------------------------------------------------------------------------------------

    def describe(self, known: PodRecord, pod: Pod | None) -> None:
        """Bring the gang of a pod up to date; `pod`: its newest state, None if only other objects have changed."""
        if pod is None:
            member = self._members.get(known.uid)
            if member is not None:
                self._resolve(member)
            return
        plain = not known.owner or (known.owner in self._index.plain and not self._by_job(known))
        if plain and not may_declare_gang(pod):
            if known.gang.id or known.gang.blocked or known.uid in self._members:
                self.leave(known.uid)
                known.gang.id, known.gang.blocked = 0, ""
            return
        if not known.observed.assigned_to_us:
            return
        try:
            hints = gang_hints_of(pod)
        except InvalidField as problem:
            self._block(known, f"cannot read its labels and annotations: {problem}")
            return
        if hints is not None:
            self._take(known, hints, pod.spec.priority or 0, pod.status.phase == "Running")

    def _take(self, known: PodRecord, hints: GangHints, priority: int, running: bool) -> None:
        member = self._members.get(known.uid)
        if member is None:
            member = self._members[known.uid] = Member(known, hints, priority)
        elif member.hints != hints:
            member.hints = hints
        member.known, member.priority = known, priority
        known.observed.running = running
        self._resolve(member)

    def leave(self, uid: str, *, deleted: bool = False) -> None:
        """Record that a pod is gone, or in no gang any more. `deleted`: it was evicted or deleted."""
        member = self._members.pop(uid, None)
        if member is None:
            return
        self._forget_unknown(member)
        if member.declaration is not None:
            self._announce(uid, member.declaration, None)
            self._part(member, member.declaration.key, deleted)

    def _below(self, group: Group) -> None:
        """Update whether the gang is complete, and announce that it fell below its minimum."""
        if group.message is None:
            return
        group.disrupted = group.disrupted and bool(group.bound)
        if not group.started and len(group.bound) < group.message.minimum:
            if group.bound:
                self.listener.half_bound(group)
            return
        complete = bool(group.bound) and not group.short(group.bound)
        group.started = bool(group.bound) and (group.started or complete)
        if group.complete and not complete and not group.preempted:
            self.listener.below_minimum(group)
        group.complete = complete
        group.disrupted = group.disrupted and not complete
        if group.broken:
            self.listener.half_bound(group)

    # -- resolution -------------------------------------------------------------------------------------------

    def _resolve(self, member: Member) -> None:
        known, hints = member.known, member.hints
        self._forget_unknown(member)
        declaration, invalid, warning, unknown, delayed = resolve(hints, self.objects, self.without_marks)
        if not unknown and self._by_job(known):
            declaration = as_whole(hints, declaration)
        plain = has_no_hints(hints)
        if unknown:
            self._wait(member, unknown)
            if delayed:
                self._block(known, delayed)
            elif not known.node:
                known.gang.blocked = known.gang.blocked or f"{LOOKUP_PENDING} {unknown}"
            return
        if declaration is None and plain and not invalid:
            if hints.owner is not None:
                self._note_plain(known, hints, hints.owner)
            self.leave(known.uid)
            known.gang.id, known.gang.blocked = 0, ""
            return
        member.owners = owners(hints, self.objects)
        self._place(member, declaration)
        if invalid and declaration is None:
            for owner_or_group in member.owners:
                self._wait(member, owner_or_group.uid)  # it may be corrected
            self._block(known, invalid)
            warning = invalid
        elif (
            declaration is not None
            and declaration.waits
            and not self._group(declaration.key).is_declared_elsewhere(declaration)
        ):
            self._block(known, declaration.waits)
        else:
            known.gang.blocked = ""
            warning = warning or invalid
        if warning and warning != member.warned:
            self.listener.gang_invalid(known, warning)
        member.warned = warning

    def _note_plain(self, known: PodRecord, hints: GangHints, owner: Owner) -> None:
        """The owner of a pod declares no gang, nor do those above it, as far as they may be read."""
        chain = owners(hints, self.objects)
        self._index.note_plain(owner, chain)
        last = chain[-1].owner if chain else owner
        if last is not None and (why := self.objects.unreadable(last)):
            kind = f"{last.kind} of {last.group}" if last.group else last.kind
            self.listener.owner_unreadable(
                known,
                f"its owner {last.kind} {known.namespace}/{last.name} cannot be read, so a queue, priority or gang "
                f"that it declares has no effect: {why}; allow get, list and watch for {kind}",
            )

    def _place(self, member: Member, declaration: Declaration | None) -> None:
        """Put the member into the group that its declaration names."""
        known, before = member.known, member.declaration
        if before is not None and (declaration is None or before.key != declaration.key):
            self._part(member, before.key)
        member.declaration = declaration
        self._announce(known.uid, before, declaration)
        known.gang.priority = declaration.priority if declaration is not None else None
        known.gang.never_preempts = declaration is not None and declaration.never_preempts
        if declaration is None or not declaration.key:
            known.gang.id = known.gang.role = 0
            return
        group = self._group(declaration.key)
        group.name, group.object_ref = declaration.name, declaration.object_ref or group.object_ref
        if group.object_ref is not None:
            self._index.link(group.id, group.object_ref)
        for owner_or_group in member.owners:
            if group.object_ref is None:
                group.owner_uid = owner_or_group.uid  # the topmost owner, which lives longest
            self._index.link(group.id, owner_or_group.uid)
        created = member.hints.created_us
        group.first_us = min(group.first_us or created, created)
        group.members[known.uid] = member
        is_unit = declaration.minimum or declaration.disrupted_whole or group.is_declared_elsewhere(declaration)
        known.gang.id = group.id if is_unit else 0
        known.gang.role = group.role_of(member)
        if group.bound.pop(known.uid, None) is not None and known.observed.deleting:
            group.disrupted = True
        if known.node and not known.observed.deleting:
            group.bound[known.uid] = known.gang.role
        if known.preempting or known.observed.disrupted:
            self._note_preemption(group)
        elif known.uid in group.bound:
            group.preempted = False
        self._below(group)
        group.dirty = True
        self.queue.add(group.id)
        self.listener.gang_changed(group)

    def _note_preemption(self, group: Group) -> None:
        """Update whether all bound members are victims, after one has become a victim or is gone; without bound members
        the last state is kept."""
        if not group.preempted and group.bound:
            bound = (group.members[uid].known for uid in group.bound)  # those that have changed come last
            group.preempted = all(known.preempting or known.observed.disrupted for known in bound)
        if group.preempted and group.bound:
            self.listener.preempted(group)

    def _block(self, known: PodRecord, why: str) -> None:
        if known.node:
            known.gang.id, known.gang.blocked = 0, ""
        elif known.gang.blocked != why:
            known.gang.blocked = why
            if known.schedulable:
                self.listener.gang_blocked(known, why)

    # -- groups -----------------------------------------------------------------------------------------------

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

    def _part(self, member: Member, key: str, deleted: bool = False) -> None:
        group = self.groups.get(Group(key).id) if key else None
        if group is None or group.members.pop(member.known.uid, None) is None:
            return
        if group.bound.pop(member.known.uid, None) is not None and deleted:
            group.disrupted = True
        self._note_preemption(group)
        self._below(group)
        group.dirty = True
        self.queue.add(group.id)
        self.listener.gang_changed(group)
        self._sweep(group)

    def _sweep(self, group: Group) -> None:
        """Remove a group without members that no object declares."""
        if group.members or group.announced or self._alive(group):
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

    # -- objects ----------------------------------------------------------------------------------------------

    def changed(self, resource: Resource, owner_or_group: OwnerOrGroup, *, gone: bool = False) -> None:
        """Record that a PodGroup or an owner was created, changed or, `gone`, deleted."""
        for gang_id in self._index.gangs_of(resource, owner_or_group):
            group = self.groups.get(gang_id)
            if group is not None:
                self._touch_members(group)
                self._sweep(group)
        self.resolved(f"{resource.label}/{owner_or_group.uid}")
        self.resolved(owner_or_group.uid)
        if gone:
            self._index.forget_plain(owner_or_group.uid)
        else:
            counts = owner_or_group.counts
            several = resource in self._gang_owners and ((counts.size or 0) > 1 or bool(counts.problem))
            declares = bool(owner_or_group.annotations) or several or without_marks.names_a_queue(owner_or_group)
            self._rescan(self._index.not_plain(owner_or_group.uid, declares=declares))

    def _rescan(self, owners: Mapping[str, Owner]) -> None:
        """Resolve again the pods of owners that declared nothing before."""
        if not owners:
            return
        for known in list(self._pods.values()):
            owner = owners.get(known.owner) if known.observed.assigned_to_us else None
            if owner is not None:
                hints = GangHints(known.namespace, known.name, known.uid, known.created_us, owner=owner)
                self._members.setdefault(known.uid, Member(known, hints))
                self._touch(known.uid)

    def resolved(self, what: str) -> None:
        """Record that a lookup has ended: the pods that waited for it are resolved again."""
        for uid in self._index.take_waiting(what):
            self._touch(uid)

    def _wait(self, member: Member, what: str) -> None:
        member.waits_for += (what,)
        self._index.wait(member.known.uid, what)

    def _forget_unknown(self, member: Member) -> None:
        for what in member.waits_for:
            self._index.stop_waiting(member.known.uid, what)
        member.waits_for = ()
