"""The devices that slices list, pool by pool, and those that each node reaches.

A pool has the slices of its newest generation. It is *incomplete* while some of them are missing, and *invalid* if they
contradict each other; no device of such a pool is allocated, and requests for all devices fail where it is reached, as
in kube-scheduler (structured/internal/incubating/pools_incubating.go). A slice with counters belongs to all nodes.

Values are normalised once: quantities are billionths (kube/quantity.py), names of attributes and capacities carry the
driver's domain, and an attribute is the set of its values, so that a single value and a list of one are the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from poseidon_py.devices.objects import (
    Attribute,
    CounterUse,
    DeviceBody,
    DeviceTaint,
    DeviceTaintRule,
    Quantity,
    RequestPolicy,
    ResourceSlice,
    SliceDevice,
    SliceSpec,
    body_of,
)
from poseidon_py.devices.slice_checks import check_slice
from poseidon_py.kube.objects import RequiredTerms, SelectorTerm
from poseidon_py.kube.quantity import nanos
from poseidon_py.kube.selector_matching import meets_term


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class PoolId(NamedTuple):
    driver: str
    name: str


CounterKey = tuple[PoolId, str, str]
"""Pool, set of counters, counter."""


class Shape(NamedTuple):
    """All that a selector sees of a device. Hashable: devices of one shape have the same results."""

    driver: str
    attributes: tuple[tuple[str, str, object], ...]
    """Qualified name, type (int, bool, string, version, and their lists as ints, bools, strings, versions), value."""
    capacity: tuple[tuple[str, str], ...]
    """Qualified name, quantity as it was written."""
    shareable: bool


@dataclass(frozen=True, slots=True, eq=False)
class CapacityFacts:
    value: int
    """Billionths."""
    policy: RequestPolicy | None


@dataclass(frozen=True, slots=True, eq=False)
class NodeTarget:
    """The nodes that reach a device: one of them by name, those that match, all, or none."""

    name: str = ""
    terms: tuple[SelectorTerm, ...] | None = None
    everywhere: bool = False

    def takes(self, node: str, labels: Mapping[str, str]) -> bool:
        if self.name:
            return self.name == node
        if self.everywhere:
            return True
        return any(meets_term(term, node, labels) for term in self.terms or ())


@dataclass(frozen=True, slots=True, eq=False)
class ListedDevice:
    """A device of a slice of its pool's newest generation. Compared by identity."""

    id: DeviceId
    shape: Shape
    attributes: Mapping[str, frozenset[tuple[str, object]]]
    """Qualified name -> values, each with its type."""
    capacity: Mapping[str, CapacityFacts]
    """By qualified name."""
    consumes: tuple[tuple[CounterKey, int], ...]
    taints: tuple[DeviceTaint, ...]
    shareable: bool
    target: NodeTarget
    binds_to_node: bool
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    written: Mapping[str, str]
    """Qualified name of a capacity -> its name in the slice."""
    skipped: tuple[str, ...] = ()
    """Operations of nodes that its driver does without."""

    @property
    def pool(self) -> PoolId:
        return PoolId(self.id.driver, self.id.pool)


@dataclass(slots=True)
class ListedSlice:
    name: str
    target: NodeTarget | None
    """None: each of its devices has its own."""
    devices: list[ListedDevice]
    has_counters: bool

    def reaches(self, node: str, labels: Mapping[str, str]) -> bool:
        if self.has_counters:
            return True
        if self.target is not None:
            return self.target.takes(node, labels)
        return any(device.target.takes(node, labels) for device in self.devices)


@dataclass(slots=True)
class DevicePool:
    """The newest generation of a pool."""

    id: PoolId
    complete: bool
    slices: list[ListedSlice] = field(default_factory=list)
    """By name."""
    counters: dict[CounterKey, int] = field(default_factory=dict)
    problem: str = ""
    """Why it is invalid; empty: it is not."""

    @property
    def devices(self) -> Iterable[ListedDevice]:
        return (device for each in self.slices for device in each.devices)


@dataclass(slots=True)
class NodeDevices:
    """What a node reaches."""

    devices: list[ListedDevice] = field(default_factory=list)
    """Of sound pools, by driver, pool and slice, and then as they are listed; pools with binding conditions last."""
    counters: dict[CounterKey, int] = field(default_factory=dict)
    """What the counters of these pools offer."""
    problems: list[str] = field(default_factory=list)
    """Why requests for all devices fail here: pools that are incomplete or invalid."""


