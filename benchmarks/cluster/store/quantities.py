"""Kubernetes quantities ("100m", "1.5Gi", "1e3") as exact numbers.

Kubelets count resources in whole base units: milli-units of cpu, units (bytes, devices, pods) of the rest,
rounded up as Kubernetes does.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
# Three digits of exponent are far beyond any quantity and keep a hostile "1e999999999" from eating memory.
_QUANTITY = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")


@lru_cache(maxsize=65536)
def parse(quantity: str | int | float) -> Fraction:
    """The exact value of a quantity. Raises ValueError for anything that is not one."""
    text = quantity if isinstance(quantity, str) else repr(quantity)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"quantities must match the regular expression '{_QUANTITY.pattern}': {text!r}")
    sign, digits, exponent, suffix = match.groups()
    value = Fraction(digits)
    value *= Fraction(10) ** int(exponent[1:]) if exponent else _SUFFIXES[suffix or ""]
    return -value if sign == "-" else value


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
