"""Which queues compete: of the others, and of those above them, quotas and limits suffice for all that waits."""

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.queues.admission_state import Forest, Progress
from firmament_py.queues.tree import Queues

_MARGIN = 1 + 1e-9
"""Sums of amounts are floats, which cannot overflow, and are rounded."""


def contested(
    queues: Queues, forest: Forest, progress: Progress, queue: I64, demand: F64, firm: Bools, lanes: Bools
) -> Bools:
    """(Q,) queues of which some job might not be admitted, or get another flavor, if jobs of others come first.

    demand (J, V): what jobs of queues (J,) request on each flavor that suits them, as if they took all of these, so the
    answer errs on the side of contention; firm (J,): those that cannot be preempted; lanes (Q,):
    queues with more than one.
    """
    below = _below(queues, queue, demand, forest.by_quota)
    free = forest.limit - progress.used
    if forest.by_quota:
        lent = forest.subtree - forest.local - np.maximum(0, progress.usage - forest.local) + forest.borrowing_limit
        roots = queues.parent < 0
        lent[roots] = (forest.subtree - progress.usage)[roots]
        free = np.minimum(free, lent)
    short: Bools = (below > 0) & (below > free)
    if forest.firm_within_nominal and firm.any():
        of_firm = _below(queues, queue[firm], demand[firm], forest.by_quota)
        short |= (of_firm > 0) & (of_firm > forest.nominal - progress.firm_used)
    found: Bools = np.logical_or.reduce(short, axis=1)
    if not forest.by_quota:
        found |= bool((below[queues.parent < 0].sum(axis=0) > forest.total - progress.cluster_used).any())
    for level in queues.levels:
        found[level.rows] |= found[level.parents]
    some = np.bincount(queue, minlength=queues.count) > 0
    several = (forest.flavor_order[:, :, 1:] >= 0).any(axis=(1, 2))
    found |= lanes & forest.strict_fifo  # a job that nothing fits stops the jobs of lanes that come after it
    if forest.by_quota:
        # the choice of a flavor, and the size of portions, depend on how far up a job has to borrow, thus on usage of
        # all queues below the same root
        borrowing = some & ((found & (several | lanes)) | (several & forest.avoid_borrowing))
        root = queues.roots()
        found |= np.isin(root, root[borrowing])
    return found


def _below(queues: Queues, queue: I64, demand: F64, by_quota: bool) -> F64:
    """(Q, V) the demand (J, V) of jobs of queues (J,) in each queue and all below it."""
    below = np.zeros((queues.count, demand.shape[1]))
    np.add.at(below, queue, demand)
    if by_quota:
        below[~queues.covered] = 0.0
    for level in reversed(queues.levels):
        np.add.at(below, level.parents, below[level.rows])
    return below * _MARGIN
