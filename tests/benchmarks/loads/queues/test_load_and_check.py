"""Trees of queues, and checks of rounds with one thing wrong."""

import numpy as np
import pytest

from benchmarks.harness.runner import Options
from benchmarks.loads.queues.check import PlacedTasks
from benchmarks.loads.queues.load import NO_LIMIT, QueuesLoad, QueuesSpec, tree_of
from firmament_py.model.queues import Sharing
from firmament_py.queues.tree import build


def load_of(**changes):
    """A chain of three inner queues, and below it two leaves, 3 and 4; 8 identical tasks."""
    sizes = {"nodes": 2, "pods": 8, "classes": 1, "queues": 5, "sharing": Sharing.CLASSICAL, "job": 2, "limit": 0.0}
    load = QueuesLoad(QueuesSpec(**{**sizes, **changes}))
    load.parent, load.leaf = np.array([-1, 0, 1, 2, 2]), np.arange(5) >= 3
    return load


def placed(load, *tasks, node=0):
    return PlacedTasks(load, np.array(tasks, np.uint64) + 1, [f"node-{node:05d}"] * len(tasks))


def with_queues(load, *queue):
    """The load with a task in each of these leaves, as jobs of one task, the first one the oldest."""
    load.queue, load.job = np.array(queue), np.arange(len(queue))
    load.created_us = np.arange(len(queue))
    return load


@pytest.mark.parametrize("queues", [4, 5, 9, 100, 1000])
def test_trees_have_four_levels_and_parents_come_first(queues):
    parent = tree_of(queues)
    depth = np.zeros(queues, np.int64)
    for row in range(1, queues):
        assert 0 <= parent[row] < row
        depth[row] = depth[parent[row]] + 1
    assert depth.max() == 3
    assert np.bincount(depth)[0] == 1


def test_a_tree_of_fewer_queues_than_levels_is_refused():
    with pytest.raises(ValueError, match="queues is 3"):
        tree_of(3)


@pytest.mark.parametrize("sharing", Sharing)
def test_what_a_load_describes(sharing):
    load = QueuesLoad(QueuesSpec(20, 400, 3, 60, sharing, running=100))
    assert not build(load.tree()).problems
    assert load.leaf[load.queue].all()
    assert (load.guarantee[0] <= load.capacity).all()
    assert (load.guarantee[0] >= load.capacity - load.leaf.sum()).all()  # rounded down in each leaf
    for job in np.unique(load.job).tolist():
        some = load.job == job
        assert some.sum() <= load.spec.job
        assert len(np.unique(load.queue[some])) == len(np.unique(load.created_us[some])) == 1
        assert len(np.unique(load.requests[some], axis=0)) == 1
        assert len(set((np.flatnonzero(some) < load.base.running).tolist())) == 1
    assert load.tasks(queued=False).queue_id is None


def test_sizes_scale():
    spec = QueuesSpec(500, 1000, 20, 100, Sharing.FAIR, running=300).scaled(Options(scale=0.01))
    assert (spec.nodes, spec.pods, spec.classes, spec.queues, spec.running) == (5, 10, 10, 4, 3)


def test_limits_bound_what_is_used_by_a_queue_and_all_below_it():
    load = with_queues(load_of(), 3, 3, 4, 4, 4, 4, 4, 4)
    request = load.requests[0]
    load.limit[1:] = NO_LIMIT
    load.limit[load.parent[3]] = 3 * request
    assert placed(load, 0, 1, 2).above_limits() == ""
    assert f"queue-{load.parent[3]} uses" in placed(load, 0, 1, 2, 3).above_limits()
    load.limit[:] = NO_LIMIT
    load.limit[4] = request
    assert placed(load, 0, 2).above_limits() == ""
    assert "queue-4 uses" in placed(load, 2, 3).above_limits()


def test_a_task_within_its_guarantee_must_not_wait_for_one_that_borrows():
    load = with_queues(load_of(nodes=1, fill=2.0), *[3] * 4, *[4] * 4)
    request = load.requests[0]
    fit = int(load.capacity[0] // request[0])
    assert fit == 4
    load.guarantee[3], load.guarantee[4] = 2 * request, 2 * request
    assert placed(load, 0, 1, 4, 5).guarantees_missed() == ""
    assert "job-5 of queue-4 waits" in placed(load, 0, 1, 2, 4).guarantees_missed()
    load.guarantee[4] = request
    assert placed(load, 0, 1, 2, 4).guarantees_missed() == ""
    load.guarantee[3] = 4 * request  # no queue borrows
    assert placed(load, 0, 1, 2, 3).guarantees_missed() == ""


@pytest.mark.parametrize("sharing", [Sharing.FAIR, Sharing.PROPORTIONAL])
def test_shares_are_compared_by_weight(sharing):
    load = with_queues(load_of(nodes=1, pods=20, fill=2.5, sharing=sharing), *[3] * 10, *[4] * 10)
    request = load.requests[0]
    assert int(load.capacity[0] // request[0]) == 8
    load.weight[:] = 1.0
    load.weight[3] = 3.0
    load.guarantee[:] = 0
    assert placed(load, *range(6), 10, 11).unequal_shares() == ""
    rounded = placed(load, *range(7), 10).unequal_shares()  # a task more than the exact share
    assert (rounded == "") == (sharing is Sharing.PROPORTIONAL)
    assert placed(load, *range(4), *range(10, 14)).unequal_shares() != ""
    load.guarantee[4] = 4 * request
    load.guarantee[:3] = 4 * request
    assert placed(load, *range(3), *range(10, 15)).unequal_shares() == ""
    assert placed(load, *range(6), 10, 11).unequal_shares() != ""
