"""Conventions that declare the gang on its pods alone."""

from dataclasses import replace

import msgspec

from poseidon_py.conventions import group_keys as m
from poseidon_py.state.gangs.by_owner import REPLICA_SETS, REPLICATION_CONTROLLERS
from poseidon_py.state.gangs.by_pod_group import fluence_size
from poseidon_py.state.gangs.keys import sequence_of
from poseidon_py.state.gangs.model import (
    Declaration,
    GangHints,
    Invalid,
    Objects,
    OwnerOrGroup,
    number_of,
    shown,
    whole,
)
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS
from poseidon_py.util.decoding import Decoder, MalformedError
from poseidon_py.util.durations import seconds_of

_ONE_BY_ONE = (REPLICA_SETS, REPLICATION_CONTROLLERS)


class LightLabels:
    """The first form of the coscheduling plug-in: two labels, no object. Their prefix has changed since."""

    name = "pod-group labels"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        for named, least in ((m.LIGHT_NAME, m.LIGHT_MINIMUM), (m.LIGHT_SIGS_NAME, m.LIGHT_SIGS_MINIMUM)):
            if group := hints.labels.get(named):
                text = hints.labels.get(least)
                if text is None:
                    raise Invalid(f"label {least}: is missing; give the number of pods that the group needs")
                name = f"{hints.namespace}/{group}"
                return Declaration(self.name, f"light/{name}", name, whole(text, f"label {least}"))
        return None


class Koordinator:
    """Koordinator's gangs by annotations. A group of gangs that start together is refused before."""

    name = "Koordinator"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = hints.annotations.get(m.KOORDINATOR_NAME)
        if not group:
            return None
        text = hints.annotations.get(m.KOORDINATOR_MINIMUM)
        if text is None:
            raise Invalid(
                f"annotation {m.KOORDINATOR_MINIMUM}: is missing; give the number of pods that the gang needs"
            )
        minimum = whole(text, f"annotation {m.KOORDINATOR_MINIMUM}")
        total = hints.annotations.get(m.KOORDINATOR_SIZE)
        size = whole(total, f"annotation {m.KOORDINATOR_SIZE}") if total is not None else None
        name = f"{hints.namespace}/{group}"
        return Declaration(self.name, f"koordinator/{name}", name, minimum, size=size, timeout=_waiting_time(hints))


def _waiting_time(hints: GangHints) -> float | None:
    """Seconds; 0 and None: the configured timeout counts."""
    text = hints.annotations.get(m.KOORDINATOR_WAIT)
    seconds = seconds_of(text) if text else 0.0
    if seconds is None:
        raise Invalid(f"annotation {m.KOORDINATOR_WAIT}: {shown(text)} is not valid; give a duration like 90s or 10m")
    return seconds or None


class Fluence:
    """A label with the name of the group, and its size; the controller of Fluence makes a PodGroup of them."""

    name = "Fluence"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = next((hints.labels[key] for key in m.FLUENCE_NAMES if hints.labels.get(key)), "")
        if not group:
            return None
        size = fluence_size(hints)
        if size is None:
            raise Invalid(f"label {m.FLUENCE_SIZES[0]}: is missing; give the number of pods of the group")
        name = f"{hints.namespace}/{group}"
        return Declaration(self.name, f"fluence/{name}", name, size, maximum=size, size=size)


class BatchAnnotations:
    """group-name and group-pod-num: all pods or none. A number of 0 means a single pod."""

    name = "group-pod-num annotations"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group, text = hints.annotations.get(m.GROUP_NAME), hints.annotations.get(m.GROUP_NUMBER)
        if not group or text is None:
            return None  # the name alone belongs to Volcano's convention
        size = whole(text, f"annotation {m.GROUP_NUMBER}", least=0)
        if size == 0:
            return None
        return Declaration(self.name, f"batch/{hints.namespace}/{group}", f"{hints.namespace}/{group}", size, size=size)


