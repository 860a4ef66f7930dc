"""The network of a scheduler that reconsiders all tasks in every round, kept between rounds: tasks > vertices > sink.

    task --sparse arcs--> nodes, racks, cluster aggregator, unscheduled aggregators --fixed arcs--> .. --> sink

A task sends one unit through one of at most D arcs; its row is an array of heads and costs. The fixed arcs among the
other vertices have capacities; convex costs are parallel arcs. This is the form of Quincy's and Firmament's networks:
nearly all arcs belong to tasks, so searches and certificates process a few columns.

Changes are bulk calls whose time is proportional to the change; flow and potentials are kept, and Reoptimizer
(flow/incremental/reoptimize.py) makes them optimal again.
"""

import numpy as np

from firmament_py.flow.incremental import adjacency, totals
from firmament_py.flow.incremental.layout import (
    FAR,
    HEAD,
    HEAD_BITS,
    INTO,
    INTO_END,
    OUT,
    OUT_END,
    TASK_BITS,
    UNKNOWN,
    USED,
    Graph,
    Work,
)
from firmament_py.flow.network import FlowNetwork
from firmament_py.model.arrays import I32, I64, Bools

COST_MAX = 2**40
"""Largest absolute value of a unit cost."""

VERTICES_MAX = 2**18
"""A residual path visits each vertex once, at no more than two costs per vertex: 2**59 in total. So potentials of
vertices with a path to the sink stay within 2**59, distances in reduced costs below 2**61, and no sum reaches 2**63.
Without such a path, potentials can rise round after round; flow/incremental/reoptimize.py checks them."""

TASKS_MAX = 2**TASK_BITS
"""Largest number of tasks at a time."""

DEGREE_MAX = 2**8
"""Largest number of arcs per task: arcs of all tasks are numbered in 32 bits."""

CAPACITY_MAX = 2**40
"""Largest capacity."""

FIXED_ARCS_MAX = 2**21
"""Largest number of fixed arcs: their capacities add up to 2**61 at most."""

_SLACK = 8
_NEAR = 2**20


class RangeError(ValueError):
    """A number is outside the range of the search; the message names the argument and the bound."""


