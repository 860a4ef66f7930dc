"""Evictions, compared with the best ones by trying everything."""

import numpy as np
import pytest
from hypothesis import example, given

from firmament_py.eviction.problem import Eviction
from tests.effort import examples
from tests.firmament_py.eviction.evictions import (
    best_by_priority,
    by_priority,
    eviction_problems,
    make_problem,
    placed_counts,
    random_problem,
    violations,
)


@pytest.mark.slow
@examples(150)
@given(eviction_problems())
@example(  # the first arrival takes what leaves anyway, though the second could not have it
    make_problem(
        free=[[0]],
        arrivals=[([1], 1, 2, {0}), ([1], 1, 1, {0})],
        residents=[(0, 0, 1), (0, 1, 1)],
        kinds=[([1], 1, 0, 0.0, ()), ([1], 0, 1, 1.0, ())],
    )
)
def test_evictions_are_valid_and_each_is_needed(problem):
    eviction = problem.solve()
    assert violations(problem, eviction) == []
    assert not eviction.violating.any()


@pytest.mark.slow
@examples(100)
@given(eviction_problems(nodes=2, members=5))
def test_small_problems_have_the_best_answer(problem):
    eviction = problem.solve()
    assert by_priority(problem, placed_counts(problem, eviction), eviction.evicted) == best_by_priority(problem)


