"""The gang of a pod by all conventions together. Pure."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from poseidon_py.conventions.group_keys import LWS_SIZE, NO_DECLARATION, OWN, OWN_TOPOLOGY
from poseidon_py.state.gangs.conventions import CONVENTIONS, OF_OWNERS
from poseidon_py.state.gangs.keys import is_leader, is_placed_exclusively
from poseidon_py.state.gangs.model import (
    Convention,
    Declaration,
    GangHints,
    Invalid,
    Objects,
    OwnerOrGroup,
    Unknown,
    owner_chain,
)
from poseidon_py.state.gangs.without_marks import QueuedWorkloads


class Resolution(NamedTuple):
    """What the conventions declare for one pod."""

    declaration: Declaration | None
    """The one in effect; None: the pod is in no gang."""
    invalid: str = ""
    """The error in the first invalid declaration."""
    warning: str = ""
    """How another declaration contradicts the one in effect."""
    unknown: str = ""
    """The object that must be looked up first."""
    delayed: str = ""
    """Why that lookup takes long; empty: it has just begun."""


def has_no_hints(hints: GangHints) -> bool:
    """Whether the pod itself declares nothing, so that only its owner may."""
    return not (hints.labels.keys() - NO_DECLARATION or hints.annotations.keys() - NO_DECLARATION or hints.group)


def resolve(hints: GangHints, objects: Objects, without_marks: Sequence[Convention] = ()) -> Resolution:
    """The first convention in order of precedence that declares something is in effect; contradictions are warnings.

    `without_marks`: conventions for pods to which no other applies.
    """
    found: list[Declaration] = []
    invalid = warning = ""
    try:
        for convention in OF_OWNERS if has_no_hints(hints) else CONVENTIONS:
            try:
                declared = convention.read(hints, objects)
            except Invalid as problem:
                invalid = invalid or str(problem)
            else:
                if declared is not None:
                    found.append(declared)
        topology = next((each for each in found if each.convention == OWN_TOPOLOGY), None)
        if topology is not None:
            found.remove(topology)
        for convention in without_marks:
            try:
                declared = convention.read(hints, objects) if not found else None
            except Invalid as problem:
                invalid = invalid or str(problem)
            else:
                if declared is not None:
                    found.append(declared)
        if topology is not None and not any(each.key for each in found):
            without = f"annotation {OWN_TOPOLOGY}: the pod is in no gang; give {OWN}, too, or remove it"
            return Resolution(None, invalid or without)
        if not found:
            return Resolution(None, invalid)
        chosen = _in_topology_of_all(found, topology)
        applies = bool(chosen.key) and chosen.key == found[0].key and not chosen.waits
        contrary = next((each for each in found[1:] if not each.waits and each.minimum != chosen.minimum), None)
        if applies and contrary is not None:
            warning = (
                f"it is declared to be in {chosen.name} (minimum {chosen.minimum}, {chosen.convention}) and in "
                f"{contrary.name} (minimum {contrary.minimum}, {contrary.convention}); the first applies"
            )
        return Resolution(_leader_first(hints, objects, chosen, without_marks), invalid, warning)
    except Unknown as lookup:
        return Resolution(None, invalid, unknown=lookup.what, delayed=lookup.why)


def _in_topology_of_all(found: Sequence[Declaration], alone: Declaration | None) -> Declaration:
    """The first of the declarations, in the topology that others name: one convention may say which pods belong
    together, and another where. So the Job controller makes a PodGroup for a Job whose pods require a topology of
    Kueue's. What is required holds whichever convention is in effect, or the pods wait. `alone`: a topology of whatever
    gang the pod is in."""
    first, *others = found
    if refused := next((each for each in found if each.refused), None):
        return refused
    if first.waits or (first.convention == OWN and not first.key):  # it is kept out of gangs
        return first
    if alone is not None:
        others = [replace(alone, minimum=first.minimum), *others]
    wishes = [each for each in others if each.topology_key and not each.waits]
    for other in sorted(wishes, key=lambda each: not each.topology_required):
        first = _within(first, other)
    if first.topology_required and not first.minimum and not first.waits:
        what = "its pods are placed one by one, so they cannot be kept in one domain"
        return replace(first, waits=f"{first.name} requires topology {first.topology_key}, but {what}; make it a gang")
    return first


def _within(first: Declaration, other: Declaration) -> Declaration:
    """A declaration in the topology of another one."""
    if not other.topology_required and (first.topology_key or not first.minimum):
        return first
    if first.topology_required and first.topology_key == other.topology_key:
        return first
    if not first.minimum and other.minimum:  # where pods need not be together, all of them may be
        whole = first.disrupted_whole or other.disrupted_whole
        return replace(
            other,
            announced=first.announced,
            disrupted_whole=whole,
            priority=first.priority,
            never_preempts=first.never_preempts,
        )
    if first.minimum == other.minimum and not first.topology_required:
        levels = other.narrower_keys or ((first.topology_key,) if first.topology_key else ())
        required = other.topology_required
        return replace(first, topology_key=other.topology_key, topology_required=required, narrower_keys=levels)
    if not other.topology_required:
        return first
    clash = (
        f"{first.name} has topology {first.topology_key} by {first.convention}"
        if first.topology_required
        else f"{first.convention} declares another gang, {first.name} (minimum {first.minimum})"
    )
    needed = f"topology {other.topology_key} is required by {other.convention}"
    return replace(first, waits=f"{needed}, but {clash}; remove one of the two")


def _leader_first(
    hints: GangHints, objects: Objects, found: Declaration, without_marks: Sequence[Convention]
) -> Declaration:
    """The declaration of a pod whose group exists only once its leader has a node: the leader is placed on its own, the
    others of its group together. Where the group is admitted as a whole, they are one gang, which asks for the quota of
    all before the leader starts. Raises Unknown."""
    alone = found.leader_first or is_placed_exclusively(hints)
    if not found.key or found.waits or found.stages or not alone:
        return found
    for convention in without_marks if LWS_SIZE in hints.annotations else ():
        if isinstance(convention, QueuedWorkloads) and (unit := convention.replica(hints, objects, found)) is not None:
            return unit
    single = Declaration(found.convention, "", "", 0, announced=found.announced)
    if is_leader(hints):
        return single
    group, size = found.key, found.size
    if LWS_SIZE not in hints.annotations and hints.owner is not None:
        job = objects.owner(hints.owner, hints.namespace)
        group, size = hints.owner.uid, job.counts.size if job is not None else None
    minimum = min(found.minimum, size or found.minimum) - 1
    if minimum < 2:
        return single
    key, name = f"followers/{group}", f"{found.name} without its leader"
    found = replace(found, is_workload=False, roles=(), maximum=0)
    return replace(found, key=key, name=name, minimum=minimum, size=(size or minimum + 1) - 1)


def as_whole(hints: GangHints, found: Declaration | None) -> Declaration | None:
    """The declaration of a pod whose job is disrupted as a whole: that of its gang, else one for the pods of its owner,
    which are placed one by one."""
    if found is not None and found.key:
        return replace(found, disrupted_whole=True)
    owner = hints.owner
    if owner is None:
        return found
    name = f"{hints.namespace}/{owner.name}"
    return Declaration("job", f"job/{owner.uid}", name, 0, disrupted_whole=True, at_once=True)


def owners(hints: GangHints, objects: Objects) -> tuple[OwnerOrGroup, ...]:
    """The controller of the pod, the controller of that, and so on, as far as they are known."""
    found: list[OwnerOrGroup] = []
    with suppress(Unknown):
        found.extend(owner_chain(hints, objects))
    return tuple(found)
