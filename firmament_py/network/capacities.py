"""What one solve may send where: slots of nodes, limits of topology domains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64

UNLIMITED = 2**40


@dataclass(frozen=True)
class DomainLimit:
    """What one solve may place of a class in each domain: at most `most`, and `wanted` before any more elsewhere.

    domain (N,): each node's domain, -1: no limit. most, wanted: (D,), 0 <= wanted <= most. beyond: what each task
    beyond `wanted` costs more.
    """

    domain: I64
    most: I64
    wanted: I64
    beyond: int

    @cached_property
    def is_per_node(self) -> bool:
        """Whether no domain has more than one node."""
        domains = self.domain[self.domain >= 0]
        return len(domains) == len(np.unique(domains))


@dataclass(frozen=True, slots=True)
class Room:
    """C classes, N nodes.

    slots (C, N): how many tasks of a class a node could take if it took only those. depth (N,): how many of all
    classes together it may be sent, > 0 exactly where it has a slot for any. limits: by class, what domains may take.
    """

    slots: I64
    depth: I64
    limits: Mapping[int, Sequence[DomainLimit]]


def shallower(room: Room, most: I64, waiting: int) -> Room:
    """Room for at most `most` (N,), each >= 0, tasks on each node, or a power of two times as many, for that one where
    it is 0: as few as leave room for a fiftieth of the `waiting` tasks, or for as many as there is room for at all."""
    wanted = min(-(-waiting // 50), int(room.depth.sum()))
    while int(np.minimum(room.depth, most).sum()) < wanted:
        most = np.maximum(2 * most, 1)  # also where none was to be sent
    return Room(np.minimum(room.slots, most), np.minimum(room.depth, most), room.limits)
