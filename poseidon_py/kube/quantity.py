"""Kubernetes quantities ('100m', '1.5Gi', '1e3', '128974848') as exact integers.

A quantity is a whole number of billionths (nanos), the finest resolution of the Kubernetes API, so that sums are exact.
Finer digits are rounded up, and values beyond a signed 64-bit integer count as the largest one, as in the API's own
arithmetic.

Rounding in the wrong direction over-commits nodes: `requested` rounds up, `offered` rounds down.
"""

import re
from functools import lru_cache

NANO = 10**9
_MILLI_NANOS = 10**6
_MAX = 2**63 - 1

_SHAPE = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE](?P<exponent>[+-]?[0-9]{1,9}))?"
)
_SCALE = {"n": 1, "u": 10**3, "m": 10**6, "k": 10**12, "M": 10**15, "G": 10**18, "T": 10**21, "P": 10**24, "E": 10**27}
_SCALE |= {f"{letter}i": NANO * 1024**power for power, letter in enumerate("KMGTPE", start=1)}

CPU = "cpu"
PODS = "pods"


class QuantityError(ValueError):
    """A text is not a quantity; the message quotes it."""


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


@lru_cache(maxsize=4096)
def nanos(text: str) -> int:
    """The quantity in billionths of its unit. Raises QuantityError."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise QuantityError(f"{_quoted(text)} is not a quantity")
    whole, fraction = found["whole"], found["fraction"] or ""
    if not 0 < len(whole) + len(fraction) <= 1000:
        raise QuantityError(f"{_quoted(text)} is not a quantity")
    digits: int = int(whole + fraction)
    shift = -len(fraction)
    if found["exponent"] is not None:
        # beyond these powers only the sign of the shift matters; without a bound '1e999999999' would not terminate
        shift += max(-1000, min(1000, int(found["exponent"])))
    scale = _SCALE[found["suffix"]] if found["suffix"] else NANO
    power: int = 10 ** abs(shift)
    value = min(digits * scale * power if shift >= 0 else -(-digits * scale // power), _MAX * NANO)
    return -value if found["sign"] == "-" else value


def requested(resource: str, amount_nanos: int) -> int:
    """A request as the engine counts it: millicores of cpu, else whole units (bytes, pieces); rounded up."""
    return min(-(-amount_nanos // (_MILLI_NANOS if resource == CPU else NANO)), _MAX)


def offered(resource: str, amount_nanos: int) -> int:
    """A node's allocatable amount as the engine counts it; rounded down."""
    return min(amount_nanos // (_MILLI_NANOS if resource == CPU else NANO), _MAX)


def shown(resource: str, amount: int) -> str:
    """An amount in the engine's units as people read it: cores for cpu, binary units for bytes."""
    if resource == CPU:
        return f"{amount / 1000:g}"
    if _is_bytes(resource):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount >= size:
                return f"{amount / size:.4g}{unit}"
    return str(amount)


def written(resource: str, amount: int) -> str:
    """An amount in the engine's units as a quantity of the API, exactly."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if _is_bytes(resource) and amount:
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


def _is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def schedulable(resource: str) -> bool:
    """Whether kube-scheduler counts the resource; it ignores unknown names without a domain."""
    return resource in (CPU, "memory", "ephemeral-storage", PODS) or (
        "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))
    )