class Inventory:
    """All slices and taint rules. `put_slice`, `drop_slice`, `set_rules`, then `on`."""

    def __init__(self) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._of_pool: dict[PoolId, set[str]] = {}
        self._pools: dict[PoolId, DevicePool] = {}
        """Those that were assembled since their slices changed."""
        self._local: dict[str, set[PoolId]] = {}
        """Node -> pools with a slice that names it."""
        self._nodes: dict[PoolId, set[str]] = {}
        """The other way round."""
        self._wide: set[PoolId] = set()
        """Pools with a slice that does not name its node."""
        self._rules: tuple[DeviceTaintRule, ...] = ()
        self._meets: Conditions = _without_conditions

    def __len__(self) -> int:
        return len(self._slices)

    def put_slice(self, item: ResourceSlice) -> PoolId:
        """Returns its pool, which has changed. Raises InvalidField, and keeps what it had."""
        check_slice(item.spec)
        self.drop_slice(item.metadata.name)
        pool = PoolId(item.spec.driver, item.spec.pool.name)
        self._slices[item.metadata.name] = item
        self._of_pool.setdefault(pool, set()).add(item.metadata.name)
        self._index(pool)
        return pool

    def drop_slice(self, name: str) -> PoolId | None:
        """Returns its pool; None: it is not known."""
        pool = self.pool_of(name)
        if pool is None:
            return None
        del self._slices[name]
        self._of_pool[pool].discard(name)
        self._index(pool)
        if not self._of_pool[pool]:
            del self._of_pool[pool]
        return pool

    def set_rules(self, rules: Iterable[DeviceTaintRule], meets: "Conditions | None" = None) -> None:
        """Every device may have other taints from now on. `meets`: whether a device meets what rules say of classes
        and attributes, if any of them does."""
        self._meets = meets or _without_conditions
        self._rules = tuple(sorted(rules, key=lambda rule: rule.metadata.name))
        self._pools.clear()

    def _index(self, pool: PoolId) -> None:
        self._pools.pop(pool, None)
        for node in self._nodes.pop(pool, ()):
            self._local[node].discard(pool)
        self._wide.discard(pool)
        for name in self._of_pool.get(pool, ()):
            spec = self._slices[name].spec
            if spec.node_name and not spec.counters:
                self._local.setdefault(spec.node_name, set()).add(pool)
                self._nodes.setdefault(pool, set()).add(spec.node_name)
            else:
                self._wide.add(pool)

    def pool_of(self, name: str) -> PoolId | None:
        """The pool of a slice; None: it is not known."""
        item = self._slices.get(name)
        return PoolId(item.spec.driver, item.spec.pool.name) if item is not None else None

    def pool(self, pool: PoolId) -> DevicePool | None:
        """None: it has no slices."""
        found = self._pools.get(pool)
        if found is None and pool in self._of_pool:
            found = assemble(pool, [self._slices[name] for name in self._of_pool[pool]], self._rules, self._meets)
            self._pools[pool] = found
        return found

    def pool_of_device(self, device: DeviceId) -> DevicePool | None:
        return self.pool(PoolId(device.driver, device.pool))

    def pools(self) -> list[DevicePool]:
        """By driver and name."""
        return [found for pool in sorted(self._of_pool) if (found := self.pool(pool)) is not None]

    def nodes_of(self, pool: PoolId) -> set[str] | None:
        """The names of the nodes that reach a pool; None: not known by name."""
        if pool in self._wide:
            return None
        return set(self._nodes.get(pool, ()))

    def on(self, node: str, labels: Mapping[str, str]) -> NodeDevices:
        """What a node with these labels reaches."""
        found, last = NodeDevices(), list[ListedDevice]()
        for pool_id in sorted(self._local.get(node, set()) | self._wide):
            pool = self.pool(pool_id)
            if pool is None:
                continue
            slices = [each for each in pool.slices if each.reaches(node, labels)]
            if not slices:
                continue
            devices = [each for listed in slices for each in listed.devices]
            problem = pool.problem or ("" if len({each.id for each in devices}) == len(devices) else "names repeat")
            if not pool.complete:
                found.problems.append(f"resource pool {pool_id.driver}/{pool_id.name} is currently being updated")
            elif problem:
                found.problems.append(f"resource pool {pool_id.driver}/{pool_id.name} is invalid: {problem}")
            else:
                here = [each for each in devices if each.target.takes(node, labels)]
                (last if any(each.binding_conditions for each in devices) else found.devices).extend(here)
                found.counters |= pool.counters
        found.devices += last
        return found


Conditions = Callable[[DeviceTaintRule, Shape], bool]


def _without_conditions(rule: DeviceTaintRule, shape: Shape) -> bool:
    return True


