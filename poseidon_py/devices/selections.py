"""Which devices suit which selections, found once for each shape of device as far as the selectors see it.

A selection stands for a set of devices. The sets that occur are columns of the engine (see columns.py), so it matters
which of them contain others: of all devices that are known now, one set contains another if every device of that is in
it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from poseidon_py.devices.allocator import SelectionError
from poseidon_py.devices.cel.errors import LimitError
from poseidon_py.devices.device_requests import Selection
from poseidon_py.devices.inventory import ListedDevice, PoolId, Shape

if TYPE_CHECKING:
    from poseidon_py.devices.cel.selector import SelectedDevice, Selector

_TEXT = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_PLACES = re.compile(r"\b(?:attributes|capacity)\b")
_ACCESS = re.compile(rf"\[{_TEXT}\](?:\.(?P<member>[A-Za-z_]\w*+)(?!\s*\()|\[(?P<literal>{_TEXT})\])?")
_ASKED = re.compile(rf"(?P<name>{_TEXT})\s+in\s+device\.\Z")

_COMPILED = 1000
"""Expressions that are kept compiled."""
_RESULTS = 200_000
"""Results that are kept."""


class Selectors:
    """Evaluates selections. Errors are results, too, and are kept. The evaluator is loaded by the first selector: most
    clusters have none, and it takes megabytes."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[Selector, frozenset[str] | None] | Exception] = {}
        self._results: dict[tuple[str, object], bool | Exception] = {}
        self._devices: dict[Shape, SelectedDevice] = {}

    @cached_property
    def _cel(self) -> Any:
        from poseidon_py.devices.cel import selector

        return selector

    def compile(self, expression: str) -> "tuple[Selector, frozenset[str] | None]":
        """The compiled expression, and names_in it. Raises SelectorError."""
        found = self._compiled.get(expression)
        if found is None:
            if len(self._compiled) >= _COMPILED:
                self._compiled.clear()
            try:
                found = self._cel.compile_selector(expression), names_in(expression)
            except self._cel.SelectorError as error:
                found = error
            self._compiled[expression] = found
        if isinstance(found, Exception):
            raise found
        return found

    def suits(self, selection: Selection, shape: Shape) -> bool:
        """Whether all expressions hold for a shape. Raises SelectionError."""
        for expression in selection.selectors:
            found = self._result(expression, shape)
            if isinstance(found, Exception):
                raise SelectionError(f"the selector {shortened(expression)!r} of a device of {shape.driver}: {found}")
            if not found:
                return False
        return True

    def _result(self, expression: str, shape: Shape) -> bool | Exception:
        refused: type[Exception] = self._cel.SelectorError
        try:
            selector, names = self.compile(expression)
        except refused as error:
            return error
        key = expression, _seen(names, shape)
        found = self._results.get(key)
        if found is None:
            if len(self._results) >= _RESULTS:
                self._results.clear()
                self._devices.clear()
            try:
                found = selector.matches(self._selected(shape))
            except LimitError as error:
                # reaching the limit takes a second: one such expression must not delay all other pods by one per device
                found = self._compiled[expression] = error
            except refused as error:
                found = error
            self._results[key] = found
        return found

    def _selected(self, shape: Shape) -> "SelectedDevice":
        found = self._devices.get(shape)
        if found is None:
            attributes = {name: self._value(kind, value) for name, kind, value in shape.attributes if kind}
            found = self._cel.SelectedDevice(shape.driver, attributes, dict(shape.capacity), shape.shareable)
            self._devices[shape] = found
        return found

    def _value(self, kind: str, value: object) -> Any:
        if kind == "version":
            return self._cel.Version(str(value))
        if kind == "versions" and isinstance(value, tuple):
            return tuple(self._cel.Version(str(each)) for each in value)
        return value


def shortened(expression: str) -> str:
    return expression if len(expression) <= 100 else f"{expression[:100]}..."


def names_in(expression: str) -> frozenset[str] | None:
    """The attributes and capacities that the value of an expression depends on, without their domains; None: any.

    Those that it names outright, as drivers' classes do: `device.attributes["d"].name`, `device.capacity["d"]["name"]`,
    `"name" in device.attributes["d"]`.
    """
    found = set()
    for place in _PLACES.finditer(expression):
        access = _ACCESS.match(expression, place.end())
        if access is None:
            return None
        name = access["member"] or access["literal"]
        if name is None:
            asked = _ASKED.search(expression, 0, place.start())
            if asked is None:
                return None
            name = asked["name"]
        found.add(name.strip("'\""))
    return frozenset(found)


