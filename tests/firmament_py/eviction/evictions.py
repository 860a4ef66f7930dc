"""Random problems of eviction, and the best answer to small ones by trying everything."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from firmament_py.eviction.evict import evict
from firmament_py.eviction.problem import Arrivals, Eviction, Residents

_STEPS = 4096
"""A value of 1 is this many."""


@dataclass(frozen=True, slots=True)
class EvictionProblem:
    arrivals: Arrivals
    residents: Residents
    free: np.ndarray  # (N, R)
    allowed: np.ndarray  # (B,)

    def solve(self, seed: int = 0, *, beyond_budgets: bool = False) -> Eviction:
        return evict(self.arrivals, self.residents, self.free, self.allowed, seed, beyond_budgets=beyond_budgets)


def make_problem(
    *,
    free,
    arrivals=(),
    residents=(),
    kinds=(),
    allowed=(),
) -> EvictionProblem:
    """arrivals: requests, count, priority, the nodes that suit, and the homes of all if any has one. residents: node,
    kind, count. kinds: requests, priority, rank, value, and the budgets that count it."""
    free = np.array(free, np.int64)
    nodes, resources = free.shape
    table = np.array(sorted(residents), np.int64).reshape(-1, 3)
    return EvictionProblem(
        Arrivals(
            np.array([a[0] for a in arrivals], np.int64).reshape(-1, resources),
            np.array([a[1] for a in arrivals], np.int64),
            np.array([a[2] for a in arrivals], np.int64),
            np.array([[n in a[3] for n in range(nodes)] for a in arrivals], np.bool_).reshape(len(arrivals), nodes),
            np.ones(len(arrivals), np.bool_),
            np.array([home for a in arrivals for home in (a[4] if len(a) > 4 else [-1] * a[1])], np.int64),
        ),
        Residents(
            node=table[:, 0].copy(),
            kind=table[:, 1].copy(),
            count=table[:, 2].copy(),
            requests=np.array([k[0] for k in kinds], np.int64).reshape(-1, resources),
            priority=np.array([k[1] for k in kinds], np.int64),
            rank=np.array([k[2] for k in kinds], np.int64),
            value=np.array([round(k[3] * _STEPS) for k in kinds], np.int64),
            budgets=np.array([[b in k[4] for b in range(len(allowed))] for k in kinds], np.bool_).reshape(
                len(kinds), len(allowed)
            ),
        ),
        free,
        np.array(allowed, np.int64),
    )


@st.composite
def eviction_problems(draw, nodes=3, tasks=4, members=8, least=0):
    """At least `least` residents and arrivals; ranks rise with priorities, as those of running tasks do, and some kinds
    are of rank 0 and worth nothing, like tasks that leave anyway."""
    resources = draw(st.integers(1, 2))
    n = draw(st.integers(1, nodes))
    budgets = draw(st.integers(0, 2))

    def amounts(greatest):
        return draw(st.lists(st.integers(0, greatest), min_size=resources, max_size=resources))

    kinds: list[tuple] = []
    for _ in range(draw(st.integers(1, 5))):
        priority, leaves = draw(st.integers(0, 2)), draw(st.integers(0, 9)) == 9
        value = draw(st.integers(0, 3)) * 600 / _STEPS + 1.0
        counted = draw(st.sets(st.integers(0, budgets - 1))) if budgets else set()
        kinds.append((amounts(4), priority, 0 if leaves else 1 + priority, 0.0 if leaves else value, counted))
    arrivals: list[tuple] = []
    for _ in range(draw(st.integers(1, min(tasks, 3)))):
        left = tasks - sum(arrival[1] for arrival in arrivals)
        if left:
            suitable = draw(st.sets(st.integers(0, n - 1), min_size=min(1, n)))
            arrivals.append((amounts(6), draw(st.integers(1, min(left, 2))), draw(st.integers(0, 3)), suitable))
    residents: dict[tuple[int, int], int] = {}
    for _ in range(draw(st.integers(least, members))):
        pair = draw(st.tuples(st.integers(0, n - 1), st.integers(0, len(kinds) - 1)))
        residents[pair] = residents.get(pair, 0) + 1
    return make_problem(
        free=[draw(st.lists(st.integers(-2, 3), min_size=resources, max_size=resources)) for _ in range(n)],
        arrivals=arrivals,
        residents=[(*pair, count) for pair, count in residents.items()],
        kinds=kinds,
        allowed=draw(st.lists(st.integers(0, 3), min_size=budgets, max_size=budgets)),
    )


def random_problem(seed: int, *, levels: int = 3) -> EvictionProblem:
    """One to three nodes, up to eight residents in up to five kinds, up to four arrivals that fit nowhere at once."""
    rng = np.random.default_rng(seed)
    nodes, resources, budgets = (int(rng.integers(1, bound)) for bound in (4, 3, 3))
    budgets -= 1
    kinds: list[tuple] = []
    for _ in range(rng.integers(2, 6)):
        priority = int(rng.integers(0, levels))
        value = 1.0 + int(rng.integers(0, 60)) / _STEPS
        counted = set(np.flatnonzero(rng.random(budgets) < 0.5).tolist())
        kinds.append((rng.integers(1, 5, resources).tolist(), priority, 1 + priority, value, counted))
    arrivals: list[tuple] = []
    for _ in range(rng.integers(1, 4)):
        suitable = set(np.flatnonzero(rng.random(nodes) < 0.8).tolist())
        left = 4 - sum(arrival[1] for arrival in arrivals)
        if left:
            count, priority = int(rng.integers(1, min(left, 2) + 1)), int(rng.integers(1, levels + 1))
            arrivals.append((rng.integers(1, 7, resources).tolist(), count, priority, suitable))
    residents: dict[tuple[int, int], int] = {}
    for _ in range(rng.integers(2, 9)):
        pair = (int(rng.integers(0, nodes)), int(rng.integers(0, len(kinds))))
        residents[pair] = residents.get(pair, 0) + 1
    return make_problem(
        free=rng.integers(0, 3, (nodes, resources)),
        arrivals=arrivals,
        residents=[(*pair, count) for pair, count in residents.items()],
        kinds=kinds,
        allowed=rng.integers(0, 4, budgets).tolist(),
    )


def placed_counts(problem: EvictionProblem, eviction: Eviction) -> np.ndarray:
    """(W, N) how many arrivals of each class are on each node."""
    placed = np.zeros(problem.arrivals.suitable.shape, np.int64)
    for c, n, count in eviction.placed.tolist():
        placed[c, n] += count
    return placed


def violations(problem: EvictionProblem, eviction: Eviction) -> list[str]:
    """What is wrong with an answer; empty: nothing."""
    arrivals, residents = problem.arrivals, problem.residents
    placed, evicted = placed_counts(problem, eviction), eviction.evicted
    found = []
    if eviction.placed.size and (eviction.placed[:, 2] <= 0).any():
        found.append("a triple of no arrival")
    if ((evicted < 0) | (evicted > residents.count)).any():
        found.append("more are evicted than there are")
    if ((eviction.violating < 0) | (eviction.violating > evicted)).any():
        found.append("more are evicted beyond budgets than are evicted")
    if eviction.violating[~residents.budgets[residents.kind].any(axis=1)].any():
        found.append("what no budget counts is evicted beyond budgets")
    if ((evicted - eviction.violating) @ residents.budgets[residents.kind] > problem.allowed).any():
        found.append("a budget is exceeded")
    if (placed.sum(axis=1) > arrivals.count).any():
        found.append("more arrive than there are")
    if placed[~arrivals.suitable].any():
        found.append("an arrival is where it may not be")
    left = _left(problem, placed, evicted)
    asked = np.array(
        [[(placed[:, n] * arrivals.requests[:, r]).any() for r in range(left.shape[1])] for n in range(len(left))]
    )
    if (asked.reshape(left.shape) & (left < 0)).any():
        found.append("a node is overfull")
    found += [
        f"resident {k} is evicted in vain"
        for k in np.flatnonzero(evicted).tolist()
        if not _needed(problem, placed, evicted, k)
    ]
    found += [
        f"resident {k} is evicted for arrivals of no higher priority"
        for k in np.flatnonzero(evicted).tolist()
        if not _justified(problem, placed, evicted, k, eviction.violating)
    ]
    return found


def served(problem: EvictionProblem, placed: np.ndarray) -> list[int]:
    """How many arrivals of each priority are placed, from the highest."""
    priority = problem.arrivals.priority
    return [int(placed[priority == level].sum()) for level in descending(priority)]


def by_priority(
    problem: EvictionProblem, placed: np.ndarray, evicted: np.ndarray, violating: np.ndarray | None = None
) -> list[int]:
    """Greater is better. Priority by priority: how many arrivals are placed, then what is evicted that no lower
    priority may evict: how many beyond budgets, then their value by rank. So no arrival gains by the eviction of what
    is as important as itself."""
    residents = problem.residents
    priority, rank = residents.priority[residents.kind], residents.rank[residents.kind]
    value = evicted * residents.value[residents.kind]
    violating = np.zeros_like(evicted) if violating is None else violating
    levels = descending(problem.arrivals.priority)
    outcome: list[int] = []
    for count, above, below in zip(served(problem, placed), levels, [*levels[1:], -np.inf], strict=True):
        between = (priority < above) & (priority >= below)
        outcome += [count, -int(violating[between].sum())]
        outcome += [-int(value[between & (rank == level)].sum()) for level in descending(residents.rank)]
    return outcome


def descending(numbers: np.ndarray) -> list[int]:
    found: list[int] = sorted(set(numbers.tolist()), reverse=True)
    return found


def best_by_priority(problem: EvictionProblem, *, beyond_budgets: bool = False) -> list[int]:
    """The best of any answer without violations, by trying all."""
    budgets = problem.residents.budgets[problem.residents.kind]
    exceedable = budgets.any(axis=1) & beyond_budgets
    evictions = [
        (evicted, violating)
        for evicted in _ways(problem.residents.count)
        for violating in _ways(np.where(exceedable, evicted, 0))
        if ((evicted - violating) @ budgets <= problem.allowed).all()
    ]
    nothing = np.zeros(problem.arrivals.suitable.shape, np.int64)
    evictions.sort(key=lambda way: by_priority(problem, nothing, *way), reverse=True)
    freed = np.array([_left(problem, nothing, evicted) for evicted, _ in evictions])
    found, none = [], np.zeros_like(problem.residents.count)
    for placed in _assignments(problem):
        used = np.einsum("cn,cr->nr", placed, problem.arrivals.requests)
        asked = np.einsum("cn,cr->nr", placed, problem.arrivals.requests > 0) > 0
        fits = ((freed >= used) | ~asked).all(axis=(1, 2))
        for i in np.flatnonzero(fits).tolist():  # the cheapest first
            evicted, violating = evictions[i]
            if all(_justified(problem, placed, evicted, k, none) for k in np.flatnonzero(evicted).tolist()):
                found.append(by_priority(problem, placed, evicted, violating))
                break
    return max(found)


def _ways(greatest: np.ndarray) -> list[np.ndarray]:
    """All vectors (K,) with 0 to greatest[k] of each."""
    return [np.array(way, np.int64) for way in product(*(range(count + 1) for count in greatest.tolist()))]


def _assignments(problem: EvictionProblem) -> Iterator[np.ndarray]:
    """All ways (W, N) to send arrivals to nodes that suit, or nowhere."""
    nodes = problem.arrivals.suitable.shape[1]

    def ways(c: int) -> list[tuple[int, ...]]:
        count = int(problem.arrivals.count[c])
        ranges = [range(count + 1 if problem.arrivals.suitable[c, n] else 1) for n in range(nodes)]
        return [way for way in product(*ranges) if sum(way) <= count]

    for rows in product(*(ways(c) for c in range(len(problem.arrivals.count)))):
        yield np.array(rows, np.int64).reshape(-1, nodes)


def _left(problem: EvictionProblem, placed: np.ndarray, evicted: np.ndarray) -> np.ndarray:
    """(N, R) what is left on each node."""
    left = problem.free - placed.T @ problem.arrivals.requests
    np.add.at(left, problem.residents.node, evicted[:, None] * problem.residents.requests[problem.residents.kind])
    return left


def _needed(problem: EvictionProblem, placed: np.ndarray, evicted: np.ndarray, k: int) -> bool:
    """Whether its node is overfull with one more of residents k."""
    left = _left(problem, placed, evicted)[problem.residents.node[k]]
    requests = problem.residents.requests[problem.residents.kind[k]]
    return bool(((requests > 0) & (left < requests)).any())


def _justified(
    problem: EvictionProblem, placed: np.ndarray, evicted: np.ndarray, k: int, violating: np.ndarray
) -> bool:
    """Whether the arrivals of higher priority on its node, without the others there, lack what one of residents k
    requests."""
    residents, kind = problem.residents, problem.residents.kind[k]
    node, priority = residents.node[k], residents.priority[residents.kind]
    rank = np.where(violating > 0, residents.rank.max() + 1, residents.rank[residents.kind])
    above = placed * (problem.arrivals.priority > priority[k])[:, None]
    asked = problem.arrivals.requests[above[:, node] > 0].any(axis=0)
    # residents of lower priority that are spared before k, which leaves anyway, go for other arrivals
    left = _left(problem, above, evicted * ((priority >= priority[k]) | (rank <= rank[k])))[node]
    requests = residents.requests[kind]
    return bool((asked & (requests > 0) & (left < requests)).any())
