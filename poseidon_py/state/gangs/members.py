"""The members of a gang, and the one definition of how many there are.

A member is waiting, being bound, or bound, by whatever scheduler; or it has ended. One that has succeeded has done its
part: it counts for the minimum as if it ran, until its pod is deleted. One that has failed, or is being deleted, does
not count.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from poseidon_py.state.gangs.model import Declaration, GangHints, OwnerOrGroup
from poseidon_py.state.records import PodRecord


@dataclass(slots=True)
class Member:
    """A pod that has not ended, and what it declares about its gang."""

    known: PodRecord
    hints: GangHints
    priority: int = 0
    declaration: Declaration | None = None
    owners: tuple[OwnerOrGroup, ...] = ()
    """Its controller, and that object's controller."""
    warned: str = ""
    """The last warning about its declaration."""
    waits_for: tuple[str, ...] = ()
    """The lookups, or UIDs of objects with an invalid declaration, that it waits for."""

    @property
    def assigned_to_us(self) -> bool:
        """Whether it is this scheduler's, not a pod that another one has bound."""
        return self.known.observed.assigned_to_us


@dataclass(slots=True)
class Ended:
    """The members of a gang that have ended and whose pods exist: UID -> number of the role."""

    succeeded: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    assigned_to_us: set[str] = field(default_factory=set)
    """Those that were this scheduler's."""
    declaration: Declaration | None = None
    """That of one of them."""

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)

    def add(self, uid: str, role: int, declaration: Declaration, *, succeeded: bool, assigned_to_us: bool) -> None:
        self.declaration = declaration
        (self.succeeded if succeeded else self.failed)[uid] = role
        if assigned_to_us:
            self.assigned_to_us.add(uid)

    def drop(self, uid: str) -> None:
        """Its pod was deleted."""
        self.succeeded.pop(uid, None)
        self.failed.pop(uid, None)
        self.assigned_to_us.discard(uid)


class Tally(NamedTuple):
    """How many members a gang has. Those that are being deleted count nowhere."""

    waiting: int = 0
    """Of this scheduler, without a node: they can be placed."""
    nominated: int = 0
    """Those of `waiting` for which a node is being cleared."""
    assumed: int = 0
    """Being bound."""
    bound: int = 0
    """On nodes, by whatever scheduler."""
    running: int = 0
    """Those of `bound` whose containers run."""
    succeeded: int = 0
    failed: int = 0

    @property
    def placed(self) -> int:
        return self.assumed + self.bound

    @property
    def present(self) -> int:
        """Placed, or can be placed."""
        return self.waiting + self.placed


def tally(members: Iterable[Member], ended: Ended) -> Tally:
    """Count the members of a gang."""
    waiting = nominated = assumed = bound = running = 0
    for member in members:
        pod = member.known
        if pod.observed.deleting:
            continue
        if pod.node:
            bound += 1
            running += pod.observed.running
        elif pod.assumed:
            assumed += 1
        elif pod.schedulable:
            waiting += 1
            nominated += bool(pod.nominated)
    return Tally(waiting, nominated, assumed, bound, running, len(ended.succeeded), len(ended.failed))


@dataclass(slots=True)
class Needs:
    """What a gang needs at the same time: pods in all, and of each role by its number.

    `counted`: whether members that have succeeded count. Otherwise the minimum is the number of pods that an owner runs
    at the same time, and others follow those that have succeeded. `left`: pods of the owner that have yet to succeed,
    which is the most that can be needed; None: unknown.
    """

    minimum: int = 0
    roles: tuple[int, ...] = ()
    counted: bool = True
    left: int | None = None

    def still(self, succeeded: Collection[int]) -> tuple[int, list[int]]:
        """What is needed beside members that have succeeded, given by the numbers of their roles."""
        minimum, roles = self.minimum, list(self.roles)
        if self.counted and succeeded:
            minimum = max(minimum - len(succeeded), 0)
            for role in succeeded:
                if role < len(roles) and roles[role]:
                    roles[role] -= 1
        if self.left is not None and self.left < minimum:
            minimum = max(self.left, 1)
            roles = [min(roles[0], minimum)] if len(roles) == 1 else [0] * len(roles)
        return minimum, roles


def shortage(needed: tuple[int, list[int]], there: Mapping[str, int]) -> tuple[int, dict[int, int]]:
    """How many more members are needed than `there` are (UID -> number of the role): in all, and by role."""
    minimum, roles = needed
    counts = [0] * len(roles)
    for role in there.values():
        if role < len(counts):
            counts[role] += 1
    lacking = {role: need - counts[role] for role, need in enumerate(roles) if need > counts[role]}
    return max(minimum - len(there), sum(lacking.values()), 0), lacking


Requests = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Admission:
    """What a workload was admitted with. `places`: what its bound pods request, the largest first; `node`: the id of
    the node of one; `whole`: whether its minimum was bound."""

    queue: int
    node: str
    places: tuple[Requests, ...]
    whole: bool

    def amounts(self, pods: int) -> dict[str, int]:
        """What so many pods of it request; those that are not known as much as the largest one."""
        found: dict[str, int] = {}
        missing = max(pods - len(self.places), 0)
        for place in (*self.places[:pods], *self.places[:1] * missing):
            for resource, amount in place.items():
                found[resource] = found.get(resource, 0) + amount
        return found
