"""The gang of a pod by all conventions together. Pure."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from poseidon_py.state.gangs.conventions import CONVENTIONS, OF_OWNERS
from poseidon_py.state.gangs.keys import JOBSET_ROLE
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
    return not (hints.labels.keys() - {JOBSET_ROLE} or hints.annotations or hints.group)


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
    return Resolution(first, invalid, warning)


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
