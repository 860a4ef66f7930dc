"""The part of a network's arcs that an optimum is likely to use: a few tasks do not need arcs to the whole cluster.

For each class the nodes of least cost are kept, until they have slots for several times its tasks. Other classes
compete for these, so of all nodes up to a cost at which there are slots for all waiting tasks of any class a random
share is kept as well, large enough that every class has many nodes and every node many classes. The optimality of the
result is proved afterwards (network/arc_pricing.py): this is a heuristic, which must be good and fast.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, U32, mix, smallest
from firmament_py.network.capacities import BY_CLASS, BY_RACK, Capacities, selected
from firmament_py.network.node_groups import node_groups
from firmament_py.network.part import Part
from firmament_py.network.preference_arcs import likely_arcs, lots_of, preferred_pairs
from firmament_py.network.slot_runs import widths
from firmament_py.policy import Costs

_SHARES = (0.02, 0.05, 0.1, 0.25, 0.5)
_PLENTY = (1.1, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Cost bounds are tried up to which the estimated slots are these shares or multiples of the number of all tasks."""

_OWN = 4
"""The nodes of least cost that are kept for a class have slots for this multiple of its tasks, ..."""

_KNOWN = 8
"""... and those chosen at random for this multiple."""

_THROUGH_CLASS = 4
"""Of the tasks that read data, one in so many is expected to use no preference arc."""

_HEADROOM = 2
"""With limits that nodes share, there should be slots for this multiple of all tasks, since some domains get more."""

_WORTHWHILE = 20
"""With fewer arcs per task than this, about half of them or more would be kept."""

_SMALL = 50_000
"""With fewer arcs than this, solving is faster than reducing."""

_FEW_PREFERENCES = 5_000
"""So few preference arcs are all kept."""

_SAMPLE = 256
"""Costs are estimated from this number of the nodes of least cost, the same number of others, ..."""

_RUNS = 8
"""... and this number of runs of slots on each."""

_CELLS = 2**15
"""Number of cells of a block."""

_NO_BOUND = np.iinfo(np.int64).max


def candidate_part(whole: Capacities, costs: Costs, offsets: I64, task_class: I64) -> Part:
    """The likely part of a network for waiting tasks of classes (T,), at the costs of slots that begin at offsets (K,).

    A pair of a class and a node is kept with all its slots or omitted; nodes can have fewer slots. With costs of data
    nodes keep all slots, and of the preference arcs those of least cost are kept, with all that they need.
    """
    near = racks = None
    if costs.data is not None and len(costs.data.near_set) + len(costs.data.rack_set) > _FEW_PREFERENCES:
        near, racks = likely_arcs(costs.data, task_class, whole.slots, costs.slot[:, 0])
    preferred = Part(whole, near, racks)
    return replace(preferred, capacities=_candidate_pairs(whole, preferred.costs(costs), offsets, task_class))


