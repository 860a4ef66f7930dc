"""Which devices of a node claims get: an exact search. Pure and deterministic.

Claims are served in their order, and of each its requests, so that a solution is a choice of an alternative for each
request, and of devices for it. The search is depth first and complete. Two things keep it small:

- Devices that no claim of the call can tell apart are one *class*: equal in which alternatives they suit, in the values
  of the attributes that constraints name, in the counters that they use. Of a class only the next free one is tried,
  and for administrative access the next one in use as well.
- What has failed is remembered by what it depends on (request, devices left of each class, values of constraints), so
  that no question is answered twice. So a search that finds nothing ends, too.

It ends without an answer after a number of steps that does not depend on time; that is told, never taken for a proof.

The order in which devices are tried decides which solution is found. `packing`: those first that the fewest kinds of
requests suit, of a shared device the one with the least left, of a set of counters the one with the least left, so that
large partitions and flexible devices stay whole. `upstream-order`: as kube-scheduler tries them, by driver, pool, slice
and place in the slice; in that order the solution is kube-scheduler's (structured/internal/incubating).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poseidon_py.devices.capacity import Consumption, consumption, fits
from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Constraint, Request, Selection
from poseidon_py.devices.inventory import CounterKey, DeviceId, ListedDevice, NodeDevices
from poseidon_py.devices.objects import MAX_RESULTS

STEPS = 100_000
"""Devices that a search tries before it gives up."""


class SelectionError(Exception):
    """A selector cannot be evaluated for a device: the node is not usable for the claim. The text names both."""


class SearchLimitError(Exception):
    """The search has ended without an answer."""


Suits = Callable[[Selection, ListedDevice], bool]
"""Whether the selectors of a selection hold for a device. Raises SelectionError."""


@dataclass(slots=True)
class DeviceUse:
    """What is in use, on whatever node."""

    whole: set[DeviceId] = field(default_factory=set)
    """Devices that are allocated, and not shared."""
    shared: dict[DeviceId, dict[str, int]] = field(default_factory=dict)
    """Shared devices that are allocated -> what is taken of each of their capacities, in billionths."""

    def is_used(self, device: DeviceId) -> bool:
        return device in self.whole or device in self.shared


@dataclass(frozen=True, slots=True)
class Grant:
    """One device for a request."""

    asked: Alternative
    device: ListedDevice
    consumed: Consumption | None
    """Of a shared device, what is taken of its capacities, in billionths; None: it is not shared."""


Solution = list[list[Grant]]
"""For each claim, its devices in the order of its requests."""

Rank = Callable[[ListedDevice], int]
"""Devices of lower rank are tried first."""


def allocate(
    claims: Sequence[ClaimRequests],
    node: NodeDevices,
    use: DeviceUse,
    suits: Suits,
    *,
    counters_left: Mapping[CounterKey, int] | None = None,
    rank: Rank | None = None,
    steps: int = STEPS,
) -> Solution | None:
    """Devices of the node for all claims; None: there are none, which is certain.

    `counters_left`: what allocated devices leave of each counter, below zero if they take more; None: as `node` and
    `use` say, if no other node reaches these pools. `rank`: None for kube-scheduler's order. Raises SelectionError,
    SearchLimitError.
    """
    left = dict(counters_left) if counters_left is not None else counters_of(node, use)
    return _Search(claims, node, use, suits, left, rank, steps).solve()


def counters_of(node: NodeDevices, use: DeviceUse) -> dict[CounterKey, int]:
    """What is left of the counters of a node's pools beside its own devices that are in use."""
    left = dict(node.counters)
    for device in node.devices:
        if device.consumes and use.is_used(device.id):
            for key, amount in device.consumes:
                left[key] = left.get(key, 0) - amount
    return left


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request of a claim."""

    claim: int
    request: Request
    of_alternative: tuple["_Option", ...]


@dataclass(frozen=True, slots=True)
class _Option:
    """An alternative, as far as it follows from the node."""

    asked: Alternative
    constraints: tuple[int, ...]
    """Those of all claims that concern it, by index."""
    suitable: Mapping[int, dict[str, int]]
    """Index of a device -> what would be taken of its capacities."""
    everything: tuple[int, ...] | None
    """The devices of a request for all; None: it is not one."""


class _Search:
    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        node: NodeDevices,
        use: DeviceUse,
        suits: Suits,
        left: dict[CounterKey, int],
        rank: Rank | None,
        steps: int,
    ) -> None:
        self._claims = claims
        self._node = node
        self._suits = suits
        self._left = left
        self._steps = steps
        self._constraints: list[Constraint] = [each for claim in claims for each in claim.constraints]
        self._values: list[frozenset[tuple[str, object]] | None] = [None] * len(self._constraints)
        """Of each constraint: the values that all have (match), or that are taken (distinct); None: no device yet."""
        self._devices = node.devices if rank is None else self._in_order(node.devices, use, rank)
        self._taken = [use.is_used(device.id) and not device.shareable for device in self._devices]
        """Whether a device is in use as a whole; also one that is used otherwise than it is listed now."""
        self._used: list[dict[str, int] | None] = [None] * len(self._devices)
        """What is taken of a shared device; None: it is not in use."""
        for at, device in enumerate(self._devices):
            if device.shareable:
                self._taken[at] = device.id in use.whole
                self._used[at] = use.shared.get(device.id)
        self._asks = self._prepare()
        self._with_admin = {ask.claim for ask in self._asks if any(each.asked.admin for each in ask.of_alternative)}
        """Claims with a request for administrative access."""
        self._place = {device: at for at, device in enumerate(self._devices)}
        self._class = self._classes()
        self._free_of = [0] * (max(self._class, default=-1) + 1)
        for at, taken in enumerate(self._taken):
            self._free_of[self._class[at]] += not taken
        self._chosen: list[list[Grant]] = [[] for _ in claims]
        self._failed: set[object] = set()

    # -- what follows from the node -------------------------------------------------------------------------------

    def _in_order(self, devices: Sequence[ListedDevice], use: DeviceUse, rank: Rank) -> list[ListedDevice]:
        def key(device: ListedDevice) -> tuple[object, ...]:
            scarce = min((self._left.get(counter, 0) for counter, _ in device.consumes), default=0)
            used = use.shared.get(device.id)
            unused = 0 if used is None else sum(facts.value - used.get(n, 0) for n, facts in device.capacity.items())
            size = sum(amount for _, amount in device.consumes)
            return bool(device.binding_conditions), rank(device), size, scarce, used is None, unused

        return sorted(devices, key=key)  # stable: else in kube-scheduler's order

    def _prepare(self) -> list[_Ask]:
        asks, before = [], 0
        for at, claim in enumerate(self._claims):
            concerned = range(before, before + len(claim.constraints))
            before = concerned.stop
            for request in claim.requests:
                options = tuple(self._option(request, asked, concerned) for asked in request.alternatives)
                asks.append(_Ask(at, request, options))
        return asks

    def _option(self, request: Request, asked: Alternative, constraints: range) -> _Option:
        suitable: dict[int, dict[str, int]] = {}
        everything = []
        for at, device in enumerate(self._devices):
            if not self._suits(asked.selection, device):
                continue
            taken = consumption(device, asked)
            if taken is None or not (asked.admin or fits(device, self._used[at] or {}, taken)):
                continue
            everything.append(at)
            if asked.selection.tolerates(device.taints):
                suitable[at] = taken
        return _Option(
            asked,
            tuple(each for each in constraints if self._constraints[each].concerns(request, asked)),
            suitable,
            None if asked.number else () if self._node.problems else tuple(everything),
        )

    def _classes(self) -> list[int]:
        """The class of each device."""
        attributes = sorted({constraint.attribute for constraint in self._constraints})
        options = [option for ask in self._asks for option in ask.of_alternative]
        known: dict[object, int] = {}
        found = []
        for at, device in enumerate(self._devices):
            alike: object = (
                tuple(at in option.suitable for option in options),
                tuple(device.attributes.get(name) for name in attributes),
                device.consumes,
                tuple(sorted((name, facts.value) for name, facts in device.capacity.items())),
                at if device.shareable else None,
            )
            found.append(known.setdefault(alike, len(known)))
        return found

    # -- the search -----------------------------------------------------------------------------------------------

    def solve(self) -> Solution | None:
        return self._chosen if self._serve(0) else None

    def _serve(self, at: int) -> bool:
        """Serves the requests from `at` on."""
        if at == len(self._asks):
            return True
        if self._failed and self._state(at) in self._failed:
            return False
        ask = self._asks[at]
        left = MAX_RESULTS - len(self._chosen[ask.claim])
        for option in ask.of_alternative:
            if option.everything is None:
                found = option.asked.number <= left and self._pick(at, option, option.asked.number, -1)
            else:
                found = 0 < len(option.everything) <= left and self._take_all(at, option, option.everything)
            if found:
                return True
        self._failed.add(self._state(at))
        return False

    def _state(self, at: int, after: int = -1) -> object:
        """All that the answer for the requests from `at` on depends on, if the one at `at` gets devices behind the one
        at index `after`."""
        free = [0] * len(self._free_of)
        for index in range(after + 1, len(self._devices)):
            free[self._class[index]] += not self._taken[index]
        shared = tuple(
            (index, tuple(sorted(used.items()))) for index, used in enumerate(self._used) if used is not None
        )
        results = len(self._chosen[self._asks[at].claim])
        others = tuple(self._free_of) if after >= 0 else ()
        return at, results, tuple(free), others, shared, tuple(self._values), frozenset(self._own(at))

    def _own(self, at: int) -> set[tuple[int, bool]]:
        """Devices that the claim of a request has, and cannot have twice, and whether somebody has them as a whole:
        this matters where administrative access takes devices that are in use, and leaves others free."""
        claim = self._asks[at].claim
        if claim not in self._with_admin:
            return set()
        places = (self._place[grant.device] for grant in self._chosen[claim] if not grant.device.shareable)
        return {(place, self._taken[place]) for place in places}

    def _pick(self, at: int, option: _Option, count: int, after: int) -> bool:
        """Chooses `count` further devices for a request, behind the one at index `after`."""
        if count == 0:
            return self._serve(at + 1)
        if self._failed and (self._state(at, after), option.asked.label, count, after) in self._failed:
            return False
        tried = set[tuple[int, bool]]()
        for index in range(after + 1, len(self._devices)):
            alike = self._class[index], self._taken[index]
            if index not in option.suitable or alike in tried:
                continue
            undo = self._take(at, option, index)
            if undo is None:
                continue
            tried.add(alike)
            if self._pick(at, option, count - 1, index):
                return True
            undo()
        self._failed.add((self._state(at, after), option.asked.label, count, after))
        return False

    def _take_all(self, at: int, option: _Option, devices: Sequence[int]) -> bool:
        undone: list[Callable[[], None]] = []
        for index in devices:
            undo = self._take(at, option, index) if index in option.suitable else None
            if undo is None:
                break
            undone.append(undo)
        else:
            if self._serve(at + 1):
                return True
        for undo in reversed(undone):
            undo()
        return False

    def _take(self, at: int, option: _Option, index: int) -> Callable[[], None] | None:
        """Gives a device to a request, if it is free and constraints and counters allow it. Returns what takes it
        back."""
        if self._steps <= 0:
            raise SearchLimitError(f"the search of devices was ended after {STEPS} steps")
        self._steps -= 1
        device, asked = self._devices[index], option.asked
        chosen, taken, used = self._chosen[self._asks[at].claim], option.suitable[index], self._used[index]
        if not device.shareable and any(grant.device is device for grant in chosen):
            return None  # a claim has a device once
        if asked.admin:  # administrative access consumes nothing
            counted: Sequence[tuple[CounterKey, int]] = ()
        else:
            if self._taken[index] or (device.shareable and not fits(device, used or {}, taken)):
                return None
            counted = () if used is not None else device.consumes
            if any(self._left.get(key, 0) < amount for key, amount in counted):
                return None
        values = self._values_with(option, device)
        if values is None:
            return None

        before, self._values = self._values, values
        for key, amount in counted:
            self._left[key] -= amount
        if not asked.admin and device.shareable:
            self._used[index] = {name: (used or {}).get(name, 0) + amount for name, amount in taken.items()}
        elif not asked.admin:
            self._taken[index] = True
            self._free_of[self._class[index]] -= 1
        chosen.append(Grant(asked, device, taken if device.shareable else None))

        def undo() -> None:
            chosen.pop()
            self._values = before
            for key, amount in counted:
                self._left[key] += amount
            if not asked.admin and device.shareable:
                self._used[index] = used
            elif not asked.admin:
                self._taken[index] = False
                self._free_of[self._class[index]] += 1

        return undo

    def _values_with(self, option: _Option, device: ListedDevice) -> list[frozenset[tuple[str, object]] | None] | None:
        """The values of constraints once a device is added; None: one of them forbids it."""
        if not option.constraints:
            return self._values
        found = list(self._values)
        for each in option.constraints:
            constraint, now = self._constraints[each], found[each]
            values = device.attributes.get(constraint.attribute)
            if not values:
                return None
            if now is None:
                found[each] = values
            elif constraint.distinct:
                if now & values:
                    return None
                found[each] = now | values
            else:
                found[each] = now & values
                if not found[each]:
                    return None
        return found
