"""Evictions, compared with the best ones by trying everything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given

from firmament_py.eviction.evict import evict
from firmament_py.eviction.problem import Eviction
from tests.effort import examples
from tests.firmament_py.eviction.evictions import (
    best_by_priority,
    by_priority,
    eviction_problems,
    make_problem,
    placed_counts,
    random_problem,
    served,
    violations,
)

pytestmark = pytest.mark.xdist_group("numba")  # compiles once, not in every worker


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
@examples(60)
@given(eviction_problems())
def test_evictions_beyond_budgets_are_valid_and_serve_no_fewer(problem):
    within, exceeding = problem.solve(), problem.solve(beyond_budgets=True)
    assert violations(problem, exceeding) == []
    assert served(problem, placed_counts(problem, within)) <= served(problem, placed_counts(problem, exceeding))


@pytest.mark.slow
@examples(60)
@given(eviction_problems(tasks=1, least=1))
def test_beyond_budgets_a_single_arrival_is_placed_unless_nothing_helps(problem):
    eviction = problem.solve(beyond_budgets=True)
    unlimited = replace(problem, allowed=np.full_like(problem.allowed, 99))
    assert len(eviction.placed) == len(unlimited.solve().placed)


@pytest.mark.slow
@examples(100)
@given(eviction_problems(nodes=2, members=5))
def test_small_problems_have_the_best_answer(problem):
    eviction = problem.solve()
    assert by_priority(problem, placed_counts(problem, eviction), eviction.evicted) == best_by_priority(problem)


@pytest.mark.slow
@examples(60)
@given(eviction_problems(nodes=2, members=4, tasks=3))
def test_beyond_budgets_small_problems_have_the_best_answer(problem):
    eviction = problem.solve(beyond_budgets=True)
    found = by_priority(problem, placed_counts(problem, eviction), eviction.evicted, eviction.violating)
    assert found == best_by_priority(problem, beyond_budgets=True)


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


def test_a_budget_is_spent_on_those_that_help():
    problem = make_problem(
        free=[[0]],
        arrivals=[([4], 1, 1, {0})],
        residents=[(0, 0, 1), (0, 1, 1)],
        kinds=[([1], 0, 1, 1.0, {0}), ([4], 0, 1, 1.1, {0})],
        allowed=[1],
    )
    assert problem.solve().evicted.tolist() == [0, 1]


def test_a_budget_is_spent_on_a_more_important_resident_if_only_that_helps():
    problem = make_problem(
        free=[[0]],
        arrivals=[([2], 1, 3, {0})],
        residents=[(0, 0, 1), (0, 1, 1)],
        kinds=[([1], 0, 1, 1.0, {0}), ([2], 1, 2, 1.0, {0})],
        allowed=[1],
    )
    assert problem.solve().evicted.tolist() == [0, 1]


def test_no_budget_is_spent_on_those_that_use_nothing_the_arrival_lacks():
    problem = make_problem(
        free=[[1, 9]],
        arrivals=[([2, 1], 1, 1, {0})],
        residents=[(0, 0, 1), (0, 1, 1)],
        kinds=[([0, 5], 0, 0, 1.0, {0}), ([1, 0], 0, 1, 1.0, {0})],
        allowed=[1],
    )
    assert problem.solve().evicted.tolist() == [0, 1]


def test_beyond_budgets_a_more_important_resident_is_evicted_before_a_guarded_one():
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([2], 1, 9, {0, 1})],
        residents=[(0, 0, 1), (1, 1, 2)],
        kinds=[([2], 0, 1, 1.0, {0}), ([1], 5, 2, 1.0, ())],
        allowed=[0],
    )
    eviction = problem.solve(beyond_budgets=True)
    assert eviction.evicted.tolist() == [0, 2]
    assert not eviction.violating.any()


@pytest.mark.parametrize("hard", [False, True])
def test_a_hard_limit_is_never_exceeded(hard):
    problem = make_problem(
        free=[[0]],
        arrivals=[([1], 1, 9, {0})],
        residents=[(0, 0, 1)],
        kinds=[([1], 0, 1, 1.0, {0})],
        allowed=[0],
    )
    of = problem.arrivals, problem.residents, problem.free, problem.allowed
    eviction = evict(*of, beyond_budgets=True, hard=np.array([hard]))
    assert eviction.violating.tolist() == [0 if hard else 1]
    assert len(eviction.placed) == (0 if hard else 1)


def test_beyond_budgets_what_they_permit_is_used_first():
    """Two of the four guarded residents may be evicted; the second arrival needs two more."""
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([2], 2, 9, {0, 1})],
        residents=[(0, 0, 2), (1, 0, 2)],
        kinds=[([1], 0, 1, 1.0, {0})],
        allowed=[2],
    )
    assert problem.solve().evicted.sum() == 2
    eviction = problem.solve(beyond_budgets=True)
    assert eviction.evicted.tolist() == [2, 2]
    assert eviction.violating.sum() == 2


def test_one_search_decides_within_and_beyond_budgets():
    """The budget permits one eviction. Spent on the node of both arrivals' choice, it leaves the second nothing but two
    evictions beyond it; the unguarded resident of the other node is the better victim for the first."""
    problem = make_problem(
        free=[[0], [0]],
        arrivals=[([4], 1, 9, {0, 1}), ([4], 1, 8, {0})],
        residents=[(0, 0, 1), (1, 1, 1)],
        kinds=[([4], 0, 1, 1.0, {0}), ([4], 0, 1, 1.5, ())],
        allowed=[1],
    )
    eviction = problem.solve(beyond_budgets=True)
    assert eviction.evicted.tolist() == [1, 1]
    assert not eviction.violating.any()


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


def test_a_budget_is_shared_by_nodes():
    problem = make_problem(
        free=[[0], [0], [0]],
        arrivals=[([4], 3, 1, {0, 1, 2})],
        residents=[(0, 0, 1), (1, 0, 1), (2, 0, 1)],
        kinds=[([4], 0, 1, 1.0, {0})],
        allowed=[2],
    )
    assert problem.solve().evicted.sum() == 2


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