class Kueue:
    """Pod groups of Kueue, whose pods are admitted together, and owners whose pods request a topology."""

    name = "Kueue"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        required, preferred = hints.annotations.get(m.KUEUE_REQUIRED), hints.annotations.get(m.KUEUE_PREFERRED)
        if required and preferred:
            raise Invalid(f"annotation {m.KUEUE_PREFERRED}: {m.KUEUE_REQUIRED} is set as well; set one of them")
        group = hints.labels.get(m.KUEUE_NAME) or hints.annotations.get(m.KUEUE_NAME)
        if not (group or required or preferred):
            return None
        instead = m.OWN in hints.annotations and m.OWN_TOPOLOGY in hints.annotations
        if required and not (group or instead) and (why := _unknown_pods(hints, objects)):
            what = "the pods that have to be together are not known, since"
            remedy = f"correct that, or give {m.OWN} and {m.OWN_TOPOLOGY}"
            raise Invalid(f"annotation {m.KUEUE_REQUIRED}: {what} {why}; {remedy}")
        found = self._group(hints, group) if group else self._of_owner(hints, objects)
        if found is None:
            return None
        return replace(found, topology_key=required or preferred or "", topology_required=bool(required))

    def _of_owner(self, hints: GangHints, objects: Objects) -> Declaration | None:
        """The pod set: a replica of a LeaderWorkerSet, a part of an owner that has parts, or all pods of another owner,
        if their number is known. Pods of ReplicaSets are pod sets of their own."""
        if m.LWS_INDEX in hints.labels or m.LWS_KEY in hints.labels:
            return _OF_LEADER.read(hints, objects)
        owner = objects.owner(hints.owner, hints.namespace) if hints.owner is not None else None
        if owner is None or owner.resource in _ONE_BY_ONE:
            return None
        key, name, size, left = f"kueue/{owner.uid}", owner.name, owner.counts.size, None
        if (part := _part_of(hints, owner, objects)) is not None:
            owner, role, size, left = part
            key, name = f"kueue/{owner.uid}/{role}", f"{owner.name}-{role}"
        if not size:
            return None
        full, minimum = f"{hints.namespace}/{name}", size
        if part is None and (least := owner.annotations.get(m.KUEUE_MINIMUM)):
            minimum = min(whole(least, f"annotation {m.KUEUE_MINIMUM}"), size)
        found = Declaration(
            self.name, key, full, minimum, created_us=owner.created_us, size=size, left=left, at_once=True
        )
        return replace(found, is_workload=not owner.counts.staged, anchor=owner.uid)

    def _group(self, hints: GangHints, group: str) -> Declaration:
        text = hints.annotations.get(m.KUEUE_COUNT)
        if text is None:
            raise Invalid(f"annotation {m.KUEUE_COUNT}: is missing; give the number of pods of the group")
        size = whole(text, f"annotation {m.KUEUE_COUNT}")
        name = f"{hints.namespace}/{group}"
        return Declaration(self.name, f"kueue/{name}", name, size, maximum=size, size=size, is_workload=True)


def _unknown_pods(hints: GangHints, objects: Objects) -> str:
    """Why it is not known which pods are in the pod set of a pod; empty: it is, or the pod is one of its own."""
    if hints.owner is not None and (hints.owner.group, hints.owner.kind) == ("", "Pod"):
        return "a pod owns them"  # as the driver of a Spark application does
    owner = hints.owner
    for _ in range(2):  # a Job, and the JobSet above it
        if owner is None:
            break
        found = objects.owner(owner, hints.namespace)
        if found is None:
            why = objects.unreadable(owner)
            return f"{owner.kind} {hints.namespace}/{owner.name} cannot be read: {why}" if why else ""
        if found.counts.problem:
            return f"{owner.kind} {hints.namespace}/{owner.name} is invalid: {found.counts.problem}"
        owner = found.owner
    return ""


