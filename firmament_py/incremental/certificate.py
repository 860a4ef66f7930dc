"""Proves that the flow of a TaskNetwork is optimal. Compiled passes over all arcs; shares no code with the search.

Linear programming duality: a feasible flow is optimal if there are potentials p such that every arc u -> v with
residual capacity has a reduced cost c + p(v) - p(u) >= 0, and every arc with flow has one <= 0 (complementary
slackness). The potentials need not be stored for tasks. A task sends its one unit through its chosen arc, so if there
are potentials at all, then those with p(task) = c(chosen) + p(head of chosen) will do, and what remains to be shown
for its other arcs is c + p(head) >= p(task).
"""

import numpy as np
from numba import njit

from firmament_py.arrays import I64, Bools
from firmament_py.incremental.graph import HEAD, HEAD_BITS, Graph
from firmament_py.incremental.network import TaskNetwork

_BOUND = 2**61
"""Potentials up to here, and costs up to 2**40, cannot wrap around when they are added."""

_CLAUSES = (
    "a task sends its unit through no arc of its own",
    "a task is not where its arc leads",
    "a removed task sends a unit",
    "a flow is outside of 0 and the capacity",
    "flow is not conserved at a vertex",
    "an arc with flow costs more than its potentials allow",
    "an arc with room costs less than its potentials allow",
    "a task has a cheaper arc than the one it uses",
)
_NO_ARC, _ELSEWHERE, _REMOVED, _BOUNDS, _CONSERVED, _DEAR, _CHEAP, _CHEAPER = range(len(_CLAUSES))


def faults(network: TaskNetwork) -> list[str]:
    """What is wrong with the flow or the potentials as a proof of optimality; empty: the flow is optimal."""
    p = network.graph.potential
    if p.min(initial=0) < -_BOUND or p.max(initial=0) > _BOUND:
        return ["a potential is out of range"]
    broken = _count(network.graph, network.live, network.degree, network.sink)
    return [clause for clause, times in zip(_CLAUSES, broken.tolist(), strict=True) if times]


@njit(cache=True)
def _count(g: Graph, live: Bools, degree: int, sink: int) -> I64:
    """How often each clause is broken."""
    arc, p, vertices = g.arc, g.potential, len(g.potential)
    broken = np.zeros(8, np.int64)
    into = np.zeros(vertices, np.int64)
    for t in range(len(live)):
        a = g.chosen[t]
        if not live[t]:
            broken[_REMOVED] += a >= 0
            continue
        into[sink] -= 1
        if a < t * degree or a >= (t + 1) * degree or arc[a] & HEAD >= vertices:
            broken[_NO_ARC] += 1
            continue
        broken[_ELSEWHERE] += g.now[t] != arc[a]
        head = arc[a] & HEAD
        into[head] += 1
        pays = (arc[a] >> HEAD_BITS) + p[head]
        for b in range(t * degree, (t + 1) * degree):
            head = arc[b] & HEAD
            if head < vertices and (arc[b] >> HEAD_BITS) + p[head] < pays:
                broken[_CHEAPER] += 1
    for a in range(len(g.flow)):
        flow, u, v = g.flow[a], g.tail[a], g.head[a]
        into[u] -= flow
        into[v] += flow
        reduced = g.cost[a] + p[v] - p[u]
        broken[_BOUNDS] += flow < 0 or flow > g.capacity[a]
        broken[_DEAR] += reduced > 0 and flow > 0
        broken[_CHEAP] += reduced < 0 and flow < g.capacity[a]
    broken[_CONSERVED] = np.count_nonzero(into)
    return broken
