"""Packings of several resources, compared with the best one by trying everything, and with their own bounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.packing.pack import pack
from firmament_py.packing.problem import Packing, better, values
from firmament_py.packing.relaxation import Relaxation, Shares
from firmament_py.packing.rounding import fill, rounded
from firmament_py.packing.ruin_recreate import ruin_and_recreate
from tests.effort import examples, seeds
from tests.firmament_py.packing.packings import (
    assert_valid,
    best_values,
    make_problem,
    packing_of,
    placed,
    problems,
    random_problem,
)

INFINITE = np.inf


@examples(60)
@given(problems())
def test_small_packings_are_valid_and_their_bounds_hold(problem):
    packed = pack(problem, Packing.empty(problem), 0.01)
    assert_valid(problem, packed.packing)
    best, reached = best_values(problem), values(problem, packed.packing).round(6).tolist()
    assert reached <= best
    # at the first level that falls short of the best, the gap admits it
    for mine, optimum, gap in zip(reached, best, packed.gap, strict=True):
        assert optimum <= mine + gap + 1e-6
        if optimum != mine:
            break


@examples(40)
@given(problems())
def test_the_bound_of_a_tightened_relaxation_holds(problem):
    relaxation, best = Relaxation(problem), best_values(problem)[:1]
    objective = np.where(problem.level == 0, problem.value, 0.0)
    for _ in range(3):
        relaxed = relaxation.solve(objective)
        assert relaxed is not None
        assert sum(best) <= relaxed.bound + 1e-6
        assert_valid(problem, rounded(problem, relaxation.shares(relaxed)))
        if not relaxation.tighten(relaxed):
            break


@examples(40)
@given(problems(nodes=4, tasks=6), st.integers(1, 3))
def test_merging_nodes_never_lowers_a_bound(problem, groups):
    bounds = [Relaxation(problem, limit).solve(problem.value) for limit in (100, groups)]
    fine, coarse = (0.0 if relaxed is None else relaxed.bound for relaxed in bounds)
    assert coarse >= fine - 1e-6


@examples(40)
@given(problems(), st.data())
def test_a_packing_is_never_worse_than_what_it_started_from(problem, data):
    there = np.zeros_like(problem.slots)
    for c in range(len(problem.count)):
        for n in range(len(problem.free)):
            spare = packing_of(problem, there).free[n]
            fits = all(r == 0 or spare[i] >= r for i, r in enumerate(problem.requests[c].tolist()))
            if problem.suitable[c, n] and there[c].sum() < problem.count[c] and fits and data.draw(st.booleans()):
                there[c, n] += 1
    start = packing_of(problem, there)
    packed = pack(problem, start, 0.01)
    assert_valid(problem, packed.packing)
    assert better(problem, packed.packing, start) is packed.packing
    assert (placed(problem, start) == there).all(), "the start is not changed"


@seeds(24)
def test_packings_of_many_tasks_are_close_to_their_bounds(seed):
    problem = random_problem(seed, nodes=30, classes=12, demand=[0.9, 1.0, 1.2][seed % 3])
    packed = pack(problem, Packing.empty(problem))
    assert_valid(problem, packed.packing)
    [reached], [gap] = values(problem, packed.packing), packed.gap
    assert reached >= 0.97 * (reached + gap)
    if reached < 0.98 * (reached + gap):  # one of these seeds takes a longer search
        packed = pack(problem, Packing.empty(problem), 40)
        [reached], [gap] = values(problem, packed.packing), packed.gap
        assert reached >= 0.98 * (reached + gap)


def test_nearly_all_small_packings_of_several_levels_are_best():
    """Of 100, in which the tasks request as much as three equal nodes have, or slightly more or less."""
    reached, best = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        requests, count = rng.integers(100, 1000, (6, 2)), rng.integers(1, 3, 6)
        capacity = (count @ requests / (3 * rng.choice([0.9, 1.0, 1.05]))).astype(np.int64)
        level = np.unique(rng.integers(0, 4, 6), return_inverse=True)[1].tolist()
        value = (1.0 + rng.integers(0, 2, 6) / 1000).tolist()
        problem = make_problem(requests, [capacity] * 3, count, value=value, level=level)
        reached.append(values(problem, pack(problem, Packing.empty(problem)).packing).round(6).tolist())
        best.append(best_values(problem))
    assert sum(one == other for one, other in zip(reached, best, strict=True)) >= 99


def test_a_packing_without_a_gap_is_found_and_proved():
    """Four nodes of 4 cpu and 8 GiB: placed one by one, pairs of equal tasks block them; one of each fits."""
    problem = make_problem([[3, 2], [1, 6]], [[4, 8]] * 4, [4, 4])
    start = packing_of(problem, [[1, 1, 1, 1], [0, 0, 0, 0]])
    packed = pack(problem, start)
    assert (problem.count - packed.packing.left).sum() == 8
    assert packed.gap.tolist() == [0.0]


def test_a_task_of_a_higher_level_is_worth_any_number_of_others():
    problem = make_problem([[8], [1]], [[8]], [1, 8], value=[1.0, 50.0], level=[0, 1])
    packed = pack(problem, packing_of(problem, [[0], [8]]))
    assert placed(problem, packed.packing).tolist() == [[1], [0]]
    assert packed.gap.tolist() == [0.0, 0.0]


def test_within_a_level_value_counts():
    problem = make_problem([[4], [4]], [[4]], [1, 1], value=[1.0, 1.5])
    packed = pack(problem, packing_of(problem, [[1], [0]]))
    assert placed(problem, packed.packing).tolist() == [[0], [1]]


def test_rounded_rows_prove_what_sums_do_not():
    """Three nodes of 3 devices, tasks of 2 in two classes: by sums four fit, but a node holds one."""
    problem = make_problem([[2], [2]], [[3]] * 3, [2, 2])
    relaxation = Relaxation(problem)
    plain = relaxation.solve(problem.value)
    assert plain is not None
    assert plain.bound >= 4
    packed = pack(problem, Packing.empty(problem))
    assert (problem.count - packed.packing.left).sum() == 3
    assert packed.gap.tolist() == [0.0]


def test_without_effort_only_what_fits_is_added():
    problem = random_problem(1, nodes=30, classes=12, demand=1.2)
    filled = Packing.empty(problem)
    fill(problem, filled)
    packed = pack(problem, Packing.empty(problem), 0)
    assert (placed(problem, packed.packing) == placed(problem, filled)).all()
    assert packed.gap[0] > 0


def test_a_search_ends_as_soon_as_its_target_is_reached():
    problem = random_problem(1, nodes=30, classes=12, demand=1.2)
    packing = Packing.empty(problem)
    fill(problem, packing)
    reached = values(problem, packing)
    ruin_and_recreate(problem, packing, 10**15, reached + 1)  # for months, otherwise
    assert (values(problem, packing) >= reached + 1).all()


def test_equal_arguments_give_equal_packings():
    problem = random_problem(2, nodes=30, classes=12, demand=1.1)
    one, other = (placed(problem, pack(problem, Packing.empty(problem), 0.2).packing) for _ in range(2))
    assert (one == other).all()


def test_a_fractional_packing_is_rounded_to_a_valid_one():
    problem = random_problem(3, nodes=30, classes=12)
    relaxation = Relaxation(problem)
    relaxed = relaxation.solve(problem.value)
    assert relaxed is not None
    packing = rounded(problem, relaxation.shares(relaxed))
    assert_valid(problem, packing)
    assert (problem.count - packing.left).sum() >= 0.9 * relaxed.bound


def test_rounding_does_not_trust_the_last_digits_of_a_solution():
    """Together the two tasks request one byte more than there is."""
    problem = make_problem([[300_000_001], [200_000_000]], [[500_000_000]], [1, 1])
    assert_valid(problem, rounded(problem, Shares(np.array([[1 - 1e-8], [1.0]]), np.zeros(1, np.int64), np.ones(1))))


def test_rounding_does_not_trust_a_solution_of_many_small_tasks():
    """A millionth too many of tasks that request a millionth of the node, whose number is limited alike."""
    problem = make_problem([[2**18], [2**38]], [[2**38], [2**38]], [2**20, 1])
    too_many = Shares(np.array([[2**20 + 1.5], [1.0]]), np.array([0, 0]), np.ones(2))
    packing = rounded(replace(problem, slots=2 * problem.slots), too_many)
    assert_valid(problem, packing)
    assert packing.left.tolist() == [0, 0]


def test_only_the_first_of_many_levels_have_a_bound():
    problem = make_problem([[2]] * 6, [[3]], [1] * 6, level=list(range(6)))
    packed = pack(problem, Packing.empty(problem), 0)
    assert (problem.count - packed.packing.left).sum() == 1
    assert packed.gap.tolist() == [0.0] * 5 + [INFINITE]


@pytest.mark.parametrize(
    ("requests", "free", "count"),
    [
        (np.zeros((0, 2)), [[1, 1]], []),
        ([[1, 1]], np.zeros((0, 2)), [3]),
        ([[0, 0]], [[1, 1]], [3]),
        ([[9, 9]], [[1, 1]], [3]),
    ],
    ids=["no-classes", "no-nodes", "no-requests", "no-slots"],
)
def test_degenerate_problems(requests, free, count):
    problem = make_problem(requests, free, count)
    packed = pack(problem, Packing.empty(problem))
    assert_valid(problem, packed.packing)
    assert packed.gap.tolist() == [0.0] * problem.levels
