"""Kubernetes quantities ("100m", "1.5Gi", "1e3") as exact numbers.

Kubelets count resources in whole base units: milli-units of cpu, units (bytes, devices, pods) of the rest,
rounded up as Kubernetes does.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

# The library accepts more than Kubernetes does: blanks, underscores, NaN, the suffix K. Three digits of exponent are
# enough for any quantity, and prevent a hostile "1e999999999" from exhausting the memory.
_QUANTITY = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?")

_LONGEST = 100  # characters


@lru_cache(maxsize=65536)
def parse(quantity: str | int | float) -> Fraction:
    """The exact value of a quantity. Raises ValueError if it is invalid."""
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > _LONGEST or _QUANTITY.fullmatch(text) is None:
        raise ValueError(f"quantities must match the regular expression '{_QUANTITY.pattern}': {text[:_LONGEST]!r}")
    from kubernetes.utils.quantity import parse_quantity  # a slow import, so only when needed

    with localcontext(Context(prec=200)):  # exact for all accepted quantities
        value: Decimal = parse_quantity(text)  # type: ignore[no-untyped-call]
    return Fraction(value)


@lru_cache(maxsize=65536)
def units(resource: str, quantity: str | int | float) -> int:
    """The quantity in the kubelet's base unit of that resource, rounded up: milli for cpu, else one."""
    value = parse(quantity)
    if resource == "cpu":
        value *= 1000
    return -((-value.numerator) // value.denominator)


def show(resource: str, amount: int) -> str:
    """Base units back to a quantity."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") and amount and amount % 1024 == 0:
        return f"{amount // 1024}Ki"
    return str(amount)
