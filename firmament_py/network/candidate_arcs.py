"""What of the room an optimum is likely to need: few tasks do not have to know the whole cluster.

Of each class those nodes are kept on which it pays least, until they have slots for several times its tasks. Others
want these nodes, too; so of all nodes up to a price at which there are slots for all who wait, of whatever class, so
many more are kept, picked at random, that every class knows enough nodes and every node enough classes. That nothing
better was left out is proved afterwards (network/arc_pricing.py), so this is only a guess that has to be good, and
quick.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools, mix
from firmament_py.network.capacities import Capacities
from firmament_py.policy import Costs

_SHARES = (0.02, 0.05, 0.1, 0.25, 0.5)
_PLENTY = (1.1, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Costs are tried at which there seem to be slots for such a share of all tasks, or for so many times as many."""

_OWN = 4
"""The cheapest nodes of a class have slots for so many times its tasks, ..."""

_KNOWN = 8
"""... and those picked at random for so many times."""

_WORTHWHILE = 20
"""With fewer than so many arcs for each task, about half of them would be kept, or more."""

_SMALL = 50_000
"""Fewer arcs than this are solved sooner than reduced."""

_SAMPLE = 256
"""Costs are guessed from so many of the cheapest nodes and as many others."""

_RUNS = 8
"""... and so many runs of slots on each."""

_NO_BOUND = np.iinfo(np.int64).max


def within_reach(room: Capacities, costs: Costs, offsets: I64, waiting: I64) -> Capacities:
    """The likely part of the room for waiting (C,) tasks, at the costs of slots that begin at offsets (K,).

    Pairs of a class and a node are there or not, with all their slots; nodes are less deep. Classes whose nodes share
    limits keep all of them, and so does everybody where data has costs.
    """
    tasks, there = int(waiting.sum()), room.slots > 0
    arcs = np.count_nonzero(there[waiting > 0]) + int(np.searchsorted(offsets, room.depth).sum())
    if costs.data is not None or arcs < max(tasks * _WORTHWHILE, _SMALL):
        return room
    nodes = room.slots.shape[1]
    slot = np.broadcast_to(costs.slot, (nodes, len(offsets)))
    cheap = _without_extra(room)
    cheaply = there if cheap is room.slots else cheap > 0
    dearest = np.full(nodes, np.iinfo(np.int64).min)  # of each node: the most that a task is likely to pay for its slot
    pairs = np.zeros_like(there)
    for classes, row in _alike(costs.place, waiting):
        place = np.broadcast_to(row, nodes)
        first = place + slot[:, 0]
        some, weight = _sample(np.where(cheaply[classes].any(axis=0), first, _NO_BOUND))
        total = place[some][:, None] + slot[some, :_RUNS]
        sample = _Sample(cheap[np.ix_(classes, some)], total, offsets, weight)
        own, known, share = sample.bounds(waiting[classes], tasks)
        near = first <= own[:, None]
        near |= (first <= known[:, None]) & _picked(classes, nodes, share)
        near &= there[classes]
        pairs[classes] = near
        most = _NO_BOUND if (known == _NO_BOUND).any() else known.max() - place
        np.maximum(dearest, most, out=dearest, where=near.any(axis=0))
    slots = np.where(pairs, room.slots, 0)
    depth = slots.sum(axis=0)
    kept = np.flatnonzero(depth)
    bought = np.where(slot[kept] <= dearest[kept, None], widths(offsets, room.depth[kept]), 0).sum(axis=1)
    depth[kept] = np.minimum(bought, depth[kept])
    return replace(room, slots=slots, depth=depth)


def widened(part: Capacities, whole: Capacities, pairs: Bools, deeper: Bools) -> Capacities:
    """The part with more pairs (C, N), and with all slots of some nodes (N,) and of those of the pairs."""
    slots = np.where(pairs, whole.slots, part.slots)
    return replace(part, slots=slots, depth=np.where(deeper | pairs.any(axis=0), whole.depth, part.depth))


def widths(offsets: I64, depth: I64) -> I64:
    """(N, K) how many slots of a node of depth (N,) each run has."""
    ends = np.append(offsets[1:], _NO_BOUND)
    found: I64 = np.maximum(np.minimum(ends, depth[:, None]) - offsets, 0)
    return found


