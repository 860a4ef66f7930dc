"""The expected times at which running tasks release their resources, and the tasks that are not expected to."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, add_rows, positions_in, stable_order
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG

FOREVER = 2**62
"""The expected end of a task without an expected duration."""


class Releases:
    """Expected releases of the assumed and bound tasks on `nodes` (N,), rows of the node table, at `now_us`.

    A task ends when its expected duration has passed; one that has not started counts as starting now, and one that is
    overdue or terminating as ending now. Tasks are sorted once, on first use; after that, the resources released by any
    time are a difference of prefix sums.
    """

    def __init__(self, state: ClusterState, nodes: I64, now_us: int) -> None:
        self.state = state
        self._nodes = nodes
        self._now_us = now_us
        self._last: tuple[int, tuple[I64, I64]] | None = None  # the last gang that was asked for, and the answer

    def staying(self, gang: int) -> tuple[I64, I64]:
        """Rows (K,), ascending, of the tasks whose resources a gang, a row of the gang table, cannot get: its own tasks
        and those that run as long as their node and have no expected duration. And (N, R) their usage. Not to be
        written to."""
        if self._last is None or self._last[0] != max(gang, NO_GANG):
            self._last = max(gang, NO_GANG), self._staying(gang)
        return self._last[1]

    def _staying(self, gang: int) -> tuple[I64, I64]:
        if gang < 0:  # a single task has no other members
            return self._lasting
        tasks, (rows, node, end), (stay, used) = self.state.tasks, self._running, self._lasting
        own = (tasks.gang[rows] == gang) & ~tasks.leaving[rows] & ~(tasks.lasting[rows] & (end == FOREVER))
        used = used.copy()
        add_rows(used, node[own], self.state.classes.requests[tasks.cls[rows[own]]])
        return np.sort(np.concatenate([stay, rows[own]])), used

    @cached_property
    def _lasting(self) -> tuple[I64, I64]:
        """Rows (K,) of the running tasks that stay as long as their node, and (N, R) their usage."""
        state = self.state
        used = np.zeros((len(self._nodes), len(state.resources)), np.int64)
        if not state.tasks.lasting.any():
            return NO_ROWS, used
        rows, node, end = self._running
        stay = state.tasks.lasting[rows] & (end == FOREVER)
        add_rows(used, node[stay], state.classes.requests[state.tasks.cls[rows[stay]]])
        return rows[stay], used

    @cached_property
    def ends(self) -> I64:
        """(E,) expected ends of tasks, ascending, microseconds since the epoch, >= now."""
        return self._sorted.ends

    def until(self, when_us: int) -> I64:
        """(N, R) resources in use now that are expected to be released by `when_us`."""
        found, nodes = self._sorted, len(self._nodes)
        ended = int(np.searchsorted(found.ends, when_us, side="right"))
        key = found.node * len(found.ends) + found.rank
        last = np.searchsorted(key, np.arange(nodes) * len(found.ends) + ended)
        return found.total.take(last, axis=0) - found.total.take(found.first, axis=0)

    def steps(self, on: Bools) -> tuple[I64, I64, I64]:
        """For the tasks on the nodes `on` (N,) that are expected to end, by node, then end: (K,) node numbers, (K,)
        positions of their ends in `ends`, and (K, R) resources released on the node by then."""
        found = self._sorted
        chosen = np.flatnonzero(on[found.node])
        node = found.node[chosen]
        released = found.total.take(chosen + 1, axis=0) - found.total.take(found.first[node], axis=0)
        return node, found.rank[chosen], released

    @cached_property
    def _sorted(self) -> "_Sorted":
        rows, node, end = (column[self._running[2] < FOREVER] for column in self._running)
        order = np.argsort(end)  # the order of tasks that end at the same time does not matter: only sums count
        end = end[order]
        new = np.diff(end, prepend=-1) > 0
        ends, rank = end[new], np.cumsum(new) - 1
        by_node = stable_order(node[order], len(self._nodes))
        order, rank = order[by_node], rank[by_node]
        node = node[order]
        used = self.state.classes.requests.take(self.state.tasks.cls[rows[order]], axis=0)
        total = np.zeros((len(rows) + 1, len(self.state.resources)), np.int64)
        np.cumsum(used, axis=0, out=total[1:])
        return _Sorted(ends, node, rank, total, np.searchsorted(node, np.arange(len(self._nodes))))

    @cached_property
    def _running(self) -> tuple[I64, I64, I64]:
        """(P,) rows of those tasks, the numbers of their nodes, and their expected ends."""
        tasks, classes = self.state.tasks, self.state.classes
        position = positions_in(self._nodes, self.state.nodes.capacity)
        rows = np.flatnonzero(tasks.on_nodes)
        node = position[tasks.node[rows]]
        rows, node = rows[node >= 0], node[node >= 0]
        expected, started = classes.expected_us[tasks.cls[rows]], tasks.started_us[rows]
        end = np.where(expected > 0, np.where(started > 0, started, self._now_us) + expected, FOREVER)
        end = np.where(tasks.leaving[rows], self._now_us, np.maximum(end, self._now_us))
        return rows, node, end


@dataclass(frozen=True, slots=True)
class _Sorted:
    """K tasks that are expected to end, by node, then end. ends: see Releases. node, rank: (K,) node of each task and
    position of its end in `ends`. total: (K + 1, R) prefix sums of usage. first: (N,) the first task of each node."""

    ends: I64
    node: I64
    rank: I64
    total: I64
    first: I64
