"""The tables of the search from a problem of eviction, and the answer from what it leaves in them."""

from dataclasses import replace

import numpy as np

from firmament_py.eviction.clearing import TOLERANCE, clearing_costs, least_cost
from firmament_py.eviction.problem import Arrivals, Eviction, Movers, Problem, Residents
from firmament_py.eviction.search import search
from firmament_py.eviction.victims import NONE, Groups, State, Tasks
from firmament_py.model.arrays import F64, I64, Bools

_RANK_STEP = 1024.0
"""A resident weighs as much as this many of the rank below it; only to compare sets, so that rounding does no harm."""

_LEAST = np.iinfo(np.int64).min
"""The priority of tasks for which no resident is evicted."""

_RANKS = 40
"""Higher ranks weigh the same: powers of the step must stay finite."""


class Tables:
    """Of one problem."""

    def __init__(self, problem: Problem, movers: Movers) -> None:
        arrivals, residents, free, allowed = problem.arrivals, problem.residents, problem.free, problem.allowed
        weight = 1.0 / np.maximum(np.maximum(free.max(axis=0, initial=1), residents.requests.max(axis=0, initial=1)), 1)
        levels = np.unique(-arrivals.priority)
        size = arrivals.requests @ weight / np.maximum(arrivals.suitable.sum(axis=1), 1)
        order = np.lexsort((-size, -arrivals.priority))
        by_importance = np.argsort(np.repeat(np.argsort(order), arrivals.count), kind="stable")
        kinds = len(movers.cost)
        by_kind = np.argsort(movers.kind, kind="stable")
        budgets = np.vstack([movers.budgets, np.zeros((len(order), len(allowed)), np.bool_)])
        self._arrivals, self._movers, self._by_kind = arrivals, movers, by_kind
        self._free, self._allowed, self._levels = np.ascontiguousarray(free), allowed, len(levels)
        self._tasks = Tasks(
            cls=np.r_[movers.kind[by_kind], kinds + np.repeat(order, arrivals.count[order])],
            home=np.r_[movers.home[by_kind], arrivals.home[by_importance]],
            requests=np.vstack([movers.requests, arrivals.requests]),
            priority=np.r_[np.full(kinds, _LEAST), np.where(arrivals.evicts, arrivals.priority, _LEAST)],
            level=np.r_[np.zeros(kinds, np.int64), 1 + np.searchsorted(levels, -arrivals.priority)],
            suitable=np.vstack([movers.suitable, arrivals.suitable]),
            away=np.r_[movers.cost, np.zeros(len(order))],
            budget=np.nonzero(budgets)[1].astype(np.int64),
            budget_start=np.r_[0, np.cumsum(budgets.sum(axis=1))].astype(np.int64),
            share=weight,
        )
        self._groups, self._by_node = _groups(residents, weight, len(free), levels, problem.exceedable)
        self._clearing = np.zeros((len(self._tasks.requests), 0))
        self._of_arrivals = np.zeros(arrivals.suitable.shape)
        if len(movers.kind):
            of = movers.home, movers.requests[movers.kind], movers.cost[movers.kind]
            self._of_arrivals = clearing_costs(arrivals.requests, arrivals.suitable, *of, free)
            self._clearing = np.vstack([np.full((kinds, len(free)), np.inf), self._of_arrivals])
        self._least = _least_cost(arrivals, movers, residents, self._groups, self._by_node, free)

    def search(self, effort: float, seed: int) -> tuple[Eviction, float]:
        """What the search finds, and by how much, relatively, that costs more than a lower bound; infinite: not all
        tasks are served. effort: see search(); at 0 tasks are only inserted."""
        groups, none = self._groups, np.zeros_like(self._groups.number)
        cost = np.zeros((len(self._free), self._levels + 2))
        state = State(np.full(len(self._tasks.cls), NONE), none, none.copy(), self._allowed.copy(), cost)
        rng = np.random.default_rng(seed)
        least = self._least * (1 + TOLERANCE)
        search(self._tasks, groups, state, self._free, self._clearing, least, effort, rng)
        evicted, violating = np.empty_like(groups.number), np.empty_like(groups.number)
        evicted[self._by_node], violating[self._by_node] = state.evicted, state.violating
        moving = len(self._movers.kind)
        node_of_mover = np.empty_like(self._movers.home)
        node_of_mover[self._by_kind] = state.node_of[:moving]
        there = moving + np.flatnonzero(state.node_of[moving:] >= 0)
        places = np.stack([self._tasks.cls[there] - len(self._movers.cost), state.node_of[there]])
        pairs, count = np.unique(places, axis=1, return_counts=True)
        least_moves = self._least_moves(pairs[0], count) if moving and not evicted.any() else 0
        excess = cost.sum() - self._least
        gap = np.inf if (state.node_of < 0).any() else excess / max(self._least, 1e-9) if excess > 0 else 0.0
        return Eviction(evicted, violating, np.vstack([pairs, count]).T, node_of_mover, least_moves), float(gap)

    def _least_moves(self, of: I64, count: I64) -> int:
        """See Eviction. of, count (P,): classes of arrivals that have places, and how many."""
        served = np.bincount(of, count, minlength=len(self._arrivals.count)).astype(np.int64)
        least = least_cost(replace(self._arrivals, count=served), self._free, self._of_arrivals)
        return int(np.ceil(least / self._movers.cost.max() - 1e-6))


