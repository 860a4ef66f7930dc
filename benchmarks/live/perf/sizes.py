"""The sizes of a case as its suite has them, at the scale of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from benchmarks.harness.runner import Options
from benchmarks.harness.specs import SpecError


@dataclass(frozen=True, slots=True)
class Churn:
    """Objects that come during the measurement: one of each template every `every` seconds.

    recreate: what came is deleted before the next comes. node, service: these come, too. outcome: what has to become of
    the pods, bound or pending.
    """

    template: str
    every: float
    outcome: str
    recreate: bool = False
    node: bool = False
    service: bool = False


@dataclass(frozen=True, slots=True)
class ClaimSizes:
    """What the measured pods claim, on nodes of so many devices each.

    kind: of device_objects.KINDS. running: the share of the devices that running pods have beforehand, but for those of
    `left` claims at least. at_once: so many pods come at once, and each goes when it is bound, upon which the next
    comes; 0: all come at once, and stay.
    """

    kind: str
    devices: int = 10
    running: float = 0.0
    left: int = 0
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class PerfSizes:
    """A case. Pods are counts, templates names in templates.py.

    initial: pods that run before anything is scheduled, evenly on all nodes. waiting: pods that cannot be scheduled and
    are there before the measured ones. deleted_per_second: of the initial pods, meanwhile. members, gangs: of the
    measured pods, one of the two; initial_members: of initial pods. disruption: single or all, of the groups of
    initial pods. service: whether all pods belong to one. jobs: if not 0, the measured pods are those of so many
    suspended Jobs in a queue of Kueue. claims: None: the measured pods claim no devices.
    """

    nodes: int
    pods: int
    node: str = "standard"
    template: str = "default"
    initial: int = 0
    initial_template: str = "default"
    initial_members: int = 0
    disruption: str = ""
    waiting: int = 0
    waiting_template: str = "gated"
    deleted_per_second: int = 0
    members: int = 0
    gangs: int = 0
    churn: Churn | None = None
    service: bool = False
    jobs: int = 0
    claims: ClaimSizes | None = None

    @property
    def of_gang(self) -> int:
        """The members of a gang, 0: there is none."""
        return self.members or (self.pods // self.gangs if self.gangs else 0)

    @property
    def has_groups(self) -> bool:
        """Whether any pod belongs to a PodGroup."""
        return bool(self.of_gang or self.initial_members)


_MULTIPLE = {"members": "pods", "gangs": "pods", "jobs": "pods", "initial_members": "initial"}
"""Sizes that divide others."""


def parse(sizes: Mapping[str, Any], options: Options) -> PerfSizes:
    """The sizes at the scale of the run. Raises SpecError for an unknown field."""
    given = {name: value for name, value in sizes.items() if name != "mode"}
    for name in set(given) - {field.name for field in fields(PerfSizes)}:
        raise SpecError(f"sizes: unknown field {name!r}; known: {', '.join(f.name for f in fields(PerfSizes))}")
    for name in ("pods", "initial", "waiting", "jobs"):
        given[name] = options.scaled(given.get(name, 0))
    given["nodes"] = 1 if sizes["nodes"] == 1 else options.scaled(sizes["nodes"], 5)
    for part, whole in _MULTIPLE.items():
        if given.get(part):
            given[part] = min(given[part], given[whole])
            given[whole] -= given[whole] % given[part]
    if "churn" in given:
        given["churn"] = Churn(**given["churn"])
    if "claims" in given:
        given["claims"] = ClaimSizes(**given["claims"])
    return PerfSizes(**given)
