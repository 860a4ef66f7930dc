"""Selectors of devices: CEL expressions over one `device`, as DeviceClasses and ResourceClaims have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from poseidon_py.devices.cel.checker import check
from poseidon_py.devices.cel.errors import EvaluationError, LimitError, SelectorError
from poseidon_py.devices.cel.evaluator import build
from poseidon_py.devices.cel.frames import Evaluation, Frame
from poseidon_py.devices.cel.library.quantities import quantity
from poseidon_py.devices.cel.library.semvers import semver
from poseidon_py.devices.cel.parser import parse
from poseidon_py.devices.cel.values import DeviceValue, DomainMap, ListValue, MapValue
from poseidon_py.devices.cel.values import Value as CelValue

__all__ = ["SelectedDevice", "Selector", "SelectorError", "Value", "Version", "compile_selector"]


@dataclass(frozen=True, slots=True)
class Version:
    """A version attribute's text, "1.2.3"."""

    text: str


Scalar: TypeAlias = int | bool | str | Version
Value: TypeAlias = Scalar | tuple[Scalar, ...]
"""A device attribute; a tuple is a list attribute, whose elements are of one type."""


@dataclass(frozen=True)
class SelectedDevice:
    """What selectors see of a device.

    Names of attributes and capacities have the form `domain/id`, or `id` for the driver's own domain. Capacities are
    quantities as the API has them, "40Gi".
    """

    driver: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    allow_multiple_allocations: bool = False

    @cached_property
    def value(self) -> DeviceValue:
        """The variable `device`, made once. Raises SelectorError for a version or quantity that is none."""
        attributes = {name: _attribute(name, value) for name, value in self.attributes.items()}
        capacity = {name: _capacity(name, amount) for name, amount in self.capacity.items()}
        domains = _by_domain(self.driver, attributes), _by_domain(self.driver, capacity)
        return DeviceValue(self.driver, *domains, self.allow_multiple_allocations)


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled expression."""

    expression: str
    _evaluation: Evaluation = field(repr=False, compare=False)
    _slots: int = field(repr=False, compare=False)

    def matches(self, device: SelectedDevice) -> bool:
        """Whether the expression is true of the device.

        Raises SelectorError where CEL has an error as the result: a name that the device does not have, no overload for
        the types at hand, a result that is not bool, or an evaluation that costs more than upstream allows.
        """
        try:
            result = self._evaluation(Frame(self._slots, device.value))
        except RecursionError:
            raise LimitError("the expression is nested too deeply to be evaluated") from None
        if type(result) is not bool:
            raise EvaluationError("the result is not bool")
        return result


def compile_selector(expression: str) -> Selector:
    """The expression, ready to be evaluated. Raises SelectorError where the API server refuses it."""
    try:
        tree = parse(expression)
        checked = check(tree)
    except RecursionError:
        raise SelectorError("the expression is nested too deeply") from None
    if checked.result.name not in ("bool", "dyn"):
        raise SelectorError(f"must evaluate to bool or the unknown type, not {checked.result}")
    return Selector(expression, build(tree, checked), checked.slots)


def _attribute(name: str, value: Value) -> CelValue:
    try:
        if isinstance(value, tuple):
            return ListValue(_attribute(name, each) for each in value)
        return semver(value.text) if isinstance(value, Version) else value
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: {error.message}") from None


def _capacity(name: str, amount: str) -> CelValue:
    try:
        return quantity(amount)
    except EvaluationError as error:
        raise EvaluationError(f"capacity {name}: {error.message}") from None


def _by_domain(driver: str, values: Mapping[str, CelValue]) -> DomainMap:
    domains: dict[str, list[tuple[str, CelValue]]] = {}
    for name, value in values.items():
        domain, found, identifier = name.partition("/")
        domains.setdefault(domain if found else driver, []).append((identifier if found else name, value))
    return DomainMap((domain, MapValue(entries)) for domain, entries in domains.items())
