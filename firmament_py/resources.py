"""Resource dimensions: which column of every amount matrix belongs to which resource.

Dimensions are created when a node or a class first names them, so extended resources need no registration.
Amounts are non-negative integers in whatever unit the sender uses for that resource on nodes and classes alike
(the bridge: millicores, bytes, pieces). Amounts are held below LIMIT, so that a thousand of them add up in an
int64 and a float64 holds each exactly: a request above it counts as LIMIT, which no node has.
"""

from collections.abc import Mapping

import numpy as np

from firmament_py.arrays import I64

LIMIT = 2**53
"""No node has this much of anything; larger requests are counted as this."""

TASK_SLOTS = "pods"
"""The resource of which every task takes one. (Its name in the contract; Kubernetes calls it so.)"""


class Resources:
    """Resource name <-> column number; columns are only ever added."""

    def __init__(self) -> None:
        self._column: dict[str, int] = {}
        self.column(TASK_SLOTS)

    def __len__(self) -> int:
        return len(self._column)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._column)

    def column(self, name: str) -> int:
        """The column of resource `name`, a new one if it was never named."""
        return self._column.setdefault(name, len(self._column))

    def vector(self, amounts: Mapping[str, int], ceiling: int) -> I64:
        """`amounts` as a row (len(self),), after creating columns for names that are new; each <= ceiling."""
        columns = [self.column(name) for name in amounts]
        row = np.zeros(len(self), np.int64)
        row[columns] = [min(amount, ceiling) for amount in amounts.values()]
        return row


def widen(matrix: I64, columns: int) -> I64:
    """`matrix` (rows, k) with zero columns added up to `columns`; itself if it is wide enough."""
    missing = columns - matrix.shape[1]
    if missing <= 0:
        return matrix
    return np.pad(matrix, ((0, 0), (0, missing)))
