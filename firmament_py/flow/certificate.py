"""Proves that a solution of any FlowNetwork is optimal, without asking a solver.

Linear programming duality: a feasible flow is optimal if and only if there are potentials p such that the reduced cost
c + p(head) - p(tail) of every arc is >= 0 where the arc has room and <= 0 where it has flow (complementary slackness).
`potentials` finds them, `faults` checks them: only what `faults` says is a proof, however the potentials were found.
"""

import numpy as np

from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.model.arrays import I32, I64

_BOUND = 2**61
"""Potentials up to here, and costs up to 2**40, cannot wrap around when they are added."""

UNREACHED = 2**60

_CYCLE_CHECK_EVERY = 16


def certify(network: FlowNetwork, solution: Solution) -> list[str]:
    """What speaks against a solution being an optimum of the network; empty: it is one, and that is proved."""
    if solution.status is not Status.OPTIMAL:
        return [f"the network is {solution.status}"]
    found = potentials(network, solution.flow)
    if found is None:
        return ["the flow can be made cheaper along a cycle"]
    wrong = faults(network, solution.flow, found)
    cost = int(solution.flow @ network.unit_cost)
    if cost != solution.cost:
        wrong.append(f"the flow costs {cost}, not {solution.cost}")
    return wrong


def faults(network: FlowNetwork, flow: I64, potential: I64) -> list[str]:
    """What keeps flow (A,) and potential (V,) from proving each other optimal; empty: nothing."""
    if len(flow) != len(network.tail) or len(potential) != len(network.supply):
        return ["there is not one flow for each arc and one potential for each vertex"]
    found = []
    if potential.min(initial=0) < -_BOUND or potential.max(initial=0) > _BOUND:
        return ["a potential is out of range"]
    if (flow < 0).any() or (flow > network.capacity).any():
        found.append("a flow is outside of 0 and the capacity")
    left = network.supply.copy()
    np.subtract.at(left, network.tail, flow)
    np.add.at(left, network.head, flow)
    if left.any():
        found.append("flow is not conserved at a vertex")
    reduced = network.unit_cost + potential[network.head] - potential[network.tail]
    if (flow[reduced > 0] > 0).any():
        found.append("an arc with flow costs more than its potentials allow")
    if (flow < network.capacity)[reduced < 0].any():
        found.append("an arc with room costs less than its potentials allow")
    return found


def potentials(network: FlowNetwork, flow: I64) -> I64 | None:
    """(V,) of a flow (A,), at most 0: the cost of the cheapest residual path from each vertex to anywhere.

    None if there is no end to it, because a residual cycle has a negative cost.
    """
    tail, head, cost = _residual(network, flow)
    return _cheapest(tail, head, cost, np.zeros(len(network.supply), np.int64))


def lowest_potentials(network: FlowNetwork, flow: I64, root: int) -> I64 | None:
    """(V,) the lowest that a flow (A,) can have if the root has 0: less the cheapest residual path from there.

    -UNREACHED where there is no path. None as in `potentials`.
    """
    tail, head, cost = _residual(network, flow)
    start = np.full(len(network.supply), UNREACHED)
    start[root] = 0
    found = _cheapest(head, tail, cost, start)
    return None if found is None else -found


def _residual(network: FlowNetwork, flow: I64) -> tuple[I32, I32, I64]:
    """Tails, heads and costs of the arcs with room, and of those with flow backwards."""
    open_arcs, used = flow < network.capacity, flow > 0
    tail = np.concatenate([network.tail[open_arcs], network.head[used]])
    head = np.concatenate([network.head[open_arcs], network.tail[used]])
    return tail, head, np.concatenate([network.unit_cost[open_arcs], -network.unit_cost[used]])


def _cheapest(tail: I32, head: I32, cost: I64, p: I64) -> I64 | None:
    """(V,) the cost of the cheapest path from each vertex to wherever it ends, with p (V,) to be paid there.

    Bellman and Ford over arrays: each pass relaxes all arcs that are violated. None if a cycle has a negative cost.
    """
    vertices = len(p)
    towards = np.arange(vertices, dtype=np.int32)  # the next vertex on the cheapest path
    for iteration in range(1, vertices + 2):
        through = np.where(p[head] < UNREACHED, cost + p[head], UNREACHED)
        violated = np.flatnonzero(through < p[tail])
        if not len(violated):
            return p
        # of several violated arcs of a vertex the cheapest is written last
        violated = violated[np.argsort(-through[violated], kind="stable")]
        p[tail[violated]] = through[violated]
        towards[tail[violated]] = head[violated]
        if iteration % _CYCLE_CHECK_EVERY == 0 and _has_cycle(towards):
            return None
    return None


def _has_cycle(towards: I32) -> bool:
    """Whether following towards (V,), where a vertex that points at itself is an end, goes on for ever.

    While labels are corrected, a cycle of pointers exists only if there is a residual cycle of negative cost.
    """
    jump = towards
    for _ in range(len(towards).bit_length()):
        jump = jump[jump]
    return bool((towards[jump] != jump).any())
