"""Quota of a tree of queues, and what is left of it: lent, borrowed, kept; all queues and columns at once.

The definitions are Kueue's, for hierarchical cohorts. For a queue n with parent p, in each column:

    subtree(n)   = nominal(n) + sum over children c of (subtree(c) - local(c))
    local(n)     = max(0, subtree(n) - lending limit(n)), 0 if it has none       what n does not lend
    usage(n)     = own(n) + sum over children c of max(0, usage(c) - local(c))   what counts against subtree(n)
    available(n) = max(0, local(n) - usage(n))
                   + min(available(p), subtree(n) - local(n) - max(0, usage(n) - local(n)) + borrowing limit(n))
    potential(n) = min(local(n) + potential(p), subtree(n) + borrowing limit(n))

and for a root subtree(n) - usage(n), and subtree(n). Absolute limits, which Kueue does not have, bound the sum of what
the queue and all below it use.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.model.queues import UNLIMITED, Sharing
from firmament_py.queues.tree import Level, Queues


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """What does not depend on usage, (Q, V) each."""

    subtree: I64
    """What the queue and those below it are entitled to, less what they keep from it."""
    local: I64
    """The part of it that is not lent."""
    potential: I64
    """The most that the queue can use while others use nothing; limits included."""


def capacity(queues: Queues) -> Capacity:
    subtree = queues.nominal.copy()
    for level in reversed(queues.levels):
        add_to_parents(subtree, level, subtree[level.rows] - _local(queues, subtree, level.rows))
    local = _local(queues, subtree, slice(None))
    potential = subtree.copy()
    for level in queues.levels:
        rows = level.rows
        with_parent = np.minimum(local[rows] + potential[level.parents], UNLIMITED)
        potential[rows] = np.minimum(with_parent, subtree[rows] + queues.borrowing_limit[rows])
    return Capacity(subtree, local, np.minimum(potential, least_limits(queues)))


def left_to(queues: Queues, capacity: Capacity, own: I64) -> I64:
    """(Q, V) how much more the tasks of each queue may use: by quota, or by limits alone where shares are divided; if
    below 0, too much is used."""
    return available(queues, capacity, own) if _lends_quotas(queues) else below_limits(queues, own)


def _lends_quotas(queues: Queues) -> bool:
    """Whether queues lend quotas to others of their tree; else they divide what nodes offer."""
    return queues.tree.sharing in (Sharing.CLASSICAL, Sharing.FAIR)


def least_limits(queues: Queues) -> I64:
    """(Q, V) the lowest limit of each queue and those above it."""
    limit = queues.limit.copy()
    for level in queues.levels:
        limit[level.rows] = np.minimum(limit[level.rows], limit[level.parents])
    return limit


def counted_usage(queues: Queues, capacity: Capacity, own: I64) -> I64:
    """(Q, V) usage that counts against each queue's quota, of the usage (Q, V) of tasks of the queues themselves."""
    usage = own.copy()
    for level in reversed(queues.levels):
        rows = level.rows
        add_to_parents(usage, level, np.maximum(0, usage[rows] - capacity.local[rows]))
    return usage


def total_usage(queues: Queues, own: I64) -> I64:
    """(Q, V) usage of each queue and all queues below it: what absolute limits bound."""
    usage = own.copy()
    for level in reversed(queues.levels):
        add_to_parents(usage, level, usage[level.rows])
    return usage


def available(queues: Queues, capacity: Capacity, own: I64) -> I64:
    """(Q, V) how much more each queue may use now; negative where it or an ancestor is over its quota or limit."""
    usage = counted_usage(queues, capacity, own)
    free = capacity.subtree - usage
    for level in queues.levels:
        rows = level.rows
        local, used = capacity.local[rows], usage[rows]
        stored = capacity.subtree[rows] - local - np.maximum(0, used - local)
        above = np.minimum(free[level.parents], stored + queues.borrowing_limit[rows])
        free[rows] = np.maximum(0, local - used) + above
    result: I64 = np.minimum(free, below_limits(queues, own))
    return result


def below_limits(queues: Queues, own: I64) -> I64:
    """(Q, V) how much more each queue may use until it or an ancestor reaches an absolute limit."""
    free: I64 = queues.limit - total_usage(queues, own)
    for level in queues.levels:
        free[level.rows] = np.minimum(free[level.rows], free[level.parents])
    return free


def borrowed(queues: Queues, capacity: Capacity, own: I64) -> I64:
    """(Q, V) how much more each queue uses than it is entitled to. Where quotas are lent, nobody lends to a root: if it
    uses more than its quota, that was lowered (Kueue's getUsage)."""
    amounts: I64 = np.maximum(0, counted_usage(queues, capacity, own) - capacity.subtree)
    if _lends_quotas(queues):
        amounts[queues.parent < 0] = 0
    return amounts


def fits(queues: Queues, available: I64, queue: I64, request: I64) -> Bools:
    """(J,) whether requests (J, V) of queues (J,) fit, each on its own: in quota that is stated and available."""
    free = np.maximum(0, available[queue])
    suits: Bools = np.all((request == 0) | ((request <= free) & queues.covered[queue]), axis=1)
    return suits


def _local(queues: Queues, subtree: I64, rows: slice) -> I64:
    lending_limit = queues.lending_limit[rows]
    withheld: I64 = np.maximum(0, subtree[rows] - lending_limit)
    withheld[lending_limit >= UNLIMITED] = 0
    return withheld


def add_to_parents(values: I64, level: Level, amounts: I64) -> None:
    """Adds amounts of a level's queues to those of their parents; sums stop at UNLIMITED and do not wrap around."""
    approximate = values.astype(np.float64)
    np.add.at(approximate, level.parents, amounts.astype(np.float64))  # numpy adds mixed types three times as slowly
    np.add.at(values, level.parents, amounts)
    values[approximate >= UNLIMITED] = UNLIMITED
