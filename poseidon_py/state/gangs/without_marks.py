"""Gangs that nothing declares: the pods of one owner, if `--gangs-from` names its kind.

These conventions apply to pods to which no other does. A gang needs as many pods as its owner runs at the same time, or
as many as the owner itself says that it needs. An owner of a single pod has no gang.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from poseidon_py.conventions import group_keys as m
from poseidon_py.kube.queue_objects.keys import KUEUE, OWN
from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.keys import is_leader, is_placed_exclusively, sequence_of
from poseidon_py.state.gangs.model import (
    MAX_OWNERS,
    Convention,
    Declaration,
    GangHints,
    Invalid,
    Objects,
    Owner,
    OwnerOrGroup,
    Stage,
    owner_chain,
    whole,
)
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS, OWNER_KINDS, OwnerKind

WITH_SIZE = frozenset(each.resource for each in OWNER_KINDS.values()) - {LEADER_WORKER_SETS}
"""Kinds of owners whose pods are admitted together. The replicas of a LeaderWorkerSet are admitted one by one, as are
the pods of all other kinds."""

Kinds = Mapping[tuple[str, str], OwnerKind]
"""By group and kind."""


def conventions(names: Iterable[str]) -> tuple[Convention, ...]:
    """The conventions for the kinds with these names in OWNER_KINDS."""
    kinds = [OWNER_KINDS[name] for name in names]
    found: list[Convention] = []
    by_kind = _by_kind(kinds)
    if by_kind:
        found.append(FromOwners(by_kind))
    if len(by_kind) < len(kinds):
        found.append(FromLeaderWorkerSets())
    return tuple(found)


def _by_kind(kinds: Iterable[OwnerKind]) -> Kinds:
    return {(each.resource.group, each.kind): each for each in kinds if each.resource != LEADER_WORKER_SETS}


class FromOwners:
    """All pods of an owner of these kinds; of two owners above each other, the upper one counts."""

    name = "owner"
    in_stages = False
    """Whether parts that are created one after the other are one gang."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        return self._of_owner(hints, objects, MAX_OWNERS)

    def _of_owner(self, hints: GangHints, objects: Objects, levels: int) -> Declaration | None:
        """The gang of the uppermost owner of these kinds among so many levels."""
        chain: list[OwnerOrGroup] = []
        anchor: Owner | None = None
        kind: OwnerKind | None = None
        owner = hints.owner
        while owner is not None and len(chain) < levels:
            found = objects.owner(owner, hints.namespace)
            above = self._kind(owner, hints, gone=found is None)
            if above is not None and (found is not None or objects.serves(above.resource)):
                anchor, kind = owner, above
            if found is None:
                break
            chain.append(found)
            owner = found.owner
        if anchor is None or kind is None:
            return None
        entry = next((each for each in chain if each.uid == anchor.uid), None)
        in_stages = self.in_stages and entry is not None and bool(entry.counts.stages)
        if is_placed_exclusively(hints) and hints.owner is not None and not in_stages:
            anchor, kind = hints.owner, _JOB  # each Job of a JobSet has a domain for itself
        name = f"{hints.namespace}/{anchor.name}"
        waits = Declaration(kind.kind, f"owner/{anchor.uid}", name, 0)
        if not in_stages:
            entry = next((each for each in chain if each.uid == anchor.uid), None)
        if entry is None:
            return replace(
                waits, waits=f"{kind.kind} {name} does not exist any more, so that its pods are about to be deleted"
            )
        if entry.counts.problem:
            raise Invalid(f"{kind.kind} {name}: {entry.counts.problem}")
        declared = _in_stages(hints, kind, name, entry) if in_stages else _declared(hints, kind, name, entry)
        if declared is not None and any(each.suspended for each in chain):
            return replace(waits, waits=f"{kind.kind} {name} is suspended; its pods are placed once it is resumed")
        return declared

    def _kind(self, owner: Owner, hints: GangHints, *, gone: bool) -> OwnerKind | None:
        """The kind of an owner if its pods are a gang. A label tells that a JobSet owned a Job that is `gone`."""
        kind = self._kinds.get((owner.group, owner.kind))
        of_job_set = gone and m.JOBSET_ROLE in hints.labels and (owner.group, owner.kind) == (JOBS.group, _JOB.kind)
        return _JOB if kind is None and of_job_set and (_SET.resource.group, _SET.kind) in self._kinds else kind


class QueuedWorkloads(FromOwners):
    """Workloads as Kueue admits them: all pods of an owner in a queue, while its queues are in force."""

    name = "Kueue workload"
    in_stages = True

    def __init__(self, in_force: Callable[[], bool], has_default: Callable[[str], bool]) -> None:
        """`has_default`: whether a namespace has a LocalQueue for owners that name none."""
        super().__init__(_by_kind(OWNER_KINDS.values()))
        self._in_force = in_force
        self._has_default = has_default

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        if not self._in_force():
            return None
        chain = list(owner_chain(hints, objects))
        levels = queued_levels(chain, has_default=self._has_default(hints.namespace))
        if not levels:
            return None
        declared = self._of_owner(hints, objects, levels)
        least = next(
            (owner.annotations[m.KUEUE_MINIMUM] for owner in chain if m.KUEUE_MINIMUM in owner.annotations), ""
        )
        if declared is None or not least:
            return declared
        minimum = whole(least, f"annotation {m.KUEUE_MINIMUM}")
        return replace(declared, minimum=min(minimum, declared.minimum))

    def replica(self, hints: GangHints, objects: Objects, found: Declaration) -> Declaration | None:
        """The replica of a LeaderWorkerSet whose workers are created later than its leader, declared otherwise by
        `found`, as Kueue admits it: with all of its quota; None: its set is in no queue. Raises Unknown."""
        name = hints.labels.get(m.LWS_NAME)
        if not self._in_force() or not name or found.topology_key:
            return None
        owner = objects.find(LEADER_WORKER_SETS, hints.namespace, name)
        if owner is None or sum(each.pods for each in owner.counts.stages) != found.minimum:
            return None
        above = [objects.owner(owner.owner, hints.namespace)] if owner.owner is not None else []
        known = [each for each in above if each is not None]
        if not (
            is_queued(owner, known, has_default=self._has_default(hints.namespace)) or any(map(names_a_queue, known))
        ):
            return None
        role = owner.counts.stages[0 if is_leader(hints) else 1].name
        found = replace(found, roles=_roles(owner.counts.stages), role=role, stages=owner.counts.stages)
        return replace(found, leader_first=False, is_workload=True)


