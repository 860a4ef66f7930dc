"""The gang of a pod by all conventions together. Pure."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from poseidon_py.conventions.group_keys import LWS_SIZE, NO_DECLARATION
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
    first: Declaration | None = None
    invalid = warning = ""
    for convention in OF_OWNERS if has_no_hints(hints) else CONVENTIONS:
        try:
            found = convention.read(hints, objects)
        except Invalid as problem:
            invalid = invalid or str(problem)
            continue
        except Unknown as lookup:
            if first is None:
                return Resolution(None, invalid, unknown=lookup.what, delayed=lookup.why)
            continue
        if found is None:
            continue
        if first is None:
            first = found
        elif first.key and not (found.waits or first.waits) and found.minimum != first.minimum:
            warning = warning or (
                f"it is declared to be in {first.name} (minimum {first.minimum}, {first.convention}) and in "
                f"{found.name} (minimum {found.minimum}, {found.convention}); the first applies"
            )
    for convention in without_marks if first is None else ():
        try:
            first = first or convention.read(hints, objects)
        except Invalid as problem:
            invalid = invalid or str(problem)
        except Unknown as lookup:
            return Resolution(None, invalid, unknown=lookup.what, delayed=lookup.why)
    try:
        return Resolution(_leader_first(hints, objects, first), invalid, warning)
    except Unknown as lookup:
        return Resolution(None, invalid, unknown=lookup.what, delayed=lookup.why)


def _leader_first(hints: GangHints, objects: Objects, found: Declaration | None) -> Declaration | None:
    """The declaration of a pod whose group exists only once its leader has a node: the leader is placed on its own, the
    others of its group together. Raises Unknown."""
    if found is None or not found.key or found.waits or not (found.leader_first or is_placed_exclusively(hints)):
        return found
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
