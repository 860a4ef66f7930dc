"""Random problems, and the best packing of small ones by trying everything."""

from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from firmament_py.packing.problem import Packing, Problem
from firmament_py.snapshot.solo_capacity import task_slots


def make_problem(requests, free, count, *, suitable=None, value=None, level=None) -> Problem:
    requests, free, count = (np.array(column, np.int64) for column in (requests, free, count))
    classes = len(count)
    suitable = np.ones((classes, len(free)), np.bool_) if suitable is None else np.array(suitable, np.bool_)
    return Problem(
        requests,
        free,
        suitable,
        task_slots(free, requests, suitable, count),
        count,
        np.array(value or [1.0] * classes, np.float64),
        np.array(level or [0] * classes, np.int64),
    )


@st.composite
def problems(draw, nodes=3, classes=3, tasks=3):
    resources = draw(st.integers(1, 3))

    def amounts(rows, greatest):
        return draw(
            st.lists(
                st.lists(st.integers(0, greatest), min_size=resources, max_size=resources), min_size=rows, max_size=rows
            )
        )

    n, c = draw(st.integers(1, nodes)), draw(st.integers(1, classes))
    levels = draw(st.lists(st.integers(0, 2), min_size=c, max_size=c))
    return make_problem(
        amounts(c, 5),
        amounts(n, 9),
        draw(st.lists(st.integers(0, tasks), min_size=c, max_size=c)),
        suitable=draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=c, max_size=c)),
        value=[float(v) for v in draw(st.lists(st.sampled_from([1, 1, 1.5, 2]), min_size=c, max_size=c))],
        level=np.unique(levels, return_inverse=True)[1].tolist(),
    )


def random_problem(seed: int, nodes: int, classes: int, demand: float = 1.0) -> Problem:
    """Nodes of three shapes, a part of each used, and classes that together request about `demand` of what is free."""
    rng = np.random.default_rng(seed)
    shapes = np.array([[8000, 32, 110], [16000, 128, 110], [32000, 64, 110]])
    free = (shapes[rng.integers(0, 3, nodes)] * rng.uniform(0.3, 1.0, (nodes, 1))).astype(np.int64)
    requests = np.stack(
        [
            rng.choice([250, 500, 1000, 1500, 3000, 6000], classes),
            rng.choice([1, 2, 3, 5, 8, 13], classes),
            [1] * classes,
        ],
        axis=1,
    )
    share = rng.exponential(1.0, classes) + 0.1
    scale = demand / ((share[:, None] * requests).sum(axis=0) / free.sum(axis=0)).max()
    return make_problem(
        requests, free, np.maximum(share * scale, 1).astype(np.int64), suitable=rng.random((classes, nodes)) < 0.8
    )


def packing_of(problem: Problem, placed) -> Packing:
    """The packing with `placed` (C, N)."""
    placed = np.array(placed, np.int64)
    cls, node = np.nonzero(placed)
    return Packing.of(problem, cls, node, placed[cls, node])


def placed(problem: Problem, packing: Packing) -> np.ndarray:
    """(C, N) how many tasks of each class are on each node."""
    found = np.zeros(problem.slots.shape, np.int64)
    cls, node, number = packing.entries()
    assert len({*zip(cls.tolist(), node.tolist(), strict=True)}) == len(cls), "each pair once"
    found[cls, node] = number
    return found


def assert_valid(problem: Problem, packing: Packing) -> None:
    """Nothing is over-committed, and the columns agree."""
    needs = problem.requests > 0
    there = placed(problem, packing)
    used = there.T @ problem.requests
    assert (there >= 0).all()
    assert (there[~problem.suitable] == 0).all()
    assert (there <= problem.slots).all()
    assert (packing.left >= 0).all()
    assert (there.sum(axis=1) + packing.left == problem.count).all()
    assert (packing.free == problem.free - used).all()
    assert (packing.free[:, needs.any(axis=0)] >= 0).all()


def best_values(problem: Problem) -> list[float]:
    """The best values of the levels, first to last, by trying all ways to fill node after node."""
    classes = len(problem.count)

    @cache
    def ways(n: int) -> list[tuple[int, ...]]:
        """How many tasks of each class may go to node n together."""
        ranges = [range(int(problem.slots[c, n]) + 1) for c in range(classes)]
        return [way for way in product(*ranges) if (np.array(way) @ problem.requests <= problem.free[n]).all()]

    left = {tuple(problem.count.tolist())}
    for n in range(len(problem.free)):
        left = {
            tuple(a - b for a, b in zip(unplaced, way, strict=True))
            for unplaced in left
            for way in ways(n)
            if all(b <= a for a, b in zip(unplaced, way, strict=True))
        }
    placed = problem.count - np.array(sorted(left))
    values = np.zeros((len(placed), problem.levels))
    for c in range(classes):
        values[:, problem.level[c]] += placed[:, c] * problem.value[c]
    return max(values.round(6).tolist())
