"""The rows of the table of conventions: of each field, label and annotation, what becomes of it.

A row belongs to a kind of object, or is a key of metadata. `effect` is one of five:

- honoured: changing it alone changes the outcome; tests/poseidon_py/conventions has a case of each.
- reported: it has no effect. `text` says what follows from that; whoever sets it is told so on the object.
- refused: it decides where, when or whether pods run, and cannot be kept: the pods, or those of the queue, wait, and
  are told why.
- delegated: somebody else reads it, as `text` says, and no scheduler has to.
- unneeded: nothing reads it, and pods run where, when and whether they would if it were read; `text` says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from poseidon_py.conventions.forms import Form


class Effect(Enum):
    HONOURED = "honoured"
    REPORTED = "reported"
    REFUSED = "refused"
    DELEGATED = "delegated"
    UNNEEDED = "not needed"


class Verdict(NamedTuple):
    """What becomes of a field or key. `text`: see the module; of a honoured one, what it means here, if that needs
    saying. `neutral`: values that ask for nothing, so that nothing is reported or refused. `unless`: a further key of
    the same object, and its value with which a refused key asks for nothing. `form`: of a key of ours, the values that
    it may have; None: any."""

    effect: Effect
    text: str = ""
    neutral: tuple[object, ...] = ()
    unless: tuple[str, str] = ("", "")
    form: Form | None = None


HONOURED = Verdict(Effect.HONOURED)


def honoured(text: str) -> Verdict:
    return Verdict(Effect.HONOURED, text)


def formed(form: Form) -> Verdict:
    """Honoured, if its value has this form."""
    return Verdict(Effect.HONOURED, form=form)


def reported(text: str, *neutral: object) -> Verdict:
    return Verdict(Effect.REPORTED, text, neutral)


def refused(text: str, *neutral: object) -> Verdict:
    return Verdict(Effect.REFUSED, text, neutral)


def delegated(text: str, form: Form | None = None) -> Verdict:
    return Verdict(Effect.DELEGATED, text, form=form)


def unneeded(text: str) -> Verdict:
    return Verdict(Effect.UNNEEDED, text)


Rows = Mapping[str, Verdict]
"""By path, such as `spec.groups[].name`; `[]` stands for each item of a list, `{}` for all of a mapping, and
`{}.key` for each value of one."""


@dataclass(frozen=True)
class KindTable:
    """The fields of a kind."""

    group: str
    kind: str
    versions: tuple[str, ...]
    fields: Rows = field(default_factory=dict)
    selected: bool = False
    """Whether the other fields of the kind concern no scheduler, so that nothing is said of them."""
    unread: str = ""
    """Why objects of the kind are not read at all, and what follows; empty: they are read."""

    @property
    def title(self) -> str:
        return f"{self.kind} ({self.group})" if self.group else self.kind

    @cached_property
    def parts(self) -> frozenset[str]:
        """Paths on the way to a field."""
        found: set[str] = set()
        for path in self.fields:
            while path := path.rpartition(".")[0]:
                found |= {path, path.removesuffix("[]").removesuffix("{}")}
        return frozenset(found)


@dataclass(frozen=True)
class KeyTable:
    """Annotations and labels of a convention, by what they are on."""

    annotations: Rows = field(default_factory=dict)
    labels: Rows = field(default_factory=dict)


@dataclass(frozen=True)
class ConventionTable:
    """All of one project. `words`: each key contains one of them."""

    name: str
    title: str
    kinds: tuple[KindTable, ...] = ()
    pods: KeyTable = KeyTable()
    """On pods and their templates."""
    objects: KeyTable = KeyTable()
    """On owners of pods, pod groups, queues, nodes, namespaces and priority classes, unless they are on pods, too."""
    words: tuple[str, ...] = ()
