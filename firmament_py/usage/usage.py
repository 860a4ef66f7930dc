"""Measured usage of tasks and nodes, and the load that policies are given.

Takes in samples (from metrics.k8s.io, Prometheus or Heapster's sink; the source is not known here), refuses invalid
samples one by one, keeps the last of each task and node (usage/ring_buffers.py), and gives each round a Reading. Usage
affects costs only: whether a task fits depends on requests alone.

Memory: rings.BYTES_PER_ROW + samples x rings.BYTES_PER_SAMPLE for each row of the task and node tables up to the
highest that ever had a sample, and up to twice that after growth; 464 bytes with the default of 10 samples.
"""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.resources import LIMIT
from firmament_py.policy import NodeUsage
from firmament_py.state.cluster import ClusterState
from firmament_py.state.tables import NodeTable, TaskTable
from firmament_py.usage.ring_buffers import METRICS, Rings

log = logging.getLogger(__name__)

_PRICED = ("cpu", "memory")  # METRICS[:2]: the metrics that are also resources, in the same units
_AHEAD_US = 300_000_000
"""A sample from further in the future is refused: a clock or the unit of time is wrong."""
_OVER = 4
"""A sample of more than this multiple of its node's allocatable amount is refused: the unit is wrong."""
_COMPLAIN_EVERY_US = 60_000_000
_MOST_SAMPLES = 10_000


class Basis(StrEnum):
    """What counts as used on a node."""

    REQUESTS = "requests"
    """The requests of its tasks."""
    USED = "used"
    """The measured usage of each task; its requests if usage is unknown."""
    LARGER = "larger"
    """The larger of the two for each task."""


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """Raises ValueError, naming the option, if one is invalid."""

    basis: Basis = Basis.REQUESTS
    samples: int = 10
    """Kept per task and per node."""
    half_life: float = 60.0
    """Seconds in which the weight of a sample in the mean halves."""
    stale: float = 300.0
    """Seconds after which a sample is ignored."""

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= _MOST_SAMPLES:
            raise ValueError(f"usage-samples is {self.samples}; give 1 to {_MOST_SAMPLES}")
        if not 1e-3 <= self.stale <= 1e9:
            raise ValueError(f"usage-stale is {self.stale}; give seconds, more than 0")
        if not self.stale / 1000 <= self.half_life <= 1e9:
            raise ValueError(f"usage-half-life is {self.half_life}; give seconds, at least a thousandth of usage-stale")


@dataclass(frozen=True, slots=True)
class Reading:
    """Usage as a round sees it, for N nodes."""

    load: I64 | None = None
    """(N, R) amounts used by assumed and bound tasks; None: their requests."""
    usage: NodeUsage | None = None
    """None if there never was a sample."""
    measured: int = 0
    """Number of tasks that count by measured usage only. This and the next two are 0 if the basis is requests."""
    missing: int = 0
    """Number of tasks that count by their request of cpu or memory because it was never measured."""
    stale: int = 0
    """Number of tasks that count by their request of cpu or memory because the samples are stale."""

    def less(self, freed: I64) -> "Reading":
        """The reading without tasks that request `freed` (N, R), as the usage of each of them is unknown."""
        return self if self.load is None else replace(self, load=self.load - freed)


NOTHING_MEASURED = Reading()


@dataclass(slots=True)
class Noted:
    """Counts of samples by outcome. old: not newer than known ones. unknown: of a task or node that does not exist."""

    taken: int = 0
    old: int = 0
    refused: int = 0
    unknown: int = 0

    def __iadd__(self, other: "Noted") -> "Noted":
        self.taken += other.taken
        self.old += other.old
        self.refused += other.refused
        self.unknown += other.unknown
        return self


