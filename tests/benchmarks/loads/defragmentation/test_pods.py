"""Clusters of pods that may move: the generators, what rules make of hand-worked clusters, and the fewest moves."""

from itertools import product

import numpy as np
import pytest

from benchmarks.loads.defragmentation.descheduler import Scoring, high_node_utilization
from benchmarks.loads.defragmentation.engine import play
from benchmarks.loads.defragmentation.fewest_moves import fewest_moves
from benchmarks.loads.defragmentation.kai import consolidate
from benchmarks.loads.defragmentation.pods import NOWHERE, UNGUARDED, Pods, Run
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry
from tests.effort import seeds


def cluster(nodes, pods, waiting=(), allowed=()) -> Pods:
    """nodes: GPUs of each. pods: node, GPUs, and optionally budget, the oldest first. waiting: GPUs of each."""
    rows = np.array([(*pod, UNGUARDED)[:3] for pod in pods], np.int64).reshape(-1, 3)
    columns = [np.array(amounts, np.int64).reshape(-1, 1) for amounts in (nodes, rows[:, 1], waiting)]
    return Pods(columns[0], rows[:, 0], columns[1], rows[:, 2], np.array(allowed, np.int64), columns[2])


def run(*evictions, placed=()) -> Run:
    """evictions: cycle, pod, node."""
    return Run(np.array(evictions, np.int64).reshape(-1, 3), np.array(placed, np.int64))


# -- the clusters -------------------------------------------------------------------------------------------------


@seeds(8)
def test_underused_nodes(seed):
    load = Pods.underused(seed, 60)
    used = (1 - load.free(load.node, load.unserved()) / load.allocatable).max(axis=1)
    assert used.max() <= 0.7
    assert 5 < (used <= 0.2).sum() < 30
    assert 0.45 < (load.budget != UNGUARDED).mean() < 0.75
    assert not load.evictable.all() or (load.allowed > 0).all()
    assert str(load) == str(Pods.underused(seed, 60)) != str(Pods.underused(seed + 1, 60))