def _least_cost(
    arrivals: Arrivals, movers: Movers, residents: Residents, groups: Groups, by_node: I64, free: I64
) -> float:
    """A lower bound on the cost of evictions and moves together that make all arrivals fit; 0 unless these are of one
    class: of several, the bound would be that of one class alone, which is loose."""
    if len(arrivals.count) != 1 or (arrivals.home >= 0).any():
        return 0.0
    evictable = arrivals.evicts[0] & (groups.priority < arrivals.priority[0])
    each = np.repeat(np.flatnonzero(evictable), groups.number[evictable])
    home = np.concatenate([residents.node[by_node][each], movers.home])
    requests = np.vstack([groups.size[each], movers.requests[movers.kind]])
    cost = np.concatenate([groups.weight[each], movers.cost[movers.kind]])
    everything = free.copy()
    np.add.at(everything, residents.node[by_node][each], groups.size[each])
    clearing = clearing_costs(arrivals.requests, arrivals.suitable, home, requests, cost, everything)
    return least_cost(arrivals, everything, clearing)


def _groups(residents: Residents, weight: F64, nodes: int, levels: I64, exceedable: Bools) -> tuple[Groups, I64]:
    """The groups in the order of Groups, and (K,) the position of each in `residents`. levels (L,): negative priorities
    of the arrivals, ascending. exceedable (E,): kinds that may be evicted beyond their budgets."""
    density = residents.value / np.maximum(residents.requests @ weight, 1e-12)
    kind, rank = residents.kind, residents.rank[residents.kind]
    by_node = np.lexsort((residents.value[kind], density[kind], rank, residents.node))
    kind, node, rank = kind[by_node], residents.node[by_node], rank[by_node]
    start = np.searchsorted(node, np.arange(nodes + 1)).astype(np.int64)
    budgets = residents.budgets[kind]
    step = _RANK_STEP ** np.minimum(np.arange(rank.max(initial=0) + 2), _RANKS)
    cost = residents.value[kind] * step[rank]
    return Groups(
        start=start,
        number=residents.count[by_node],
        size=residents.requests[kind],
        priority=residents.priority[kind],
        rank=rank,
        weight=cost,
        excess=np.where(exceedable[kind], cost + residents.value.max(initial=0.0) * step[-1], np.inf),
        tier=np.maximum(np.searchsorted(levels, -residents.priority[kind]), 1),
        density=density[kind],
        budget=np.nonzero(budgets)[1].astype(np.int64),
        budget_start=np.r_[0, np.cumsum(budgets.sum(axis=1))].astype(np.int64),
    ), by_node
