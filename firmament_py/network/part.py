"""A part of a network: some of its pairs, slots and preference arcs, numbered as in the whole."""

from dataclasses import dataclass, field, replace

import numpy as np

from firmament_py.model.arrays import I64, U8, Bools
from firmament_py.network.capacities import BY_CLASS, BY_RACK, Capacities, selected
from firmament_py.network.preference_arcs import preferred_pairs
from firmament_py.policy import Costs


@dataclass(frozen=True, slots=True)
class Part:
    """near (L,), racks (M,): whether it has each preference arc to a node and to a rack; None: it has all. bounded
    (C, N): pairs of the whole that a vertex keeps within their slots, see PlacementNetwork.excess; None: none are."""

    capacities: Capacities
    near: Bools | None = None
    racks: Bools | None = None
    bounded: Bools | None = None

    def is_all_of(self, whole: Capacities) -> bool:
        """Whether nothing is omitted."""
        return self.capacities is whole and self.near is None and self.racks is None

    def entries(self, nodes: int) -> U8:
        """(C, N) by which arcs each pair is reached, BY_CLASS | BY_RACK; 0: the part does not have it."""
        part = self.capacities
        reached = (part.slots > 0) * (BY_CLASS | BY_RACK) if part.entries is None else part.entries
        if part.nodes is None:
            return reached
        entries = np.zeros((len(reached), nodes), np.uint8)
        entries[:, part.nodes] = reached
        return entries

    def costs(self, costs: Costs) -> Costs:
        """The costs of all nodes, with the preference arcs of the part."""
        if costs.data is None or self.near is None or self.racks is None:
            return costs
        return replace(costs, data=costs.data.only(self.near, self.racks))


@dataclass(frozen=True, slots=True)
class Omitted:
    """What a part should have besides: pairs (C, N), all slots of nodes `deeper` (N,), and preference arcs to nodes,
    near (L,), and to racks (M,)."""

    pairs: Bools
    deeper: Bools
    near: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    racks: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __bool__(self) -> bool:
        return any(bool(some.any()) for some in (self.pairs, self.deeper, self.near, self.racks))


def everything(whole: Capacities, costs: Costs) -> Omitted:
    """All that a network can have."""
    preferences = () if costs.data is None else (costs.data.near_set >= 0, costs.data.rack_set >= 0)
    return Omitted(whole.slots > 0, whole.depth > 0, *preferences)


def extended(part: Part, whole: Capacities, omitted: Omitted, costs: Costs, task_class: I64) -> Part:
    """The part with what it omits, all slots of the nodes of these pairs, and the pairs that these preference arcs
    need."""
    pairs = omitted.pairs
    if part.near is None or part.racks is None or costs.data is None:
        return replace(part, capacities=_with_pairs(part.capacities, whole, pairs, omitted.deeper))
    added = costs.data.only(omitted.near, omitted.racks)
    near, of_racks = preferred_pairs(added, task_class, whole.slots, costs.place + costs.slot[:, 0])
    capacities = _with_pairs(part.capacities, whole, pairs | near | of_racks, omitted.deeper)
    return replace(part, capacities=capacities, near=part.near | omitted.near, racks=part.racks | omitted.racks)


def _with_pairs(part: Capacities, whole: Capacities, pairs: Bools, deeper: Bools) -> Capacities:
    before = np.arange(len(whole.depth)) if part.nodes is None else part.nodes
    added = pairs.any(axis=0)
    chosen = np.union1d(before, np.flatnonzero(added))
    grown = selected(whole, chosen)
    at = np.searchsorted(chosen, before)
    with_slots = pairs[:, chosen]
    with_slots[:, at] |= part.slots > 0
    np.multiply(grown.slots, with_slots, out=grown.slots)
    depth = grown.depth.copy()
    depth[at] = part.depth
    entries = None
    if part.entries is not None:
        entries = pairs[:, chosen] * (BY_CLASS | BY_RACK)
        entries[:, at] |= part.entries
    return replace(grown, depth=np.where((deeper | added)[chosen], grown.depth, depth), entries=entries)
