"""Known faults of Poseidon with Firmament that were never repaired there: none of them occurs here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NodeDemand, Taint, Toleration
from firmament_py.model.events import Event
from tests.builders import NOW_US, ended, make_class, make_cluster, make_node, make_tasks, per_node, removed
from tests.firmament_py.engine.random_rounds import carry_out, left_over, world_of


def test_max_pods_is_never_exceeded_and_waiting_tasks_are_placed_later():
    """5 tasks for 3 task slots: 3 at once, one more for each that goes."""
    cluster = make_cluster(make_node("a", pods=3, cpu=1000), make_class(1, cpu=1), make_tasks(range(1, 6), 1))
    assert per_node(cluster.round()) == {"a": 3}
    assert len(cluster.waiting()) == 2
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert per_node(cluster.round()) == {"a": 1}
    cluster.tell(ended(2))
    assert per_node(cluster.round()) == {"a": 1}
    assert cluster.waiting() == set()


def test_a_node_without_task_slots_takes_none():
    cluster = make_cluster(make_node("a", pods=0, cpu=9), make_class(1), make_tasks([1], 1))
    assert cluster.round() == {}


def test_tasks_of_others_count_for_max_pods():
    cluster = make_cluster(make_node("a", pods=3), make_class(1), make_tasks([1, 2], 1, on="a"), make_tasks([3, 4], 1))
    assert per_node(cluster.round()) == {"a": 1}


@pytest.mark.parametrize(("count", "nodes", "networks"), [(100, 10, 1), (330, 3, 1), (50, 50, 0)])
def test_a_batch_that_fits_is_placed_in_one_round(count, nodes, networks):
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=4000) for i in range(nodes)), make_class(1, cpu=10), make_tasks(range(1, count + 1), 1)
    )
    result = cluster.run()
    assert (result.stats.placed, result.stats.waiting, result.stats.solves) == (count, 0, networks)


def test_a_batch_of_many_classes_that_fits_only_together_is_placed_in_one_round():
    """12 classes of a task for each of 4 nodes: 12 x (100 + 10 c)  = 1200 + 660 = 1860 a node, to the last."""
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=1860) for i in range(4)),
        *(make_class(c + 1, cpu=100 + 10 * c) for c in range(12)),
        *(make_tasks(range(100 * c + 1, 100 * c + 5), c + 1) for c in range(12)),
    )
    assert per_node(cluster.round()) == {f"n{i}": 12 for i in range(4)}


def test_a_replacement_for_a_failed_task_is_scheduled():
    """Also for the first task of a job, whose failure used to stop the whole job."""
    cluster = make_cluster(make_node("a", cpu=2), make_class(1, cpu=1), make_tasks([1, 2], 1, job=7))
    assert per_node(cluster.round()) == {"a": 2}
    cluster.tell(make_tasks([1, 2], 1, on="a", job=7), ended(1), make_tasks([3], 1, job=7))
    assert cluster.round() == {3: "a"}
    cluster.tell(removed(1), removed(3), make_tasks([4], 1, job=7))
    assert cluster.round() == {4: "a"}


def test_a_task_submitted_again_under_its_old_uid_is_scheduled():
    cluster = make_cluster(make_node("a", cpu=1), make_class(1, cpu=1), make_tasks([1], 1))
    for _ in range(3):
        assert cluster.round() == {1: "a"}
        cluster.tell(removed(1), make_tasks([1], 1))


def test_classes_of_one_round_never_over_commit_a_node():
    """36 tasks of 12 classes, 17,460m in all, on 3 x 2,000m: the original placed 27 and 3,420m and more on a node.

    Requests 155, 210, .. 760 would be 12 classes in steps of 55 with 3 tasks each: 3 x 12 x (155 + 760) / 2 = 16,470;
    with 30 more for each of the 33 tasks of the last 11 classes: 16,470 + 990 = 17,460.
    """
    requests = [155 + 55 * c + (30 if c else 0) for c in range(12)]
    assert 3 * sum(requests) == 17_460
    events: list[Event] = [
        *(make_node(f"n{i}", cpu=2000) for i in range(3)),
        *(make_class(c + 1, cpu=request) for c, request in enumerate(requests)),
        *(make_tasks(range(10 * c + 1, 10 * c + 4), c + 1) for c in range(12)),
    ]
    cluster, world = make_cluster(*events), world_of(events)
    carry_out(world, cluster.round())
    assert left_over(world) == []
    assert min(world.used(node)["cpu"] for node in world.nodes) > 2000 - min(requests), "each node is as good as full"


@pytest.mark.parametrize(
    ("requests", "node"),
    [
        # 2 x 300 + 1 x 400 + 3 x 500 = 2500
        pytest.param({300: 2, 400: 1, 500: 3}, 2000, id="six-on-one-node"),
        pytest.param({1999: 1, 1: 5}, 2000, id="one-that-leaves-room-for-one"),
    ],
)
def test_different_classes_never_over_commit_one_node_together(requests, node):
    events: list[Event] = [make_node("a", cpu=node)]
    for i, (request, count) in enumerate(requests.items(), 1):
        events += [make_class(i, cpu=request), make_tasks(range(100 * i, 100 * i + count), i)]
    cluster, world = make_cluster(*events), world_of(events)
    carry_out(world, cluster.round())
    assert left_over(world) == []


@pytest.mark.parametrize(
    ("node", "request_", "count", "placed"),
    [
        pytest.param(1250, 250, 5, 5, id="five-of-250-on-1250"),
        pytest.param(1000, 250, 5, 4, id="four-of-five-on-1000"),
        pytest.param(1000, 1000, 1, 1, id="one-that-takes-all"),
        pytest.param(999, 1000, 1, 0, id="one-too-large-by-one"),
    ],
)
def test_tasks_that_fit_exactly_are_placed(node, request_, count, placed):
    cluster = make_cluster(make_node("a", cpu=node), make_class(1, cpu=request_), make_tasks(range(1, count + 1), 1))
    assert len(cluster.round()) == placed


def test_exactly_fitting_in_every_resource_at_once():
    cluster = make_cluster(
        make_node("a", pods=4, cpu=1000, memory=2**40, gpu=4),
        make_class(1, cpu=250, memory=2**38, gpu=1),
        make_tasks(range(1, 5), 1),
    )
    assert per_node(cluster.round()) == {"a": 4}


def test_a_node_that_does_not_name_a_resource_has_none_of_it():
    """The original took a capacity of 0 for unlimited."""
    cluster = make_cluster(
        make_node("a", cpu=10),
        make_class(1, storage=1),
        make_class(2, cpu=1),
        *(make_tasks([1], 1), make_tasks([2], 2)),
    )
    assert cluster.round() == {2: "a"}


def test_one_toleration_is_enough():
    """The original took fewer than three tolerations for none."""
    demand = NodeDemand(tolerations=(Toleration("gpu", "Exists", "", "NoSchedule"),))
    cluster = make_cluster(
        make_node("a", taints=[Taint("gpu", "", "NoSchedule")]), make_class(1, demand=demand), make_tasks([1], 1)
    )
    assert cluster.round() == {1: "a"}


def test_a_task_that_is_resized_while_it_waits_is_placed():
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=8), make_class(2, cpu=4), make_tasks([1], 1))
    assert cluster.round() == {}
    cluster.tell(make_tasks([1], 2))
    assert cluster.round() == {1: "a"}


def test_a_node_that_grows_takes_more():
    cluster = make_cluster(make_node("a", cpu=4), make_class(1, cpu=8), make_tasks([1], 1))
    assert cluster.round() == {}
    cluster.tell(make_node("a", cpu=8))
    assert cluster.round() == {1: "a"}


@pytest.mark.slow
@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=3), nodes=st.integers(1, 9))
def test_a_batch_is_spread_evenly_over_equal_nodes(counts, nodes):
    """Any two nodes differ by one task at the most, whatever the classes."""
    cluster = make_cluster(
        *(make_node(f"n{i}", pods=200) for i in range(nodes)),
        *(make_class(c + 1, priority=c) for c in range(len(counts))),
        *(make_tasks(range(1000 * c + 1, 1000 * c + 1 + k), c + 1) for c, k in enumerate(counts)),
    )
    shares = per_node(cluster.round(NOW_US))
    assert sum(shares.values()) == sum(counts)
    assert max(shares.values()) - min(shares.get(f"n{i}", 0) for i in range(nodes)) <= 1
