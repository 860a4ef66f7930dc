"""Which residents of nodes to evict so that tasks of higher priority fit: a cheap set for all of them together.

Tasks are inserted one after the other, the most important first, then those that are large for the nodes that suit
them, each at the node where that costs least. The victims of a node are chosen anew for all of its tasks together:
residents are taken in ascending order of importance until the tasks fit; then those are put back, the most important
first, beside which they still do. Then a few tasks at a time are removed and inserted again (eviction/search.py).
Results are compared priority by priority: more tasks of it, then less cost of victims that only these may evict, then
the same for the next priority; last, fewer moves. A worse result is accepted now and then (simulated annealing).

Integer programs complete that (eviction/neighbourhoods.py): in a small problem, one replaces the search and proves its
answer to be best; in others, some improve what the search finds, on a few nodes each.

Movers are running tasks that keep running, on their own nodes or on others: the search decides. No resident is evicted
for them.
"""

from dataclasses import replace

import numpy as np

from firmament_py.eviction.clearing import TOLERANCE
from firmament_py.eviction.neighbourhoods import candidate_nodes, improved, is_small, solved
from firmament_py.eviction.problem import Arrivals, Eviction, Movers, Problem, Residents
from firmament_py.eviction.program import Solution
from firmament_py.eviction.tables import Tables
from firmament_py.model.arrays import I64, Bools

_SEARCH, _PROGRAMS = 1.0, 25
"""Effort of the search, and number of the integer programs that improve what it finds, at most one per task."""

_SEARCH_OF_ALIKE, _PROGRAMS_OF_ALIKE = 0.05, 50
"""The same for arrivals of one class without budgets. What a node costs does not depend on others then, so the search
gains little over inserting each task where it costs least; programs find better victims."""

_ROUNDING = 1e-9
"""A relative gap that is due to rounding."""


def evict(
    arrivals: Arrivals,
    residents: Residents,
    free: I64,
    allowed: I64,
    seed: int = 0,
    *,
    beyond_budgets: bool = False,
    hard: Bools | None = None,
    movers: Movers | None = None,
    effort: float = 1.0,
) -> Eviction:
    """Inserts as many arrivals as possible, the most important first, and evicts and moves what that takes.

    free (N, R): may be below 0; without movers on their nodes. allowed (B,): how many evictions and moves each budget
    permits. beyond_budgets: further evictions count as if of a rank above all others, except of those that a budget
    counts which is `hard` (B,). effort: multiplies how much is tried. Deterministic in the arguments.
    """
    movers = movers or _no_movers(free.shape, len(allowed))
    if not len(free):
        none = np.zeros_like(residents.count)
        return Eviction(none, none, np.zeros((0, 3), np.int64), movers.home, 0)
    exceedable = np.full(len(residents.budgets), beyond_budgets) & residents.budgets.any(axis=1)
    if hard is not None:
        exceedable &= ~residents.budgets[:, hard].any(axis=1)
    problem = Problem(arrivals, residents, free, allowed, exceedable)
    tables = Tables(problem, movers)
    if not len(movers.kind):
        return _without_movers(problem, tables, effort, seed)
    found, _ = tables.search(effort, seed)
    if not found.evicted.any() and found.placed[:, 2].sum() == arrivals.count.sum():
        return found
    moved = movers.kind[found.node_of_mover != movers.home]
    free, allowed = free.copy(), allowed - movers.budgets[moved].sum(axis=0)
    np.subtract.at(free, found.node_of_mover, movers.requests[movers.kind])
    return _improved(found, replace(problem, free=free, allowed=allowed), effort * _PROGRAMS, seed)


def _without_movers(problem: Problem, tables: Tables, effort: float, seed: int) -> Eviction:
    arrivals, residents = problem.arrivals, problem.residents
    if not arrivals.count.any():
        return tables.search(0.0, seed)[0]
    alike = np.count_nonzero(arrivals.count) == 1 and not residents.budgets.any()
    share, programs = (_SEARCH_OF_ALIKE, _PROGRAMS_OF_ALIKE) if alike else (_SEARCH, _PROGRAMS)
    small = effort > 0 and is_small(arrivals, residents)
    found, gap = tables.search(0.0 if small else share * effort, seed)
    if small and gap > _ROUNDING:
        nodes = np.arange(len(problem.free))
        best = solved(problem.on(nodes), _solution(found, problem, nodes), effort)
        if best is not None:
            return _answer(best, found, residents, nodes)
        found, gap = tables.search(share * effort, seed)
    return found if gap <= TOLERANCE else _improved(found, problem, effort * programs, seed)


def _improved(found: Eviction, problem: Problem, programs: float, seed: int) -> Eviction:
    """What so many programs, at most one for each arrival, make of an answer; movers stay where it has them."""
    rng = np.random.default_rng(seed)
    nodes = candidate_nodes(problem.arrivals, found.placed[:, 1], rng)
    steps = int(min(problem.arrivals.count.sum(), programs))
    solution = improved(problem.on(nodes), _solution(found, problem, nodes), steps, rng)
    return _answer(solution, found, problem.residents, nodes)


def _solution(found: Eviction, problem: Problem, nodes: I64) -> Solution:
    """What an answer has on nodes (N,), ascending, among which are all that it uses."""
    placed = np.zeros((len(problem.arrivals.count), len(nodes)), np.int64)
    cls, node, count = found.placed.T
    placed[cls, np.searchsorted(nodes, node)] = count
    groups = problem.residents.groups_on(nodes)
    return Solution(placed, found.evicted[groups], found.violating[groups])


def _answer(solution: Solution, found: Eviction, residents: Residents, nodes: I64) -> Eviction:
    """The answer `found`, but with this solution on nodes (N,)."""
    evicted, violating = found.evicted.copy(), found.violating.copy()
    groups = residents.groups_on(nodes)
    evicted[groups], violating[groups] = solution.evicted, solution.violating
    cls, node = np.nonzero(solution.placed)
    placed = np.column_stack([cls, nodes[node], solution.placed[cls, node]])
    return replace(found, evicted=evicted, violating=violating, placed=placed)


def _no_movers(shape: tuple[int, ...], budgets: int) -> Movers:
    nodes, resources = shape
    none, kinds = np.zeros(0, np.int64), (0, nodes)
    requests = np.zeros((0, resources), np.int64)
    return Movers(none, none, requests, np.zeros(kinds, np.bool_), np.zeros(0), np.zeros((0, budgets), np.bool_))
