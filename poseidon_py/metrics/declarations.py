"""What is declared of a metric: its name, type and labels, what it means, and how long that holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

OTHER = "_other"
"""The value of an open label beyond its bound. No name of a Kubernetes object begins with an underscore."""
BOUND = 1000
"""Values of open labels, or combinations of them, that a metric shows; what is beyond is counted as OTHER."""
OF_RESOURCES = 10 * BOUND
"""The same of metrics with a label for resources."""

Type = Literal["counter", "gauge", "histogram", "info"]


class Stability(StrEnum):
    """How long a metric stays as it is."""

    STABLE = "stable"
    """Name, type, labels and meaning change in a minor version only, and the old name stays for one minor version."""
    ALPHA = "alpha"
    """It may change in any version."""
    DEPRECATED = "deprecated"
    """It goes with the next minor version."""


class Exporter(StrEnum):
    """The process that has a metric."""

    SCHEDULER = "scheduler"
    JOBS = "jobs"
    """`poseidon jobs run`."""
    BOTH = "both"


class Origin(StrEnum):
    """Whose name and meaning a metric has."""

    OWN = ""
    KUBERNETES = "kube-scheduler"
    KUEUE = "Kueue"
    PYTHON = "the client library"


@dataclass(frozen=True, slots=True)
class Label:
    """`values`: all that it can have; none: it is open, so that the number of its values is bounded (BOUND)."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormerName:
    """A name that a metric had before. `labels`: those that it had; samples that differ in others only are added."""

    name: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """One metric. `name`: as Prometheus has it, with `_total` or `_info`; `buckets`: upper bounds, of a histogram."""

    name: str
    type: Type
    meaning: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    stability: Stability = Stability.STABLE
    since: str = "0.1.0"
    origin: Origin = Origin.OWN
    exporter: Exporter = Exporter.SCHEDULER
    replaces: tuple[FormerName, ...] = ()
    instead: str = ""
    """Of a deprecated metric: what to use."""
    bound: int = BOUND
    """Combinations of values of its open labels, at most."""
    label_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_names", tuple(label.name for label in self.labels))

    @property
    def family(self) -> str:
        """The name without the suffix of its samples."""
        return self.name.removesuffix({"counter": "_total", "info": "_info"}.get(self.type, ""))

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names of its samples."""
        if self.type == "histogram":
            return tuple(self.name + suffix for suffix in ("_bucket", "_count", "_sum"))
        return (self.name,)

    @property
    def former(self) -> "tuple[Declaration, ...]":
        """The deprecated metrics with its former names."""
        by_name = {label.name: label for label in self.labels}
        return tuple(
            Declaration(
                each.name,
                self.type,
                self.meaning,
                labels=tuple(by_name[name] for name in each.labels),
                buckets=self.buckets,
                stability=Stability.DEPRECATED,
                exporter=self.exporter,
                instead=self.name,
            )
            for each in self.replaces
        )


def labels(*declared: str | Label) -> tuple[Label, ...]:
    """A text is an open label, or one with its values: `result=bound|failed`."""
    found = []
    for each in declared:
        if isinstance(each, str):
            name, _, values = each.partition("=")
            each = Label(name, tuple(values.split("|")) if values else ())
        found.append(each)
    return tuple(found)


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` upper bounds from `first` on, each by `factor` larger, as Prometheus' Go library has them."""
    return tuple(float(f"{first * factor**at:.12g}") for at in range(count))


def catalogue(*tables: Sequence[Declaration]) -> dict[str, Declaration]:
    """All declarations by name, with former names. Raises ValueError if two have the same name."""
    found: dict[str, Declaration] = {}
    for declared in (each for table in tables for one in table for each in (one, *one.former)):
        if declared.name in found:
            raise ValueError(f"the metric {declared.name} is declared twice")
        found[declared.name] = declared
    return found