def _candidate_pairs(whole: Capacities, costs: Costs, offsets: I64, task_class: I64) -> Capacities:
    waiting = np.bincount(whole.of_rows(task_class), minlength=len(whole.slots))
    tasks = len(task_class)
    if _is_small(whole, costs, offsets, waiting, max(tasks * _WORTHWHILE, _SMALL)):
        return whole
    nodes = whole.slots.shape[1]
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    at_base_cost = _slots_at_base_cost(whole)
    likely_cost = np.full(nodes, np.iinfo(np.int64).min)  # the highest likely cost of a slot
    pairs = np.zeros(whole.slots.shape, np.bool_)
    needed, shared = _slots_needed(whole, waiting)
    if costs.data is not None:
        with_data = np.bincount(task_class[costs.data.of_task >= 0], minlength=len(needed))
        needed = needed - with_data + -(-with_data // _THROUGH_CLASS)
    lots, factors = lots_of(nodes), _factors(len(waiting))
    for classes, row in _alike(costs.place, waiting):
        place = np.broadcast_to(row, nodes)
        first = place + slot[:, 0]
        some, weight = _sample(_where_any(at_base_cost, classes, first))
        total = place[some][:, None] + slot[some, :_RUNS]
        sample = _Sample(at_base_cost[np.ix_(classes, some)], whole.depth[some], total, offsets, weight)
        own, known, share = sample.bounds(needed[classes], tasks * (_HEADROOM if shared else 1))
        near_any = np.zeros(nodes, np.bool_)
        for i in blocks(len(classes), nodes):
            near = first <= known[i, None]
            near &= lots * factors[classes[i], None] <= (share[i, None] * (2**32 - 1)).astype(np.uint32)
            near |= first <= own[i, None]
            near &= whole.slots[classes[i]] > 0
            pairs[classes[i]] = near
            near_any |= near.any(axis=0)
        bound = _NO_BOUND if (known == _NO_BOUND).any() else known.max() - place
        np.maximum(likely_cost, bound, out=likely_cost, where=near_any)
    entries = pairs * BY_CLASS
    if costs.data is not None:
        near, of_racks = preferred_pairs(costs.data, task_class, whole.slots, costs.place + slot[:, 0])
        entries |= of_racks * BY_RACK
        pairs |= near | of_racks
    chosen = np.flatnonzero(pairs.any(axis=0))
    part = selected(whole, chosen)
    np.multiply(part.slots, pairs[:, chosen], out=part.slots)
    if costs.data is not None:
        return replace(part, entries=entries[:, chosen])
    bought = np.where(slot[chosen] <= likely_cost[chosen, None], widths(offsets, part.depth), 0).sum(axis=1)
    return replace(part, depth=np.minimum(bought, part.slots.sum(axis=0)))


def _is_small(whole: Capacities, costs: Costs, offsets: I64, waiting: I64, limit: int) -> bool:
    """Whether the network has fewer arcs than `limit`, in which equal nodes are one vertex."""
    if _arcs(whole, offsets, waiting) < limit:
        return True
    slot = np.broadcast_to(costs.slot[:, 0], len(whole.depth))
    different = len(np.unique(mix(np.stack([whole.depth, slot]), seed=7)))  # at least so many nodes are
    if costs.data is not None:
        different = max(different, int(np.count_nonzero(np.bincount(costs.data.near_node))))
    if different * np.count_nonzero(waiting) >= limit:
        return False
    _, _, first = node_groups(whole, costs)
    return _arcs(selected(whole, first), offsets, waiting) < limit


def _arcs(capacities: Capacities, offsets: I64, waiting: I64) -> int:
    """Number of the arcs of classes with waiting (C,) tasks and of slots, if no nodes are equal."""
    of_classes = sum(int(np.count_nonzero(capacities.slots[c])) for c in np.flatnonzero(waiting).tolist())
    return int(np.searchsorted(offsets, capacities.depth).sum()) + of_classes


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of so many rows that the caches can hold some arrays of so many columns."""
    height = max(_CELLS // max(columns, 1), 1)
    for first in range(0, rows, height):
        yield slice(first, first + height)


def _sample(first: I64) -> tuple[I64, I64]:
    """A sample of the nodes by the cost of their first slot (N,): those of least cost and some others; weights (S,)."""
    nodes = len(first)
    if nodes <= 2 * _SAMPLE:
        return np.arange(nodes), np.ones(nodes, np.int64)
    cheapest = smallest(first, _SAMPLE)
    others = np.random.default_rng(0).permutation(np.delete(np.arange(nodes), cheapest))[:_SAMPLE]
    weight = np.repeat([1, (nodes - _SAMPLE) // _SAMPLE], _SAMPLE)
    return np.concatenate([cheapest, others]), weight


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample of nodes: the slots (C, S) of classes with the same placement costs, those of all classes together,
    depth (S,), total costs (S, K) of runs of slots, their offsets (K,), and the number of nodes that each represents,
    weight (S,)."""

    slots: I64
    depth: I64
    total: I64
    offsets: I64
    weight: I64

    def bounds(self, waiting: I64, tasks: int) -> tuple[I64, I64, F64]:
        """The cost (C,) up to which all nodes are kept for a class, the cost up to which all tasks might use nodes, and
        the share (C,) of the latter nodes that is kept for the class."""
        own, known = np.full(len(waiting), _NO_BOUND), np.full(len(waiting), _NO_BOUND)
        share = np.ones(len(waiting))
        width = widths(self.offsets, self.depth)[:, :_RUNS]
        least, candidates = self._candidates(width, tasks)
        for candidate in candidates:
            asked = np.flatnonzero((own if candidate < least else known) == _NO_BOUND)
            up_to_cost = np.where(self.total <= candidate, width, 0).sum(axis=1)
            capacity = np.minimum(self.slots[asked], up_to_cost) @ self.weight
            has = capacity >= _OWN * waiting[asked]
            served, capacity = asked[has], capacity[has]
            own[served] = np.minimum(own[served], candidate)
            if candidate >= least:
                known[served] = candidate
                share[served] = np.minimum(_KNOWN * waiting[served] / capacity, 1.0)
        return own, known, share

    def _candidates(self, width: I64, tasks: int) -> tuple[int, list[int]]:
        """The least of the cost bounds with capacity for all tasks, and all cost bounds, ascending."""
        order = np.argsort(self.total, axis=None)
        upto = np.cumsum((self.weight[:, None] * width).ravel()[order])
        at = np.searchsorted(upto, [times * tasks for times in (*_SHARES, *_PLENTY)])
        found = self.total.ravel()[order[np.minimum(at, len(order) - 1)]]
        candidates: list[int] = np.unique(found[at < len(order)]).tolist()
        return int(found[len(_SHARES)]), candidates


def _alike(place: I64, waiting: I64) -> Iterator[tuple[I64, I64]]:
    """Groups of waiting classes with the same placement costs, and these costs, (N,) or (1,)."""
    classes = np.flatnonzero(waiting)
    if len(place) == 1:
        yield classes, place[0]
        return
    signature = mix(np.ascontiguousarray(place[classes].T), seed=1)
    _, first, kind = np.unique(signature, return_index=True, return_inverse=True)
    for k, c in enumerate(classes[first].tolist()):
        yield classes[kind == k], place[c]


def _where_any(slots: I64, classes: I64, first: I64) -> I64:
    """(N,) the cost of the first slot, (N,), of nodes that have one for any of these classes, others have no bound."""
    some = np.zeros(len(first), np.bool_)
    for c in classes.tolist():
        some |= slots[c] > 0
    return np.where(some, first, _NO_BOUND)


def _factors(classes: int) -> U32:
    """(C,) odd random numbers. Multiplication by one permutes the numbers below 2**32: those of nodes become others for
    each class, and the nodes whose number is below a bound are a random share of all, always the same for a class."""
    factors: U32 = np.random.default_rng(2).integers(0, 2**32, classes, np.uint32) | np.uint32(1)
    return factors


def _slots_needed(whole: Capacities, waiting: I64) -> tuple[I64, bool]:
    """(C,) how many slots a choice of nodes should have for each class, and whether any class has a limit that nodes
    share. Of D such domains each has about 1 / D of any choice of nodes, and must take what is sent there."""
    needed, shared = waiting.copy(), False
    for c, limits in whole.limits.items():
        for limit in limits:
            if not limit.is_per_node and len(limit.soft_limit):
                busiest = min(int(limit.soft_limit.max()), int(waiting[c]))
                needed[c], shared = max(int(needed[c]), busiest * len(limit.soft_limit)), True
    for k, of_row in whole.shared.items():
        busiest = int(of_row.soft_limit.sum(axis=0).max(initial=0))
        needed[k] = max(int(needed[k]), min(busiest, int(waiting[k])) * of_row.soft_limit.shape[1])
        shared = True
    return needed, shared


def _slots_at_base_cost(whole: Capacities) -> I64:
    """(C, N) the slots without an extra cost from a limit per node."""
    if not whole.limits:
        return whole.slots
    slots = whole.slots.copy()
    for c, limits in whole.limits.items():
        for limit in limits:
            if limit.is_per_node:
                soft_limit = np.append(limit.soft_limit, _NO_BOUND)[limit.domain]
                np.minimum(slots[c], soft_limit, out=slots[c])
    return slots
