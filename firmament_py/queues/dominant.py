"""Dominant shares: of what is borrowed (Kueue's fair sharing), and hierarchical ones of what is used (Volcano's HDRF).

For a queue n with parent p, request included in its usage:

    borrowed(n, r) = sum over flavors of max(0, usage(n) - subtree quota(n))
    ratio(n)       = 1000 x max over resources r of borrowed(n, r) / (sum over flavors of potential(p)), 0 for roots
    share(n)       = ratio(n) / weight(n); above all others if the weight is 0 and the ratio is not

HDRF: the dominant share of amounts is their largest part of the cluster's total. A queue's amounts are the sum of its
children's. Children that request more, and can get it, are first rescaled to the least of their dominant shares: so one
that uses a resource no other needs does not count against its siblings. The other children are *saturated*.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.queues.quota import Capacity
from firmament_py.queues.tree import Queues

WITHOUT_WEIGHT = 2.0**512
"""Shares of queues that borrow without a weight are their ratio times this: above all others, in order of the ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class DominantShares:
    share: F64
    """(Q,) comparable across queues, the lowest to be served first."""
    ratio: F64
    """(Q,) without weights, in thousandths."""
    resource: I64
    """(Q,) the dominant resource, the first by name if several are; -1 of queues that borrow nothing."""
    borrowed: Bools
    """(Q, V) where a queue borrows."""

    def reported(self, row: int) -> float:
        """A queue's weighted share as Kueue reports it: infinite without a weight."""
        return float("inf") if self.share[row] >= WITHOUT_WEIGHT else float(self.share[row])


def lendable(queues: Queues, capacity: Capacity) -> F64:
    """(Q, R) what all below each queue can use at most, over all flavors."""
    flavors, resources = len(queues.flavors), len(queues.resources)
    amounts: F64 = capacity.potential.reshape(queues.count, flavors, resources).sum(axis=1, dtype=np.float64)
    return amounts


def dominant_shares(queues: Queues, capacity: Capacity, usage: I64) -> DominantShares:
    """Shares at the counted usage (Q, V) of quota.counted_usage."""
    rows = np.arange(queues.count)
    excess = _excess(queues, capacity, rows, usage)
    ratios = _ratios(queues, capacity, rows, excess)
    by_name = np.argsort(queues.resources)
    ratio, resource = np.zeros(queues.count), np.full(queues.count, -1)
    if queues.resources:
        first = np.argmax(ratios[:, by_name], axis=1)
        ratio = ratios[rows, by_name[first]]
        resource = np.where(ratio > 0.0, by_name[first], -1)
    return DominantShares(weighted(ratio, queues.weight), ratio, resource, excess > 0)


def shares_of(queues: Queues, capacity: Capacity, rows: I64, usage: I64) -> F64:
    """(K,) the shares of queues, rows (K,), each at a counted usage of its own, (K, V)."""
    ratios = _ratios(queues, capacity, rows, _excess(queues, capacity, rows, usage))
    return weighted(ratios.max(axis=1, initial=0.0), queues.weight[rows])


def _excess(queues: Queues, capacity: Capacity, rows: I64, usage: I64) -> I64:
    """(K, V) what queues, rows (K,), borrow."""
    borrows = queues.known[rows] & (queues.parent[rows] >= 0)[:, None]
    return np.where(borrows, np.maximum(0, usage - capacity.subtree[rows]), 0)


def _ratios(queues: Queues, capacity: Capacity, rows: I64, excess: I64) -> F64:
    """(K, R) what they borrow, in thousandths of what their parents can lend."""
    flavors, resources = len(queues.flavors), len(queues.resources)
    borrowed = excess.reshape(len(rows), flavors, resources).sum(axis=1, dtype=np.float64)
    available = lendable(queues, capacity)[queues.parent[rows]]  # of roots: of any queue; they borrow nothing
    ratios: F64 = np.zeros_like(borrowed)
    np.divide(1000.0 * borrowed, available, out=ratios, where=available > 0.0)
    return ratios