def _seen(names: frozenset[str] | None, shape: Shape) -> object:
    """What an expression sees of a shape: devices that differ in a serial number alone have the same results."""
    if names is None:
        return shape
    attributes = tuple(each for each in shape.attributes if each[0].rpartition("/")[2] in names)
    capacity = tuple(each for each in shape.capacity if each[0].rpartition("/")[2] in names)
    names_of = [name for name, *_ in shape.attributes] + [name for name, _ in shape.capacity]
    domains = tuple(sorted({name.partition("/")[0] for name in names_of}))
    return shape.driver, attributes, capacity, shape.shareable, domains


class Memberships:
    """Which of the known devices are in which set. Devices in the same sets are counted together."""

    def __init__(self, selectors: Selectors) -> None:
        self._selectors = selectors
        self.number: dict[Selection, int] = {}
        """Each set that is counted -> its bit."""
        self._devices: dict[PoolId, tuple[ListedDevice, ...]] = {}
        self._mask: dict[ListedDevice, int] = {}
        self._faulty: set[ListedDevice] = set()
        """Devices for which some expression has an error."""
        self._alike: Counter[tuple[int, bool]] = Counter()
        """Bits of sets, and whether it is not a whole device of one node -> number of such devices."""

    def replace(self, pool: PoolId, devices: Iterable[ListedDevice]) -> bool:
        """Takes all devices of a pool; whether the sets are related in another way since."""
        before = self._alike.keys() | set()
        for device in self._devices.pop(pool, ()):
            self._forget(device)
            self._faulty.discard(device)
        self._devices[pool] = tuple(devices)
        for device in self._devices[pool]:
            bits = (1 << bit for selection, bit in self.number.items() if self._is_in(selection, device))
            self._note(device, sum(bits))
        return self._alike.keys() != before

    def add(self, selection: Selection) -> bool:
        """Counts a set from now on; whether it is new."""
        if selection in self.number:
            return False
        bit = self.number[selection] = len(self.number)
        for device, mask in list(self._mask.items()):
            if self._is_in(selection, device):
                self._forget(device)
                self._note(device, mask | 1 << bit)
        return True

    def suits(self, selection: Selection, device: ListedDevice) -> bool:
        """Whether the expressions of a selection hold for a device, whatever its taints. Raises SelectionError.

        Of a set that is counted it is known already, unless taints or an error may be why a device is not in it."""
        bit = self.number.get(selection)
        if bit is None or device.taints or device in self._faulty or device not in self._mask:
            return self._selectors.suits(selection, device.shape)
        return bool(self._mask[device] >> bit & 1)

    def _note(self, device: ListedDevice, mask: int) -> None:
        self._mask[device] = mask
        self._alike[mask, is_special(device)] += 1

    def _forget(self, device: ListedDevice) -> None:
        key = self._mask.pop(device), is_special(device)
        self._alike[key] -= 1
        if not self._alike[key]:
            del self._alike[key]

    def mask(self, device: ListedDevice) -> int:
        return self._mask.get(device, 0)

    def contains(self, greater: Selection, smaller: Selection) -> bool:
        """Whether every known device of `smaller`, and there are some, is in `greater`. Both are counted."""
        one, other = 1 << self.number[smaller], 1 << self.number[greater]
        found = [mask & other for mask, _ in self._alike if mask & one]
        return greater == smaller or (bool(found) and all(found))

    def meet(self, one: Selection, other: Selection) -> bool:
        """Whether some device is in both."""
        both = 1 << self.number[one] | 1 << self.number[other]
        return any(mask & both == both for mask, _ in self._alike)

    def has_special(self, selection: Selection) -> bool:
        """Whether devices of a set are shared, or partitions, or reached by several nodes."""
        bit = 1 << self.number[selection]
        return any(special and mask & bit for mask, special in self._alike)

    def _is_in(self, selection: Selection, device: ListedDevice) -> bool:
        try:
            return selection.tolerates(device.taints) and self._selectors.suits(selection, device.shape)
        except SelectionError:
            self._faulty.add(device)
            return False


def is_special(device: ListedDevice) -> bool:
    """Whether it is not a whole device of one node."""
    return device.shareable or bool(device.consumes) or not device.target.name