def _sample(first: I64) -> tuple[I64, I64]:
    """Of nodes with costs first (N,): the cheapest, and some of the others; how many nodes each stands for (S,)."""
    nodes = len(first)
    if nodes <= 2 * _SAMPLE:
        return np.arange(nodes), np.ones(nodes, np.int64)
    order = np.argpartition(first, _SAMPLE)
    others = np.random.default_rng(0).permutation(order[_SAMPLE:])[:_SAMPLE]
    weight = np.repeat([1, (nodes - _SAMPLE) // _SAMPLE], _SAMPLE)
    return np.concatenate([order[:_SAMPLE], others]), weight


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some of the nodes: the slots (C, S) of classes that pay the same for being placed, the costs (S, K) of runs of
    slots, offsets (K,) as ever, and how many nodes each stands for, (S,)."""

    slots: I64
    total: I64
    offsets: I64
    weight: I64

    def bounds(self, waiting: I64, tasks: int) -> tuple[I64, I64, F64]:
        """The price (C,) of each class's own nodes, that of the nodes that all tasks might use, and what share (C,) of
        the latter the class knows."""
        own, known = np.full(len(waiting), _NO_BOUND), np.full(len(waiting), _NO_BOUND)
        share = np.ones(len(waiting))
        width = widths(self.offsets, self.slots.max(axis=0))[:, :_RUNS]
        least, candidates = self._candidates(width, tasks)
        left = np.arange(len(waiting))
        for candidate in candidates:
            cheaper = np.where(self.total <= candidate, width, 0).sum(axis=1)
            room = (self.weight * np.minimum(self.slots[left], cheaper)).sum(axis=1)
            has = room >= _OWN * waiting[left]
            own[left[has]] = np.minimum(own[left[has]], candidate)
            if candidate >= least:
                known[left[has]] = candidate
                share[left[has]] = np.minimum(_KNOWN * waiting[left[has]] / room[has], 1.0)
                left = left[~has]
        return own, known, share

    def _candidates(self, width: I64, tasks: int) -> tuple[int, list[int]]:
        """The least with room for all tasks, and all, ascending."""
        order = np.argsort(self.total, axis=None)
        upto = np.cumsum((self.weight[:, None] * width).ravel()[order])
        at = np.searchsorted(upto, [times * tasks for times in (*_SHARES, *_PLENTY)])
        found = self.total.ravel()[order[np.minimum(at, len(order) - 1)]]
        candidates: list[int] = np.unique(found[at < len(order)]).tolist()
        return int(found[len(_SHARES)]), candidates


def _alike(place: I64, waiting: I64) -> Iterator[tuple[I64, I64]]:
    """Classes that wait, those together that pay the same for being placed, and what they pay, (N,) or (1,)."""
    classes = np.flatnonzero(waiting)
    if len(place) == 1:
        yield classes, place[0]
        return
    look = mix(np.ascontiguousarray(place[classes].T), seed=1)
    _, first, kind = np.unique(look, return_index=True, return_inverse=True)
    for k, c in enumerate(classes[first].tolist()):
        yield classes[kind == k], place[c]


def _picked(classes: I64, nodes: int, share: F64) -> Bools:
    """(C, N) a share (C,) of all nodes for each class, as if at random; the same nodes for the same class again."""
    rng = np.random.default_rng(1)
    of_node = rng.integers(0, 2**32, nodes, np.uint32)
    of_class = rng.integers(0, 2**32, int(classes.max(initial=0)) + 1, np.uint32)[classes] | np.uint32(1)
    lot = of_class[:, None] * of_node  # multiplying by an odd number shuffles the numbers below 2**32
    picked: Bools = lot <= (share * (2**32 - 1)).astype(np.uint32)[:, None]
    return picked


def _without_extra(room: Capacities) -> I64:
    """(C, N) slots that no limit makes dearer or shares among nodes."""
    if not room.limits:
        return room.slots
    slots = room.slots.copy()
    for c, limits in room.limits.items():
        for limit in limits:
            if limit.is_per_node:
                wanted = np.append(limit.wanted, _NO_BOUND)[limit.domain]
                np.minimum(slots[c], wanted, out=slots[c])
            else:
                slots[c] = 0
    return slots
