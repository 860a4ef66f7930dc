"""Single tasks that a round places anew from lists, where that places more."""

import random

import numpy as np
import pytest

from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerTerm
from firmament_py.model.placed_by import PlacedBy
from firmament_py.placement import list_scheduling
from firmament_py.placement.list_scheduling import by_cost, emptiest_first, place_from_lists
from firmament_py.placement.placer import Placer
from firmament_py.rebalance.what_if import WhatIf
from policies.quincy import Quincy
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_class,
    make_cluster,
    make_inputs,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    tasks_like,
)
from tests.firmament_py.admission.test_gang_mixtures import GangMixture
from tests.firmament_py.placement.test_delay import Endless

ALL, NONE = np.array([True, True]), np.array([False, False])
APART = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "web")), "host"),))


def placer_of(cluster: Cluster) -> Placer:
    """A placer that has placed nothing."""
    return WhatIf.of(cluster.scheduler, NOW_US).round().placer()


def crossed(*, priority: int = 0, others: int = 0) -> Placer:
    """Task 0, which may go to nodes a and b, is on a; task 1 may go to a only, and they repel each other. priority: of
    task 0; others: number of further nodes, which task 0 may go to, too."""
    placer = placer_of(
        make_cluster(
            *(make_node(name, cpu=4, labels={"host": name}) for name in "ab"),
            *(make_node(f"n{i}", cpu=1) for i in range(others)),
            make_class(1, cpu=1, priority=priority, peers=APART),
            make_class(2, cpu=1, demand=NodeDemand(selector=(needs("host", "In", "a"),))),
            *(make_label_set(1, app="db"), make_label_set(2, app="web")),
            *(make_tasks([1], 1, label_set=1), make_tasks([2], 2, label_set=2)),
        )
    )
    placer.ledger.place_one(0, 0, PlacedBy.FLOW)
    return placer


def test_tasks_that_a_list_leaves_out_come_first_in_the_next_one():
    """By age task 0 comes first, and takes node a in whatever order the nodes are tried."""
    placer = crossed()
    assert place_from_lists(placer, ALL, NONE, 1.0)
    assert placer.ledger.node_of.tolist() == [1, 0]
    assert placer.ledger.placed_by.tolist() == [PlacedBy.LISTS, PlacedBy.LISTS]
    assert placer.ledger.running.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("single", "overdue", "effort", "priority"),
    [
        pytest.param(ALL, NONE, 0.0, 0, id="without effort"),
        pytest.param(ALL, NONE, 0.1, 0, id="with one list"),
        pytest.param(ALL, NONE, 1.0, 1, id="of a higher priority"),
        pytest.param(ALL, np.array([True, False]), 1.0, 0, id="overdue"),
        pytest.param(np.array([False, True]), NONE, 1.0, 0, id="of a gang"),
    ],
)
def test_a_task_stays(single, overdue, effort, priority):
    placer = crossed(priority=priority)
    free = placer.ledger.free.tolist()
    assert not place_from_lists(placer, single, overdue, effort)
    assert placer.ledger.node_of.tolist() == [0, -1]
    assert (placer.ledger.free.tolist(), placer.ledger.running.tolist()) == (free, [1, 0])


def test_no_list_uses_reserved_capacity():
    placer = crossed()
    capacity = placer.ledger.free.copy()
    placer.ledger.reserve(NOW_US, 0 * capacity, np.array([[0], [1]]) * capacity, np.array([1]))
    assert not place_from_lists(placer, ALL, NONE, 1.0)
    assert placer.ledger.node_of.tolist() == [0, -1]


@pytest.mark.parametrize("limit", ["MOST_TASKS", "MOST_TERMS"])
def test_no_list_is_tried_in_large_rounds(monkeypatch, limit):
    monkeypatch.setattr(list_scheduling, limit, 1)
    assert not place_from_lists(crossed(), ALL, NONE, 1.0)
    monkeypatch.setattr(list_scheduling, limit, 2)
    assert place_from_lists(crossed(), ALL, NONE, 1.0)


@pytest.mark.parametrize(("limit", "too_few", "sufficient"), [("LISTS", 1, 2), ("STEPS", 3, 4)])
def test_lists_and_tries_are_limited(monkeypatch, limit, too_few, sufficient):
    monkeypatch.setattr(list_scheduling, limit, too_few)
    assert not place_from_lists(crossed(), ALL, NONE, 1.0)
    monkeypatch.setattr(list_scheduling, limit, sufficient)
    assert place_from_lists(crossed(), ALL, NONE, 1.0)


