"""The notation of amounts, times, labels and selectors in our formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from benchmarks.traces.form import LONGEST_US, MAX_AMOUNT, SECOND
from firmament_py.model.constraints import Operator, Requirement
from poseidon_py.kube import quantity
from poseidon_py.kube.quantity import QuantityError

EVENTS = ("add", "remove", "update")
"""By the number of the MachineEvent."""


def amount(resource: str, text: str) -> int:
    """A Kubernetes quantity in the engine's unit: cpu in millicores, else whole units. Raises ValueError."""
    try:
        nanos = quantity.nanos(text.strip())
    except QuantityError as error:
        raise ValueError(f"{error}; give a quantity such as 4, 500m or 2Gi") from None
    if nanos < 0:
        raise ValueError(f"{text!r} is negative; give 0 or more")
    value = quantity.requested(resource, nanos)
    if value > MAX_AMOUNT:
        raise ValueError(f"{text!r} is too large; give at most {amount_text(resource, MAX_AMOUNT)}")
    return value


def amount_text(resource: str, value: int) -> str:
    """The quantity for `value`, the inverse of `amount`."""
    return f"{value}m" if resource == "cpu" else str(value)


def microseconds(seconds: float) -> int:
    """Microseconds for a number of seconds. Raises ValueError if it is not a valid time."""
    if not 0 <= seconds <= LONGEST_US / SECOND:
        raise ValueError(f"{seconds!r} is not a number of seconds since the start of the trace")
    return round(seconds * SECOND)


def seconds(us: int) -> int | float:
    """Seconds for a number of microseconds, the inverse of `microseconds`."""
    return us // SECOND if us % SECOND == 0 else us / SECOND


def labels_text(labels: Mapping[str, str]) -> str:
    """key=value;key=value, with reserved characters as %XX."""
    return ";".join(f"{_quoted(key)}={_quoted(value)}" for key, value in sorted(labels.items()))


def labels(text: str) -> dict[str, str]:
    """Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        key, sign, value = part.partition("=")
        if not sign or not key:
            raise ValueError(f"{part!r} is not of the form key=value")
        if unquote(key) in found:
            raise ValueError(f"{unquote(key)!r} appears twice")
        found[unquote(key)] = unquote(value)
    return found


def selector_text(selector: Sequence[Requirement]) -> str:
    """key Operator value|value;key Operator ..."""
    return ";".join(f"{_word(r.key)} {r.operator} {'|'.join(map(_word, r.values))}".rstrip() for r in selector)


def selector(text: str) -> tuple[Requirement, ...]:
    """Raises ValueError."""
    found = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        words = part.split()
        if len(words) not in (2, 3):
            raise ValueError(f"{part!r} is not of the form `key Operator value|value`")
        values = tuple(unquote(v) for v in words[2].split("|")) if len(words) == 3 else ()
        found.append(requirement(unquote(words[0]), words[1], values))
    return tuple(found)


def requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A requirement on a label. Raises ValueError if it is invalid."""
    try:
        known = Operator(operator)
    except ValueError:
        raise ValueError(f"unknown operator {operator!r}; choose one of: {', '.join(Operator)}") from None
    if known in (Operator.GT, Operator.LT) and len(values) != 1:
        raise ValueError(f"{operator} takes one value, not {len(values)}")
    if known in (Operator.IN, Operator.NOT_IN) and not values:
        raise ValueError(f"{operator} needs at least one value")
    if known in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        raise ValueError(f"{operator} takes no values")
    return Requirement(key, known, values)


def _quoted(text: str) -> str:
    return quote(text, safe=" /.-_:,|")


def _word(text: str) -> str:
    return quote(text, safe="/.-_:,")
