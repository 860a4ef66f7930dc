"""Conventions that take the size of a gang from the owner of its pods."""

import math
from collections import ChainMap
from collections.abc import Iterable

from msgspec import Raw

from poseidon_py.conventions import group_keys as m
from poseidon_py.describe.requests import requests_of_template
from poseidon_py.kube.objects import Condition, InvalidField
from poseidon_py.state.gangs.keys import is_placed_exclusively
from poseidon_py.state.gangs.model import (
    Declaration,
    GangHints,
    Invalid,
    Objects,
    Owner,
    OwnerOrGroup,
    Resource,
    Stage,
    owner_chain,
    shown,
    whole,
)

JOBS = Resource("batch", "jobs", ("v1",))
REPLICA_SETS = Resource("apps", "replicasets", ("v1",))
REPLICATION_CONTROLLERS = Resource("", "replicationcontrollers", ("v1",))
STATEFUL_SETS = Resource("apps", "statefulsets", ("v1",))
DEPLOYMENTS = Resource("apps", "deployments", ("v1",))
JOB_SETS = Resource("jobset.x-k8s.io", "jobsets", ("v1alpha2",))

OWNERS = {
    ("batch", "Job"): JOBS,
    ("apps", "ReplicaSet"): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    ("", "ReplicationController"): REPLICATION_CONTROLLERS,
    ("apps", "Deployment"): DEPLOYMENTS,
    ("jobset.x-k8s.io", "JobSet"): JOB_SETS,
}

_ALL = ("true", "all", "yes")
_NONE = ("false", "none", "no")


_SUCCESS = frozenset(("Complete", "Completed", "Succeeded"))
"""Types of conditions of Jobs, JobSets, and kinds of kubeflow.org."""


def verdict_of(conditions: Iterable[Condition] | None) -> str:
    """How an owner has ended, by its conditions; empty: it has not."""
    ends = {each.type for each in conditions or () if each.status == "True"}
    if "Failed" in ends:
        return "Failed"
    return "Succeeded" if ends & _SUCCESS else ""


def count_indexes(text: str | None) -> int:
    """The number of indexes in a list like "1,3-5"; 0 if it is unreadable, which only delays that a gang shrinks."""
    found = 0
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not dash):
            found += int(last or first) - int(first) + 1
    return found


Part = tuple[str, int, int, Raw]
"""Of a workload in stages: name, pods needed together, pods yet to succeed, spec of the template of its pods."""


def stages_of(parts: Iterable[Part]) -> tuple[Stage, ...]:
    """The stages of these parts; empty: what the pods of one will request cannot be told, or there are too many."""
    found: list[Stage] = []
    try:
        for name, least, pods, template in parts:
            amounts = requests_of_template(template, "spec") if pods else {}
            found.append(Stage(name, least, pods, tuple(sorted(amounts.items()))))
    except InvalidField:
        return ()  # the API server refuses such pods
    return tuple(found) if len(found) <= _MOST_STAGES else ()


_MOST_STAGES = 50


class Own:
    """The annotation poseidon.io/gang on the pod template, on the owner, or on one above it: the closest counts."""

    name = "poseidon.io/gang"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        declaration = hints.annotations
        chain = list(owner_chain(hints, objects))
        references = [hints.owner, *(each.owner for each in chain)]
        at = 0
        if m.OWN not in declaration:
            level = next((level for level, each in enumerate(chain) if m.OWN in each.annotations), None)
            if level is None:
                levels = [declaration, *(each.annotations for each in chain)]
                return self._companions(dict(ChainMap(*levels))) if any(levels) else None
            at, declaration = level, {**chain[level].annotations, **declaration}
            if (reference := references[at]) is not None and reference.kind == "Deployment":
                at -= 1  # each ReplicaSet of a Deployment is a separate gang: during a rollout there are two
        if is_placed_exclusively(hints):
            at = 0  # each Job of a JobSet has a domain for itself
        anchor, kind = chain[at] if chain else None, references[at]
        value = declaration[m.OWN]
        if value.lower() in _NONE:
            return Declaration(self.name, "", "", 0)
        key, name = self._identity(hints, declaration, kind)
        size = anchor.counts.size if anchor is not None and not declaration.get(m.OWN_NAME) else None
        minimum = self._minimum(declaration, value, size)
        if size and minimum <= _replicas_above(chain, at):
            minimum = min(minimum, size)  # a rolling update creates the pods of its new ReplicaSet one by one
        role, roles = self._roles(hints, declaration, anchor)
        topology, required = self._topology(declaration)
        return Declaration(
            self.name,
            key,
            name,
            minimum,
            created_us=anchor.created_us if anchor is not None else 0,
            role=role,
            roles=roles if m.OWN_MINIMUM not in declaration or m.OWN_ROLE in declaration else (),
            topology_key=topology,
            topology_required=required,
            size=size,
            at_once=size is not None,
            maximum=whole(declaration[m.OWN_MAXIMUM], f"annotation {m.OWN_MAXIMUM}")
            if m.OWN_MAXIMUM in declaration
            else 0,
        )

    def _companions(self, declaration: dict[str, str]) -> Declaration | None:
        """What is declared without the annotation: a topology, of whatever gang the pod is in."""
        for key in (m.OWN_MINIMUM, m.OWN_MAXIMUM, m.OWN_ROLE):
            if key in declaration and (key != m.OWN_ROLE or "=" in declaration[key]):
                raise Invalid(f"annotation {key}: declares no gang; give {m.OWN}, too, or remove it")
        topology, required = self._topology(declaration)
        if not topology:
            return None
        return Declaration(m.OWN_TOPOLOGY, "", "", 0, topology_key=topology, topology_required=required)

    def _identity(self, hints: GangHints, declaration: dict[str, str], anchor: Owner | None) -> tuple[str, str]:
        if shared := declaration.get(m.OWN_NAME):
            return f"own/{hints.namespace}/{shared}", f"{hints.namespace}/{shared}"
        if anchor is None:
            raise Invalid(f"annotation {m.OWN}: the pod has no owner; name its gang with {m.OWN_NAME}")
        return f"own/{anchor.uid}", f"{hints.namespace}/{anchor.name}"

    def _minimum(self, declaration: dict[str, str], value: str, size: int | None) -> int:
        if m.OWN_MINIMUM in declaration:
            return whole(declaration[m.OWN_MINIMUM], f"annotation {m.OWN_MINIMUM}")
        if value.lower() not in _ALL:
            return whole(value, f"annotation {m.OWN}", alternatives="all, none or ")
        if size is None:
            raise Invalid(f"annotation {m.OWN}: {value!r} needs an owner with a known number of pods; give a number")
        return size

    def _roles(
        self, hints: GangHints, declaration: dict[str, str], anchor: OwnerOrGroup | None
    ) -> tuple[str, tuple[tuple[str, int], ...]]:
        if text := declaration.get(m.OWN_ROLE):
            name, equals, least = text.partition("=")
            minimum = whole(least, f"annotation {m.OWN_ROLE}", 0) if equals else 0
            return name, ((name, minimum),)
        if anchor is not None and anchor.counts.roles:
            return hints.labels.get(m.JOBSET_ROLE, ""), anchor.counts.roles
        return "", ()

    def _topology(self, declaration: dict[str, str]) -> tuple[str, bool]:
        mode = declaration.get(m.OWN_TOPOLOGY_MODE, "required")
        if mode not in ("required", "preferred"):
            raise Invalid(f"annotation {m.OWN_TOPOLOGY_MODE}: {shown(mode)} is not valid; give required or preferred")
        key = declaration.get(m.OWN_TOPOLOGY, "")
        return key, bool(key) and mode == "required"


