"""How many pods of a kind fit on a node, found by searching: once for all nodes whose devices are alike.

What fits depends, of whole devices without counters, on how many there are of each sort: which requests they suit,
which values they have of the attributes that constraints name, and whether they are in use. Most nodes of a cluster
have the same devices, and few states of use, so nearly all answers are known.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from poseidon_py.devices.allocator import DeviceUse, SearchLimitError, SelectionError, Solution, Suits
from poseidon_py.devices.device_requests import Alternative, ClaimRequests
from poseidon_py.devices.inventory import NodeDevices

MOST_COPIES = 64
"""Copies that are counted at most."""
_ANSWERS = 10_000
"""Answers that are kept."""

Claims = tuple[ClaimRequests, ...]
Search = Callable[[Sequence[ClaimRequests]], Solution | None]
"""Devices of the node for all of the claims; None: there are none. Raises SelectionError, SearchLimitError."""


@dataclass(slots=True)
class CopyCounter:
    """`copies` on one node after the other."""

    _answers: dict[object, int] = field(default_factory=dict)

    def copies(self, claims: Claims, node: NodeDevices, use: DeviceUse, suits: Suits, search: Search) -> int:
        """How many times a node has devices for `claims` beside what is in use, MOST_COPIES at most. `search`: on this
        node."""
        asked = [each for claim in claims for request in claim.requests for each in request.alternatives]
        try:
            sorts = _sorts(claims, asked, node, use, suits)
        except SelectionError:
            return 0
        if sorts is None:
            bound = MOST_COPIES if any(each.shareable for each in node.devices) else len(node.devices)
            return _count(claims, min(MOST_COPIES, bound), search)
        key = claims, bool(node.problems), frozenset(sorts.items())
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            free = sum(number for (suited, _, used), number in sorts.items() if not used and any(suited))
            found = self._answers[key] = _count(claims, _bound(claims, free, len(node.devices)), search)
        return found


_Sort = tuple[tuple[bool, ...], tuple[object, ...], bool]
"""For each alternative whether it suits, and whether its taints are tolerated as well; values; whether it is in use."""


def _sorts(
    claims: Claims, asked: Sequence[Alternative], node: NodeDevices, use: DeviceUse, suits: Suits
) -> Counter[_Sort] | None:
    """Devices of each sort; None: the answer depends on further facts of the devices. Raises SelectionError."""
    selections = list(dict.fromkeys(each.selection for each in asked))
    if any(each.capacity for each in asked):
        return None
    attributes = sorted({constraint.attribute for claim in claims for constraint in claim.constraints})
    found: Counter[_Sort] = Counter()
    for device in node.devices:
        if device.shareable or device.consumes or any(facts.policy is not None for facts in device.capacity.values()):
            return None
        suited = [suits(each, device) for each in selections]
        tolerated = [each.tolerates(device.taints) for each in selections] if device.taints else suited
        values = tuple(device.attributes.get(name) for name in attributes)
        found[(*suited, *tolerated), values, use.is_used(device.id)] += 1
    return found


def _bound(claims: Claims, free: int, devices: int) -> int:
    """Copies that fit at most, by the number of `free` devices that suit any request, of all `devices`."""
    needed = 0
    for claim in claims:
        for request in claim.requests:
            needed += min(0 if each.admin else each.number or 1 for each in request.alternatives)
    return min(MOST_COPIES, free // needed if needed else devices)


def _count(claims: Claims, bound: int, search: Search) -> int:
    def fit(copies: int) -> bool:
        try:
            return search(claims * copies) is not None
        except (SelectionError, SearchLimitError):
            return False

    # where some number of copies fits, every smaller number does
    some = 0
    while some < bound and fit(min(2 * some, bound) or 1):
        some = min(2 * some, bound) or 1
    return some + bisect_left(range(some + 1, min(2 * some, bound + 1)), True, key=lambda copies: not fit(copies))
