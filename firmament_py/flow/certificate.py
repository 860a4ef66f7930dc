"""Proves that a solution of any FlowNetwork is optimal, without a solver.

Linear programming duality: a feasible flow is optimal if and only if there are potentials p such that the reduced cost
c + p(head) - p(tail) of every arc is >= 0 if the arc has residual capacity and <= 0 if it has flow (complementary
slackness). `potentials` finds them, `faults` checks them: the check alone is the proof, however potentials are found.
"""

import numpy as np

from firmament_py.flow.network import FlowNetwork, Solution, Status
from firmament_py.model.arrays import I32, I64

_BOUND = 2**61
"""Sums of potentials up to this bound and costs up to 2**40 do not overflow."""

UNREACHED = 2**60

_CYCLE_CHECK_EVERY = 16


def certify(network: FlowNetwork, solution: Solution) -> list[str]:
    """The reasons why a solution is not proved optimal for the network; empty: it is proved optimal."""
    if solution.status is not Status.OPTIMAL:
        return [f"the network is {solution.status}"]
    if wrong := unsound(network, solution):
        return wrong
    found = potentials(network, solution.flow)
    if found is None:
        return ["a residual cycle has a negative cost"]
    return faults(network, solution.flow, found) + _wrong_cost(network, solution)


def unsound(network: FlowNetwork, solution: Solution) -> list[str]:
    """Why a solution is no integer flow of the network that ships all supply at the cost that it states; empty: it is
    one. Exact, and takes a small part of the time of a solve."""
    flow = np.asarray(solution.flow)
    if flow.shape != network.tail.shape or not np.issubdtype(flow.dtype, np.integer):
        return [f"there is no integer for each of {len(network.tail)} arcs: {flow.dtype}, shape {flow.shape}"]
    return _infeasible(network, flow) or _wrong_cost(network, solution)


def _wrong_cost(network: FlowNetwork, solution: Solution) -> list[str]:
    cost = int(solution.flow @ network.unit_cost)
    return [f"the flow costs {cost}, not {solution.cost}"] if cost != solution.cost else []


def _infeasible(network: FlowNetwork, flow: I64) -> list[str]:
    """Which conditions of a feasible flow a flow (A,) violates."""
    found = []
    if (flow < 0).any() or (flow > network.capacity).any():
        found.append("the flow of an arc is below 0 or above its capacity")
    left = network.supply.copy()
    np.subtract.at(left, network.tail, flow)
    np.add.at(left, network.head, flow)
    if left.any():
        found.append("flow is not conserved at a vertex")
    return found


def faults(network: FlowNetwork, flow: I64, potential: I64) -> list[str]:
    """The conditions of optimality that flow (A,) and potential (V,) violate; empty: both are optimal."""
    if len(flow) != len(network.tail) or len(potential) != len(network.supply):
        return ["the number of flows is not that of arcs, or the number of potentials not that of vertices"]
    if potential.min(initial=0) < -_BOUND or potential.max(initial=0) > _BOUND:
        return ["a potential is out of range"]
    found = _infeasible(network, flow)
    reduced = network.unit_cost + potential[network.head] - potential[network.tail]
    if (flow[reduced > 0] > 0).any():
        found.append("an arc with flow has a positive reduced cost")
    if (flow < network.capacity)[reduced < 0].any():
        found.append("a residual arc has a negative reduced cost")
    return found


def potentials(network: FlowNetwork, flow: I64) -> I64 | None:
    """(V,) potentials of a flow (A,), at most 0: the cost of the cheapest residual path from each vertex to any other.

    None if a residual cycle has a negative cost.
    """
    tail, head, cost = _residual(network, flow)
    return _cheapest(tail, head, cost, np.zeros(len(network.supply), np.int64))


def lowest_potentials(network: FlowNetwork, flow: I64, root: int) -> I64 | None:
    """(V,) the lowest potentials of a flow (A,) if the root has 0: minus the cost of the cheapest residual path from
    the root; -UNREACHED where there is no path. None as in `potentials`.
    """
    tail, head, cost = _residual(network, flow)
    start = np.full(len(network.supply), UNREACHED)
    start[root] = 0
    found = _cheapest(head, tail, cost, start)
    return None if found is None else -found


def costs_to(network: FlowNetwork, flow: I64, sink: int) -> I64 | None:
    """(V,) what one more unit at each vertex would cost: the cost of the cheapest residual path from there to the sink;
    UNREACHED where there is no path. None as in `potentials`."""
    start = np.full(len(network.supply), UNREACHED)
    start[sink] = 0
    return _cheapest(*_residual(network, flow), start)


def _residual(network: FlowNetwork, flow: I64) -> tuple[I32, I32, I64]:
    """Tails, heads and costs of the residual arcs: arcs below capacity, and arcs with flow, reversed."""
    open_arcs, used = flow < network.capacity, flow > 0
    tail = np.concatenate([network.tail[open_arcs], network.head[used]])
    head = np.concatenate([network.head[open_arcs], network.tail[used]])
    return tail, head, np.concatenate([network.unit_cost[open_arcs], -network.unit_cost[used]])


def _cheapest(tail: I32, head: I32, cost: I64, p: I64) -> I64 | None:
    """(V,) the cost of the cheapest path from each vertex to any vertex, plus p (V,) of its end.

    Bellman-Ford over arrays: each pass relaxes all violated arcs. None if a cycle has a negative cost.
    """
    vertices = len(p)
    towards = np.arange(vertices, dtype=np.int32)  # the next vertex on the cheapest path
    for iteration in range(1, vertices + 2):
        through = np.where(p[head] < UNREACHED, cost + p[head], UNREACHED)
        violated = np.flatnonzero(through < p[tail])
        if not len(violated):
            return p
        # of several violated arcs of a vertex, the cheapest is assigned last
        violated = violated[np.argsort(-through[violated], kind="stable")]
        p[tail[violated]] = through[violated]
        towards[tail[violated]] = head[violated]
        if iteration % _CYCLE_CHECK_EVERY == 0 and _has_cycle(towards):
            return None
    return None


def _has_cycle(towards: I32) -> bool:
    """Whether the pointers `towards` (V,) contain a cycle; a vertex that points to itself is an end.

    During label correction, the pointers have a cycle only if there is a residual cycle of negative cost.
    """
    jump = towards
    for _ in range(len(towards).bit_length()):
        jump = jump[jump]
    return bool((towards[jump] != jump).any())
