"""The part of a network's arcs that an optimum is likely to use: few tasks need not know the whole cluster.

Of each class the nodes are kept that cost it least, until they have slots for several times its tasks. Other classes
compete for these, so of all nodes up to a cost at which there are slots for all waiting tasks of any class a random
share is kept, too, large enough that every class has plenty of nodes and every node plenty of classes. The proof that
nothing better was left out comes afterwards (network/arc_pricing.py): this is a guess, which must be good and quick.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, mix
from firmament_py.network.capacities import Capacities
from firmament_py.policy import Costs

_SHARES = (0.02, 0.05, 0.1, 0.25, 0.5)
_PLENTY = (1.1, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Costs are tried up to which there seem to be slots for these shares of all tasks, or for as many times all tasks."""

_OWN = 4
"""The nodes that cost a class least have slots for so many times its tasks, ..."""

_KNOWN = 8
"""... and those picked at random for so many times."""

_WORTHWHILE = 20
"""With fewer arcs than so many for each task, about half of them or more would be kept."""

_SMALL = 50_000
"""Fewer arcs than this are solved sooner than reduced."""

_SAMPLE = 256
"""Costs are estimated from so many of the nodes that cost least and as many others."""

_RUNS = 8
"""... and so many runs of slots on each."""

_NO_BOUND = np.iinfo(np.int64).max


def candidate_part(whole: Capacities, costs: Costs, offsets: I64, waiting: I64) -> Capacities:
    """The likely part of the capacities for waiting (C,) tasks, at the costs of slots that begin at offsets (K,).

    A pair of a class and a node is kept with all its slots or not at all; nodes may have fewer slots. Classes with
    limits that nodes share keep all their pairs, and so do all classes if there are costs of data.
    """
    tasks, there = int(waiting.sum()), whole.slots > 0
    arcs = np.count_nonzero(there[waiting > 0]) + int(np.searchsorted(offsets, whole.depth).sum())
    if costs.data is not None or arcs < max(tasks * _WORTHWHILE, _SMALL):
        return whole
    nodes = whole.slots.shape[1]
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    at_base_cost = _slots_at_base_cost(whole)
    has_base_cost = there if at_base_cost is whole.slots else at_base_cost > 0
    likely_cost = np.full(nodes, np.iinfo(np.int64).min)  # the most that a task is likely to pay for a slot of a node
    pairs = np.zeros_like(there)
    for classes, row in _alike(costs.place, waiting):
        place = np.broadcast_to(row, nodes)
        first = place + slot[:, 0]
        some, weight = _sample(np.where(has_base_cost[classes].any(axis=0), first, _NO_BOUND))
        total = place[some][:, None] + slot[some, :_RUNS]
        sample = _Sample(at_base_cost[np.ix_(classes, some)], total, offsets, weight)
        own, known, share = sample.bounds(waiting[classes], tasks)
        near = first <= own[:, None]
        near |= (first <= known[:, None]) & _picked(classes, nodes, share)
        near &= there[classes]
        pairs[classes] = near
        bound = _NO_BOUND if (known == _NO_BOUND).any() else known.max() - place
        np.maximum(likely_cost, bound, out=likely_cost, where=near.any(axis=0))
    slots = np.where(pairs, whole.slots, 0)
    depth = slots.sum(axis=0)
    offered = np.flatnonzero(depth)
    bought = np.where(slot[offered] <= likely_cost[offered, None], widths(offsets, whole.depth[offered]), 0).sum(axis=1)
    depth[offered] = np.minimum(bought, depth[offered])
    return replace(whole, slots=slots, depth=depth)


def extended(part: Capacities, whole: Capacities, pairs: Bools, deeper: Bools) -> Capacities:
    """The part with further pairs (C, N), and with all slots of the nodes `deeper` (N,) and of those of the pairs."""
    slots = np.where(pairs, whole.slots, part.slots)
    return replace(part, slots=slots, depth=np.where(deeper | pairs.any(axis=0), whole.depth, part.depth))


def widths(offsets: I64, depth: I64) -> I64:
    """(N, K) how many slots of a node of depth (N,) each run has."""
    ends = np.append(offsets[1:], _NO_BOUND)
    found: I64 = np.maximum(np.minimum(ends, depth[:, None]) - offsets, 0)
    return found


