"""The columns of `kubectl get`, and the notation of durations that all tables share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.store.clock import parse_rfc3339

Json = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column; priority 1 is shown with -o wide only."""

    name: str
    cell: Callable[[Json], Any]
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> Json:
        """The TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format or ("name" if self.name == "Name" else ""),
            "description": self.name,
            "priority": self.priority,
        }


def name_of(obj: Json) -> str:
    """metadata.name."""
    return str(obj["metadata"]["name"])


def age(stamp: str | None) -> str:
    """Time since a timestamp, in kubectl's notation."""
    if not stamp:
        return "<unknown>"
    return duration(time.time() - parse_rfc3339(stamp))


def duration(seconds: float) -> str:
    """Two units at most: 45s, 3m20s, 5h, 12d, 2y30d."""
    whole = math.floor(max(seconds, 0.0))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    return f"{years}y{days % 365}d" if years < 8 and days % 365 else f"{years}y"


def age_of(obj: Json) -> str:
    """Time since creation."""
    return age(obj["metadata"].get("creationTimestamp"))


NAME = Column("Name", name_of)
AGE = Column("Age", age_of)


def default_columns() -> Sequence[Column]:
    """For kinds without columns of their own."""
    return (NAME, Column("Created At", lambda obj: obj["metadata"].get("creationTimestamp"), "date"))
