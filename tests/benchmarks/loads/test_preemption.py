"""The load and the suite `preemption`, and the retelling of kube-scheduler's rules, by hand-worked examples."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.loads.exact_preemption import best_preemption
from benchmarks.loads.kube_preemption import Candidate, KubePreemption, best_candidate
from benchmarks.loads.preemption import NOWHERE, UNGUARDED, PreemptionLoad, Result
from benchmarks.suites import preemption


def make_load(nodes, running, waiting, allowed=(), suitable=None) -> PreemptionLoad:
    """nodes: cpu of each. running: node, cpu, priority, run_s, budget of each pod. waiting: cpu and priority of pods,
    in the order of creation, each a class of its own."""
    pods = np.array(running, np.int64).reshape(-1, 5)
    classes = np.array(waiting, np.int64).reshape(-1, 2)

    def amounts(cpu):
        return np.stack([cpu, np.ones_like(cpu)], axis=1)

    return PreemptionLoad(
        np.array([(cpu, 100) for cpu in nodes], np.int64),
        pods[:, 0],
        amounts(pods[:, 1]),
        pods[:, 2],
        pods[:, 3],
        pods[:, 4],
        np.array(allowed, np.int64),
        amounts(classes[:, 0]),
        classes[:, 1],
        np.ones((len(classes), len(nodes)), np.bool_) if suitable is None else np.array(suitable, np.bool_),
        np.arange(len(classes)),
        0,
    )


COST = 11_000
"""Of evicting a pod that has run for a minute."""


def pod(node, cpu, priority=0, run_s=60, budget=UNGUARDED):
    return (node, cpu, priority, run_s, budget)


def evicted(load) -> list[int]:
    return np.flatnonzero(KubePreemption(load).run().evicted).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in specs.load("preemption").cases])
def test_the_suite_is_sound_at_a_small_scale(name):
    [case] = [case for case in specs.load("preemption").cases if case.name == name]
    scale = min(1.0, 20 / case.sizes["nodes"])
    sample = preemption.measure(case, Options(scale=scale, seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["served_of_kube"] >= 0.7


def test_a_load_follows_from_its_seed():
    one, same, other = (PreemptionLoad.random(seed, 6, 9, 4) for seed in (5, 5, 6))
    assert str(one.events()) == str(same.events())
    assert str(one.events()) != str(other.events())
    assert (one.free >= 0).all()
    assert (np.diff(one.node) >= 0).all()


# -- kube-scheduler's rules: one node -----------------------------------------------------------------------------


def test_no_task_of_equal_or_higher_priority_is_evicted():
    load = make_load([4], [pod(0, 2, priority=5), pod(0, 2, priority=9)], [(2, 5), (4, 9)])
    assert evicted(load) == []
    assert evicted(make_load([4], [pod(0, 2, priority=5), pod(0, 2, priority=9)], [(2, 9)])) == [0]


def test_the_most_important_are_put_back_first():
    """Without all three 6 are free, 2 of them are requested: the one of priority 2 goes back, then the other of 2."""
    load = make_load([6], [pod(0, 2, priority=1), pod(0, 2, priority=2), pod(0, 2, priority=1, run_s=90)], [(2, 9)])
    assert evicted(load) == [0]


def test_of_equal_priorities_the_younger_goes():
    assert evicted(make_load([4], [pod(0, 2, run_s=90), pod(0, 2, run_s=30)], [(2, 9)])) == [1]


def test_a_large_pod_that_is_put_back_first_costs_several_small_ones():
    """Importance counts, not number: 4 are left beside the arrival, and the oldest takes them."""
    load = make_load([8], [pod(0, 4, run_s=90), *(pod(0, 1, run_s=60) for _ in range(4))], [(4, 9)])
    assert evicted(load) == [1, 2, 3, 4]


def test_pods_that_a_budget_guards_are_put_back_before_more_important_ones():
    load = make_load([4], [pod(0, 2, budget=0), pod(0, 2, priority=5)], [(2, 9)], allowed=[0])
    assert evicted(load) == [1]


def test_a_budget_permits_the_most_important_first():
    """Of three guarded pods one may go, the first by importance; the other two violate the budget and go back."""
    load = make_load([6], [pod(0, 2, run_s=run_s, budget=0) for run_s in (90, 60, 30)], [(2, 9)], allowed=[1])
    assert evicted(load) == [0]


def test_budgets_are_violated_if_nothing_else_helps():
    load = make_load([4], [pod(0, 4, budget=0)], [(4, 9)], allowed=[0])
    kube = KubePreemption(load)
    assert kube.candidates(0, 0) == [Candidate(0, [0], 1)]
    result = kube.run()
    assert load.excess(result) == 1
    assert load.served(result) == {9: 1}
    assert load.served(KubePreemption(load, beyond_budgets=False).run()) == {9: 0}


# -- kube-scheduler's rules: the choice of a node -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(([(5, 9)], 0), ([(0, 9)], 1), id="fewest violations"),
        pytest.param(([(1, 9), (1, 9)], 0), ([(2, 9)], 0), id="lowest highest priority"),
        pytest.param(([(2, 9), (0, 9)], 0), ([(2, 9), (1, 9)], 0), id="lowest sum of priorities"),
        pytest.param(([(2, 9)], 0), ([(2, 9), (-1, 9)], 0), id="each victim adds to the sum"),
        pytest.param(([(2, 30)], 0), ([(2, 31)], 0), id="latest start"),
        pytest.param(([(2, 30), (1, 99)], 0), ([(2, 31), (1, 1)], 0), id="latest start of the highest priority"),
        pytest.param(([(2, 9), (2, 30)], 0), ([(2, 29), (2, 31)], 0), id="earliest of the starts"),
        pytest.param(([(2, 30)], 0), ([(2, 30)], 0), id="first"),
    ],
)
def test_the_best_candidate(first, second):
    """Victims are given as priority and run time, most important first, candidates with their violations."""
    pods = [*first[0], *second[0]]
    priority, run_s = [one[0] for one in pods], [one[1] for one in pods]
    numbers = list(range(len(pods)))
    one = Candidate(0, numbers[: len(first[0])], first[1])
    other = Candidate(1, numbers[len(first[0]) :], second[1])
    assert best_candidate([one, other], priority, run_s) is one
    if first != second:
        assert best_candidate([other, one], priority, run_s) is one


def test_a_tenth_of_the_nodes_or_a_hundred_are_candidates():
    def searched(nodes, offset):
        load = make_load([4] * nodes, [pod(n, 4) for n in range(nodes)], [(4, 9)])
        return [candidate.node for candidate in KubePreemption(load).candidates(0, offset)]

    assert searched(90, 30) == [*range(30, 90), *range(30)]
    assert searched(150, 100) == [*range(100, 150), *range(50)]
    assert searched(1200, 7) == list(range(7, 127))


def test_the_search_goes_on_until_a_candidate_violates_no_budget():
    nodes = 130
    running = [pod(n, 4, budget=0 if n < 120 else UNGUARDED) for n in range(nodes)]
    load = make_load([4] * nodes, running, [(4, 9)], allowed=[0])
    assert [candidate.node for candidate in KubePreemption(load).candidates(0, 0)] == list(range(121))


# -- kube-scheduler's rules: many pods ----------------------------------------------------------------------------


def test_higher_priorities_come_first_then_older_pods():
    load = make_load([4, 4], [pod(0, 4), pod(1, 4, priority=5)], [(4, 3), (4, 9), (4, 9)])
    assert load.queue().tolist() == [1, 2, 0]
    result = KubePreemption(load).run()
    assert result.node.tolist() == [NOWHERE, 0, 1]


def test_what_is_kept_for_one_counts_for_the_next():
    """The first evicts a pod of 4 for its 2, the second needs no victim."""
    load = make_load([4, 4], [pod(0, 4), pod(1, 4)], [(2, 9), (2, 9)])
    result = KubePreemption(load).run()
    assert result.evicted.sum() == 1
    assert result.node[0] == result.node[1]


def test_a_budget_is_spent_by_each_preemptor():
    running = [pod(0, 4, budget=0), pod(1, 4, budget=0), pod(2, 4, priority=5)]
    load = make_load([4, 4, 4], running, [(4, 9), (4, 9)], allowed=[1])
    assert len(evicted(load)) == 2
    assert 2 in evicted(load)


def test_selectors_are_met():
    load = make_load([4, 4], [pod(0, 4), pod(1, 4, priority=5)], [(4, 9)], suitable=[[False, True]])
    assert evicted(load) == [1]


def test_what_fits_evicts_no_task_and_is_placed_where_most_is_free():
    load = make_load([4, 8], [pod(0, 1), pod(1, 1)], [(2, 9)])
    result = KubePreemption(load).run()
    assert result.node.tolist() == [1]
    assert not result.evicted.any()


# -- the exact solver and the checks ------------------------------------------------------------------------------


def test_the_exact_solver_serves_most_then_spares_priorities_then_costs():
    load = make_load([4, 4], [pod(0, 4, run_s=90), pod(1, 4, run_s=30)], [(4, 9), (2, 5)])
    best = best_preemption(load, 10.0)
    assert best is not None
    assert load.served(best) == {9: 1, 5: 1}
    one = best_preemption(make_load([4, 4], [pod(0, 4, run_s=90), pod(1, 4, run_s=30)], [(4, 9)]), 10.0)
    assert one is not None
    assert one.evicted.tolist() == [False, True]
    spared = best_preemption(make_load([4, 4], [pod(0, 4, priority=1), pod(1, 2), pod(1, 2)], [(4, 9)]), 10.0)
    assert spared is not None
    assert spared.evicted.tolist() == [False, True, True]


def test_no_waiting_pod_gains_by_the_eviction_of_what_is_as_important():
    """Both would fit if the pods of priorities 0 and 5 were evicted; but that of 9 needs only the first."""
    load = make_load([8], [pod(0, 4, priority=0), pod(0, 4, priority=5)], [(4, 9), (4, 5)])
    assert load.order() == [(9, [5]), (5, [0])]
    best = best_preemption(load, 10.0)
    assert best is not None
    assert best.evicted.tolist() == [True, False]
    assert load.standing(best) == [1, 0, 0, 0, 0, -COST]


def test_the_exact_solver_obeys_budgets_and_priorities():
    guarded = make_load([4], [pod(0, 4, budget=0)], [(4, 9)], allowed=[0])
    equal = make_load([4], [pod(0, 4, priority=9)], [(4, 9)])
    for load in (guarded, equal):
        best = best_preemption(load, 10.0)
        assert best is not None
        assert load.served(best) == {9: 0}


@pytest.mark.parametrize(
    ("node", "gone", "problem"),
    [
        ([0], [True, False], ""),
        ([NOWHERE], [False, False], ""),
        ([0], [False, False], "a node is over-committed"),
        ([1], [False, True], "a pod is where it may not be"),
        ([0], [True, True], "a pod is evicted, and none of higher priority gets its node"),
    ],
)
def test_violations_are_found(node, gone, problem):
    load = make_load([4, 4], [pod(0, 4), pod(1, 4, priority=9)], [(4, 9)], suitable=[[True, False]])
    assert load.violations(Result(np.array(node), np.array(gone))) == problem


def test_excess_and_lost_run_time():
    load = make_load([8], [pod(0, 4, run_s=100, budget=0), pod(0, 4, run_s=200, budget=0)], [(8, 9)], allowed=[1])
    result = Result(np.array([0]), np.array([True, True]))
    assert load.excess(result) == 1
    assert load.excess(replace(result, evicted=np.array([True, False]))) == 0
    assert load.lost_s(result) == 300
    assert load.standing(result) == [1, -1, -(11_250 + 12_000)]


def test_fewer_evictions_beyond_budgets_are_better_than_less_important_victims():
    load = make_load([2, 2], [pod(0, 2, priority=1, budget=0), pod(1, 2, priority=5)], [(2, 9)], allowed=[0])
    guarded, free = (Result(np.array([n]), np.arange(2) == n) for n in (0, 1))
    assert load.excess(guarded) == 1
    assert load.standing(guarded) == [1, -1, 0, -COST]
    assert load.standing(free) == [1, 0, -COST, 0]


def test_what_a_budget_permits_counts_for_its_most_important_pods():
    pods = [pod(0, 1, priority=1, budget=0), pod(0, 1, priority=5, budget=0), pod(0, 1, priority=1, budget=1)]
    load = make_load([3], pods, [(3, 9), (1, 3)], allowed=[1, 1])
    assert load.standing(Result(np.array([0, NOWHERE]), np.ones(3, np.bool_))) == [1, 0, -COST, 0, -1, -2 * COST]
