"""Which residents of nodes to evict so that tasks of higher priority fit: a cheap set for all of them together.

Tasks are inserted one after the other, the most important first, then those that are large for the nodes that suit
them, each at the node where that costs least. The victims of a node are chosen anew for all of its tasks together:
residents are taken in ascending order of importance until the tasks fit; then those are put back, the most important
first, beside which they still do. Then a few tasks at a time are removed and inserted again. Results are compared
priority by priority: more tasks of it, then fewer victims that only these may evict, then the same for the next
priority; last, fewer moves. A worse result is accepted now and then (simulated annealing); the best one counts.

Movers are running tasks that keep running, on their own nodes or on others. No resident is evicted for them.
"""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.packing.clearing import TOLERANCE, Arrivals, Movers, clearing_costs, least_cost
from firmament_py.packing.eviction_search import search
from firmament_py.packing.victims import NONE, Groups, State, Tasks

_RANK_STEP = 1024.0
"""A resident weighs as much as this many of the rank below it; only to compare sets, so that rounding does no harm."""

_LEAST = np.iinfo(np.int64).min
"""The priority of tasks for which no resident is evicted."""

_RANKS = 40
"""Higher ranks weigh the same: powers of the step must stay finite."""


@dataclass(frozen=True, slots=True)
class Residents:
    """K groups of alike tasks on nodes, E kinds, B budgets.

    node (K,), ascending; kind (K,); count (K,) > 0. Of each kind: requests (E, R); priority (E,): only tasks of higher
    priority evict it; rank (E,): residents of higher rank are spared first, whatever the number; value (E,) >= 0 of
    sparing one, within its rank; budgets (E, B): which budgets an eviction counts against.
    """

    node: I64
    kind: I64
    count: I64
    requests: I64
    priority: I64
    rank: I64
    value: F64
    budgets: Bools


@dataclass(frozen=True, slots=True)
class Eviction:
    """evicted (K,): how many of each group of residents; violating (K,): how many of these no budget permits. placed:
    triples (P, 3) of class, node, count. node_of_mover (M,). least_moves: a lower bound on the moves by which the
    placed arrivals fit; 0 if tasks are evicted, too."""

    evicted: I64
    violating: I64
    placed: I64
    node_of_mover: I64
    least_moves: int


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
    weight = 1.0 / np.maximum(np.maximum(free.max(axis=0, initial=1), residents.requests.max(axis=0, initial=1)), 1)
    levels = np.unique(-arrivals.priority)
    size = arrivals.requests @ weight / np.maximum(arrivals.suitable.sum(axis=1), 1)
    order = np.lexsort((-size, -arrivals.priority))
    by_importance = np.argsort(np.repeat(np.argsort(order), arrivals.count), kind="stable")
    kinds, moving = len(movers.cost), len(movers.kind)
    by_kind = np.argsort(movers.kind, kind="stable")
    budgets = np.vstack([movers.budgets, np.zeros((len(order), len(allowed)), np.bool_)])
    tasks = Tasks(
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
    exceeding = np.full(len(allowed), beyond_budgets)
    if hard is not None:
        exceeding &= ~hard
    groups, by_node = _groups(residents, weight, len(free), levels, exceeding)
    cost = np.zeros((len(free), len(levels) + 2))
    none = np.zeros_like(groups.number)
    state = State(np.full(len(tasks.cls), NONE), none, none.copy(), allowed.copy(), cost)
    clearing, of_arrivals = np.zeros((len(tasks.requests), 0)), np.zeros(arrivals.suitable.shape)
    if moving:
        of = movers.home, movers.requests[movers.kind], movers.cost[movers.kind]
        of_arrivals = clearing_costs(arrivals.requests, arrivals.suitable, *of, free)
        clearing = np.vstack([np.full((kinds, len(free)), np.inf), of_arrivals])
    least = _least_cost(arrivals, movers, residents, groups, by_node, free) * (1 + TOLERANCE)
    search(tasks, groups, state, np.ascontiguousarray(free), clearing, least, effort, np.random.default_rng(seed))
    evicted, violating = np.empty_like(groups.number), np.empty_like(groups.number)
    evicted[by_node], violating[by_node] = state.evicted, state.violating
    node_of_mover = np.empty_like(movers.home)
    node_of_mover[by_kind] = state.node_of[:moving]
    there = moving + np.flatnonzero(state.node_of[moving:] >= 0)
    pairs, count = np.unique(np.stack([tasks.cls[there] - kinds, state.node_of[there]]), axis=1, return_counts=True)
    least_moves = 0
    if moving and not evicted.any():
        served = np.bincount(pairs[0], count, minlength=len(order)).astype(np.int64)
        dearest = movers.cost.max()
        least_moves = int(np.ceil(least_cost(replace(arrivals, count=served), free, of_arrivals) / dearest - 1e-6))
    return Eviction(evicted, violating, np.vstack([pairs, count]).T, node_of_mover, least_moves)


def _no_movers(shape: tuple[int, ...], budgets: int) -> Movers:
    nodes, resources = shape
    none, kinds = np.zeros(0, np.int64), (0, nodes)
    requests = np.zeros((0, resources), np.int64)
    return Movers(none, none, requests, np.zeros(kinds, np.bool_), np.zeros(0), np.zeros((0, budgets), np.bool_))


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


def _groups(residents: Residents, weight: F64, nodes: int, levels: I64, exceeding: Bools) -> tuple[Groups, I64]:
    """The groups in the order of Groups, and (K,) the position of each in `residents`. levels (L,): negative priorities
    of the arrivals, ascending. exceeding (B,): budgets that may be exceeded."""
    density = residents.value / np.maximum(residents.requests @ weight, 1e-12)
    kind, rank = residents.kind, residents.rank[residents.kind]
    by_node = np.lexsort((residents.value[kind], density[kind], rank, residents.node))
    kind, node, rank = kind[by_node], residents.node[by_node], rank[by_node]
    start = np.searchsorted(node, np.arange(nodes + 1)).astype(np.int64)
    budgets = residents.budgets[kind]
    step = _RANK_STEP ** np.minimum(np.arange(rank.max(initial=0) + 2), _RANKS)
    counted = budgets.any(axis=1) & ~budgets[:, ~exceeding].any(axis=1)
    cost = residents.value[kind] * step[rank]
    return Groups(
        start=start,
        number=residents.count[by_node],
        size=residents.requests[kind],
        priority=residents.priority[kind],
        rank=rank,
        weight=cost,
        excess=np.where(counted, cost + residents.value.max(initial=0.0) * step[-1], np.inf),
        tier=np.maximum(np.searchsorted(levels, -residents.priority[kind]), 1),
        density=density[kind],
        budget=np.nonzero(budgets)[1].astype(np.int64),
        budget_start=np.r_[0, np.cumsum(budgets.sum(axis=1))].astype(np.int64),
    ), by_node