@seeds(8)
def test_scattered_gpus(seed):
    load = Pods.scattered(seed, 60, 0.75, 20, 4)
    free = load.free(load.node, load.unserved())
    assert free.min() >= 0
    assert 1 - free.sum() / 480 == pytest.approx(0.75, abs=0.01)
    assert (free // 4).sum() < 20 <= free.sum() // 4  # as a whole they would fit
    assert load.waiting.tolist() == [[4]] * 20


def test_what_a_budget_protects_for_ever_is_not_evictable():
    load = cluster([8], [(0, 1, 0), (0, 1, 1), (0, 1)], allowed=[0, 1])
    assert load.evictable.tolist() == [False, True, True]


# -- what became of a cluster -------------------------------------------------------------------------------------


def test_pods_that_come_back_are_counted():
    load = cluster([8, 8], [(0, 1), (1, 1)])
    there_and_back = run((0, 0, 1), (1, 0, 0), (1, 1, 1))
    assert there_and_back.returned(load) == 1
    assert there_and_back.nodes(load).tolist() == [0, 1]
    assert there_and_back.emptied(load) == 0


def test_nodes_that_lost_all_pods_are_emptied():
    load = cluster([8, 8, 8], [(0, 1), (1, 1)], waiting=[1])
    assert run((0, 0, 1), placed=[NOWHERE]).emptied(load) == 1
    assert run((0, 0, 1), placed=[0]).emptied(load) == 0  # a waiting pod uses it


def test_a_budget_permits_so_many_evictions_in_each_cycle():
    load = cluster([8, 8], [(0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 1)], allowed=[1, 0])
    assert run((0, 0, 1), (1, 1, 1), (1, 3, 1)).broken(load) == 0
    assert run((0, 0, 1), (0, 1, 1), (0, 2, 1)).broken(load) == 2


def test_violations_are_found():
    load = cluster([8, 2], [(0, 1), (0, 2)], waiting=[6])
    assert run((0, 1, 1), placed=[0]).violations(load) == []
    assert run((0, 0, 1), (0, 1, 1), placed=[NOWHERE]).violations(load) == ["a node is over-committed"]
    assert run(placed=[0]).violations(load) == ["a node is over-committed"]
    assert run((0, 0, NOWHERE), placed=[NOWHERE]).violations(load) == ["a pod is on no node"]


# -- HighNodeUtilization ------------------------------------------------------------------------------------------


def evicted(load, scoring=Scoring.MOST_ALLOCATED):
    return high_node_utilization(load, scoring).evictions.tolist()


def test_a_node_of_little_use_is_drained_to_the_fullest_that_can_take_its_pods():
    load = cluster([10, 10, 10], [(0, 2), (1, 5), (2, 9)])
    assert evicted(load) == [[0, 0, 1]]


def test_by_the_default_score_the_pod_comes_back():
    load = cluster([10, 10, 10], [(0, 2), (1, 5), (2, 9)])
    assert evicted(load, Scoring.LEAST_ALLOCATED) == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (cluster([10, 10], [(0, 3), (1, 5)]), "no node is below the threshold"),
        (cluster([10, 10], [(0, 2), (1, 2)]), "all nodes are"),
        (cluster([10, 10], [(0, 2), (1, 10)]), "the others have nothing free"),
        (cluster([10, 10], [(0, 2), (1, 9)]), "it fits on no other node"),
        (cluster([10, 10], [(0, 2, 0), (1, 5)], allowed=[0]), "its budget forbids it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pods_that_are_not_evicted(load, why):
    assert evicted(load) == []


def test_a_budget_spreads_evictions_over_cycles():
    """After the first cycle the second node is drained, too, but the first has a pod left until the next."""
    load = cluster([20, 20, 20], [(0, 1, 0), (0, 1, 0), (1, 3), (2, 9)], allowed=[1])
    found = high_node_utilization(load, Scoring.MOST_ALLOCATED)
    assert found.evictions.tolist() == [[0, 0, 2], [0, 2, 2], [1, 1, 2]]
    assert (found.broken(load), found.emptied(load)) == (0, 2)


# -- consolidation ------------------------------------------------------------------------------------------------


def test_a_victim_goes_to_the_fullest_node_that_can_take_it():
    load = cluster([8, 8, 8], [(1, 6), (2, 4), (0, 7)], waiting=[4, 4])
    found = consolidate(load)
    assert found.evictions.tolist() == []
    assert found.placed.tolist() == [2, NOWHERE]  # without victims first
    load = cluster([8, 8, 8], [(0, 5), (1, 6), (2, 3), (2, 2)], waiting=[4])
    found = consolidate(load)
    assert found.evictions.tolist() == [[0, 3, 1]]
    assert found.placed.tolist() == [2]


def test_victims_are_candidates_of_one_node_and_the_youngest():
    """Both pods of node 0 have to leave; the youngest two are on other nodes."""
    pods = [(0, 3), (0, 3), (1, 1), (2, 1)]
    load = cluster([8, 4, 4], pods, waiting=[8])
    assert consolidate(load, 3).served() == 0
    assert consolidate(load, 4).served() == 1


def test_consolidation_does_not_look_at_budgets():
    load = cluster([8, 8], [(0, 6), (1, 3), (1, 2, 0)], waiting=[4], allowed=[0])
    found = consolidate(load)
    assert (found.served(), found.broken(load)) == (1, 1)


# -- the fewest moves, and the engine -----------------------------------------------------------------------------


@seeds(12)
def test_the_fewest_moves_are_those_of_the_best_of_all_placements(seed):
    """Five pods on three nodes: whatever number of nodes is emptied or of waiting pods placed."""
    rng = np.random.default_rng(seed)
    pods = [(int(n), int(g), int(b)) for n, g, b in zip(*(rng.integers(0, x, 5) for x in (3, 3, 2)), strict=True)]
    load = cluster([6, 6, 6], [(n, g + 1, b) for n, g, b in pods], waiting=[4, 4, 4], allowed=[0, 1])
    results: dict[tuple[int, int], int] = {}
    for nodes in product(range(3), repeat=5):
        moves = [(0, pod, to) for pod, to in enumerate(nodes) if to != load.node[pod]]
        found = run(*moves, placed=[NOWHERE] * 3)
        if not found.violations(load) and load.evictable[[pod for _, pod, _ in moves]].all():
            free = load.free(found.nodes(load), load.unserved())
            for result in ((found.emptied(load), 0), (0, min(int((free // 4).sum()), 3))):
                results[result] = min(len(moves), results.get(result, 9))
    for emptied in range(1, 3):
        expected = min((moves for (e, _), moves in results.items() if e >= emptied), default=None)
        best = fewest_moves(load, emptied=emptied)
        assert (best and best.moves) == (best and best.bound) == expected
    for served in range(1, 4):
        expected = min((moves for (_, s), moves in results.items() if s >= served), default=None)
        best = fewest_moves(load, served=served)
        assert (best and best.moves) == (best and best.bound) == expected


@pytest.mark.slow
@pytest.mark.parametrize("load", [Pods.underused(1, 20), Pods.scattered(1, 20, 0.6, 4, 8)], ids=["empty", "serve"])
def test_the_engine_loses_no_pod_and_breaks_no_budget(load):
    policy = registry.load("bin-packing", {})
    found = play(
        load,
        Engine(policy, SOLVERS["or-tools"](), options=EngineOptions(migrating=Migrating.ALWAYS, migrate_after_us=0)),
    )
    assert found.violations(load) == []
    assert found.broken(load) == 0
    assert len(found.evictions) > 0
    assert load.evictable[found.evictions[:, 1]].all()
