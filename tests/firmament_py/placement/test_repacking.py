"""Rounds that leave capacity of the wrong shape pack what they have placed anew."""

import numpy as np
import pytest

from firmament_py.engine.stats import RoundStats
from firmament_py.model.constraints import NodeDemand, Operator, Requirement
from firmament_py.model.events import Event
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.firmament_py.packing.packings import random_problem


def full_cluster(seed: int, improve: float) -> RoundStats:
    """A round of 20 nodes and tasks of 8 classes that request a tenth more than there is."""
    problem = random_problem(seed, nodes=20, classes=8, demand=1.1)
    events: list[Event] = []
    for n, (cpu, memory, pods) in enumerate(problem.free.tolist()):
        labels = {f"c{c}": "" for c in np.flatnonzero(problem.suitable[:, n]).tolist()}
        events.append(make_node(f"n{n}", cpu=cpu, memory=memory, pods=pods, labels=labels))
    uid = 1
    for c, (cpu, memory, _) in enumerate(problem.requests.tolist()):
        demand = NodeDemand(selector=(Requirement(f"c{c}", Operator.EXISTS),))
        count = int(problem.count[c])
        events += [make_class(c + 1, cpu=cpu, memory=memory, demand=demand), make_tasks(range(uid, uid + count), c + 1)]
        uid += count
    return make_cluster(*events, improve=improve).run().stats


def test_tasks_move_within_a_round_so_that_others_fit():
    """Over some clusters; in a single one the flows may be lucky."""
    flows, packed = (np.array([full_cluster(seed, improve).placed for seed in range(8)]) for improve in (0, 1))
    assert (packed >= flows).all()
    assert (packed > flows).sum() >= 4


@pytest.mark.parametrize("seed", range(4))
def test_no_round_places_more_than_the_bound_of_another(seed):
    flows, packed = (full_cluster(seed, improve) for improve in (0, 1))
    assert packed.placed <= flows.placed + flows.gap
    assert packed.gap <= flows.gap


def test_the_gap_says_how_many_more_any_packing_could_place():
    """Of three tasks that need two of three devices on each of two nodes, two fit, which the relaxation proves."""
    cluster = make_cluster(
        *(make_node("a", gpu=3), make_node("b", gpu=3), make_class(1, gpu=2), make_tasks([1, 2, 3], 1)),
    )
    stats = cluster.run().stats
    assert (stats.placed, stats.waiting, stats.gap) == (2, 1, 0)


def test_a_task_of_a_higher_priority_is_never_given_up_for_others():
    cluster = make_cluster(
        *(make_node("a", cpu=8), make_class(1, cpu=8, priority=1), make_class(2, cpu=1)),
        *(make_tasks([1], 1), make_tasks(range(11, 19), 2)),
    )
    assert set(cluster.round()) == {1}


@pytest.mark.parametrize("overdue", [False, True])
def test_an_overdue_task_that_is_placed_is_not_given_up_for_others(overdue):
    """One task that needs a whole node, and four that need a quarter of it."""
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=4), make_class(2, cpu=1)),
        *(make_tasks([1], 1, created_us=NOW_US - 400_000_000 * overdue), make_tasks([2, 3, 4, 5], 2)),
    )
    assert set(cluster.round()) == ({1} if overdue else {2, 3, 4, 5})


def test_members_of_gangs_stay_where_they_are():
    """Six single tasks would fit instead of the gang of three."""
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=2) for i in range(3)),
        *(make_class(1, cpu=2), make_class(2, cpu=1), make_gang(1, 3, created_us=0)),
        *(make_tasks([1, 2, 3], 1, gang=1, created_us=0), make_tasks(range(11, 17), 2)),
    )
    assert set(cluster.round()) == {1, 2, 3}


def test_reserved_capacity_stays_reserved():
    """A gang that has waited for long gets a reservation; single tasks that would fit there wait."""
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=4), make_class(1, cpu=4), make_class(2, cpu=1)),
        make_tasks([99], 2, on="a"),
        *(make_gang(1, 2, created_us=0), make_tasks([1, 2], 1, gang=1, created_us=0)),
        make_tasks(range(11, 17), 2),
    )
    assert len(cluster.round()) < 6
    assert cluster.scheduler.reservation_holders


def test_what_is_placed_stays_where_more_than_the_rest_is_reserved():
    """Two tasks take what is free; the next one is overdue, and capacity is reserved for it beside them."""
    classes = [make_class(number, cpu=1, priority=9 - number) for number in (1, 2, 3, 4)]
    cluster = make_cluster(make_node("n", cpu=4), *classes, make_class(5, cpu=2), make_tasks([5], 5, on="n"))
    long_ago_us = NOW_US - 1000 * SECOND_US
    cluster.tell(make_tasks([1], 1), make_tasks([2], 2), make_tasks([3], 3, created_us=long_ago_us), make_tasks([4], 4))
    assert set(cluster.round()) == {1, 2}


def cluster_of_equal_nodes(**options):
    """40 nodes of two shapes, of which two run a task; 3 classes of two priorities, of which too many tasks wait."""
    return make_cluster(
        *(make_node(f"a{i}", cpu=9, memory=20) for i in range(24)),
        *(make_node(f"b{i}", cpu=7, memory=32) for i in range(16)),
        *(make_class(1, cpu=4, memory=5, priority=1), make_class(2, cpu=3, memory=9), make_class(3, cpu=2, memory=7)),
        *(make_tasks(range(1, 31), 1), make_tasks(range(101, 161), 2), make_tasks(range(201, 261), 3)),
        *(make_tasks([301], 3, on="a0"), make_tasks([302], 2, on="b3")),
        **options,
    )


@pytest.mark.parametrize("cells", [5_000_000, 100, 0])
def test_equal_nodes_are_packed_by_patterns_where_there_are_too_many(monkeypatch, cells):
    """Nothing is lost of the higher priority, and what runs stays."""
    monkeypatch.setattr("firmament_py.placement.repacking.CELLS", cells)
    flows, cluster = cluster_of_equal_nodes(improve=0), cluster_of_equal_nodes()
    before, after = flows.round(), cluster.round()
    assert {301, 302}.isdisjoint(after)
    for tasks in (range(1, 31), range(101, 261)):
        assert sum(task in after for task in tasks) >= sum(task in before for task in tasks)
    assert (len(after) > len(before)) == (cells > 0)
    assert cluster_of_equal_nodes().round() == after


def test_the_gap_of_equal_nodes_is_that_of_all_nodes(monkeypatch):
    every = cluster_of_equal_nodes(improve=0).run().stats
    monkeypatch.setattr("firmament_py.placement.repacking.CELLS", 100)
    equal = cluster_of_equal_nodes(improve=0).run().stats
    assert equal.gap == every.gap > 0
    packed = cluster_of_equal_nodes().run().stats
    assert packed.placed <= every.placed + every.gap
    assert packed.gap < every.gap


def test_too_many_classes_and_nodes_are_not_packed_anew(monkeypatch):
    """What waits is the gap then."""
    monkeypatch.setattr("firmament_py.placement.repacking.CELLS", 0)
    stats = full_cluster(0, 1)
    assert stats.gap > 0
    assert "pack" in stats.stage_seconds
    assert stats.placed == full_cluster(0, 0).placed
