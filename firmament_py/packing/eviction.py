"""Which residents of nodes to evict so that tasks of higher priority fit: a cheap set for all of them together.

Tasks are inserted one after the other, the most important and largest first, each at the node where that costs least.
On one node, residents are taken in ascending order of importance until the task fits; then those are put back, the most
important first, beside which it still fits (kube-scheduler's DefaultPreemption does the same with its victims). Then a
few tasks at a time are removed and inserted again. What is better goes by priority: more tasks of it, then fewer
victims that only these may evict, then the same for the next priority. A slightly more expensive result is accepted
now and then, less often towards the end (simulated annealing); the best of all counts.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.packing.eviction_search import search
from firmament_py.packing.victims import NONE, Groups, State, Tasks

_RANK_STEP = 1024.0
"""A resident weighs as much as this many of the rank below it; only to compare sets, so that rounding does no harm."""

_RANKS = 40
"""Higher ranks weigh the same: powers of the step must stay finite."""


_STEPS, _STEPS_OF_A_TASK = 25_000, 2_500
"""Largest number of steps of the search, and of steps for each task."""


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
class Arrivals:
    """W classes of tasks to insert: requests (W, R), count (W,), priority (W,), suitable (W, N)."""

    requests: I64
    count: I64
    priority: I64
    suitable: Bools


@dataclass(frozen=True, slots=True)
class Eviction:
    """evicted (K,): how many of each group of residents. placed: triples (P, 3) of class, node, count."""

    evicted: I64
    placed: I64


def evict(arrivals: Arrivals, residents: Residents, free: I64, allowed: I64, seed: int = 0) -> Eviction:
    """Inserts as many arrivals as possible, the most important first, and evicts what that takes.

    free (N, R): may be below 0. allowed (B,): how many evictions each budget permits. The result depends on nothing
    but the arguments.
    """
    weight = 1.0 / np.maximum(np.maximum(free.max(axis=0, initial=1), residents.requests.max(axis=0, initial=1)), 1)
    levels = np.unique(-arrivals.priority)
    order = np.lexsort((-(arrivals.requests @ weight), -arrivals.priority))
    tasks = Tasks(
        np.repeat(order, arrivals.count[order]),
        arrivals.requests,
        arrivals.priority,
        np.searchsorted(levels, -arrivals.priority),
        np.array(arrivals.suitable),
    )
    if not len(free):
        return Eviction(np.zeros_like(residents.count), np.zeros((0, 3), np.int64))
    groups, by_node = _groups(residents, weight, len(free), levels)
    cost = np.zeros((len(free), max(len(levels), 1)))
    state = State(np.full(len(tasks.cls), NONE), groups.number.copy(), free.copy(), allowed.copy(), cost)
    steps = min(_STEPS, _STEPS_OF_A_TASK * len(tasks.cls))
    search(tasks, groups, state, steps, np.random.default_rng(seed))
    evicted = np.empty_like(groups.number)
    evicted[by_node] = groups.number - state.left
    there = state.node_of >= 0
    pairs, count = np.unique(np.stack([tasks.cls[there], state.node_of[there]]), axis=1, return_counts=True)
    return Eviction(evicted, np.vstack([pairs, count]).T)


def _groups(residents: Residents, weight: F64, nodes: int, levels: I64) -> tuple[Groups, I64]:
    """The groups in the order of Groups, and (K,) the position of each in `residents`. levels (L,): negative priorities
    of the arrivals, ascending."""
    density = residents.value / np.maximum(residents.requests @ weight, 1e-12)
    kind, rank = residents.kind, residents.rank[residents.kind]
    by_node = np.lexsort((density[kind], residents.value[kind], rank, residents.node))
    kind, node, rank = kind[by_node], residents.node[by_node], rank[by_node]
    start = np.searchsorted(node, np.arange(nodes + 1)).astype(np.int64)
    budgets = residents.budgets[kind]
    size = residents.requests[kind] @ weight
    return Groups(
        start=start,
        number=residents.count[by_node],
        size=residents.requests[kind],
        priority=residents.priority[kind],
        rank=rank,
        weight=residents.value[kind] * _RANK_STEP ** np.minimum(rank, _RANKS).astype(np.float64),
        tier=np.maximum(np.searchsorted(levels, -residents.priority[kind]) - 1, 0),
        density=density[kind],
        by_density=np.lexsort((density[kind], rank, node)) - start[node],
        by_size=np.lexsort((-size, budgets.any(axis=1), node)) - start[node],
        budget=np.nonzero(budgets)[1].astype(np.int64),
        budget_start=np.r_[0, np.cumsum(budgets.sum(axis=1))].astype(np.int64),
    ), by_node