def names_a_queue(owner: OwnerOrGroup) -> bool:
    """Whether an owner has Kueue's queue label."""
    return _has(owner, KUEUE)


def is_queued(owner: OwnerOrGroup, above: Sequence[OwnerOrGroup], *, has_default: bool) -> bool:
    """Whether an owner is a workload in a queue of Kueue's: by its label, or where its namespace has the LocalQueue
    `default`, with which Kueue's webhooks label what is no part of another workload. `above`: its own owner, the owner
    of that, and so on."""
    if names_a_queue(owner):
        return True
    return has_default and not any(names_a_queue(each) or _has(each, OWN) for each in (owner, *above))


def queued_levels(chain: Sequence[OwnerOrGroup], *, has_default: bool) -> int:
    """How many of these owners, each the owner of the one before it, are within a workload: up to the uppermost that is
    one itself; 0: none is."""
    levels = range(len(chain), 0, -1)
    return next((each for each in levels if is_queued(chain[each - 1], chain[each:], has_default=has_default)), 0)


def _has(owner: OwnerOrGroup, label: str) -> bool:
    return any(key == label for key, _ in owner.queue_labels)


_JOB = OWNER_KINDS["jobs"]
_SET = OWNER_KINDS["jobsets"]


def _declared(hints: GangHints, kind: OwnerKind, name: str, entry: OwnerOrGroup) -> Declaration | None:
    counts = entry.counts
    key, size, left = f"owner/{entry.uid}", counts.size or 0, counts.left
    if counts.staged:  # its parts start one after the other: each is a gang of its own
        part = _part_of(hints, entry)
        key, name = f"{key}/{part}", f"{name}-{part}"
        size, left = dict(counts.roles).get(part, 0), dict(counts.roles_left).get(part)
    elif counts.apart:
        size -= sum(count for _, count in counts.apart)
        left = left - sum(count for _, count in counts.apart_left) if left is not None else None
    minimum = size if counts.least is None else min(counts.least, size)
    if size < 2 or minimum < 2:
        return None
    if counts.least is not None and left is not None:
        minimum = max(minimum - (size - left), 1)  # those that have succeeded count for what it says that it needs
    found = Declaration(kind.kind, key, name, minimum, created_us=entry.created_us, size=size, left=left, at_once=True)
    return replace(found, is_workload=not counts.staged, anchor=entry.uid)


def _in_stages(hints: GangHints, kind: OwnerKind, name: str, entry: OwnerOrGroup) -> Declaration:
    """All pods of an owner some of which are created only when others run."""
    stages, part = entry.counts.stages, _part_of(hints, entry)
    if is_placed_exclusively(hints) and not is_leader(hints) and hints.owner is not None:
        part = f"{part}/{hints.owner.name.rpartition('-')[2]}"
    size = sum(each.pods for each in stages)
    found = Declaration(kind.kind, f"owner/{entry.uid}", name, max(size, 1), created_us=entry.created_us, size=size)
    found = replace(found, roles=_roles(stages), role=part, stages=stages, at_once=True)
    return replace(found, is_workload=True, anchor=entry.uid)


def _roles(stages: Iterable[Stage]) -> tuple[tuple[str, int], ...]:
    return tuple((each.name, each.least) for each in stages)


def _part_of(hints: GangHints, job_set: OwnerOrGroup) -> str:
    """The replicated job of a JobSet to which the pod belongs."""
    if part := hints.labels.get(m.JOBSET_ROLE):
        return part
    job = hints.owner.name if hints.owner is not None else ""
    return job.removeprefix(f"{job_set.name}-").rpartition("-")[0]


class FromLeaderWorkerSets:
    """A leader and its workers, which its operator labels; their number is that of the LeaderWorkerSet."""

    name = "LeaderWorkerSet"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        owner, index = hints.labels.get(m.LWS_NAME), hints.labels.get(m.LWS_INDEX)
        if not owner or not index:
            return None
        found = objects.find(LEADER_WORKER_SETS, hints.namespace, owner)
        name = f"{hints.namespace}/{owner}-{index}"
        declared = Declaration(
            self.name, f"lws/{name}", name, 0, object_ref=(LEADER_WORKER_SETS, hints.namespace, owner)
        )
        if found is None:
            if not objects.serves(LEADER_WORKER_SETS):
                return None
            return replace(declared, waits=f'LeaderWorkerSet "{hints.namespace}/{owner}" not found')
        counts = found.counts
        if counts.problem:
            raise Invalid(f"LeaderWorkerSet {hints.namespace}/{owner}: {counts.problem}")
        size = counts.size or 0
        if size < 2:
            return None
        declared = replace(declared, created_us=found.created_us, sequence=sequence_of(hints))
        return replace(declared, minimum=size, size=size, leader_first=counts.staged)