@pytest.mark.slow
@examples(60)
@given(eviction_problems(tasks=1, least=1))
def test_a_single_arrival_is_placed_if_it_can_be(problem):
    assert len(problem.solve().placed) == best_by_priority(problem)[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_the_best_answer_is_found_where_arrivals_compete(first):
    """In many of these problems, for nodes and budgets."""
    for seed in range(first, first + 25):
        problem = random_problem(seed)
        eviction = problem.solve()
        assert by_priority(problem, placed_counts(problem, eviction), eviction.evicted) == best_by_priority(problem)


def test_many_small_arrivals_are_preferred_to_a_large_one_of_equal_priority():
    problem = make_problem(
        free=[[0]],
        arrivals=[([3], 1, 1, {0}), ([2], 2, 1, {0})],
        residents=[(0, 0, 1)],
        kinds=[([4], 0, 1, 1.0, ())],
    )
    assert problem.solve().placed.tolist() == [[1, 0, 2]]


def test_of_equal_arrivals_the_one_is_placed_that_costs_less():
    problem = make_problem(
        free=[[0]],
        arrivals=[([6], 1, 1, {0}), ([4], 1, 1, {0})],
        residents=[(0, 0, 1), (0, 1, 1)],
        kinds=[([4], 0, 1, 1.0, ()), ([2], 0, 1, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [1, 0]


@pytest.mark.parametrize(("lacks", "evicted"), [(0, [1, 1, 0]), (1, [1, 1, 1])])
def test_amounts_are_exact_to_a_byte(lacks, evicted):
    """The first two residents release what the two arrivals request, or a byte less."""
    problem = make_problem(
        free=[[0]],
        arrivals=[([2**36 + 1], 1, 1, {0}), ([2**36 + 3 + lacks], 1, 1, {0})],
        residents=[(0, 0, 1), (0, 1, 1), (0, 2, 1)],
        kinds=[([2**36], 0, 1, 1.0, ()), ([2**36 + 4], 0, 1, 1.0, ()), ([1], 0, 1, 1.0, ())],
    )
    eviction = problem.solve()
    assert eviction.evicted.tolist() == evicted
    assert len(eviction.placed) == 2


@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_victim_of_one_is_left_to_the_other(seed):
    """The large arrival fits only if the small one, which is more important, does without the cheapest victims."""
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([2], 2, 10, [0, 1]), ([1], 1, 11, [0, 1])],
        residents=[(0, 0, 1), (0, 1, 1), (1, 2, 1), (1, 3, 1)],
        kinds=[([1], 0, 1, 4, [0]), ([1], 5, 2, 3, [1]), ([1], 0, 1, 2, [1]), ([1], 0, 1, 1, [])],
        allowed=[0, 2],
    )
    assert problem.solve(seed).placed.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_arrivals_stay_at_home_unless_that_costs_more():
    problem = make_problem(
        free=[[2], [2], [2]],
        arrivals=[([2], 1, 1, {0, 1, 2}, [2]), ([2], 1, 1, {0, 1}, [-1])],
    )
    assert problem.solve().placed.tolist() == [[0, 2, 1], [1, 0, 1]]
    problem = make_problem(
        free=[[2], [2]],
        arrivals=[([2], 1, 1, {0, 1}, [0]), ([2], 1, 2, {0}, [-1])],
        residents=[(0, 0, 1)],
        kinds=[([2], 0, 1, 1.0, ())],
    )
    eviction = problem.solve()
    assert eviction.placed.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert eviction.evicted.tolist() == [0]


def test_arrivals_whose_home_is_too_small_evict_there():
    problem = make_problem(
        free=[[0]],
        arrivals=[([2], 1, 5, {0}, [0])],
        residents=[(0, 0, 2)],
        kinds=[([2], 0, 1, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [1]


def test_no_arrival_gains_by_evictions_for_others():
    """Two arrivals of 5 need three residents of 4; the slack of 3 is due to the resident of 1, not to one of its own
    priority."""
    problem = make_problem(
        free=[[0]],
        arrivals=[([5], 2, 3, {0}), ([3], 1, 2, {0})],
        residents=[(0, 0, 4), (0, 1, 1)],
        kinds=[([4], 2, 1, 1.01, ()), ([1], 2, 1, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [3, 0]


def test_a_higher_rank_outweighs_any_number():
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([100], 1, 5, {0, 1})],
        residents=[(0, 0, 100), (1, 1, 1)],
        kinds=[([1], 0, 1, 1.0, ()), ([100], 1, 2, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [100, 0]


@pytest.mark.parametrize("seed", [16506, 29516, 31463])
def test_no_step_overfills_a_node(seed):
    problem = random_problem(seed)
    assert violations(problem, problem.solve()) == []


def test_equal_arguments_give_equal_answers():
    for seed in range(10):
        one, other = random_problem(seed).solve(), random_problem(seed).solve()
        assert (one.evicted == other.evicted).all()
        assert one.placed.tolist() == other.placed.tolist()


def test_arguments_are_not_changed():
    problem, same = random_problem(3), random_problem(3)
    problem.solve()
    assert (problem.free == same.free).all()
    assert (problem.allowed == same.allowed).all()
    assert (problem.residents.count == same.residents.count).all()


def test_a_large_resident_is_preferred_to_several_small_ones():
    problem = make_problem(
        free=[[0]],
        arrivals=[([4], 1, 1, {0})],
        residents=[(0, 0, 4), (0, 1, 1)],
        kinds=[([1], 0, 1, 1.0, ()), ([4], 0, 1, 1.5, ())],
    )
    assert problem.solve().evicted.tolist() == [0, 1]


def test_ranks_outweigh_numbers():
    """Twenty residents of a low rank on one node, one of the next rank on the other."""
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([20], 1, 5, {0, 1})],
        residents=[(0, 0, 20), (1, 1, 1)],
        kinds=[([1], 0, 1, 1.0, ()), ([20], 1, 2, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [20, 0]


def test_arrivals_share_the_evictions_on_a_node():
    """Two arrivals of 2 fit for one resident of 4."""
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([2], 2, 1, {0, 1})],
        residents=[(0, 0, 1), (1, 0, 1)],
        kinds=[([4], 0, 1, 1.0, ())],
    )
    eviction = problem.solve()
    assert eviction.evicted.sum() == 1
    assert eviction.placed[:, 2].sum() == 2


def test_what_nobody_requests_may_be_below_zero():
    problem = make_problem(
        free=[[0, -5]],
        arrivals=[([4, 0], 1, 1, {0})],
        residents=[(0, 0, 2)],
        kinds=[([4, 1], 0, 1, 1.0, ())],
    )
    assert problem.solve().evicted.tolist() == [1]
    assert problem.solve().placed.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("problem", "evicted", "placed"),
    [
        (make_problem(free=[[0]], arrivals=[([1], 2, 1, {0})]), [], []),
        (make_problem(free=[[3]], arrivals=[([1], 2, 1, {0})]), [], [[0, 0, 2]]),
        (make_problem(free=[[0]], residents=[(0, 0, 1)], kinds=[([1], 0, 1, 1.0, ())]), [0], []),
        (make_problem(free=np.zeros((0, 1)), arrivals=[([1], 2, 1, set())]), [], []),
        (make_problem(free=np.zeros((0, 1))), [], []),
        (make_problem(free=[[0]], arrivals=[([1], 0, 1, {0})]), [], []),
        (make_problem(free=[[-1]], arrivals=[([0], 1, 1, {0})]), [], [[0, 0, 1]]),
        (
            make_problem(
                free=[[0]],
                arrivals=[([1], 1, 1, {0})],
                residents=[(0, 0, 3)],
                kinds=[([1], 0, 1, 1.0, {0})],
                allowed=[0],
            ),
            [0],
            [],
        ),
        (
            make_problem(
                free=[[0]],
                arrivals=[([1], 1, 1, {0})],
                residents=[(0, 0, 3), (0, 1, 1)],
                kinds=[([0], 0, 1, 1.0, ()), ([1], 0, 1, 1.0, ())],
            ),
            [0, 1],
            [[0, 0, 1]],
        ),
    ],
    ids=[
        "no-residents",
        "no-residents-but-free",
        "no-arrivals",
        "no-nodes",
        "nothing",
        "none-of-a-class",
        "an-arrival-without-requests",
        "a-budget-of-zero",
        "residents-without-requests",
    ],
)
def test_degenerate_problems(problem, evicted, placed):
    eviction = problem.solve()
    assert isinstance(eviction, Eviction)
    assert eviction.evicted.tolist() == evicted
    assert eviction.placed.tolist() == placed
    assert eviction.placed.shape == (len(placed), 3)
