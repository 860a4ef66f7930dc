"""All that is known of devices: what there is, what is in use, and what of it fits a pod on a node. No I/O, no pods."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from poseidon_py.devices.allocator import SelectionError, Solution, allocate
from poseidon_py.devices.column_names import SERVED
from poseidon_py.devices.columns import (
    Amounts,
    Kind,
    amounts_in,
    column_of,
    count,
    is_simple,
)
from poseidon_py.devices.copies import CopyCounter
from poseidon_py.devices.device_requests import ClaimRequests, Selection, requests_of, selectors_of
from poseidon_py.devices.holdings import Held, Holdings
from poseidon_py.devices.inventory import CounterKey, Inventory, ListedDevice, NodeDevices, PoolId, Shape
from poseidon_py.devices.objects import (
    IMPLICIT_RESOURCE,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from poseidon_py.devices.selections import Memberships, Selectors
from poseidon_py.kube.objects import InvalidField, micros

UNLIMITED = 2**40
"""Amount of a column that a node does not limit."""


@dataclass(slots=True)
class _View:
    """What a node reaches, with the labels that it had then."""

    labels: Mapping[str, str]
    devices: NodeDevices


@dataclass(slots=True)
class DeviceBook:
    """See the module. Mutators return what they change; the caller announces it."""

    inventory: Inventory = field(default_factory=Inventory)
    classes: dict[str, DeviceClass] = field(default_factory=dict)
    selectors: Selectors = field(default_factory=Selectors)
    holdings: Holdings = field(default_factory=Holdings)
    _rules: dict[str, DeviceTaintRule] = field(default_factory=dict)
    _views: dict[str, _View] = field(default_factory=dict)
    _counters: dict[PoolId, dict[CounterKey, int]] = field(default_factory=dict)
    """What is left of the counters of a pool, as far as it was asked for."""
    _stale: set[PoolId] = field(default_factory=set)
    """Pools that have changed since `known` was asked for."""
    _known: Memberships | None = None
    on_sets: Callable[[], None] = lambda: None
    """Called when sets of devices are related in another way than before, so that kinds count as something else."""
    _resources: set[str] = field(default_factory=set)
    """Extended resources that pods request and classes serve."""
    _names: dict[Selection, str] = field(default_factory=dict)
    """Column of each set."""
    _copies: dict[str, dict[Kind, int]] = field(default_factory=dict)
    """Node -> kind -> further copies that fit, until something changes there."""
    _copy_counter: CopyCounter = field(default_factory=CopyCounter)
    refused: set[Kind] = field(default_factory=set)
    """Kinds that did not get devices where their columns said they would: they are counted one by one."""

    # -- what there is --------------------------------------------------------------------------------------------

    def put_slice(self, item: ResourceSlice) -> set[str] | None:
        """Returns the names of the nodes that are concerned; None: any. Raises InvalidField."""
        pool = PoolId(item.spec.driver, item.spec.pool.name)
        former = self.inventory.pool_of(item.metadata.name)
        concerned = set() if former in (None, pool) else self.drop_slice(item.metadata.name)
        before = self.inventory.nodes_of(pool)
        self.inventory.put_slice(item)
        return _union(concerned, self._pool_changed(pool, before))

    def drop_slice(self, name: str) -> set[str] | None:
        """Likewise."""
        pool = self.inventory.pool_of(name)
        if pool is None:
            return set()
        before = self.inventory.nodes_of(pool)
        self.inventory.drop_slice(name)
        return self._pool_changed(pool, before)

    def _pool_changed(self, pool: PoolId, before: set[str] | None) -> set[str] | None:
        self._stale.add(pool)
        self._counters.pop(pool, None)
        concerned = _union(before, self.inventory.nodes_of(pool))
        self._forget(concerned)
        return concerned

    def put_rule(self, item: DeviceTaintRule) -> None:
        """Raises InvalidField for an effect that is not known, and for selectors that cannot be evaluated."""
        if item.spec.taint.effect not in ("None", "NoSchedule", "NoExecute"):
            raise InvalidField(
                "spec.taint.effect", f"{item.spec.taint.effect!r} is not known; devices keep their taints"
            )
        selector = item.spec.selector
        for expression in selectors_of((selector.selectors if selector else None) or (), "spec.deviceSelector"):
            try:
                self.selectors.compile(expression)
            except ValueError as error:
                raise InvalidField("spec.deviceSelector.selectors", str(error)) from error
        self._rules[item.metadata.name] = item
        self._rules_changed()

    def drop_rule(self, name: str) -> None:
        self._rules.pop(name, None)
        self._rules_changed()

    def _rules_changed(self) -> None:
        self.inventory.set_rules(self._rules.values(), self._is_concerned)
        self._stale |= {pool.id for pool in self.inventory.pools()}
        self._forget(None)

    def _is_concerned(self, rule: DeviceTaintRule, shape: Shape) -> bool:
        """Whether a device is of the class, and has the attributes, that a rule names. An expression that has an error
        does not hold."""
        selector = rule.spec.selector
        if selector is None or not (selector.class_name or selector.selectors):
            return True
        expressions = selectors_of(selector.selectors or (), "spec.deviceSelector")
        if selector.class_name:
            named = self.classes.get(selector.class_name)
            if named is None:
                return False
            expressions += selectors_of(named.spec.selectors or (), "spec")
        try:
            return self.selectors.suits(Selection(expressions), shape)
        except SelectionError:
            return False

    def put_class(self, item: DeviceClass) -> None:
        """Raises InvalidField."""
        selectors_of(item.spec.selectors or (), "spec")
        self.classes[item.metadata.name] = item
        self._class_changed(item.metadata.name)

    def drop_class(self, name: str) -> None:
        self.classes.pop(name, None)
        self._class_changed(name)

    def _class_changed(self, name: str) -> None:
        self._names.clear()
        if any(rule.spec.selector and rule.spec.selector.class_name == name for rule in self._rules.values()):
            self._rules_changed()

    def class_serving(self, resource: str) -> DeviceClass | None:
        """The class whose devices serve an extended resource: the newest that names it, and of several the one whose
        name comes first; or the one whose implicit name it is."""
        if resource.startswith(IMPLICIT_RESOURCE):
            return self.classes.get(resource.removeprefix(IMPLICIT_RESOURCE))
        naming = [each for each in self.classes.values() if each.spec.extended == resource]
        return min(naming, key=lambda each: (-_created(each), each.metadata.name), default=None)

    def resources_of(self, classes: Iterable[str]) -> set[str]:
        """The extended resources that some classes name."""
        found = (self.classes[name].spec.extended for name in classes if name in self.classes)
        return {each for each in found if each}

    def served_resources(self) -> dict[str, str]:
        """Extended resource by the class that serves it, of those that classes name."""
        names = {each.spec.extended for each in self.classes.values() if each.spec.extended}
        serving = ((name, self.class_serving(name)) for name in names)
        return {found.metadata.name: name for name, found in serving if found is not None}

    def requests_of(self, claim: ResourceClaim) -> ClaimRequests:
        """Raises MissingClassError, InvalidField."""
        return requests_of(claim.spec.devices, self.classes)

    # -- what is in use -------------------------------------------------------------------------------------------

    def hold(self, claim: str, holding: Iterable[Held]) -> set[str] | None:
        """A claim, by UID, holds these devices, and no others. Returns the nodes that reach devices whose use has
        changed; None: any."""
        concerned: set[str] | None = set()
        for pool in self.holdings.hold(claim, holding):
            self._counters.pop(pool, None)
            concerned = _union(concerned, self.inventory.nodes_of(pool))
        self._forget_copies(concerned)
        return concerned

    # -- what fits ------------------------------------------------------------------------------------------------

    def on(self, node: str, labels: Mapping[str, str]) -> NodeDevices:
        found = self._views.get(node)
        if found is None or found.labels != labels:
            found = self._views[node] = _View(dict(labels), self.inventory.on(node, labels))
        return found.devices

    def counters_left(self, devices: NodeDevices) -> dict[CounterKey, int]:
        """What all devices in use, on whatever node, leave of the counters that a node reaches."""
        found: dict[CounterKey, int] = {}
        for pool in {key[0] for key in devices.counters}:
            found |= self._left_of(pool)
        return found

    def _left_of(self, pool: PoolId) -> dict[CounterKey, int]:
        left = self._counters.get(pool)
        if left is None:
            listed = self.inventory.pool(pool)
            left = dict(listed.counters) if listed is not None else {}
            for device in listed.devices if listed is not None else ():
                if device.consumes and self.holdings.use.is_used(device.id):
                    for key, amount in device.consumes:
                        left[key] = left.get(key, 0) - amount
            self._counters[pool] = left
        return left

    def has_counters(self, device: ListedDevice) -> bool:
        """Whether what a device takes of counters is left."""
        left = self._left_of(device.pool) if device.consumes else {}
        return all(left.get(key, 0) >= amount for key, amount in device.consumes)

    def allocate(self, node: str, labels: Mapping[str, str], claims: Iterable[ClaimRequests]) -> Solution | None:
        """Raises SelectionError, SearchLimitError."""
        devices, known = self.on(node, labels), self.known
        return allocate(
            [*claims],
            devices,
            self.holdings.use,
            known.suits,
            counters_left=self.counters_left(devices),
            rank=lambda device: known.mask(device).bit_count(),
        )

    def copies(self, node: str, labels: Mapping[str, str], kind: Kind, claims: tuple[ClaimRequests, ...]) -> int:
        """How many pods of a kind fit beside what is in use, up to a bound. `claims`: those of one of them."""
        here = self._copies.setdefault(node, {})
        found = here.get(kind)
        if found is None:
            found = here[kind] = self._copy_counter.copies(
                claims,
                self.on(node, labels),
                self.holdings.use,
                self.known.suits,
                lambda many: self.allocate(node, labels, many),
            )
        return found

    # -- columns --------------------------------------------------------------------------------------------------

    @property
    def known(self) -> Memberships:
        if self._known is None:
            self._known = Memberships(self.selectors)
        if self._stale:
            stale, self._stale = self._stale, set()
            found = ((pool, self.inventory.pool(pool)) for pool in sorted(stale))
            changed = [self._known.replace(pool, each.devices if each is not None else ()) for pool, each in found]
            if any(changed):
                self.on_sets()
        return self._known

    def count_sets(self, kind: Kind) -> None:
        """The sets and resources that a kind asks for are columns from now on."""
        known, resources = self.known, {resource for resource, _ in kind.extended}
        new = [selection for selection in kind.selections if known.add(selection)]
        if new or not resources <= self._resources:
            self._resources |= resources
            self.on_sets()

    def amounts(self, kind: Kind) -> Amounts:
        """What a pod of a kind counts as. Its sets are counted."""
        known, pairs = self.known, list[tuple[str, int]]()
        requests = [*kind.requests]
        for greater in known.number:
            pairs.append((self.name_of(greater), amounts_in(requests, greater, known)))
        for resource, selection in self._served_sets():
            pairs.append((SERVED + resource, amounts_in(requests, selection, known)))
        for resource, request in kind.extended:
            pairs += [(SERVED + resource, each.number) for each in request.alternatives]
        if kind in self.refused or not is_simple(kind, known):
            pairs.append((kind.column, 1))
        return {column: amount for column, amount in count(pairs).items() if amount}

    def free(self, node: str, labels: Mapping[str, str]) -> Amounts:
        """By column of a set, how many devices of it the node reaches that are free one by one."""
        devices, known = self.on(node, labels), self.known
        found = dict.fromkeys(known.number, 0)
        for device in devices.devices:
            mask = known.mask(device)
            shared = device.id in self.holdings.use.shared
            if not mask or device.id in self.holdings.use.whole or (shared and not device.shareable):
                continue
            if not (shared or self.has_counters(device)):
                continue
            for selection, bit in known.number.items():
                if mask >> bit & 1:
                    found[selection] = UNLIMITED if device.shareable else found[selection] + 1
        return {self.name_of(selection): min(amount, UNLIMITED) for selection, amount in found.items()}

    def of_classes(self, node: str, labels: Mapping[str, str], classes: Iterable[str]) -> tuple[int, int]:
        """How many devices of some classes a node reaches, and how many of them nobody uses, whatever their taints and
        counters; UNLIMITED if some of them can be shared."""
        chosen = [self._selection_of(self.classes[name]) for name in classes if name in self.classes]
        found = [each for each in self.on(node, labels).devices if any(self._suits(one, each) for one in chosen)]
        if any(device.shareable for device in found):
            return UNLIMITED, UNLIMITED
        return len(found), sum(not self.holdings.use.is_used(device.id) for device in found)

    def _suits(self, selection: Selection, device: ListedDevice) -> bool:
        try:
            return self.selectors.suits(selection, device.shape)
        except SelectionError:
            return False

    def name_of(self, selection: Selection) -> str:
        """The column of a set."""
        found = self._names.get(selection)
        if found is None:
            own = sorted(name for name, each in self.classes.items() if self._selection_of(each) == selection)
            found = column_of(selection, own[0] if own else "", bool(own))
            self._names[selection] = found
        return found

    @staticmethod
    def _selection_of(item: DeviceClass) -> Selection:
        return Selection(selectors_of(item.spec.selectors or (), "spec"))

    def _served_sets(self) -> list[tuple[str, Selection]]:
        """Extended resources that pods request and classes serve, each with its set, which is counted."""
        found = []
        for resource in sorted(self._resources):
            serving = self.class_serving(resource)
            if serving is not None and (selection := self._selection_of(serving)) in self.known.number:
                found.append((resource, selection))
        return found

    def sets_serving(self) -> dict[str, str]:
        """Extended resource -> column of the set that serves it."""
        return {resource: self.name_of(selection) for resource, selection in self._served_sets()}

    # -- caches ---------------------------------------------------------------------------------------------------

    def _forget(self, nodes: set[str] | None) -> None:
        if nodes is None:
            self._views.clear()
        else:
            for node in nodes:
                self._views.pop(node, None)
        self._forget_copies(nodes)

    def _forget_copies(self, nodes: set[str] | None) -> None:
        if nodes is None:
            self._copies.clear()
        for node in nodes or ():
            self._copies.pop(node, None)


def _union(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    """None: any node."""
    return None if one is None or other is None else one | other


def _created(item: DeviceClass) -> int:
    try:
        return micros(item.metadata.created)
    except InvalidField:
        return 0