def _sample(first: I64) -> tuple[I64, I64]:
    """Of nodes with costs first (N,): those of least cost, and some others; how many nodes each stands for (S,)."""
    nodes = len(first)
    if nodes <= 2 * _SAMPLE:
        return np.arange(nodes), np.ones(nodes, np.int64)
    order = np.argpartition(first, _SAMPLE)
    others = np.random.default_rng(0).permutation(order[_SAMPLE:])[:_SAMPLE]
    weight = np.repeat([1, (nodes - _SAMPLE) // _SAMPLE], _SAMPLE)
    return np.concatenate([order[:_SAMPLE], others]), weight


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some of the nodes: the slots (C, S) of classes with the same placement costs, total costs (S, K) of runs of
    slots, their offsets (K,), and how many nodes each stands for, weight (S,)."""

    slots: I64
    total: I64
    offsets: I64
    weight: I64

    def bounds(self, waiting: I64, tasks: int) -> tuple[I64, I64, F64]:
        """The cost (C,) up to which nodes are a class's own, that up to which all tasks might use them, and the share
        (C,) of the latter that is kept for the class."""
        own, known = np.full(len(waiting), _NO_BOUND), np.full(len(waiting), _NO_BOUND)
        share = np.ones(len(waiting))
        width = widths(self.offsets, self.slots.max(axis=0))[:, :_RUNS]
        least, candidates = self._candidates(width, tasks)
        left = np.arange(len(waiting))
        for candidate in candidates:
            up_to_cost = np.where(self.total <= candidate, width, 0).sum(axis=1)
            capacity = (self.weight * np.minimum(self.slots[left], up_to_cost)).sum(axis=1)
            has = capacity >= _OWN * waiting[left]
            own[left[has]] = np.minimum(own[left[has]], candidate)
            if candidate >= least:
                known[left[has]] = candidate
                share[left[has]] = np.minimum(_KNOWN * waiting[left[has]] / capacity[has], 1.0)
                left = left[~has]
        return own, known, share

    def _candidates(self, width: I64, tasks: int) -> tuple[int, list[int]]:
        """Of the costs to try the least with capacity for all tasks, and all of them, ascending."""
        order = np.argsort(self.total, axis=None)
        upto = np.cumsum((self.weight[:, None] * width).ravel()[order])
        at = np.searchsorted(upto, [times * tasks for times in (*_SHARES, *_PLENTY)])
        found = self.total.ravel()[order[np.minimum(at, len(order) - 1)]]
        candidates: list[int] = np.unique(found[at < len(order)]).tolist()
        return int(found[len(_SHARES)]), candidates


def _alike(place: I64, waiting: I64) -> Iterator[tuple[I64, I64]]:
    """Waiting classes, those with the same placement costs together, and these costs, (N,) or (1,)."""
    classes = np.flatnonzero(waiting)
    if len(place) == 1:
        yield classes, place[0]
        return
    signature = mix(np.ascontiguousarray(place[classes].T), seed=1)
    _, first, kind = np.unique(signature, return_index=True, return_inverse=True)
    for k, c in enumerate(classes[first].tolist()):
        yield classes[kind == k], place[c]


def _picked(classes: I64, nodes: int, share: F64) -> Bools:
    """(C, N) a pseudo-random share (C,) of all nodes for each class; for the same class always the same nodes."""
    rng = np.random.default_rng(1)
    of_node = rng.integers(0, 2**32, nodes, np.uint32)
    of_class = rng.integers(0, 2**32, int(classes.max(initial=0)) + 1, np.uint32)[classes] | np.uint32(1)
    lot = of_class[:, None] * of_node  # multiplying by an odd number shuffles the numbers below 2**32
    picked: Bools = lot <= (share * (2**32 - 1)).astype(np.uint32)[:, None]
    return picked


def _slots_at_base_cost(whole: Capacities) -> I64:
    """(C, N) the slots that no limit makes costlier or shares among nodes."""
    if not whole.limits:
        return whole.slots
    slots = whole.slots.copy()
    for c, limits in whole.limits.items():
        for limit in limits:
            if limit.is_per_node:
                soft_limit = np.append(limit.soft_limit, _NO_BOUND)[limit.domain]
                np.minimum(slots[c], soft_limit, out=slots[c])
            else:
                slots[c] = 0
    return slots