def assemble(
    pool: PoolId,
    items: Iterable[ResourceSlice],
    rules: Iterable[DeviceTaintRule] = (),
    meets: Conditions = _without_conditions,
) -> DevicePool:
    """The newest generation among the slices of a pool. `rules`: taint those of its devices that `meets` says."""
    listed = list(items)
    newest = max(item.spec.pool.generation for item in listed)
    current = sorted(
        (item for item in listed if item.spec.pool.generation == newest), key=lambda item: item.metadata.name
    )
    found = DevicePool(pool, complete=len(current) == current[0].spec.pool.slices)
    sets = set[str]()
    for item in current:
        for offered in item.spec.counters or ():
            if offered.name in sets:
                found.problem = found.problem or f"set of counters {offered.name} is given twice"
            sets.add(offered.name)
            for name, counter in offered.counters.items():
                found.counters[pool, offered.name, name] = _amount(counter.value)
    for item in current:
        target = None if item.spec.per_device else _target(item.spec)
        skipped = tuple(item.spec.skipped or ())
        devices = [_listed(pool, each, target, rules, meets, skipped) for each in item.spec.devices or ()]
        found.slices.append(ListedSlice(item.metadata.name, target, devices, bool(item.spec.counters)))
    uses = ((each, use) for item in current for each in item.spec.devices or () for use in body_of(each).consumes or ())
    for device, use in uses:
        missing = [name for name in use.counters if (pool, use.counter_set, name) not in found.counters]
        if missing or use.counter_set not in sets:
            name = "/".join((use.counter_set, *missing[:1]))
            found.problem = found.problem or f"device {device.name} uses counter {name}, which is not there"
    return found


def qualified(name: str, driver: str) -> str:
    """A name with its domain, which is the driver's where it has none."""
    return name if "/" in name else f"{driver}/{name}"


def _amount(value: Quantity) -> int:
    return nanos(str(value))


def _target(given: SliceSpec | DeviceBody) -> NodeTarget:
    selector: RequiredTerms | None = given.node_selector
    terms = tuple(selector.terms or ()) if selector is not None else None
    return NodeTarget(given.node_name or "", terms, bool(given.all_nodes))


def _listed(
    pool: PoolId,
    device: SliceDevice,
    target: NodeTarget | None,
    rules: Iterable[DeviceTaintRule],
    meets: Conditions,
    skipped: tuple[str, ...],
) -> ListedDevice:
    driver, body = pool.driver, body_of(device)
    ident = DeviceId(driver, pool.name, device.name)
    typed = {qualified(name, driver): _typed(value) for name, value in (body.attributes or {}).items()}
    capacity = {qualified(name, driver): facts for name, facts in (body.capacity or {}).items()}
    shape = Shape(
        driver,
        tuple((name, kind, value) for name, (kind, value) in sorted(typed.items())),
        tuple((name, str(facts.value)) for name, facts in sorted(capacity.items())),
        bool(body.shareable),
    )
    return ListedDevice(
        ident,
        shape,
        {name: _values(kind, value) for name, (kind, value) in typed.items()},
        {name: CapacityFacts(_amount(facts.value), facts.policy) for name, facts in capacity.items()},
        tuple(_consumed(pool, body.consumes or ())),
        (*(body.taints or ()), *(each.spec.taint for each in rules if _is_ruled(ident, each) and meets(each, shape))),
        bool(body.shareable),
        target if target is not None else _target(body),
        bool(body.binds_to_node),
        tuple(body.binding_conditions or ()),
        tuple(body.failure_conditions or ()),
        {qualified(name, driver): name for name in body.capacity or ()},
        skipped,
    )


def _typed(given: Attribute) -> tuple[str, object]:
    """Type and value of an attribute; lists are tuples. An attribute of an unknown type has none."""
    for kind, value in (
        ("int", given.whole),
        ("bool", given.truth),
        ("string", given.text),
        ("version", given.version),
        ("ints", given.wholes),
        ("bools", given.truths),
        ("strings", given.texts),
        ("versions", given.versions),
    ):
        if value is not None:
            return kind, tuple(value) if isinstance(value, list) else value
    return "", None


def _values(kind: str, value: object) -> frozenset[tuple[str, object]]:
    if not kind:
        return frozenset()
    each = value if isinstance(value, tuple) else (value,)
    return frozenset((kind.removesuffix("s"), one) for one in each)


def _consumed(pool: PoolId, uses: Iterable[CounterUse]) -> Iterable[tuple[CounterKey, int]]:
    for use in uses:
        for name, counter in use.counters.items():
            yield (pool, use.counter_set, name), _amount(counter.value)


def _is_ruled(device: DeviceId, rule: DeviceTaintRule) -> bool:
    """Whether a rule taints a device, as the API documents it: without a selector, it taints none."""
    selector = rule.spec.selector
    if selector is None:
        return False
    given_names = (selector.driver, selector.pool, selector.device)
    return all(given in (None, "", found) for given, found in zip(given_names, device, strict=True))