class Usage:
    """The samples of one engine. Not safe for concurrent use with anything that touches the state."""

    def __init__(self, options: UsageOptions | None = None) -> None:
        self.options = options or UsageOptions()
        self.total = Noted()
        self._tasks, self._nodes = self._rings(), self._rings()
        self._complained_us = 0

    def _rings(self) -> Rings:
        options = self.options
        return Rings(options.samples, round(1e6 * options.half_life), round(1e6 * options.stale))

    @property
    def nbytes(self) -> int:
        """Memory of the samples, in bytes."""
        return self._tasks.nbytes + self._nodes.nbytes

    # -- samples in -------------------------------------------------------------------------------------------

    def note_tasks(self, state: ClusterState, rows: I64, at_us: I64, values: F64, now_us: int) -> Noted:
        """Samples of task rows (K,), -1 for unknown ones: times (K,) and METRICS (K, 4), NaN where not measured."""
        node = np.where(rows >= 0, state.tasks.node[rows], -1)
        return self._note(self._tasks, state, state.tasks, rows, node, at_us, values, now_us)

    def note_nodes(self, state: ClusterState, rows: I64, at_us: I64, values: F64, now_us: int) -> Noted:
        """The same for node rows."""
        return self._note(self._nodes, state, state.nodes, rows, rows, at_us, values, now_us)

    def _note(
        self,
        rings: Rings,
        state: ClusterState,
        table: TaskTable | NodeTable,
        rows: I64,
        node: I64,
        at_us: I64,
        values: F64,
        now_us: int,
    ) -> Noted:
        known = rows >= 0
        sound = known & self._sound(state, node, at_us, values, now_us)
        noted = Noted(unknown=int((~known).sum()), refused=int((known & ~sound).sum()))
        if noted.refused and now_us - self._complained_us >= _COMPLAIN_EVERY_US:
            self._complained_us = now_us
            first = int(np.flatnonzero(known & ~sound)[0])
            what = ", ".join(f"{name} {value:g}" for name, value in zip(METRICS, values[first].tolist(), strict=True))
            who = "node" if isinstance(table, NodeTable) else "task"
            name = _name(table, int(rows[first]))
            log.warning("refused %d usage samples; the first is of %s %s: %s", noted.refused, who, name, what)
        rows = rows[sound]
        noted.taken = rings.add(rows, table.generation[rows], np.minimum(at_us[sound], now_us), values[sound])
        noted.old = len(rows) - noted.taken
        self.total += noted
        return noted

    @staticmethod
    def _sound(state: ClusterState, node: I64, at_us: I64, values: F64, now_us: int) -> Bools:
        """(K,) whether each sample is valid: it has a value, and none is negative or too large."""
        measured = ~np.isnan(values)
        amount = np.where(measured, values, 0.0)
        sound = measured.any(axis=1) & ((amount >= 0) & (amount < LIMIT)).all(axis=1)
        sound &= (at_us > 0) & (at_us <= now_us + _AHEAD_US)
        for metric, column in _priced(state):
            offered = np.where(node >= 0, state.nodes.allocatable[node, column], 0)
            sound &= (offered == 0) | (amount[:, metric] <= _OVER * offered)
        return sound

    # -- readings out -----------------------------------------------------------------------------------------

    def read(self, state: ClusterState, nodes: I64, now_us: int) -> Reading:
        """The current usage of node rows `nodes` (N,)."""
        usage = self._of_nodes(state, nodes, now_us) if self._nodes.nbytes else None
        if self.options.basis is Basis.REQUESTS:
            return Reading(usage=usage)
        tasks = state.tasks
        rows = np.flatnonzero(tasks.node >= 0)
        means, newest = self._tasks.means(rows, tasks.generation[rows], now_us)
        position = np.full(state.nodes.capacity, -1, np.int64)
        position[nodes] = np.arange(len(nodes))
        where, requests = position[tasks.node[rows]], state.classes.requests[tasks.cls[rows]]
        load: I64 = state.nodes.used[nodes].copy()
        fresh = ~np.isnan(means)
        for metric, column in _priced(state):
            counts = np.flatnonzero(fresh[:, metric] & (where >= 0))
            amount, request = np.rint(means[counts, metric]).astype(np.int64), requests[counts, column]
            if self.options.basis is Basis.LARGER:
                amount = np.maximum(amount, request)
            # exact: all values are integers below 2**53
            change = np.bincount(where[counts], amount - request, minlength=len(nodes))
            load[:, column] += change.astype(np.int64)
        complete = fresh[:, : len(_PRICED)].all(axis=1)
        stale = ~complete & (newest > 0) & (newest < now_us - 1e6 * self.options.stale)
        measured = int(complete.sum())
        return Reading(load, usage, measured, len(rows) - measured - int(stale.sum()), int(stale.sum()))

    def cpu_of(self, state: ClusterState, rows: I64, now_us: int) -> F64:
        """(K,) millicores that task rows (K,) use; NaN: not measured, or stale."""
        means, _ = self._tasks.means(rows, state.tasks.generation[rows], now_us)
        cpu: F64 = means[:, METRICS.index("cpu")]
        return cpu

    def _of_nodes(self, state: ClusterState, nodes: I64, now_us: int) -> NodeUsage:
        means, newest = self._nodes.means(nodes, state.nodes.generation[nodes], now_us)
        age = np.where(newest > 0, np.maximum(now_us - newest, 0) / 1e6, np.nan)
        columns = [*means.T.copy(), age]
        for column in columns:
            column.flags.writeable = False
        return NodeUsage(*columns)

    def ages(self, state: ClusterState, now_us: int) -> tuple[F64, F64]:
        """Seconds since the newest sample of each task that holds resources, and of each present node; NaN for those
        without samples."""
        tasks, nodes = np.flatnonzero(state.tasks.node >= 0), state.present_nodes()
        ages = []
        for rings, generations, rows in (
            (self._tasks, state.tasks.generation, tasks),
            (self._nodes, state.nodes.generation, nodes),
        ):
            _, newest = rings.means(rows, generations[rows], now_us)
            ages.append(np.where(newest > 0, np.maximum(now_us - newest, 0) / 1e6, np.nan))
        return ages[0], ages[1]

    def carry(self, before: ClusterState, after: ClusterState) -> None:
        """Replaces state `before` by `after`: tasks and nodes that are in both keep their samples."""
        old, new = before.tasks.rows(), after.tasks.rows()
        _, i, j = np.intersect1d(before.tasks.uid[old], after.tasks.uid[new], return_indices=True)
        old, new = old[i], new[j]
        self._tasks = self._tasks.move(old, before.tasks.generation[old], new, after.tasks.generation[new])
        both = [(row, after.nodes.row[name]) for name, row in before.nodes.row.items() if name in after.nodes.row]
        old, new = np.array(both, np.int64).reshape(-1, 2).T
        self._nodes = self._nodes.move(old, before.nodes.generation[old], new, after.nodes.generation[new])


def _priced(state: ClusterState) -> list[tuple[int, int]]:
    """The metrics that are resources of this state: position in METRICS, column of the resource."""
    names = state.resources.names
    return [(METRICS.index(name), names.index(name)) for name in _PRICED if name in names]


def _name(table: TaskTable | NodeTable, row: int) -> str:
    if isinstance(table, NodeTable):
        return table.observed[row].name if row in table.observed else table.id.get(row, "")
    return str(table.name[row])
