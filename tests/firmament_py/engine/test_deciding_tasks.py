"""Tasks that decide where others run, and come before them: near each other, or where a volume is made for all."""

import pytest

from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerTerm, PreferenceSet, Taint
from tests.builders import make_class, make_cluster, make_label_set, make_node, make_tasks, needs, tasks_like

A = tasks_like(needs("app", "In", "a"))


def near(key):
    return make_class(1, cpu=1, peers=PeerDemand(affinity=(PeerTerm(A, key),)))


def shares_a_volume():
    return make_class(1, cpu=1, preferences=PreferenceSet(capacity=True))


def first_of(cls, *events):
    cluster = make_cluster(cls, make_label_set(1, app="a"), *events, make_tasks([1], 1, label_set=1))
    return cluster.round()[1]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("cls", [near("host"), shares_a_volume()], ids=["near-each-other", "sharing-a-volume"])
def test_of_nodes_with_as_many_tasks_the_first_takes_that_with_room_for_the_others(cls, order):
    nodes = [make_node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("small", 2), ("big", 8))]
    assert first_of(cls, *nodes[::order]) == "big"
    plain = [make_tasks([number], 9, on=name) for number, name in enumerate(("small", "big"), 90)]
    used = [*nodes[::order], make_class(9), *plain]
    assert first_of(cls, *used) == "big"


@pytest.mark.parametrize("order", [1, -1])
def test_those_that_come_one_by_one_all_fit(order):
    nodes = [make_node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("small", 2), ("big", 8))]
    cluster = make_cluster(near("host"), make_label_set(1, app="a"), *nodes[::order])
    for uid in range(1, 7):
        cluster.tell(make_tasks([uid], 1, label_set=1))
        assert cluster.round() == {uid: "big"}


def test_the_room_of_a_domain_counts():
    """Three nodes of 3 in zone x have more room than one of 4 in zone y."""
    nodes = [make_node(f"x{number}", cpu=3, labels={"zone": "x"}) for number in range(3)]
    assert first_of(near("zone"), make_node("y", cpu=4, labels={"zone": "y"}), *nodes).startswith("x")


def test_a_node_with_fewer_tasks_comes_first():
    big = [make_node("big", cpu=8), make_class(9), make_tasks([90], 9, on="big")]
    assert first_of(shares_a_volume(), *big, make_node("small", cpu=2)) == "small"


def test_room_that_others_use_does_not_count():
    nodes = [make_node("big", cpu=8), make_node("small", cpu=4), make_class(9, cpu=7), make_class(8, cpu=1)]
    assert (
        first_of(shares_a_volume(), *nodes, make_tasks([90], 9, on="big"), make_tasks([91], 8, on="small")) == "small"
    )


def test_nodes_that_do_not_suit_may_have_the_most():
    tainted = make_node("big", cpu=8, taints=[Taint("k", "v", "NoSchedule")])
    cls = make_class(1, cpu=1, demand=NodeDemand(), preferences=PreferenceSet(capacity=True))
    assert first_of(cls, tainted, make_node("small", cpu=2), make_node("middle", cpu=4)) == "middle"
