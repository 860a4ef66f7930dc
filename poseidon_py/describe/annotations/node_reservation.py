"""What Koordinator's annotation of a node withholds from pods: {"resources": {"cpu": "2"}, "reservedCPUs": "0-3,8"}.

With the applyPolicy ReservedCPUsOnly it says which processors pods are not bound to, and withholds nothing. Pure.
"""

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import Amounts, InvalidField, Node, annotations_of, decode
from poseidon_py.kube.quantity import CPU, QuantityError, nanos, requested

ANNOTATION = "node.koordinator.sh/reservation"
_BYTES = ANNOTATION.encode()
_PATH = f"metadata.annotations[{ANNOTATION}]"
_DEDUCTED = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
"""Resources of which Koordinator's manager has deducted it already."""
_MOST_CPUS = 1 << 20


class _Reservation(Struct, rename="camel"):
    resources: Amounts | None = None
    reserved_cpus: str | None = field(default=None, name="reservedCPUs")
    apply_policy: str | None = None


def mentioned_by(node: Node) -> bool:
    """Whether the undecoded annotations may have one; called for every event."""
    return _BYTES in bytes(node.metadata.annotations)


def left(node: Node, allocatable: dict[str, int]) -> dict[str, int]:
    """What is left for pods of amounts in the engine's units. Raises InvalidField."""
    text = annotations_of(node.metadata).get(ANNOTATION) if mentioned_by(node) else None
    if not text:
        return allocatable
    found = decode(Raw(text.encode()), _Reservation, _PATH) or _Reservation()
    if found.apply_policy not in (None, "", "Default"):
        return allocatable
    reserved = {name: _amount(name, value) for name, value in (found.resources or {}).items()}
    if found.reserved_cpus:
        reserved[CPU] = 1000 * _count(found.reserved_cpus)
    return {
        name: amount if name in _DEDUCTED else max(amount - reserved.get(name, 0), 0)
        for name, amount in allocatable.items()
    }


def _amount(name: str, value: str | int | float | None) -> int:
    try:
        return max(requested(name, nanos(str(value))), 0) if value is not None else 0
    except QuantityError as error:
        raise InvalidField(
            f"{_PATH}.resources[{name}]", f"{value!r} is not valid; give a quantity like 2 or 4Gi"
        ) from error


def _count(processors: str) -> int:
    """How many a list like 0-3,8 names."""
    found: set[int] = set()
    for part in processors.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(last) < _MOST_CPUS):
            raise InvalidField(f"{_PATH}.reservedCPUs", f"{processors[:64]!r} is not valid; give a list like 0-3,8")
        found |= set(range(int(first), int(last) + 1))
    return len(found)
