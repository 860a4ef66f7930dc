"""Kubernetes' quantity library: `quantity("1Gi")`, exact to a billionth."""

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import total_ordering

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, reads_first
from poseidon_py.devices.cel.values import INT_MAX, INT_MIN, register
from poseidon_py.kube.quantity import NANO, QuantityError, nanos


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount in billionths. `scale` is the power of ten in which the API counts it, None where it does not fit.

    The result of `add` and `sub` is `summed`: upstream's `==` does not take such a quantity on its right.
    """

    nanos: int
    scale: int | None = field(default=None, compare=False)
    summed: bool = field(default=False, compare=False)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos


register(Quantity, "kubernetes.Quantity")

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NO_DIGITS = re.compile(r"[+-]?\.?(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?")
"""Which the API reads as 0; only where there is nothing at all is it no quantity."""
_FORM = re.compile(r"[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[A-Za-z]*)(?P<exponent>[+-]?[0-9]*)")


def quantity(text: str) -> Quantity:
    if text and _NO_DIGITS.fullmatch(text):
        scale = _scale_of(text)
        if scale is None:
            raise EvaluationError("unable to parse numeric part of quantity")
        return Quantity(0, scale)
    try:
        amount = nanos(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None
    if abs(amount) == INT_MAX * NANO:
        amount = _without_limit(text, amount)
    return Quantity(amount, _scale_of(text))


def _without_limit(text: str, limit: int) -> int:
    """Beyond 64 bits, where the API keeps decimal quantities as they are."""
    try:
        exact = Decimal(text.rstrip("kMGTPE")).scaleb(9 + _DECIMAL.get(text[-1], 0))
    except InvalidOperation:
        return limit
    return int(exact) if exact.adjusted() < 1000 else limit


def _scale_of(text: str) -> int | None:
    """In which power of ten apimachinery's ParseQuantity counts; it does not reduce 1000m, 1.0 or 0.5Ki to 1."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    whole, fraction, suffix = found["whole"] or "0", found["fraction"] or "", found["suffix"]
    if suffix.endswith("i"):
        power = 10 * ("KMGTPE".index(suffix[0]) + 1)
        return 0 if not fraction and len(whole) + power * 3 // 10 <= 14 else None
    scale = int(found["exponent"]) if found["exponent"] else _DECIMAL[suffix]
    scale -= len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


def is_quantity(text: str) -> bool:
    try:
        quantity(text)
    except EvaluationError:
        return False
    return True


def _is_integer(amount: Quantity) -> bool:
    return amount.scale is not None and amount.scale >= 0 and INT_MIN <= amount.nanos // NANO <= INT_MAX


def _as_integer(amount: Quantity) -> int:
    if not _is_integer(amount):
        raise EvaluationError("cannot convert value to integer")
    return amount.nanos // NANO


def _as_double(amount: Quantity) -> float:
    if amount.scale is None:
        return amount.nanos / NANO
    return float(amount.nanos * 10 ** -min(amount.scale, 0) // NANO // 10 ** max(amount.scale, 0)) * float(
        f"1e{amount.scale}"
    )


def _sum(left: Quantity, right: Quantity, sign: int = 1) -> Quantity:
    """The finer scale counts, except that nothing added changes none."""
    total = left.nanos + sign * right.nanos
    scales = [each.scale for each in (left, right) if each.nanos] or [left.scale]
    known = [scale for scale in scales if scale is not None]
    scale = min(known) if len(known) == len(scales) else None
    if scale is not None and abs(total) > INT_MAX * NANO * 10**scale:
        scale = None
    return Quantity(total, scale, summed=True)


def _whole(amount: int) -> Quantity:
    return Quantity(amount * NANO, 0)


def _compared(left: Quantity, right: Quantity) -> int:
    return (left > right) - (left < right)


OVERLOADS = [
    overload("quantity(string) -> quantity", quantity, reads_first),
    overload("isQuantity(string) -> bool", is_quantity, reads_first),
    overload("sign(quantity) -> int", lambda amount: (amount.nanos > 0) - (amount.nanos < 0)),
    overload("quantity::isGreaterThan(quantity) -> bool", lambda left, right: left > right),
    overload("quantity::isLessThan(quantity) -> bool", lambda left, right: left < right),
    overload("quantity::compareTo(quantity) -> int", _compared),
    overload("quantity::asApproximateFloat() -> double", _as_double),
    overload("quantity::asInteger() -> int", _as_integer),
    overload("quantity::isInteger() -> bool", _is_integer),
    overload("quantity::add(quantity) -> quantity", _sum),
    overload("quantity::add(int) -> quantity", lambda left, right: _sum(left, _whole(right))),
    overload("quantity::sub(quantity) -> quantity", lambda left, right: _sum(left, right, -1)),
    overload("quantity::sub(int) -> quantity", lambda left, right: _sum(left, _whole(right), -1)),
]
