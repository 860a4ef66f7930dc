"""Proves that the flow of a TaskNetwork is optimal. Numpy over all arcs; shares no code with the search.

Linear programming duality: a feasible flow is optimal if there are potentials p such that every arc u -> v with
residual capacity has a reduced cost c + p(v) - p(u) >= 0, and every arc with flow has one <= 0 (complementary
slackness). The potentials need not be stored for tasks. A task sends its one unit through its chosen arc, so if there
are potentials at all, then those with p(task) = c(chosen) + p(head of chosen) will do, and what remains to be shown
for its other arcs is c + p(head) >= p(task).
"""

import numpy as np

from firmament_py.incremental.network import TaskNetwork

_BOUND = 2**61
"""Potentials up to here, and costs up to 2**40, cannot wrap around when they are added."""


def faults(network: TaskNetwork) -> list[str]:
    """What is wrong with the flow or the potentials as a proof of optimality; empty: the flow is optimal."""
    g, live = network.graph, network.live
    p = g.potential[: network.vertices]
    found = []
    if p.min(initial=0) < -_BOUND or p.max(initial=0) > _BOUND:
        return ["a potential is out of range"]

    rows = np.flatnonzero(live)
    chosen = g.chosen[rows]
    if (chosen // network.degree != rows).any() or (g.arc_head[chosen] >= network.vertices).any():
        return ["a task sends its unit through no arc of its own"]
    if (g.chosen[~live] >= 0).any():
        found.append("a removed task sends a unit")
    if (g.flow < 0).any() or (g.flow > g.capacity).any():
        found.append("a flow is outside of 0 and the capacity")

    weight = g.flow.astype(np.float64)  # exact below 2**53, which the number of tasks bounds
    into = np.bincount(g.head, weight, network.vertices) - np.bincount(g.tail, weight, network.vertices)
    into += np.bincount(g.arc_head[chosen], minlength=network.vertices)
    into[network.sink] -= len(rows)
    if into.any():
        found.append("flow is not conserved at a vertex")

    reduced = g.cost + p[g.head] - p[g.tail]
    if (g.flow[reduced > 0] > 0).any():
        found.append("an arc with flow costs more than its potentials allow")
    if (g.flow < g.capacity)[reduced < 0].any():
        found.append("an arc with room costs less than its potentials allow")

    paid = np.full(len(live), -(2**62), np.int64)  # of a row that is no task: anything goes
    paid[rows] = g.arc_cost[chosen] + p[g.arc_head[chosen]]
    beyond = np.append(p, 2**62)  # where there is no arc
    through = beyond[network.heads]
    through += network.costs
    if (through < paid[:, None]).any():
        found.append("a task has a cheaper arc than the one it uses")
    return found
