"""What a round has decided about preemption and migration, as far as it can still be carried out."""

from dataclasses import dataclass, field
from typing import NamedTuple

from poseidon_py.state.records import PodRecord


class NominatedPod(NamedTuple):
    """A pending pod that waits for its victims on a node."""

    known: PodRecord
    node: str
    """Name."""


class VictimPod(NamedTuple):
    """A bound pod that is to be deleted, or one whose bind waits and is not to be sent."""

    known: PodRecord
    preemptor: PodRecord
    """The most important pending pod that needs it to leave."""


class MigratingPod(NamedTuple):
    """A bound pod that is to be evicted, and placed on another node."""

    known: PodRecord
    target: str
    """Name of that node."""
    needed_by: str = ""
    """Namespace and name of the pod that fits once this one has left; empty: it costs less on the other node."""


@dataclass(slots=True)
class Decisions:
    """The decisions of one round."""

    nominated: list[NominatedPod] = field(default_factory=list)
    victims: list[VictimPod] = field(default_factory=list)
    unnominated: list[PodRecord] = field(default_factory=list)
    """Pending pods whose nomination is over."""
    migrations: list[MigratingPod] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.nominated or self.victims or self.unnominated or self.migrations)
