"""Preemption for tasks with constraints on other tasks."""

from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
from tests.builders import (
    make_class,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)

HOST, ZONE = "kubernetes.io/hostname", "zone"


def host(name, zone="z", cpu=4):
    return make_node(name, cpu=cpu, labels={HOST: name, ZONE: zone})


def test_anti_affinity_to_a_task_of_lower_priority_is_satisfied_by_its_eviction():
    web = needs("app", "In", "web")
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=1),
        make_class(2, cpu=1, priority=5, peers=PeerDemand(anti_affinity=(PeerTerm(tasks_like(web), HOST),))),
        host("a"),
        make_tasks([1], 1, on="a", label_set=1),
        make_tasks([2], 1, on="a"),
        make_tasks([3], 2),
    )
    assert cluster.preempted(cluster.run()) == {1: 3}
    assert cluster.nominated() == {3: "a"}
    assert not cluster.preempted(cluster.run())
    cluster.tell(removed(1))
    assert cluster.round() == {3: "a"}


def test_a_task_that_repels_the_preemptor_is_evicted():
    web = needs("app", "In", "web")
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(tasks_like(web), HOST),))),
        make_class(2, cpu=1, priority=5),
        host("a"),
        make_tasks([1], 1, on="a"),
        make_tasks([3], 2, label_set=1),
    )
    assert cluster.preempted(cluster.run()) == {1: 3}


def test_anti_affinity_to_tasks_of_the_same_priority_cannot_be_satisfied():
    web = needs("app", "In", "web")
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=1, priority=5),
        make_class(2, cpu=1, priority=5, peers=PeerDemand(anti_affinity=(PeerTerm(tasks_like(web), HOST),))),
        make_class(3, cpu=1),
        host("a"),
        make_tasks([1], 1, on="a", label_set=1),
        make_tasks([2], 3, on="a", label_set=1),
        make_tasks([3], 2),
    )
    assert not cluster.preempted(cluster.run())


def test_a_preemptor_does_not_evict_the_task_that_it_must_be_near():
    near = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "db")), HOST),))
    cluster = preempting_cluster(
        make_label_set(1, app="db"),
        make_class(1, cpu=2),
        make_class(2, cpu=2, priority=5, peers=near),
        host("a"),
        host("b"),
        make_tasks([1], 1, on="a", label_set=1),
        make_tasks([2], 1, on="a"),
        make_tasks([4, 5], 1, on="b"),
        make_tasks([3], 2),
    )
    # kube-scheduler finds no victims here: without all of lower priority the task it must be near is gone, too
    assert set(cluster.preempted(cluster.run())) <= {2}


def test_spread_is_respected_by_preemptors():
    spread = Spread(tasks_like(needs("app", "In", "web")), ZONE, 1)
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=4),
        make_class(2, cpu=4, priority=5, peers=PeerDemand(spread=(spread,))),
        host("a", "one"),
        host("b", "one"),
        host("c", "two"),
        make_tasks([1], 2, on="a", label_set=1),
        make_tasks([2], 1, on="b"),
        make_tasks([3], 1, on="c"),
        make_tasks([4], 2, label_set=1),
    )
    assert cluster.preempted(cluster.run()) == {3: 4}
    assert cluster.nominated() == {4: "c"}


def test_preemptors_that_repel_each_other_get_different_nodes():
    web = needs("app", "In", "web")
    cluster = preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=2),
        make_class(2, cpu=2, priority=5, peers=PeerDemand(anti_affinity=(PeerTerm(tasks_like(web), HOST),))),
        host("a"),
        host("b"),
        make_tasks([1, 2], 1, on="a"),
        make_tasks([3, 4], 1, on="b"),
        make_tasks([5, 6], 2, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert sorted(cluster.nominated().values()) == ["a", "b"]
    cluster.tell(removed(*victims))
    assert sorted(cluster.round().values()) == ["a", "b"]
