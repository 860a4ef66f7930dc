"""Tasks that leave nodes and tasks that arrive on nodes, together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, add_rows


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks that leave nodes `origin` (D,), which releases `released` (D, R), and tasks that arrive on nodes `target`
    (A,), where they take `taken` (A, R)."""

    origin: I64
    released: I64
    target: I64
    taken: I64

    @classmethod
    def of_all(cls, bundles: Iterable[Bundle]) -> Bundle:
        """All of them as one."""
        columns = zip(*((each.origin, each.released, each.target, each.taken) for each in bundles), strict=True)
        return cls(*map(np.concatenate, columns))

    def fits(self, free: I64) -> bool:
        """Whether free (N, R) has capacity for all that arrives once what leaves is gone. A resource of which a node
        has less than it uses is no obstacle to tasks that request none of it."""
        nodes, at = np.unique(self.target, return_inverse=True)
        taken = np.zeros((len(nodes), free.shape[1]), np.int64)
        add_rows(taken, at.reshape(-1), self.taken)
        left = free[nodes] - taken
        there = np.isin(self.origin, nodes)
        add_rows(left, np.searchsorted(nodes, self.origin[there]), self.released[there])
        return not (taken[left < 0] > 0).any()
