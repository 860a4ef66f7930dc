"""Optional values (cel-go's OptionalTypes); `or` and `orValue` look at their argument only if they need it."""

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload
from poseidon_py.devices.cel.values import NONE, ListValue, MapValue, Optional, Uint, Value


def _is_zero(value: Value) -> bool:
    if isinstance(value, str | bytes | bool | int | Uint | float | ListValue | MapValue):
        return not value if not isinstance(value, ListValue | MapValue) else len(value) == 0
    return value is None


def _value(optional: Optional) -> Value:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unwrapped(optionals: ListValue) -> ListValue:
    return ListValue(each.value for each in optionals if each.present)


OVERLOADS = [
    overload("optional.of(A) -> optional(A)", Optional),
    overload("optional.ofNonZeroValue(A) -> optional(A)", lambda value: NONE if _is_zero(value) else Optional(value)),
    overload("optional.none() -> optional(A)", lambda: NONE),
    overload("optional(A)::value() -> A", _value),
    overload("optional(A)::hasValue() -> bool", lambda optional: optional.present),
    overload("optional(A)::or(optional(A)) -> optional(A)", lambda first, second: first if first.present else second),
    overload("optional(A)::orValue(A) -> A", lambda optional, other: optional.value if optional.present else other),
    overload("list(A)::first() -> optional(A)", lambda items: Optional(items.items[0]) if items.items else NONE),
    overload("list(A)::last() -> optional(A)", lambda items: Optional(items.items[-1]) if items.items else NONE),
    overload("optional.unwrap(list(optional(A))) -> list(A)", _unwrapped, lambda optionals: optionals.weight),
    overload("list(optional(A))::unwrapOpt() -> list(A)", _unwrapped, lambda optionals: optionals.weight),
]