def weighted(ratio: F64, weight: F64) -> F64:
    """Ratios by weight; those without a weight are above all others."""
    share = np.minimum(np.divide(ratio, weight, out=np.zeros_like(ratio), where=weight > 0.0), WITHOUT_WEIGHT / 2)
    share[weight == 0.0] = ratio[weight == 0.0] * WITHOUT_WEIGHT
    return share


def weighted_parts(queues: Queues, total: I64, usage: I64) -> F64:
    """(Q,) the largest part of the `total` (V,) of a resource, over all flavors, that a queue's usage (Q, V) is, by
    weight."""
    shape = (-1, len(queues.flavors), len(queues.resources))
    return weighted(_dominant(usage.reshape(shape).sum(axis=1), total.reshape(shape).sum(axis=1)[0]), queues.weight)


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalShares:
    share: F64
    """(Q,) by weight."""
    saturated: Bools
    """(Q,) whether all jobs of the queue, and of those below it, are saturated."""
    amounts: F64
    """(Q, R) rescaled."""

    def order(self, queues: Queues) -> I64:
        """(Q,) the place of each queue: from the roots downwards those that are not saturated, then by share."""
        keys: list[F64 | Bools] = []
        for step in range(queues.paths.shape[1]):
            # paths are padded at their ends: the root is the last entry that is not -1
            rows = np.take_along_axis(queues.paths, (queues.depth - step).clip(0)[:, None], axis=1)[:, 0]
            there = queues.depth >= step
            keys += [np.where(there, self.saturated[rows], False), np.where(there, self.share[rows], 0.0)]
        places = np.empty(queues.count, np.int64)
        places[np.lexsort(keys[::-1])] = np.arange(queues.count)
        return places


def hierarchical_shares(queues: Queues, total: I64, job_queue: I64, used: I64, request: I64) -> HierarchicalShares:
    """HDRF shares of the queues (J,) of J jobs; `used` and `request` (J, R) are of all of a job, `total` (R,)."""
    short = used.sum(axis=0) < total  # resources of which some is left
    job_saturated = np.any(((used > 0) & (request > 0) & (used >= request)) | (~short & (request > 0)), axis=1)
    job_share = _dominant(used, total)
    fields = HierarchicalShares(
        np.zeros(queues.count), np.ones(queues.count, np.bool_), np.zeros((queues.count, len(total)))
    )
    _rescale(fields, job_queue, job_share, job_saturated, used.astype(np.float64))
    np.maximum(fields.share, _dominant(fields.amounts, total), out=fields.share)
    for level in reversed(queues.levels):
        rows = level.rows
        _rescale(fields, level.parents, fields.share[rows], fields.saturated[rows], fields.amounts[rows])
        parents = np.unique(level.parents)
        fields.share[parents] = _dominant(fields.amounts[parents], total)
    return HierarchicalShares(weighted(fields.share, queues.weight), fields.saturated, fields.amounts)


def _dominant(amounts: I64 | F64, total: I64) -> F64:
    parts = np.divide(amounts, total, out=(amounts > 0).astype(np.float64), where=total > 0)
    share: F64 = parts.max(axis=1, initial=0.0)
    return share


def _rescale(fields: HierarchicalShares, parents: I64, share: F64, saturated: Bools, amounts: F64) -> None:
    """Adds the amounts of children to those of their parents."""
    np.logical_and.at(fields.saturated, parents, saturated)
    hungry = ~saturated & (share > 0.0)
    least = np.ones(len(fields.share))
    np.minimum.at(least, parents[hungry], share[hungry])
    scale = np.where(saturated, 1.0, np.divide(least[parents], share, out=np.zeros_like(share), where=share > 0.0))
    np.add.at(fields.amounts, parents, amounts * scale[:, None])