def test_tries_on_many_nodes_count_more(monkeypatch):
    monkeypatch.setattr(list_scheduling, "STEPS", 4)
    assert place_from_lists(crossed(others=900), ALL, NONE, 1.0)
    assert not place_from_lists(crossed(others=1000), ALL, NONE, 1.0)


def test_no_list_is_tried_while_tasks_wait_for_a_better_node():
    placer = crossed()
    placer.ledger.delayed[1] = True
    assert not place_from_lists(placer, ALL, NONE, 1.0)
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=1), make_tasks([1], 1), policy=Endless())
    assert by_cost(placer_of(cluster), np.arange(1)) is None


def test_the_oldest_of_a_class_get_the_places_of_a_list():
    """Tasks 0 and 1 are of the class that may be once in the zone; task 0, the older one, is on a, where task 2 has to
    go. In the second list the class of the tasks left out comes first."""
    solo = PeerDemand(
        anti_affinity=(*APART.anti_affinity, PeerTerm(tasks_like(needs("app", "In", "db")), "zone")),
    )
    created = [NOW_US - age * SECOND_US for age in (30, 10)]
    placer = placer_of(
        make_cluster(
            *(make_node(name, cpu=4, labels={"host": name, "zone": "z"}) for name in "ab"),
            make_class(1, cpu=1, peers=solo),
            make_class(2, cpu=1, demand=NodeDemand(selector=(needs("host", "In", "a"),))),
            *(make_label_set(1, app="db"), make_label_set(2, app="web")),
            make_tasks([1, 2], 1, label_set=1, created_us=created),
            make_tasks([3], 2, label_set=2, created_us=NOW_US - 20 * SECOND_US),
        )
    )
    placer.ledger.place_one(0, 0, PlacedBy.FLOW)
    assert place_from_lists(placer, np.ones(3, np.bool_), np.zeros(3, np.bool_), 1.0)
    assert placer.ledger.node_of.tolist() == [1, -1, 0]


def test_an_overdue_task_is_placed_although_younger_overdue_ones_would_be_more():
    """The large one takes what four small ones would; a constraint anywhere makes the round try lists."""
    cluster = make_cluster(
        *(make_node("a", cpu=4, labels={"host": "a"}), make_node("b", labels={"host": "b"})),
        *(make_class(1, cpu=4), make_class(2, cpu=1), make_class(3, peers=APART), make_tasks([5], 3, on="b")),
        make_tasks([1], 1, created_us=NOW_US - 900 * SECOND_US),
        make_tasks(range(10, 30), 2, created_us=[NOW_US - (800 - i) * SECOND_US for i in range(20)]),
    )
    assert cluster.round() == {1: "a"}


def test_no_list_is_tried_for_tasks_that_no_other_placement_helps(monkeypatch):
    """Of three tasks that repel each other, one waits on two nodes: in the first round lists are tried in vain, and in
    the second, which places another task, none is."""
    tried, attempt = [], list_scheduling._Lists._try

    def counted(*args):
        tried.append(args)
        return attempt(*args)

    monkeypatch.setattr(list_scheduling._Lists, "_try", counted)
    cluster = make_cluster(
        *(make_node(name, cpu=4, labels={"host": name}) for name in "ab"),
        *(make_class(1, cpu=1, peers=APART), make_class(2, cpu=1), make_label_set(1, app="web")),
        make_tasks([1, 2, 3], 1, label_set=1),
    )
    assert len(cluster.round()) == 2
    assert tried
    tried.clear()
    cluster.tell(make_tasks([4], 2))
    assert len(cluster.round()) == 1
    assert not tried


def test_nodes_are_tried_by_cost_which_includes_data():
    cluster = make_cluster(
        *(make_node("a"), make_node("b"), make_class(1), make_inputs(1, (10, "b"))),
        make_tasks([1, 2], 1, inputs=[0, 1]),
        policy=Quincy(),
    )
    nodes_for = by_cost(placer_of(cluster), np.arange(2))
    assert nodes_for is not None
    assert [nodes_for(task).tolist()[0] for task in (0, 1)] == [0, 1]


def test_nodes_are_tried_emptiest_first():
    cluster = make_cluster(
        *(make_node(name, cpu=9) for name in "abc"),
        *(make_class(1, cpu=1), make_tasks([1], 1, on="a"), make_tasks([2, 3], 1, on="b"), make_tasks([4], 1)),
    )
    assert emptiest_first(placer_of(cluster).ledger)(0).tolist() == [2, 0, 1]


def test_single_tasks_move_beside_gangs(monkeypatch):
    """A round with gangs in which a list places one more."""

    def placed() -> int:
        return len(GangMixture(random.Random(168).choice).round()[1].tasks)

    with_lists = placed()
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    assert with_lists == placed() + 1
