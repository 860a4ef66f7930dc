"""The integer program of evictions, compared with trying everything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from firmament_py.eviction.problem import Problem
from firmament_py.eviction.program import EvictionProgram, Solution
from tests.effort import examples, seeds
from tests.firmament_py.eviction.evictions import (
    best_by_priority,
    by_priority,
    eviction_problems,
    make_problem,
    random_problem,
)


def solved(problem, start=None, work=10.0, *, beyond_budgets=False):
    """The best solution. start: by default no task is placed, and no resident is evicted."""
    residents = problem.residents
    exceedable = residents.budgets.any(axis=1) & beyond_budgets
    whole = Problem(problem.arrivals, residents, problem.free, problem.allowed, exceedable)
    program = EvictionProgram(whole.on(np.arange(len(problem.free))))
    none_evicted = np.zeros_like(residents.count)
    start = start or Solution(np.zeros(problem.arrivals.suitable.shape, np.int64), none_evicted, none_evicted)
    return program.improved(start, work)


@pytest.mark.slow
@examples(100)
@given(eviction_problems(nodes=2, members=5))
def test_the_best_solution_is_found(problem):
    best = solved(problem)
    assert by_priority(problem, best.placed, best.evicted) == best_by_priority(problem)
    assert not best.violating.any()
    in_vain = problem.residents.value[problem.residents.kind] == 0
    assert not best.evicted[in_vain].any() or best.placed.any()


@pytest.mark.slow
@examples(60)
@given(eviction_problems(nodes=2, members=4, tasks=3))
def test_the_best_solution_beyond_budgets_is_found(problem):
    best = solved(problem, beyond_budgets=True)
    assert by_priority(problem, best.placed, best.evicted, best.violating) == best_by_priority(
        problem, beyond_budgets=True
    )
    assert (best.violating <= best.evicted).all()
    within = (best.evicted - best.violating) @ problem.residents.budgets[problem.residents.kind]
    assert (within <= problem.allowed).all()


def test_budgets_are_exceeded_where_that_serves_more():
    better = 0
    for seed in range(0, 60):
        problem = random_problem(seed)
        if problem.residents.count.sum() <= 5:
            best = solved(problem, beyond_budgets=True)
            found = by_priority(problem, best.placed, best.evicted, best.violating)
            assert found == best_by_priority(problem, beyond_budgets=True)
            better += bool(best.violating.any())
    assert better > 2


@seeds(40)
def test_the_best_solution_is_found_by_the_byte(seed):
    """Amounts of 64 GiB each, more or less by a few bytes."""
    problem, rng = random_problem(seed), np.random.default_rng(seed)

    def in_bytes(amounts):
        return np.where(amounts > 0, 2**36 * amounts + rng.integers(-3, 4, amounts.shape), 0)

    arrivals = replace(problem.arrivals, requests=in_bytes(problem.arrivals.requests))
    residents = replace(problem.residents, requests=in_bytes(problem.residents.requests))
    problem = replace(problem, arrivals=arrivals, residents=residents, free=in_bytes(problem.free))
    best = solved(problem)
    assert by_priority(problem, best.placed, best.evicted) == best_by_priority(problem)


def test_a_start_that_is_best_is_returned():
    for seed in range(20):
        problem = random_problem(seed)
        best = solved(problem)
        assert solved(problem, best) is best


def test_nothing_is_proved_without_time():
    problem = random_problem(9)
    assert solved(problem) is not None
    assert solved(problem, work=0.0) is None


def test_what_leaves_anyway_is_used_for_tasks_alone():
    problem = make_problem(
        free=[[0]],
        arrivals=[([1], 1, 1, {0})],
        residents=[(0, 0, 3)],
        kinds=[([1], 0, 0, 0.0, ())],
    )
    all_evicted = Solution(np.array([[1]]), np.array([3]), np.array([0]))
    assert solved(problem, all_evicted).evicted.tolist() == [1]


def test_of_equal_answers_the_one_counts_that_keeps_tasks_at_home():
    problem = make_problem(free=[[1], [1], [1]], arrivals=[([1], 2, 1, {0, 1, 2}, [0, 2])])
    none_evicted = np.zeros(0, np.int64)
    away = Solution(np.array([[0, 1, 1]]), none_evicted, none_evicted)
    assert solved(problem, away).placed.tolist() == [[1, 0, 1]]


def test_nothing_is_evicted_for_tasks_that_evict_nothing():
    """The task that evicts comes first; the other one would fit beside it if a second resident left."""
    problem = make_problem(
        free=[[0], [1]],
        arrivals=[([1], 1, 9, {0}), ([1], 2, 9, {0, 1})],
        residents=[(0, 0, 3)],
        kinds=[([1], 0, 1, 1.0, ())],
    )
    problem.arrivals.evicts[1] = False
    best = solved(problem)
    assert best.placed.tolist() == [[1, 0], [0, 1]]
    assert best.evicted.tolist() == [1]
