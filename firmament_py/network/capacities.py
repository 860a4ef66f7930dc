"""What one solve may send where: slots of nodes, limits of topology domains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.snapshot.domain_limits import DomainLimit


def built_in(limits: Sequence[DomainLimit]) -> list[DomainLimit]:
    """Of the limits of a class those that a network has arcs for: the first that spans nodes, the first by node."""
    first: dict[bool, DomainLimit] = {}
    for limit in limits:
        first.setdefault(limit.is_per_node, limit)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class Capacities:
    """C classes, N nodes.

    slots (C, N): how many tasks of a class a node could take if it took only those. depth (N,): how many of all
    classes together it may be sent, > 0 exactly where it has a slot for any. limits: by class, what domains may take.
    """

    slots: I64
    depth: I64
    limits: Mapping[int, Sequence[DomainLimit]]


def shallower(room: Capacities, most: I64, waiting: int) -> Capacities:
    """Room for at most `most` (N,), each >= 0, tasks on each node, or a power of two times as many, for that one where
    it is 0: as few as leave room for a fiftieth of the `waiting` tasks, or for as many as there is room for at all."""
    wanted = min(-(-waiting // 50), int(room.depth.sum()))
    while int(np.minimum(room.depth, most).sum()) < wanted:
        most = np.maximum(2 * most, 1)  # also where none was to be sent
    return Capacities(np.minimum(room.slots, most), np.minimum(room.depth, most), room.limits)
