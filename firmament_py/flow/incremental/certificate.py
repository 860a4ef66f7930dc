"""Proves that the flow of a TaskNetwork is optimal. Compiled passes over all arcs; shares no code with the search.

Linear programming duality: a feasible flow is optimal if there are potentials p such that every arc u -> v with
residual capacity has a reduced cost c + p(v) - p(u) >= 0, and every arc with flow has one <= 0 (complementary
slackness). Potentials of tasks need not be stored. A task sends its one unit through its chosen arc, so if there are
valid potentials, p(task) = c(chosen) + p(head of chosen) is valid, and what remains to be shown for its other arcs is
c + p(head) >= p(task).
"""

import numpy as np

from firmament_py.flow.incremental.layout import HEAD, HEAD_BITS, Graph
from firmament_py.flow.incremental.network import TaskNetwork
from firmament_py.flow.incremental.numba_intrinsics import prefetch
from firmament_py.model.arrays import I64, Bools
from firmament_py.numba_cache import compiled

_BOUND = 2**61
"""Sums of potentials up to this bound and costs up to 2**40 do not overflow."""

_AHEAD = 24
"""Number of tasks ahead for which arcs are prefetched."""

_CLAUSES = (
    "a task does not send its unit through one of its own arcs",
    "a task is not at the head of its chosen arc",
    "a removed task sends a unit",
    "the flow of an arc is below 0 or above its capacity",
    "flow is not conserved at a vertex",
    "an arc with flow has a positive reduced cost",
    "a residual arc has a negative reduced cost",
    "a task has an arc that costs less than the one it uses",
)


def faults(network: TaskNetwork) -> list[str]:
    """The conditions of optimality that flow and potentials violate; empty: the flow is optimal."""
    p = network.graph.potential
    if p.min(initial=0) < -_BOUND or p.max(initial=0) > _BOUND:
        return ["a potential is out of range"]
    broken = _count(network.graph, np.append(p, _BOUND), network.live, network.degree, network.sink)
    return [clause for clause, times in zip(_CLAUSES, broken.tolist(), strict=True) if times]


@compiled
def _count(g: Graph, p: I64, live: Bools, degree: int, sink: int) -> I64:
    """Number of violations of each clause. p (V + 1,): potentials; the last is for no arc and above all others."""
    arc, chosen, now, vertices = g.arc, g.chosen, g.now, len(p) - 1
    tails, heads, flows, capacities, costs = g.tail, g.head, g.flow, g.capacity, g.cost
    rows = arc.reshape(len(live), degree)
    no_arc = diverged = removed = bounds = dear = cheap = cheaper = tasks = 0
    into = np.zeros(vertices, np.int64)
    for t in range(len(live)):
        a = chosen[t]
        if not live[t]:
            removed += a >= 0
            continue
        tasks += 1
        for k in range(0, degree, 8):
            prefetch(arc, min(t + _AHEAD, len(live) - 1) * degree + k)
        if a < t * degree or a >= (t + 1) * degree or arc[a] & HEAD >= vertices:
            no_arc += 1
            continue
        diverged += now[t] != arc[a]
        head = arc[a] & HEAD
        into[head] += 1
        pays = least = (arc[a] >> HEAD_BITS) + p[head]
        for i in range(rows.shape[1]):  # becomes vector instructions: no branch, and an index that cannot be negative
            least = min(least, (rows[t, i] >> HEAD_BITS) + p[rows[t, i] & HEAD])
        cheaper += least < pays
    into[sink] -= tasks
    for a in range(len(flows)):
        flow, u, v = flows[a], tails[a], heads[a]
        into[u] -= flow
        into[v] += flow
        reduced = costs[a] + p[v] - p[u]
        bounds += flow < 0 or flow > capacities[a]
        dear += reduced > 0 and flow > 0
        cheap += reduced < 0 and flow < capacities[a]
    conserved = np.count_nonzero(into)
    return np.array([no_arc, diverged, removed, bounds, conserved, dear, cheap, cheaper])
