"""Which pod belongs to which gang, and the declaration of each gang: the only owner of these maps.

The gang of a pod is resolved when the pod is observed, and again when an object changes on which it depends. A pod is
*blocked*, and not sent to the engine, while its gang is unknown: its PodGroup or owner does not exist yet, or its
declaration is invalid. A bound pod is never blocked.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs import without_marks
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.group_book import GroupBook
from poseidon_py.state.gangs.keys import gang_hints_of, may_declare_gang
from poseidon_py.state.gangs.members import Member
from poseidon_py.state.gangs.model import (
    Convention,
    Declaration,
    GangHints,
    Owner,
    OwnerOrGroup,
    Resource,
)
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.state.gangs.resolve import as_whole, has_no_hints, owners, resolve
from poseidon_py.state.records import PodRecord

log = logging.getLogger(__name__)

LOOKUP_PENDING = "waits for the lookup of"
"""How the reason begins for which a pod is blocked while an object is being looked up."""


@dataclass(slots=True)
class _EndedPod:
    """A pod that has ended."""

    hints: GangHints | None
    """None once its gang is known."""
    succeeded: bool
    assigned_to_us: bool
    key: str = ""
    """Of its gang; empty: it only declares something about others, or its gang is not known yet."""
    declaration: Declaration | None = None
    """If it declares something about other gangs."""
    waits_for: str = ""
    """The lookup that it waits for."""


class GangRegistry(GroupBook):
    """See the module."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        metrics: Metrics,
        by_job: Callable[[PodRecord], bool] = lambda known: False,
    ) -> None:
        """`by_job`: whether the job of a pod is preempted entirely or not at all."""
        super().__init__(touch, metrics)
        self._pods = pods
        self._by_job = by_job
        self._members: dict[str, Member] = {}
        self._ended: dict[str, _EndedPod] = {}
        """By UID: pods that have ended, and count in their gangs."""
        self.without_marks: tuple[Convention, ...] = ()
        """Conventions for pods that declare nothing."""
        self._gang_owners: frozenset[Resource] = frozenset()
        self._has_default: Callable[[str], bool] = lambda namespace: False

    def form_gangs_from(
        self,
        names: Collection[str],
        units: Callable[[], bool] = lambda: False,
        has_default: Callable[[str], bool] = lambda namespace: False,
    ) -> None:
        """Make the pods of each owner of these kinds, names of OWNER_KINDS, a gang without a declaration. `units`:
        whether owners in Kueue's queues are admitted as a whole. `has_default`: whether a namespace has a queue for
        owners that name none."""
        self.without_marks = (*without_marks.conventions(names), without_marks.QueuedWorkloads(units, has_default))
        self._gang_owners = frozenset(OWNER_KINDS[name].resource for name in names)
        self._has_default = has_default
        self.admissions.in_force = units

    def reconsider(self) -> None:
        """Resolves all pods again: other conventions are in force, or concern other owners, than before."""
        self._rescan({uid: owner for uid in list(self._index.plain) if (owner := self._index.forget_plain(uid))})
        for group in self.groups.values():
            self._touch_members(group)

    # -- lookups ----------------------------------------------------------------------------------------------

    def group_of(self, known: PodRecord) -> Group | None:
        """The gang of a pod; None: the engine places it as a single pod."""
        return self.groups.get(known.gang.id) if known.gang.id else None

    def keeps(self, known: PodRecord) -> bool:
        """Whether the gang of a pod keeps its quota, in the queue of its running pods."""
        group = self.group_of(known)
        return group is not None and group.keeps

    # -- pods -------------------------------------------------------------------------------------------------

    def describe(self, known: PodRecord, pod: Pod | None) -> None:
        """Bring the gang of a pod up to date; `pod`: its newest state, None if only other objects have changed."""
        if pod is None:
            member = self._members.get(known.uid)
            if member is not None:
                self._resolve(member)
            return
        marked = may_declare_gang(pod)
        plain = not known.owner or (known.owner in self._index.plain and not self._by_job(known))
        if plain and not marked:
            if known.gang.id or known.gang.blocked or known.uid in self._members:
                self.leave(known.uid)
                known.gang.clear()
            return
        if not (known.observed.assigned_to_us or marked or self._index.has_gang(known.owner)):
            self._index.note_other(known.owner, known.uid)  # its owner is looked up once one of our pods has it
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

    def gone(self, known: PodRecord) -> None:
        """Record that a pod has ended or was deleted."""
        self._index.forget_other(known.owner, known.uid)
        self.leave(known.uid, deleted=known.observed.deleting)

    def leave(self, uid: str, *, deleted: bool = False) -> None:
        """Record that a pod is gone, or in no gang any more. `deleted`: it was evicted or deleted."""
        member = self._members.pop(uid, None)
        if member is None:
            return
        self._forget_unknown(member)
        if member.declaration is not None:
            if uid not in self._ended:
                self._announce(uid, member.declaration, None)
            self._part(member, member.declaration.key, deleted)

    # -- pods that have ended ---------------------------------------------------------------------------------

    def ended(self, pod: Pod, *, succeeded: bool, assigned_to_us: bool) -> None:
        """Record that a pod has ended: it counts in its gang until it is deleted. Before `gone`."""
        uid = pod.metadata.uid
        if pod.metadata.deleting is not None or uid in self._ended:
            return
        member = self._members.get(uid)
        if member is not None and member.declaration is not None:
            self._ended[uid] = _EndedPod(member.hints, succeeded, assigned_to_us)
            self._count_ended(uid, member.declaration, member.hints.created_us)
        elif may_declare_gang(pod):
            try:
                hints = gang_hints_of(pod)
            except InvalidField:
                return  # it is in no gang that is known
            if hints is not None:
                self._ended[uid] = _EndedPod(hints, succeeded, assigned_to_us)
                self._resolve_ended(uid)

    def _resolve_ended(self, uid: str) -> None:
        pod = self._ended[uid]
        if pod.hints is None:
            return
        resolution = resolve(pod.hints, self.objects)
        pod.waits_for = resolution.unknown
        if resolution.unknown:
            self._index.wait(uid, resolution.unknown)
        elif resolution.declaration is None:
            del self._ended[uid]
        else:
            self._count_ended(uid, resolution.declaration, pod.hints.created_us)

    def _count_ended(self, uid: str, declaration: Declaration, created_us: int) -> None:
        """Count a pod that has ended in the gang that it declared."""
        if declaration.at_once or not (declaration.key or declaration.announced):
            del self._ended[uid]
            return
        pod = self._ended[uid]
        pod.hints, pod.key = None, declaration.key
        if declaration.announced:
            pod.declaration = declaration
            self._announce(uid, None, declaration)
        if declaration.key:
            group = self._group(declaration.key)
            self._define(group, declaration, created_us)
            role = group.role_of(declaration)
            group.ended.add(uid, role, declaration, succeeded=pod.succeeded, assigned_to_us=pod.assigned_to_us)
            self._changed_group(group)

    def forget_ended(self, uid: str) -> None:
        """Record that a pod that had ended was deleted: it counts no more."""
        pod = self._ended.pop(uid, None)
        if pod is None:
            return
        if pod.waits_for:
            self._index.stop_waiting(uid, pod.waits_for)
        if pod.declaration is not None:
            self._announce(uid, pod.declaration, None)
        group = self.groups.get(Group(pod.key).id) if pod.key else None
        if group is not None:
            group.ended.drop(uid)
            self._changed_group(group, lost=False)
            self._sweep(group)

    def ended_pods(self) -> Collection[str]:
        """UIDs of the pods that have ended and count in gangs."""
        return self._ended.keys()

    # -- resolution -------------------------------------------------------------------------------------------

    def _resolve(self, member: Member) -> None:
        known, hints = member.known, member.hints
        self._forget_unknown(member)
        declaration, invalid, warning, unknown, delayed = resolve(hints, self.objects, self.without_marks)
        if not unknown and member.assigned_to_us and self._by_job(known):
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
            known.gang.clear()
            return
        member.owners = owners(hints, self.objects)
        self._place(member, declaration)
        if invalid and declaration is None:
            for owner in filter(None, (hints.owner, *(each.owner for each in member.owners))):
                self._wait(member, owner.uid)  # it may be corrected, or become readable
            self._block(known, invalid)
            warning = invalid
        elif (
            declaration is not None and declaration.key and (why := self._group(declaration.key).obstacle(declaration))
        ):
            self._block(known, why)
        else:
            known.gang.blocked = ""
            warning = warning or invalid
        if warning and warning != member.warned and member.assigned_to_us:
            self.listener.gang_invalid(known, warning)
        member.warned = warning

    def _note_plain(self, known: PodRecord, hints: GangHints, owner: Owner) -> None:
        """The owner of a pod declares no gang, nor do those above it, as far as they may be read."""
        chain = owners(hints, self.objects)
        self._index.note_plain(owner, chain)
        last = chain[-1].owner if chain else owner
        why = self.objects.unreadable(last) if last is not None and known.observed.assigned_to_us else ""
        if last is not None and why:
            self.listener.owner_unreadable(
                known,
                f"its owner {last.kind} {known.namespace}/{last.name} cannot be read, so a queue, priority or gang "
                f"that it declares has no effect: {why}",
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
        known.gang.node_pool = declaration.node_pool if declaration is not None else None
        if declaration is None or not declaration.key:
            known.gang.id = known.gang.role = 0
            return
        group = self._group(declaration.key)
        self._define(group, declaration, member.hints.created_us)
        for reference in declaration.reads:
            self._index.link(group.id, reference)
        for owner_or_group in member.owners:
            if group.object_ref is None:
                group.owner_uid = owner_or_group.uid  # the topmost owner, which lives longest
            self._index.link(group.id, owner_or_group.uid)
        group.members[known.uid] = member
        if group.require(known.uid, declaration.topology_key if declaration.topology_required else ""):
            self._touch_members(group)
        is_unit = declaration.minimum or declaration.disrupted_whole or group.is_declared_elsewhere(declaration)
        known.gang.id = group.id if is_unit else 0
        known.gang.role = group.role_of(declaration)
        if group.bound.pop(known.uid, None) is not None and known.observed.deleting:
            group.disrupted = True
        if known.node and not known.observed.deleting:
            group.bound[known.uid] = known.gang.role
        if known.preempting or known.observed.disrupted:
            self._note_preemption(group)
        elif known.uid in group.bound:
            group.preempted = False
        self._changed_group(group)
        if member.assigned_to_us and member.hints.owner is not None:
            self._join(self._index.take_others(known.owner), member.hints.owner)

    def _block(self, known: PodRecord, why: str) -> None:
        if known.node:
            known.gang.id, known.gang.blocked = 0, ""
        elif known.gang.blocked != why:
            known.gang.blocked = why
            if known.schedulable:
                self.listener.gang_blocked(known, why)

    # -- groups -----------------------------------------------------------------------------------------------

    def _part(self, member: Member, key: str, deleted: bool = False) -> None:
        group = self.groups.get(Group(key).id) if key else None
        if group is None or group.members.pop(member.known.uid, None) is None:
            return
        if group.require(member.known.uid, ""):
            self._touch_members(group)
        if group.bound.pop(member.known.uid, None) is not None and deleted:
            group.disrupted = True
        self._note_preemption(group)
        self._changed_group(group)
        self._sweep(group)

    # -- objects ----------------------------------------------------------------------------------------------

    def changed(self, resource: Resource, owner_or_group: OwnerOrGroup, *, gone: bool = False) -> None:
        """Record that a PodGroup or an owner was created, changed or, `gone`, deleted."""
        for gang_id in self._index.gangs_of(resource, owner_or_group):
            group = self.groups.get(gang_id)
            if group is not None:
                self._touch_members(group)
                if group.keeps:
                    group.dirty = True
                    self.queue.add(group.id)
                self._sweep(group)
        self.resolved(f"{resource.label}/{owner_or_group.uid}")
        self.resolved(owner_or_group.uid)
        if gone:
            self._index.forget_plain(owner_or_group.uid)
        else:
            counts = owner_or_group.counts
            of_default = resource in without_marks.WITH_SIZE and self._has_default(owner_or_group.namespace)
            forms_gangs = resource in self._gang_owners or of_default
            several = forms_gangs and ((counts.size or 0) > 1 or bool(counts.problem))
            declares = bool(owner_or_group.annotations or owner_or_group.remarks.refused) or several
            declares = declares or without_marks.names_a_queue(owner_or_group)
            self._rescan(self._index.not_plain(owner_or_group.uid, declares=declares))

    def _rescan(self, owners: Mapping[str, Owner]) -> None:
        """Resolve again the pods of owners that declared nothing before."""
        if not owners:
            return
        for known in list(self._pods.values()):
            owner = owners.get(known.owner)
            if owner is not None:
                self._join((known.uid,), owner)

    def _join(self, uids: Iterable[str], owner: Owner) -> None:
        """Resolve the gangs of pods of an owner that may declare one."""
        for uid in uids:
            known = self._pods.get(uid)
            if known is not None and (known.observed.assigned_to_us or known.node):
                hints = GangHints(known.namespace, known.name, uid, known.created_us, owner=owner)
                self._members.setdefault(uid, Member(known, hints, known.described.priority))
                self._touch(uid)

    def resolved(self, what: str) -> None:
        """Record that a lookup has ended: the pods that waited for it are resolved again."""
        for uid in self._index.take_waiting(what):
            if uid in self._ended:
                self._resolve_ended(uid)
            else:
                self._touch(uid)

    def _wait(self, member: Member, what: str) -> None:
        member.waits_for += (what,)
        self._index.wait(member.known.uid, what)

    def _forget_unknown(self, member: Member) -> None:
        for what in member.waits_for:
            self._index.stop_waiting(member.known.uid, what)
        member.waits_for = ()
