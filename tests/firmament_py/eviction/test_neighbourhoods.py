"""Evictions improved on a few nodes at a time, where a problem is too large for one program."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.eviction import evict, neighbourhoods, tables
from firmament_py.eviction.problem import Movers
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


@pytest.fixture
def only_on_some_nodes(monkeypatch):
    """No problem is small, and a program has two nodes."""
    monkeypatch.setattr(neighbourhoods, "_WHOLE", -1)
    monkeypatch.setattr(neighbourhoods, "_SIZE", 2)


@pytest.fixture
def first_solution_only(monkeypatch):
    """Tasks are inserted, and not searched for a better place."""
    monkeypatch.setattr(evict, "_SEARCH", 0.0)
    monkeypatch.setattr(evict, "_SEARCH_OF_ALIKE", 0.0)


def standing(problem, eviction):
    return by_priority(problem, placed_counts(problem, eviction), eviction.evicted, eviction.violating)


@pytest.mark.slow
@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
@pytest.mark.parametrize("beyond_budgets", [False, True])
def test_improved_answers_are_valid_and_no_worse(beyond_budgets):
    @examples(60)
    @given(eviction_problems(nodes=4, tasks=6, members=10), st.integers(0, 3))
    def holds(problem, seed):
        improved = problem.solve(seed, beyond_budgets=beyond_budgets)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evict, "improved", lambda _problem, start, *_: start)
            first = problem.solve(seed, beyond_budgets=beyond_budgets)
        assert violations(problem, improved) == []
        assert standing(problem, improved) >= standing(problem, first)

    holds()


@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
@pytest.mark.parametrize("seed", [9, 23, 51, 62, 74, 75, 90, 91, 96, 99, 105, 121])
def test_they_find_the_best_answer_where_the_first_solution_is_not(seed, monkeypatch):
    problem = random_problem(seed)
    best = best_by_priority(problem)
    assert standing(problem, problem.solve()) == best
    monkeypatch.setattr(evict, "improved", lambda _problem, start, *_: start)
    assert standing(problem, problem.solve()) < best


@pytest.mark.usefixtures("only_on_some_nodes")
def test_evictions_are_improved_beside_movers(monkeypatch):
    """The budget permits one eviction or one move, and the move spends it. So two residents of 1 leave instead of the
    one of 2; if the search evicts all three, programs spare the latter."""
    problem = make_problem(
        free=[[0], [3], [3]],
        arrivals=[([2], 1, 9, {0}), ([3], 1, 9, {2})],
        residents=[(0, 0, 2), (0, 1, 1)],
        kinds=[([1], 0, 1, 1.0, ()), ([2], 0, 1, 1.5, {0})],
        allowed=[1],
    )
    mover = Movers(
        kind=np.array([0]),
        home=np.array([2]),
        requests=np.array([[3]]),
        suitable=np.array([[False, True, True]]),
        cost=np.array([1.0]),
        budgets=np.array([[True]]),
    )
    of = problem.arrivals, problem.residents, problem.free, problem.allowed
    found = evict.evict(*of, movers=mover)
    assert found.node_of_mover.tolist() == [1]
    assert found.evicted.tolist() == [2, 0]
    worse = replace(found, evicted=np.array([2, 1]))
    monkeypatch.setattr(tables.Tables, "search", lambda *_: (worse, np.inf))
    again = evict.evict(*of, movers=mover)
    assert again.node_of_mover.tolist() == [1]
    assert again.evicted.tolist() == [2, 0]


@pytest.mark.usefixtures("only_on_some_nodes")
def test_an_answer_follows_from_the_seed():
    for seed in range(10):
        problem = random_problem(seed)
        one, other = problem.solve(seed), problem.solve(seed)
        assert (one.evicted == other.evicted).all()
        assert one.placed.tolist() == other.placed.tolist()


@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
def test_a_budget_that_other_nodes_spend_stays_spent():
    """Two evictions of four are permitted; each program has two of the four nodes."""
    problem = make_problem(
        free=[[0]] * 4,
        arrivals=[([4], 4, 1, {0, 1, 2, 3})],
        residents=[(n, 0, 1) for n in range(4)],
        kinds=[([4], 0, 1, 1.0, {0})],
        allowed=[2],
    )
    assert problem.solve().evicted.sum() == 2


@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
def test_arrivals_stay_at_home_unless_that_costs_more():
    problem = make_problem(
        free=[[2], [2], [2]],
        arrivals=[([2], 1, 1, {0, 1, 2}, [2]), ([2], 1, 2, {0, 1}, [0])],
    )
    assert problem.solve().placed.tolist() == [[0, 2, 1], [1, 0, 1]]


@pytest.mark.usefixtures("only_on_some_nodes")
@pytest.mark.parametrize(
    "problem",
    [
        make_problem(free=[[0], [0]], arrivals=[([1], 2, 1, set())]),
        make_problem(free=[[0]], arrivals=[([1], 1, 1, {0})]),
        make_problem(free=np.zeros((0, 1)), arrivals=[([1], 1, 1, set())]),
    ],
    ids=["no-node-suits", "one-node", "no-nodes"],
)
def test_nothing_to_improve(problem):
    assert problem.solve().placed.tolist() == []


@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
@pytest.mark.parametrize(("effort", "programs"), [(0.0, 0), (0.1, 2), (1.0, 25), (2.0, 30)])
def test_effort_multiplies_the_number_of_programs(effort, programs, monkeypatch):
    """At most one for each of the 30 arrivals, which are not alike."""
    solved = 0

    def step(_problem, standing, *_):
        nonlocal solved
        solved += 1
        return standing

    monkeypatch.setattr(neighbourhoods, "_step", step)
    problem = make_problem(free=[[1], [1]], arrivals=[([1], 15, 1, {0, 1}), ([1], 15, 2, {0, 1})])
    evict.evict(problem.arrivals, problem.residents, problem.free, problem.allowed, effort=effort)
    assert solved == programs


@pytest.mark.usefixtures("only_on_some_nodes", "first_solution_only")
def test_what_exceeds_a_budget_elsewhere_does_not_count_against_it():
    """The budget permits one eviction. Of two nodes with a victim each, one exceeds it, in any order."""
    problem = make_problem(
        free=[[0], [0], [0]],
        arrivals=[([1], 2, 9, {0, 1}), ([2], 1, 5, {2})],
        residents=[(0, 0, 1), (1, 0, 1), (2, 1, 1), (2, 2, 2)],
        kinds=[([1], 6, 2, 1.0, {0}), ([2], 0, 1, 1.0, {0}), ([1], 0, 1, 1.0, ())],
        allowed=[1],
    )
    eviction = problem.solve(beyond_budgets=True)
    assert eviction.violating.sum() == 1
    assert eviction.evicted.tolist() == [1, 1, 0, 2]


@pytest.mark.parametrize("work", [0.0, 1e-9])
def test_without_time_for_programs_the_search_decides(monkeypatch, work):
    monkeypatch.setattr(neighbourhoods, "_WHOLE_WORK", work)
    monkeypatch.setattr(neighbourhoods, "_WORK", work)
    for seed in range(20):
        problem = random_problem(seed)
        assert violations(problem, problem.solve()) == []


def test_few_of_many_idle_nodes_are_considered(monkeypatch):
    monkeypatch.setattr(neighbourhoods, "_IDLE_NODES", 3)
    problem = make_problem(free=[[1]] * 50, arrivals=[([1], 1, 1, set(range(10, 50)))])
    nodes = neighbourhoods.candidate_nodes(problem.arrivals, np.array([20]), np.random.default_rng(0))
    assert len(nodes) == 4
    assert 20 in nodes
    assert (nodes >= 10).all()