def _part_of(
    hints: GangHints, owner: OwnerOrGroup, objects: Objects
) -> tuple[OwnerOrGroup, str, int, int | None] | None:
    """The part of the owner, or of the JobSet above it, that is the pod set: its owner, its name, its number of pods,
    and how many of these have yet to succeed, if that is known. None: the owner has no parts."""
    above = objects.owner(owner.owner, hints.namespace) if owner.owner is not None else None
    role = hints.labels.get(m.JOBSET_ROLE, "")
    if above is not None and (size := dict(above.counts.roles).get(role)):
        return above, role, size, dict(above.counts.roles_left).get(role)
    role = hints.labels.get(m.KUBEFLOW_ROLE) or hints.labels.get(m.RAY_ROLE, "")
    if size := dict(owner.counts.apart).get(role):
        return owner, role, size, dict(owner.counts.apart_left).get(role)
    return None


class LeaderWorkerSet:
    """A leader and its workers: each replica of the set is a gang."""

    name = "LeaderWorkerSet"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        text = hints.annotations.get(m.LWS_SIZE)
        if text is None:
            return None
        group = hints.labels.get(m.LWS_KEY)
        owner, index = hints.labels.get(m.LWS_NAME), hints.labels.get(m.LWS_INDEX)
        if owner and index:
            group = f"{owner}-{index}"
        if not group:
            raise Invalid(f"label {m.LWS_INDEX}: is missing, and so is {m.LWS_KEY}; set one of them to name the group")
        size = whole(text, f"annotation {m.LWS_SIZE}")
        reads = ((LEADER_WORKER_SETS, hints.namespace, owner),) if owner else ()
        found = objects.find(*reads[0]) if reads else None
        staged = found is not None and found.counts.staged
        key, name = f"lws/{hints.namespace}/{group}", f"{hints.namespace}/{group}"
        row = sequence_of(hints)
        return Declaration(self.name, key, name, size, size=size, leader_first=staged, reads=reads, sequence=row)


_OF_LEADER = LeaderWorkerSet()


class _TaskGroup(msgspec.Struct):
    name: str
    minimum: int = msgspec.field(default=0, name="minMember")


_task_groups: Decoder[list[_TaskGroup]] = Decoder(list[_TaskGroup], f"annotation {m.YUNIKORN_GROUPS}")


class YuniKorn:
    """Task groups of a YuniKorn application.

    Each task group is a separate gang: the pods of one are often created by those of another, as executors are by
    their driver, so that a gang of all of them could never start. Often a single pod describes all task groups.
    """

    name = "YuniKorn"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        text, mine = hints.annotations.get(m.YUNIKORN_GROUPS), hints.annotations.get(m.YUNIKORN_NAME)
        if text is None and not mine:
            return None
        declarations = {**hints.annotations, **hints.labels}
        app = next((declarations[key] for key in m.YUNIKORN_APP if declarations.get(key)), "")
        if not app:
            raise Invalid(f"label {m.YUNIKORN_APP[0]}: is missing; give the application that the task group belongs to")
        groups = self._groups(text)
        key = f"yunikorn/{hints.namespace}/{app}/"
        announced = tuple((key + name, minimum) for name, minimum in groups.items() if name != mine)
        if not mine:
            return Declaration(self.name, "", "", 0, announced=announced)
        if groups and mine not in groups:
            raise Invalid(
                f"annotation {m.YUNIKORN_NAME}: {shown(mine)} is not among the task groups {', '.join(groups)}; "
                "give one of them"
            )
        name = f"{hints.namespace}/{app}/{mine}"
        waits = (
            "" if groups else f"task group {name}: no pod of its application has the annotation {m.YUNIKORN_GROUPS} yet"
        )
        return Declaration(
            self.name, key + mine, name, groups.get(mine, 0), announced=announced, waits=waits, by_pods=True
        )

    def _groups(self, text: str | None) -> dict[str, int]:
        if text is None:
            return {}
        try:
            groups = _task_groups.decode(text)
        except MalformedError as error:
            raise Invalid(f'{error}; give a list like [{{"name": "workers", "minMember": 2}}]') from error
        place = f"annotation {m.YUNIKORN_GROUPS}: minMember of task group"
        return {group.name: number_of(group.minimum, f"{place} {shown(group.name)}") for group in groups}
