"""How far the set of gangs that a round admits is from the most valuable one, by brute force over all sets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks


def admitted(nodes: list[int], gangs: list[tuple[int, int]]) -> set[int]:
    """Numbers of the gangs that a round places; gangs: (tasks, GPUs of each), the oldest first."""
    cluster = make_cluster(
        *(make_node(f"n{i}", gpu=size) for i, size in enumerate(nodes)),
        *(make_class(size, gpu=size) for size in {size for _, size in gangs}),
        *(make_gang(g, count, created_us=NOW_US - 100 + g) for g, (count, _) in enumerate(gangs, 1)),
        *(make_tasks(range(100 * g, 100 * g + count), size, gang=g) for g, (count, size) in enumerate(gangs, 1)),
    )
    return {uid // 100 for uid in cluster.round()}


def value(gangs: list[tuple[int, int]], chosen: set[int]) -> int:
    return sum(count * size for g, (count, size) in enumerate(gangs, 1) if g in chosen)


def optimum(maximum: int, gangs: list[tuple[int, int]]) -> int:
    """The most GPUs that any set of gangs could use, where sets fit exactly if their sums do."""
    numbers = range(1, len(gangs) + 1)
    sets = (set(some) for n in range(len(gangs) + 1) for some in combinations(numbers, n))
    return max(worth for some in sets if (worth := value(gangs, some)) <= maximum)


@pytest.mark.slow
@given(
    nodes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=7),
)
def test_the_optimum_exceeds_the_round_by_less_than_the_smallest_waiting_gang(nodes, counts):
    """Of gangs of one class: what is left is less than any that waits asks for, and no set uses more than there is."""
    gangs = [(count, 1) for count in counts]
    chosen = admitted(nodes, gangs)
    waits = [count for g, count in enumerate(counts, 1) if g not in chosen]
    best, used = optimum(sum(nodes), gangs), value(gangs, chosen)
    assert used <= best
    if waits:
        assert best - used < min(waits)
    else:
        assert used == sum(counts)


@pytest.mark.slow
def test_distance_from_the_optimum_with_gangs_of_several_sizes():
    """100 traces of ten gangs of 1 to 6 tasks of 1, 2, 4 or 8 GPUs for 5 nodes of 8, which sums decide, about twice
    what fits."""
    rng = np.random.default_rng(0)
    shares: list[float] = []
    for _ in range(100):
        gangs = list(zip(rng.integers(1, 7, 10).tolist(), rng.choice([1, 2, 4, 8], 10).tolist(), strict=True))
        shares.append(value(gangs, admitted([8] * 5, gangs)) / optimum(40, gangs))
    assert max(shares) <= 1
    assert np.mean(shares) > 0.93
    assert np.quantile(shares, 0.05) > 0.8
