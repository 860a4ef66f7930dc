"""Koordinator's annotation of a node that takes no pods while it is busy: {"usageThresholds": {"cpu": 65}}.

A threshold is a percentage of what the node offers by status.allocatable; 0 is none. As in Koordinator, measured usage
counts, rounded to whole percents, and pods of DaemonSets come anyway. Pure.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from poseidon_py.describe.requests import offered_by
from poseidon_py.kube.objects import Amounts, InvalidField, Node, annotations_of, decode

ANNOTATION = "scheduling.koordinator.sh/usage-thresholds"
"""Also the key of the taint that such a node has, whose value says why."""
_BYTES = ANNOTATION.encode()
_PATH = f"metadata.annotations[{ANNOTATION}]"


class _Declared(Struct, rename="camel"):
    usage_thresholds: dict[str, int] | None = None
    prod_usage_thresholds: dict[str, Any] | None = None
    aggregated_usage: dict[str, Any] | None = None


class Thresholds(NamedTuple):
    """percent: of each resource, from 1 to 100. offered: of each, in the engine's units. unread: what else is declared,
    and cannot be kept, since nothing measures it."""

    percent: Mapping[str, int] = {}
    offered: Mapping[str, int] = {}
    unread: str = ""

    def exceeded(self, used: Mapping[str, float]) -> str:
        """Why the node takes no pods; empty: it does. used: measured amounts, in the engine's units; a resource that it
        lacks is not known."""
        if self.unread:
            return f"{self.unread} is not read"
        for resource, percent in self.percent.items():
            if resource not in used:
                return f"{resource} usage unknown"
            if int(100 * used[resource] / self.offered[resource] + 0.5) >= percent:
                return f"{resource} usage at {percent}% or more"
        return ""


NO_THRESHOLDS = Thresholds()


def mentioned_by(node: Node) -> bool:
    """Whether the undecoded annotations may have one; called for every event."""
    return _BYTES in bytes(node.metadata.annotations)


def thresholds_of(node: Node) -> Thresholds:
    """Raises InvalidField."""
    text = annotations_of(node.metadata).get(ANNOTATION) if mentioned_by(node) else None
    if not text:
        return NO_THRESHOLDS
    declared = decode(Raw(text.encode()), _Declared, _PATH) or _Declared()
    stated = declared.usage_thresholds or {}
    for resource, percent in stated.items():
        if not 0 <= percent <= 100:
            raise InvalidField(f"{_PATH}.usageThresholds[{resource}]", f"{percent} is not valid; give 0 to 100")
    offered = offered_by((decode(node.status.allocatable, Amounts, "status.allocatable") or {}).items())
    counted = {resource: stated[resource] for resource in sorted(stated) if stated[resource] and offered.get(resource)}
    aggregated = (declared.aggregated_usage or {}).get("usageThresholds")
    unread = "prodUsageThresholds" if declared.prod_usage_thresholds else "aggregatedUsage" if aggregated else ""
    return Thresholds(counted, {resource: offered[resource] for resource in counted}, unread)
