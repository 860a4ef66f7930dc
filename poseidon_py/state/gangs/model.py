"""What a convention says of a pod, and what it may ask for to say it."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Resource(NamedTuple):
    """A kind of object that conventions read. `versions`: those that are understood, the preferred one first; a
    server that serves none of them is asked for its own preferred one."""

    group: str
    plural: str
    versions: tuple[str, ...]

    @property
    def label(self) -> str:
        """For people: plural.group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Owner(NamedTuple):
    """The controller of a pod or of another owner."""

    kind: str
    name: str
    uid: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class GangHints:
    """All that is said on a pod about gangs. `labels`, `annotations`: only the keys of some convention."""

    namespace: str
    name: str
    uid: str
    created_us: int
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    group: str = ""
    """spec.schedulingGroup.podGroupName."""
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class OwnerOrGroup:
    """An object that conventions read, reduced to what they need."""

    uid: str
    namespace: str
    name: str
    created_us: int
    annotations: dict[str, str]
    owner: Owner | None
    spec: dict[str, object]
    """Only what readers look at; numbers are not checked yet."""
    size: int | None = None
    """Pods that an owner runs at the same time; None: it is not an owner, or does not say."""
    left: int | None = None
    """Pods that an owner has yet to see succeed; None: its pods do not end."""
    roles: tuple[tuple[str, int], ...] = ()
    """Parts of an owner with the pods of each."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One pod's word on the gang that it is in."""

    convention: str
    key: str
    """What the gang is known by: equal keys, one gang. Empty: the pod is declared to be in none."""
    name: str
    """For people: namespace/name."""
    minimum: int
    """0: its members are placed like any other pods."""
    maximum: int = 0
    """So many members are placed at most; 0: no such limit."""
    created_us: int = 0
    """Of the group or owner; 0: of its earliest member."""
    roles: tuple[tuple[str, int], ...] = ()
    role: str = ""
    topology_key: str = ""
    topology_required: bool = False
    timeout: float | None = None
    """Seconds for which the gang may stay bound by half; None: as configured."""
    size: int | None = None
    """Members that there can be at most, if that is known."""
    disrupted_whole: bool = False
    """Whether members are of no use when one is lost to a disruption."""
    announced: tuple[tuple[str, int], ...] = ()
    """Minimums of other gangs, by key, that only this pod tells of."""
    waits: str = ""
    """Why no member can be placed yet; empty: it can. Such a declaration may lack everything else."""
    object_ref: tuple[Resource, str, str] | None = None
    """Resource, namespace, name of the object that declares the group."""


class Invalid(ValueError):
    """A declaration makes no sense; the text names the mark and says what to do."""


class Objects(Protocol):
    """What readers may look up. Asking is what makes a resource be watched."""

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        """The object; None: there is none. Raises Unknown while that cannot be said."""

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        """An owner; None: nobody watches owners of that kind, or it is gone. Raises Unknown."""

    def has_owner(self, uid: str) -> bool:
        """Whether an owner of this UID is there."""


class Unknown(Exception):
    """It is not known yet whether an object exists; whoever asked is told when it is."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Convention(Protocol):
    """One way to declare gangs. Pure: the same marks and objects, the same declaration."""

    name: str
    """For messages and docs."""

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        """None: the pod says nothing in this convention. Raises Invalid, Unknown."""


MAX_COUNT = 2**31 - 1
"""Kubernetes counts no pods beyond it; the contract holds sums of so many."""


def whole(text: str, hint: str, least: int = 1) -> int:
    """The number that a mark holds. Raises Invalid."""
    digits = text.strip()
    number = digits.isascii() and digits.isdigit()
    if number and (len(digits) > 10 or int(digits) > MAX_COUNT):  # Python does not even read thousands of digits
        raise Invalid(f"{hint}: {text[:20]!r} is more than {MAX_COUNT}")
    if not number or int(digits) < least:
        raise Invalid(f"{hint}: {text!r} is not a whole number of {least} or more")
    return int(digits)


def number_of(value: object, path: str, least: int = 0) -> int:
    """The number in a field of an object. Raises Invalid."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Invalid(f"{path}: {value!r} is not a whole number of {least} or more")
    if value > MAX_COUNT:
        raise Invalid(f"{path}: is more than {MAX_COUNT}")
    return value
