"""Evictions and disruption budgets: what these permit is spent well, and exceeded only where that is allowed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from firmament_py.eviction.evict import evict
from tests.effort import examples
from tests.firmament_py.eviction.evictions import (
    best_by_priority,
    by_priority,
    eviction_problems,
    make_problem,
    placed_counts,
    served,
    violations,
)


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
@examples(60)
@given(eviction_problems(nodes=2, members=4, tasks=3))
def test_beyond_budgets_small_problems_have_the_best_answer(problem):
    eviction = problem.solve(beyond_budgets=True)
    found = by_priority(problem, placed_counts(problem, eviction), eviction.evicted, eviction.violating)
    assert found == best_by_priority(problem, beyond_budgets=True)


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


def test_a_budget_is_shared_by_nodes():
    problem = make_problem(
        free=[[0], [0], [0]],
        arrivals=[([4], 3, 1, {0, 1, 2})],
        residents=[(0, 0, 1), (1, 0, 1), (2, 0, 1)],
        kinds=[([4], 0, 1, 1.0, {0})],
        allowed=[2],
    )
    assert problem.solve().evicted.sum() == 2
