"""Dominant shares: of what is borrowed (Kueue's fair sharing), and of what is used (Volcano's).

For a queue n with parent p, request included in its usage:

    borrowed(n, r) = sum over flavors of max(0, usage(n) - subtree quota(n))
    ratio(n)       = 1000 x max over resources r of borrowed(n, r) / (sum over flavors of potential(p)), 0 for roots
    share(n)       = ratio(n) / weight(n); above all others if the weight is 0 and the ratio is not
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


def _dominant(amounts: I64 | F64, total: I64) -> F64:
    parts = np.divide(amounts, total, out=(amounts > 0).astype(np.float64), where=total > 0)
    share: F64 = parts.max(axis=1, initial=0.0)
    return share
