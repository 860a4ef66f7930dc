"""What all conventions together make of a pod. Pure."""

from typing import NamedTuple

from poseidon_py.state.gangs.conventions import CONVENTIONS, OWN
from poseidon_py.state.gangs.keys import JOBSET_ROLE
from poseidon_py.state.gangs.model import Declaration, GangHints, Invalid, Objects, OwnerOrGroup, Unknown


class Verdict(NamedTuple):
    """`said`: the declaration that counts. `broken`: the first that makes no sense. `warning`: one that disagrees.
    `unknown`: what has to be found out first."""

    said: Declaration | None
    broken: str = ""
    warning: str = ""
    unknown: str = ""


def is_plain(marks: GangHints) -> bool:
    """Whether the pod itself says nothing: then only its owner may."""
    return not (marks.labels.keys() - {JOBSET_ROLE} or marks.annotations or marks.group)


def judge(marks: GangHints, objects: Objects) -> Verdict:
    """The first convention in order that has something to say counts; the others may only disagree with it."""
    said: Declaration | None = None
    broken = warning = ""
    for convention in (OWN,) if is_plain(marks) else CONVENTIONS:
        try:
            found = convention.read(marks, objects)
        except Invalid as problem:
            broken = broken or str(problem)
            continue
        except Unknown as what:
            if said is None:
                return Verdict(None, broken, unknown=what.what)
            continue
        if found is None:
            continue
        if said is None:
            said = found
        elif said.key and not (found.waits or said.waits) and found.minimum != said.minimum:
            warning = warning or (
                f"it is declared to be in {said.name} (minimum {said.minimum}, {said.convention}) and in "
                f"{found.name} (minimum {found.minimum}, {found.convention}); the first counts"
            )
    return Verdict(said, broken, warning)


def owners(marks: GangHints, objects: Objects) -> tuple[OwnerOrGroup, ...]:
    """Who controls the pod, and who controls that, as far as they are known."""
    found: list[OwnerOrGroup] = []
    owner = marks.owner
    while owner is not None and len(found) < 2:
        try:
            thing = objects.owner(owner, marks.namespace)
        except Unknown:
            break
        if thing is None:
            break
        found.append(thing)
        owner = thing.owner
    return tuple(found)
