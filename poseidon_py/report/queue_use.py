"""How queues are used, as the engine reports it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Amounts = Mapping[tuple[str, str], int]
"""Flavor and resource -> amount in the engine's units."""


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The use of one queue, including the queues below it."""

    used: Amounts = field(default_factory=dict)
    borrowed: Amounts = field(default_factory=dict)
    """Of `used`, what is more than the guarantee."""
    pending: int = 0
    """Tasks that wait."""
    running: int = 0
    share: float = 0.0
    """Weighted dominant share of what is borrowed; 1: all of it."""
    fair_share: Mapping[str, int] = field(default_factory=dict)
    """Resource -> amount that the queue is entitled to now."""
    requested: Mapping[str, int] = field(default_factory=dict)
    """Resource -> amount that its running and waiting tasks request."""
    past: Mapping[str, float] | None = None
    """Resource -> decayed mean of what was used; None: past use does not count."""
    past_at: str = ""
    """Until when, in UTC."""


def by_resource(amounts: Amounts) -> dict[str, int]:
    """The amounts of all flavors together."""
    total: dict[str, int] = {}
    for (_, resource), amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
    return total
