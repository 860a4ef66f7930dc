"""Checks of a round with queues that read only the generated load and which tasks it placed where."""

from __future__ import annotations

import numpy as np

from benchmarks.loads.queues.load import QUOTAS, QueuesLoad, by_quota
from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.model.queues import Sharing

_PORTIONS = 256
"""Groups of alike tasks are admitted in so many portions, or task by task if they are smaller."""

_HALVINGS, _ROUNDING = 60, 1e-6


class PlacedTasks:
    """What a round placed: task rows (K,) of a load, and node rows (K,)."""

    def __init__(self, load: QueuesLoad, uids: U64, node_ids: list[str]) -> None:
        self._load = load
        self.tasks: I64 = uids.astype(np.int64) - 1
        self.nodes: I64 = np.array([int(node.removeprefix("node-")) for node in node_ids], np.int64)
        runs = np.arange(load.base.running)
        self._counted: Bools = np.zeros(len(load.queue), np.bool_)
        self._counted[np.append(runs, self.tasks)] = True

    def _used(self) -> I64:
        """(Q, R) of all tasks that run or are placed, by queue with those below it."""
        load, used = self._load, np.zeros_like(self._load.guarantee)
        np.add.at(used, load.queue[self._counted], load.requests[self._counted])
        return load.below(used)

    def above_limits(self) -> str:
        """The first queue in which tasks are placed and that uses more than its limit; empty if there is none."""
        load, used = self._load, self._used()
        new = load.below(np.bincount(load.queue[self.tasks], minlength=len(load.parent)))
        limit = load.limit.copy()
        if not by_quota(load.spec.sharing):
            limit[0] = load.capacity  # the same, as a limit of the root
        over = (used > limit) & (new > 0)[:, None]
        if not over.any():
            return ""
        row, r = np.argwhere(over)[0].tolist()
        return f"queue-{row} uses {used[row, r]} of {limit[row, r]} {QUOTAS[r]}"

    def guarantees_missed(self) -> str:
        """A task that waits although it is within the guarantee of its queue and would fit on a node without the tasks
        placed there that borrow; empty if there is none.

        Jobs of a queue go by age. The least of each that is within its guarantee is what fits beside all older jobs,
        the utmost what fits beside the least of these: so what counts as borrowing borrows for certain.
        """
        load = self._load
        least, utmost = self._within()
        placed = np.bincount(load.job[self.tasks], minlength=len(least))
        borrows = utmost[load.job[self.tasks]] == 0
        free = load.base.allocatable - load.base.requested(self.tasks[~borrows], self.nodes[~borrows])
        denied = np.flatnonzero(placed < least)
        first = np.unique(load.job, return_index=True)[1]
        cls = self._load.tasks(queued=False).class_id.astype(np.int64)[first[denied]] - 1
        taken = np.bincount(self.nodes[borrows], minlength=len(free)) > 0
        for c in np.unique(cls).tolist():
            fits = (free >= load.base.requests[c]).all(axis=1) & taken
            if fits.any():
                job = int(denied[cls == c][0])
                return f"job-{job} of queue-{load.queue[first[job]]} waits, and others borrow {int(fits.sum())} nodes"
        return ""

    def _within(self) -> tuple[I64, I64]:
        """(J,) how many tasks of each job that is not running are within the guarantee of its queue: the least, and the
        utmost."""
        load, runs = self._load, self._load.base.running
        jobs = int(load.job.max()) + 1
        least, utmost = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
        left = load.guarantee.copy()
        np.subtract.at(left, load.queue[:runs], load.requests[:runs])
        possible = left.copy()
        found, first, count = np.unique(load.job[runs:], return_index=True, return_counts=True)
        first = first + runs
        for at in np.argsort(load.created_us[first], kind="stable").tolist():
            job, row, number = int(found[at]), int(load.queue[first[at]]), int(count[at])
            request = load.requests[first[at]]
            least[job] = min(max(int((left[row] // request).min()), 0), number)
            utmost[job] = min(max(int((possible[row] // request).min()), 0), number)
            left[row] -= number * request
            possible[row] -= least[job] * request
        return least, utmost

    def unequal_shares(self) -> str:
        """The first queue whose share differs from its fair one by more than a portion; empty if there is none.

        Only for loads of one class without limits, under FAIR and PROPORTIONAL sharing.

        FAIR: no queue borrows more by weight, without its last portion, than a sibling that lacks something would with
        one task more. PROPORTIONAL: water filling of what is above the guarantees, from the root downwards. A portion
        is a task, or one of 256 parts of the tasks of a leaf.
        """
        load = self._load
        request = load.requests[0, 0]
        used, guarantee = self._used()[:, 0] // request, load.guarantee[:, 0] // request
        own = np.bincount(load.queue, minlength=len(load.parent))
        demand, last = load.below(own), np.maximum(own // _PORTIONS, 1)
        if load.spec.sharing is Sharing.PROPORTIONAL:
            share = self._filled(np.minimum(guarantee, demand), demand, int(load.capacity[0] // request))
            row = int(np.abs(used - share).argmax())
            wrong = abs(used[row] - share[row]) > last.max() + _ROUNDING
            return f"queue-{row} uses {used[row]} tasks, its share is {share[row]:.2f}" if wrong else ""
        for row in range(len(last) - 1, 0, -1):
            last[load.parent[row]] = max(last[load.parent[row]], last[row])
        borrowed = used - guarantee
        for parent in np.flatnonzero(~load.leaf).tolist():
            children = np.flatnonzero(load.parent == parent)
            lacks = children[demand[children] > used[children]]
            now = np.maximum(borrowed[children] - last[children] + 1, 0) / load.weight[children]
            could = np.maximum(borrowed[lacks] + 1, 0) / load.weight[lacks]
            if now.max() > could.min(initial=np.inf) + _ROUNDING:
                rich, poor = children[now.argmax()], lacks[could.argmin()]
                return f"queue-{rich} borrows {now.max():.2f} by weight, queue-{poor} would {could.min():.2f}"
        return ""

    def _filled(self, base: I64, demand: I64, total: int) -> F64:
        """(Q,) shares: the base (Q,) and, by weight, what is left of the parent's share, up to the demand (Q,)."""
        load = self._load
        share = np.zeros(len(base))
        share[0] = min(total, int(demand[0]))
        for parent in np.flatnonzero(~load.leaf).tolist():
            rows = np.flatnonzero(load.parent == parent)
            low, high = 0.0, float(demand[rows].max()) + 1.0  # weights are at least 1
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                filled = np.minimum(base[rows] + middle * load.weight[rows], demand[rows])
                low, high = (middle, high) if filled.sum() <= share[parent] else (low, middle)
            share[rows] = np.minimum(base[rows] + low * load.weight[rows], demand[rows])
        return share
