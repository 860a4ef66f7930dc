"""What pods that ask for devices count as in the engine, which knows amounts of resources alone.

Each set of devices that some request selects is a column. A node offers in it as many as it has free devices of the
set, and a request counts in every column whose set contains its own, since whatever device it gets is one of that set,
too. Where sets are nested or disjoint, and devices are whole, amounts that fit are devices that can be given (Hall's
theorem: no set is asked for more than it has). Other kinds have a column of their own in addition, whose amount is the
number of further copies that fit on the node, found by the allocator.

Amounts of a node are what is free, and what the pods that the engine has there count as: so they stay the same while
pods come and go, and a pod that leaves makes room for another.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from poseidon_py.devices.column_names import COPIES, SET
from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Request, Selection
from poseidon_py.devices.selections import Memberships
from poseidon_py.util.ids import hash64


class Kind(NamedTuple):
    """What the claims of a pod that have no devices yet ask for: equal pods are one kind."""

    claims: tuple[ClaimRequests, ...] = ()
    extended: tuple[tuple[str, Request], ...] = ()
    """What its extended resources ask for on a node where devices serve them."""

    @property
    def requests(self) -> Iterable[Request]:
        """Those of its claims."""
        return (request for claim in self.claims for request in claim.requests)

    @property
    def selections(self) -> set[Selection]:
        requests = (*self.requests, *(request for _, request in self.extended))
        return {each.selection for request in requests for each in request.alternatives}

    def claims_on(self, is_plugged: Callable[[str], bool]) -> tuple[ClaimRequests, ...]:
        """All claims of a pod on a node. `is_plugged`: whether a device plugin serves an extended resource there."""
        served = tuple(request for resource, request in self.extended if not is_plugged(resource))
        return (*self.claims, ClaimRequests(served)) if served else self.claims

    @property
    def column(self) -> str:
        return f"{COPIES}{hash64(repr(self)):016x}"


NO_KIND = Kind()
Amounts = dict[str, int]


def column_of(selection: Selection, class_name: str, plain: bool) -> str:
    """The column of a set. `plain`: the set is that of the class itself."""
    return f"{SET}{class_name}" if plain else f"{SET}{class_name}:{hash64(repr(selection)):016x}"


def amounts_in(requests: Iterable[Request], greater: Selection, known: Memberships) -> int:
    """How many devices of a set the requests take at least."""
    return sum(min(_taken(each, greater, known) for each in request.alternatives) for request in requests)


def _taken(asked: Alternative, greater: Selection, known: Memberships) -> int:
    if asked.admin or not known.contains(greater, asked.selection):
        return 0
    return asked.number or 1


def is_simple(kind: Kind, known: Memberships) -> bool:
    """Whether the columns of sets say exactly what fits: whole devices of nested or disjoint sets, without conditions
    on which are together."""
    if any(claim.constraints for claim in kind.claims):
        return False
    for request in (*kind.requests, *(request for _, request in kind.extended)):
        (asked, *others) = request.alternatives
        if others or asked.admin or not asked.number or asked.capacity:
            return False
        if known.has_special(asked.selection):
            return False
        for other in known.number:
            nested = known.contains(other, asked.selection) or known.contains(asked.selection, other)
            if not nested and known.meet(other, asked.selection):
                return False
    return True


def count(pairs: Iterable[tuple[str, int]]) -> Amounts:
    found: Counter[str] = Counter()
    for column, amount in pairs:
        found[column] += amount
    return dict(found)
