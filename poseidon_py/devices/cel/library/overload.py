"""One implementation of a function for arguments of certain types, and what a call costs.

Costs are those of Kubernetes' CEL environment at run time (cel-go's interpreter/runtimecost.go and Kubernetes'
apiserver/pkg/cel/library/cost.go): a call counts 1, or a tenth of the characters that it reads, rounded up. They are
taken before the call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from poseidon_py.devices.cel.celtypes import CelType, Signature, signature_from
from poseidon_py.devices.cel.values import DomainMap, ListValue, MapValue, Optional, TypeValue, Value, type_name

Cost: TypeAlias = Callable[..., int]
Predicate: TypeAlias = Callable[[Value], bool]


def size_of(value: Value) -> int:
    """Characters, bytes, elements or entries; 1 for what has no size."""
    if isinstance(value, Optional):
        return size_of(value.value) if value.present else 1
    return len(value) if hasattr(value, "__len__") else 1


def tenth(size: int) -> int:
    return -(-size // 10)


def once(*_arguments: Value) -> int:
    return 1


def nothing(*_arguments: Value) -> int:
    return 0


def reads_first(*arguments: Value) -> int:
    """A tenth of the first argument's size."""
    return tenth(size_of(arguments[0]))


def reads_twice(*arguments: Value) -> int:
    return tenth(2 * size_of(arguments[0]))


def every_element(*arguments: Value) -> int:
    """One for each element, and a tenth of its characters where it has some; of a string a tenth."""
    first = arguments[0]
    if isinstance(first, ListValue):
        return sum(max(1, tenth(size_of(each))) if isinstance(each, str | bytes) else 1 for each in first)
    return reads_first(first)


@dataclass(frozen=True, slots=True)
class Overload:
    signature: Signature
    function: Callable[..., Value]
    cost: Cost
    predicates: tuple[Predicate | None, ...]
    """What the arguments must satisfy at run time for this implementation to be meant; None is satisfied by all."""

    def accepts(self, arguments: list[Value]) -> bool:
        for predicate, value in zip(self.predicates, arguments, strict=True):
            if predicate is not None and not predicate(value):
                return False
        return True


def overload(
    declaration: str, function: Callable[..., Value], cost: Cost = once, *, guarded: int | None = None
) -> Overload:
    """An implementation; only the first `guarded` arguments are looked at before it is called, all if that is None."""
    signature = signature_from(declaration)
    predicates = [predicate_of(kind) for kind in signature.arguments]
    if guarded is not None:
        predicates[guarded:] = [None] * (len(predicates) - guarded)
    return Overload(signature, function, cost, tuple(predicates))


def predicate_of(kind: CelType) -> Predicate | None:
    """Whether a value is of the type, as cel-go guards its functions: of lists and maps the first element counts."""
    if kind.variable or kind.name == "dyn":
        return None
    if kind.name == "list":
        element = predicate_of(kind.parameters[0])
        return lambda value: (
            isinstance(value, ListValue) and (element is None or not value.items or element(value.items[0]))
        )
    if kind.name == "map":
        return lambda value: isinstance(value, MapValue | DomainMap)
    if kind.name == "type":
        return lambda value: isinstance(value, TypeValue)
    name = kind.name
    return lambda value: type_name(value) == name