class TaskNetwork:
    """Tasks, fixed arcs, and the last flow and potentials. V vertices, F fixed arcs.

    `capacity` and `unit_cost` of the fixed arcs are as in FlowNetwork; the sink takes the units of all tasks.
    Raises RangeError or ValueError for an invalid argument.
    """

    def __init__(
        self,
        vertices: int,
        sink: int,
        tail: I32,
        head: I32,
        capacity: I64,
        unit_cost: I64,
        *,
        degree: int,
        tasks: int = 1024,
    ) -> None:
        if not 0 < vertices <= VERTICES_MAX:
            raise RangeError(f"vertices is {vertices}; give 1 to {VERTICES_MAX}")
        if not 0 <= sink < vertices:
            raise ValueError(f"sink is {sink}; the vertices are 0 to {vertices - 1}")
        if not 1 <= degree <= DEGREE_MAX:
            raise ValueError(f"degree is {degree}; a task needs one arc, and can have {DEGREE_MAX}")
        lengths = [len(column) for column in (tail, head, capacity, unit_cost)]
        if len(set(lengths)) > 1:
            raise ValueError(f"tail, head, capacity and unit_cost hold {lengths} arcs; they must be as many")
        if lengths[0] > FIXED_ARCS_MAX:
            raise RangeError(f"tail holds {lengths[0]} arcs; give at most {FIXED_ARCS_MAX}")
        self.vertices, self.sink, self.degree = vertices, sink, degree
        tail, head = _vertices("tail", tail, vertices), _vertices("head", head, vertices)
        if (tail == sink).any():
            raise ValueError("tail holds the sink; nothing leaves the sink")
        order, place, out_start = _by_vertex(tail, vertices)
        self._place = place.astype(np.int64)  # position of a fixed arc, numbered as by the caller, in the order by tail
        tail, head = tail[order], head[order]
        into_arc, into_place, into_start = _by_vertex(head, vertices)
        if tasks > TASKS_MAX:
            raise RangeError(f"tasks is {tasks}; give at most {TASKS_MAX}")
        rows = max(tasks, 1)
        self.graph = Graph(
            arc=np.full(rows * degree, vertices, np.int64),
            chosen=np.full(rows, -1, np.int64),
            now=np.full(rows, vertices, np.int64),
            in_arc=np.zeros(0, np.int32),
            in_word=np.zeros(0, np.int64),
            in_least=np.zeros(0, np.int64),
            in_place=np.zeros(rows * degree, np.int32),
            vertex=_lines(vertices + 1, 16, np.int32),
            tail=tail,
            head=head,
            cost=_within("unit_cost", unit_cost, -COST_MAX, COST_MAX)[order],
            capacity=_within("capacity", capacity, 0, CAPACITY_MAX)[order],
            flow=np.zeros(len(tail), np.int64),
            out_word=np.zeros(len(tail), np.int64),
            into_arc=into_arc,
            into_place=into_place,
            into_word=np.zeros(len(tail), np.int64),
            potential=np.zeros(vertices, np.int64),
            fallen=np.zeros(1, np.int64),
            deficit=np.zeros(vertices, np.int64),
        )
        self.work = Work(
            label=np.full(vertices, FAR, np.int64),
            via=np.zeros(vertices, np.int64),
            lists=np.full((5, vertices), -1, np.int32),
            tally=np.zeros(10, np.int64),
            radius=np.ones(2, np.int64),
            near=_lines(_NEAR, 2, np.int64),
            near_of=_lines(vertices, 4, np.int64),
        )
        g = self.graph
        g.vertex[:-1, OUT], g.vertex[:-1, OUT_END] = out_start[:-1], out_start[1:]
        g.vertex[:-1, INTO], g.vertex[:-1, INTO_END] = into_start[:-1], into_start[1:]
        adjacency.refresh(g, np.arange(len(tail)))
        self._live: Bools = np.zeros(rows, np.bool_)
        self._free: I64 = np.arange(rows, dtype=np.int64)[::-1]  # free rows, used from the end
        self._index()

    @property
    def size(self) -> int:
        """Number of tasks."""
        return len(self._live) - len(self._free)

    @property
    def live(self) -> Bools:
        """(T,) whether rows are tasks; read-only."""
        return self._live

    def task_arcs(self, rows: I64) -> tuple[I64, I64]:
        """Heads (K, D), V: no arc, and costs (K, D) of the arcs of tasks rows (K,)."""
        words = self._arcs[rows]
        return words & HEAD, words >> HEAD_BITS

    def task_heads(self, rows: I64) -> I64:
        """(K,) the vertices that tasks flow to, -1: unrouted."""
        heads = self.graph.now[rows] & HEAD
        return np.where(heads < self.vertices, heads, -1)

    def add_tasks(self, heads: I32, costs: I64) -> I64:
        """Adds K tasks with arcs to heads (K, D') at costs (K, D'), D' <= degree, V: no arc; their rows (K,)."""
        heads = np.asarray(heads)
        if heads.size and heads.dtype.kind not in "iu":
            raise ValueError(f"heads holds {heads.dtype}; vertices are whole numbers")
        if heads.ndim != 2 or heads.shape != np.shape(costs) or heads.shape[1] > self.degree:
            raise ValueError(f"heads {heads.shape} and costs {np.shape(costs)} must both be (K, at most {self.degree})")
        if heads.size and (heads.min() < 0 or heads.max() > self.vertices):
            raise ValueError(f"heads must be vertices, 0 to {self.vertices - 1}, or {self.vertices} for no arc")
        if (heads == self.vertices).all(axis=1).any():
            raise ValueError("heads has a task without an arc; give it one to an unscheduled vertex")
        costs, heads = _within("costs", costs, -COST_MAX, COST_MAX), heads.astype(np.int64)
        if self.size + len(heads) > TASKS_MAX:
            raise RangeError(f"heads holds {len(heads)} more tasks than {self.size}; the limit is {TASKS_MAX}")
        if len(self._free) < len(heads):
            self._grow(len(heads))
        rows = self._free[len(self._free) - len(heads) :][::-1].copy()
        self._free = self._free[: len(self._free) - len(heads)]
        self._arcs[rows, : heads.shape[1]] = np.where(heads < self.vertices, costs << HEAD_BITS, 0) | heads
        self._live[rows] = True
        if not adjacency.enter_arcs(self.graph, rows, self.degree):
            self._index()
        return rows

    def remove_tasks(self, rows: I64) -> None:
        """Removes the tasks at rows (K,); the rows are reused for later tasks."""
        rows = self._rows(rows)
        adjacency.leave_arcs(self.graph, rows, self.degree)
        self._live[rows] = False
        self._free = np.concatenate([self._free, rows])

    def set_task_costs(self, rows: I64, costs: I64) -> None:
        """Sets costs (K, D) of all arcs of task rows (K,). Tasks whose route is no longer optimal become unrouted."""
        rows = self._rows(rows)
        heads = self._arcs[rows] & HEAD
        there = heads < self.vertices
        costs = np.where(there, _within("costs", costs, -COST_MAX, COST_MAX), 0)
        self._arcs[rows] = costs << HEAD_BITS | heads
        adjacency.change_costs(self.graph, rows, self.degree)
        through = np.where(there, costs + np.append(self.graph.potential, 0)[heads], np.iinfo(np.int64).max)
        column = self.graph.chosen[rows] - rows * self.degree
        routed = column >= 0
        pays = through[routed, column[routed]]
        wrong = rows[routed][pays > through[routed].min(axis=1)]
        adjacency.assign(self.graph, wrong, np.full(len(wrong), -1))

    def set_capacity(self, arcs: I64, capacity: I64) -> None:
        """Sets capacities (K,) of fixed arcs (K,)."""
        self._change_fixed(self.graph.capacity, arcs, _within("capacity", capacity, 0, CAPACITY_MAX))

    def set_unit_cost(self, arcs: I64, unit_cost: I64) -> None:
        """Sets unit costs (K,) of fixed arcs (K,)."""
        self._change_fixed(self.graph.cost, arcs, _within("unit_cost", unit_cost, -COST_MAX, COST_MAX))

    def _change_fixed(self, column: I64, arcs: I64, values: I64) -> None:
        arcs, fixed = np.asarray(arcs, np.int64), len(self.graph.tail)
        if arcs.size and (arcs.min() < 0 or arcs.max() >= fixed):
            raise ValueError(f"arcs holds {arcs.min()} to {arcs.max()}; the fixed arcs are 0 to {fixed - 1}")
        column[self._place[arcs]] = values
        adjacency.refresh(self.graph, self._place[arcs])

    def cost(self) -> int:
        """The cost of the flow."""
        return totals.cost(self.graph)

    def flow_network(self) -> tuple[FlowNetwork, I64]:
        """The whole network as a FlowNetwork: task arcs, then fixed arcs; (A',) positions of the former in the rows.

        Vertices are numbered as here; the tasks follow in the order of their rows.
        """
        rows = np.flatnonzero(self._live)
        heads, costs = self.task_arcs(rows)
        there = heads < self.vertices
        number = np.repeat(np.arange(len(rows), dtype=np.int32), there.sum(axis=1))
        arcs = (rows[:, None] * self.degree + np.arange(self.degree))[there]
        supply = np.ones(self.vertices + len(rows), np.int64)
        supply[: self.vertices] = 0
        supply[self.sink] = -len(rows)
        return FlowNetwork(
            tail=np.concatenate([self.vertices + number, self.graph.tail], dtype=np.int32),
            head=np.concatenate([heads[there], self.graph.head], dtype=np.int32),
            capacity=np.concatenate([np.ones(len(arcs), np.int64), self.graph.capacity]),
            unit_cost=np.concatenate([costs[there], self.graph.cost]),
            supply=supply,
        ), arcs

    def load(self, flow: I64, arcs: I64) -> None:
        """Loads a flow of flow_network()."""
        rows = np.flatnonzero(self._live)
        self.graph.vertex[:, USED] = 0
        self.graph.now[:] = self.vertices
        self.graph.chosen[:] = -1
        adjacency.assign(self.graph, rows, arcs[flow[: len(arcs)] > 0])
        self.graph.flow[:] = flow[len(arcs) :]
        adjacency.refresh(self.graph, np.arange(len(self.graph.flow)))

    @property
    def _arcs(self) -> I64:
        """(T, D) the words of the arcs of tasks."""
        return self.graph.arc.reshape(-1, self.degree)

    def _rows(self, rows: I64) -> I64:
        rows = np.asarray(rows, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self._live) or not self._live[rows].all()):
            raise ValueError("rows holds a row that is no task")
        if len(np.unique(rows)) < len(rows):
            raise ValueError("rows holds a row twice")
        return rows

    def _grow(self, added: int) -> None:
        """Grows the arrays for at least `more` further tasks, and by at least half."""
        old = len(self._live)
        new = min(old + max(added, old // 2), TASKS_MAX)

        def longer(column: np.ndarray, fill: int, times: int = 1) -> np.ndarray:
            wider = np.full(new * times, fill, column.dtype)
            wider[: len(column)] = column
            return wider

        g, d = self.graph, self.degree
        self.graph = g._replace(
            arc=longer(g.arc, self.vertices, d),
            chosen=longer(g.chosen, -1),
            now=longer(g.now, self.vertices),
            in_place=longer(g.in_place, 0, d),
        )
        self._live = longer(self._live, 0)
        self._free = np.concatenate([np.arange(new - 1, old - 1, -1), self._free])

    def _index(self) -> None:
        there = int(((self.graph.arc & HEAD) < self.vertices).sum())
        size = there + there // 4 + _SLACK * self.vertices
        self.graph = self.graph._replace(
            in_arc=np.zeros(size, np.int32),
            in_word=np.zeros(size, np.int64),
            in_least=np.full(size, UNKNOWN, np.int64),
        )
        adjacency.index_arcs(self.graph, self.degree, _SLACK)


def _vertices(name: str, values: I32, vertices: int) -> I32:
    values = np.asarray(values)
    if values.size and (values.min() < 0 or values.max() >= vertices):
        raise ValueError(f"{name} holds {values.min()} to {values.max()}; the vertices are 0 to {vertices - 1}")
    return np.ascontiguousarray(values, np.int32)


def _within(name: str, values: I64, lower: int, upper: int) -> I64:
    values = np.array(values, np.int64)
    if values.size and (values.min() < lower or values.max() > upper):
        raise RangeError(f"{name} holds {values.min()} to {values.max()}; give {lower} to {upper}")
    return values


def _lines(rows: int, columns: int, dtype: type) -> np.ndarray:
    """Zeros (rows, columns), aligned so that a row of 64 bytes is a cache line."""
    size = rows * columns * np.dtype(dtype).itemsize
    padded = np.zeros(size + 64, np.uint8)
    begin = -padded.ctypes.data % 64
    return padded[begin : begin + size].view(dtype).reshape(rows, columns)


def _by_vertex(end: I32, vertices: int) -> tuple[I32, I32, I32]:
    """Arcs (F,) ordered by one of their ends, the position of each (F,), and the start of each vertex (V + 1,)."""
    start = np.zeros(vertices + 1, np.int32)
    np.cumsum(np.bincount(end, minlength=vertices), out=start[1:])
    order = np.argsort(end, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order, place, start
