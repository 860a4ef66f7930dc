"""The scores by which kube-scheduler chooses among the nodes that fit, retold."""

from __future__ import annotations

import numpy as np

from firmament_py.model.arrays import F64, I64


def scores(left: I64, offered: I64) -> F64:
    """(N,) sum of LeastAllocated and BalancedAllocation over two resources, each 0 .. 100, if a pod leaves `left`
    (N, 2) of `offered` (N, 2)."""
    share = left / offered
    total: F64 = np.floor(100 * share.mean(axis=1)) + np.floor(100 - 50 * np.abs(share[:, 0] - share[:, 1]))
    return total