def _replicas_above(chain: list[OwnerOrGroup], at: int) -> int:
    """The replicas of the Deployment of the owner at this position; 0: it has none."""
    owner = chain[at].owner if at < len(chain) else None
    if owner is None or owner.kind != "Deployment" or at + 1 >= len(chain):
        return 0
    return chain[at + 1].counts.size or 0


class RefusedOwner:
    """An owner with a wish that cannot be kept: its pods wait."""

    name = "owner"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        for owner in owner_chain(hints, objects):
            if owner.remarks.refused:
                name = f"{hints.namespace}/{owner.name}"
                return Declaration(
                    self.name, f"refused/{owner.uid}", name, 0, waits=f"{name}: {owner.remarks.refused[0]}"
                )
        return None


class OwnerMinimum:
    """An annotation with which a controller makes a PodGroup for the pods of an owner that has none."""

    def __init__(self, name: str, key: str, annotation: str, group: str) -> None:
        """`key`: the beginning of those of its gangs. `group`: the annotation of pods that name a group themselves."""
        self.name = name
        self._key, self._annotation, self._group = key, annotation, group

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        if hints.annotations.get(self._group):
            return None
        owner = next((each for each in owner_chain(hints, objects) if self._annotation in each.annotations), None)
        if owner is None:
            return None
        minimum = whole(owner.annotations[self._annotation], f"annotation {self._annotation}")
        if self._annotation == m.KAI_OWNER_MINIMUM and owner.resource == JOB_SETS:
            raise Invalid(
                f"annotation {self._annotation}: numbers of groups are not supported, and of a JobSet it may be one; "
                f"give {m.OWN} the number of pods"
            )
        name = f"{hints.namespace}/{owner.name}"
        created, size = owner.created_us, owner.counts.size
        return Declaration(self.name, f"{self._key}/{owner.uid}", name, minimum, created_us=created, size=size)


class RayCluster:
    """The label of a RayCluster for which KubeRay makes a gang of all its pods, if another scheduler serves it."""

    name = "Ray"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        owner = next((each for each in owner_chain(hints, objects) if m.RAY_GANG in each.annotations), None)
        if owner is None or not owner.counts.size or owner.annotations[m.RAY_GANG].lower() in _NONE:
            return None
        key, name, size = f"ray/{owner.uid}", f"{hints.namespace}/{owner.name}", owner.counts.size
        return Declaration(self.name, key, name, size, created_us=owner.created_us, size=size)


class Percent:
    """The annotation of the original Poseidon: the percentage of the owner's pods that must run together."""

    name = "firmament-gang-scheduling"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        text = hints.annotations.get(m.PERCENT)
        if text is None:
            return None
        if hints.owner is None:
            raise Invalid(f"annotation {m.PERCENT}: the pod has no owner; declare its gang with {m.OWN} instead")
        percent = whole(text.strip().removesuffix("%"), f"annotation {m.PERCENT}")
        if percent > 100:
            raise Invalid(f"annotation {m.PERCENT}: {shown(text)} is not valid; give a percentage from 1 to 100")
        owner = objects.owner(hints.owner, hints.namespace)
        name = f"{hints.namespace}/{hints.owner.name}"
        if owner is None or owner.counts.size is None:
            raise Invalid(
                f"annotation {m.PERCENT}: the number of pods of {hints.owner.kind} {name} is unknown; "
                f"declare the gang with {m.OWN} instead"
            )
        return Declaration(
            self.name,
            f"percent/{hints.owner.uid}",
            name,
            max(1, math.ceil(owner.counts.size * percent / 100)),
            created_us=owner.created_us,
            size=owner.counts.size,
            at_once=True,
        )
