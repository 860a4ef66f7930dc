"""Why quotas keep tasks waiting, as columns."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools


class Cause(IntEnum):
    UNKNOWN = 0
    """The queue does not exist, or takes no tasks."""
    STOPPED = 1
    """The queue, or one above it, is stopped."""
    NO_FLAVOR = 2
    """No node that the queue has quota for suits the task."""
    BEHIND = 3
    """An older task of the queue, which goes strictly by age, waits."""
    OVER_QUOTA = 4
    """A quota does not suffice."""


@dataclass(frozen=True, slots=True)
class Shortages:
    """K tasks that wait: rows (K,) of the task table; cause (K,); queue (K,): the one that is stopped, or whose quota
    does not suffice, -1: none; resource (K,): of which it has too little, position in `names`, -1: none; lacking (K,):
    how much more is needed."""

    rows: I64
    cause: I64
    queue: I64
    resource: I64
    lacking: I64
    names: tuple[str, ...] = ()

    def only(self, some: Bools) -> "Shortages":
        """Those of `some` (K,)."""
        columns = self.rows, self.cause, self.queue, self.resource, self.lacking
        rows, cause, queue, resource, lacking = (column[some] for column in columns)
        return Shortages(rows, cause, queue, resource, lacking, self.names)

    def and_also(self, other: "Shortages") -> "Shortages":
        """Those of both."""

        def both(name: str) -> I64:
            joined: I64 = np.concatenate([getattr(self, name), getattr(other, name)])
            return joined

        rows, cause, queue = both("rows"), both("cause"), both("queue")
        return Shortages(rows, cause, queue, both("resource"), both("lacking"), self.names or other.names)


NO_SHORTAGES = Shortages(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)


def of_cause(rows: I64, cause: Cause, queue: I64 | int = -1) -> Shortages:
    """Tasks (K,) that wait for the same cause."""
    none, zero = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
    return Shortages(rows, zero + int(cause), zero + queue, none, zero)
