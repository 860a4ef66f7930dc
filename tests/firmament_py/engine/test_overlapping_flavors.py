"""Flavors that have nodes in common: each has its own quota, whichever node a task runs on. The outcomes are Kueue's in
the same cluster."""

import numpy as np
import pytest

from firmament_py.model.events import Event, NodeRemoved, QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.firmament_py.engine.queued import A, reasons
from tests.firmament_py.queues.trees import queue, quota

ALL, ONE, TWO = {"sc": "x"}, {"sc": "x", "fl": "one"}, {"sc": "x", "fl": "two"}


def tree_of(*flavors, resources=("cpu",)):
    """One queue; flavors: labels, and so much of each resource."""
    quotas = [
        quota(amount, on=f"f{number}/{resource}")
        for number, (_, amount) in enumerate(flavors, 1)
        for resource in resources
    ]
    named = tuple(Flavor(f"f{number}", labels) for number, (labels, _) in enumerate(flavors, 1))
    return QueueTree((queue("a", "", *quotas),), named)


def cluster_of(described, *events):
    """Two nodes of 8 CPUs; class 1 requests one, class 2 memory besides."""
    return make_cluster(
        make_node("n1", cpu=8, mem=8, labels=ONE),
        make_node("n2", cpu=8, mem=8, labels=TWO),
        make_class(1, cpu=1),
        make_class(2, cpu=1, mem=1),
        QueuesObserved(described),
        *events,
    )


def jobs(*sizes, cls=1):
    """Gangs 1, 2, ... of so many tasks 11, 12, ...; 21, 22, ...; one task is single."""
    events: list[Event] = []
    for number, size in enumerate(sizes, 1):
        uids, since = range(10 * number + 1, 10 * number + 1 + size), NOW_US + number
        if size > 1:
            events.append(make_gang(number, size, created_us=since, whole=True))
        events.append(make_tasks(uids, cls, queue=A, gang=number if size > 1 else 0, created_us=since))
    return events


def placed(cluster):
    """Uid -> node of all that a few rounds place; it comes to rest."""
    found: dict[int, str] = {}
    for second in range(4):
        found |= cluster.round(NOW_US + second * 1_000_000)
    assert not cluster.scheduler.due(NOW_US + 4_000_000)
    return found


def uses(cluster):
    """Flavor -> so many tasks that have a node."""
    tasks, choices = cluster.state.tasks, cluster.state.flavor_choices
    names = [dict(choices[number])["cpu"] for number in tasks.flavors[tasks.node >= 0].tolist() if number >= 0]
    return {name: names.count(name) for name in sorted(set(names))}


@pytest.mark.parametrize(
    ("flavors", "sizes", "cls", "used"),
    [
        pytest.param([(ALL, 2), (ALL, 8)], (6, 2), 1, {"f1": 2, "f2": 6}, id="sameflav"),
        pytest.param([(ALL, 2), (ALL, 8)], (1, 1, 1), 1, {"f1": 2, "f2": 1}, id="sameflav2"),
        pytest.param([(ALL, 2), (ALL, 8)], (6, 2), 2, {"f1": 2, "f2": 6}, id="sameflav3"),
        pytest.param([(ONE, 2), (ALL, 8)], (2, 4, 1, 1), 1, {"f1": 2, "f2": 6}, id="nestflav"),
        pytest.param([(ALL, 2), (TWO, 6)], (2, 4, 1, 1), 1, {"f1": 2, "f2": 6}, id="nestflav2"),
        pytest.param([({}, 1), (ALL, 4)], (1, 3), 1, {"f1": 1, "f2": 3}, id="flat2"),
        pytest.param([(ALL, 4), (ALL, 8), (ALL, 16)], (6, 3), 2, {"f1": 3, "f2": 6}, id="e-conc"),
    ],
)
def test_each_flavor_has_its_own_quota_on_nodes_of_several(flavors, sizes, cls, used):
    resources = ("cpu", "mem") if cls == 2 else ("cpu",)
    cluster = cluster_of(tree_of(*flavors, resources=resources), *jobs(*sizes, cls=cls))
    assert len(placed(cluster)) == sum(sizes)
    assert uses(cluster) == used


def test_tasks_of_a_flavor_run_on_its_nodes_only():
    cluster = cluster_of(tree_of((ALL, 2), (TWO, 6)), *jobs(2, 4, 1, 1))
    found = placed(cluster)
    assert {node for uid, node in found.items() if uid > 20} == {"n2"}


def test_what_exceeds_the_quotas_of_all_flavors_waits_for_quota():
    cluster = cluster_of(tree_of((ALL, 1), (ALL, 2)), *jobs(1, 1, 1, 1))
    result = cluster.run()
    assert len(cluster.names(result)) == 3
    assert reasons(cluster, result) == {41: [("OVER_QUOTA", "a", "cpu: 1")]}


def test_what_ends_gives_back_the_quota_of_its_flavor():
    cluster = cluster_of(tree_of((ALL, 2), (TWO, 2)), *jobs(1, 1, 1, 1))
    assert placed(cluster).keys() == {11, 21, 31, 41}
    cluster.tell(removed(11), make_tasks([51], 1, queue=A, created_us=NOW_US + 9))
    assert cluster.round().keys() == {51}
    assert uses(cluster) == {"f1": 2, "f2": 2}


# -- flavors that are not known ---------------------------------------------------------------------------------------


def bound(uids, on="n1", **fields):
    return make_tasks(uids, 1, on=on, queue=A, created_us=[NOW_US + uid for uid in uids], **fields)


def test_what_runs_after_a_restart_takes_the_flavors_in_their_order_the_oldest_first():
    cluster = cluster_of(tree_of((ALL, 2), (ALL, 3)), bound([3, 1, 4, 2]), make_tasks([11, 12], 1, queue=A))
    assert len(cluster.round()) == 1
    tasks, choices = cluster.state.tasks, cluster.state.flavor_choices
    rows = cluster.state.task_rows(np.array([1, 2, 3, 4], np.uint64))
    assert [choices[n] for n in tasks.flavors[rows].tolist()] == [(("cpu", name),) for name in ("f1", "f1", "f2", "f2")]


def test_what_runs_beyond_all_quotas_counts_on_the_first_flavor():
    cluster = cluster_of(tree_of((ALL, 1), (ALL, 1)), bound([1, 2, 3]), make_tasks([11], 1, queue=A))
    assert not cluster.round()
    assert uses(cluster) == {"f1": 2, "f2": 1}
    cluster.tell(removed(1))
    assert not cluster.round()
    cluster.tell(removed(2))
    assert cluster.round().keys() == {11}


def test_a_gang_that_runs_counts_on_one_flavor():
    cluster = cluster_of(tree_of((ALL, 2), (ALL, 4)), make_gang(1, 3), bound([1, 2, 3], gang=1))
    cluster.tell(make_tasks([11, 12, 13, 14], 1, queue=A))
    assert len(cluster.round()) == 3
    assert uses(cluster) == {"f1": 2, "f2": 4}


def test_a_flavor_is_kept_for_as_long_as_the_queue_and_the_node_have_it():
    """Four tasks run on the second flavor; a tree without the first, and then without their own, is described."""
    cluster = cluster_of(tree_of((ALL, 0), (ALL, 4), (ALL, 4)), *jobs(1, 1, 1, 1))
    placed(cluster)
    assert uses(cluster) == {"f2": 4}
    described = tree_of((ALL, 9), (ALL, 4))
    cluster.tell(QueuesObserved(described), make_tasks([51], 1, queue=A))
    cluster.round()
    assert uses(cluster) == {"f1": 1, "f2": 4}
    first, _ = described.flavors
    only = QueueTree((queue("a", "", quota(3, on="f1/cpu"), quota(9, on="f3/cpu")),), (first, Flavor("f3", ALL)))
    cluster.tell(QueuesObserved(only), make_tasks([52], 1, queue=A))
    cluster.round()
    assert uses(cluster) == {"f1": 3, "f3": 3}


def test_a_task_whose_node_leaves_its_flavor_counts_on_another_one():
    cluster = cluster_of(tree_of((ONE, 1), (ALL, 9)), *jobs(1, 1))
    placed(cluster)
    assert uses(cluster) == {"f1": 1, "f2": 1}
    left, joined = make_node("n1", cpu=8, mem=8, labels=ALL), make_node("n2", cpu=8, mem=8, labels=ONE)
    cluster.tell(left, joined, make_tasks([31, 32], 1, queue=A))
    assert set(cluster.round().values()) == {"n1", "n2"}
    assert uses(cluster) == {"f1": 1, "f2": 3}


def test_a_flavor_is_kept_while_the_node_is_gone():
    cluster = cluster_of(tree_of((ALL, 1), (ALL, 3)), *jobs(1, 1, 1, 1))
    found = placed(cluster)
    cluster.tell(*(NodeRemoved(f"id-{name}") for name in ("n1", "n2")))
    other, back = (make_node(name, cpu=8, mem=8, labels=ALL) for name in ("n3", found[11]))
    cluster.tell(other, make_tasks([51], 1, queue=A))
    cluster.round()
    cluster.tell(back, *(removed(uid) for uid, node in found.items() if node != found[11]))
    cluster.round()
    assert uses(cluster) == {"f1": 1, "f2": len([uid for uid, node in found.items() if node == found[11]])}


def test_what_others_have_placed_takes_the_flavor_that_has_quota_left():
    """It was admitted on the first one before, which another task has used up since."""
    cluster = cluster_of(tree_of((ALL, 1), (ALL, 1)), make_tasks([1], 1, queue=A, created_us=NOW_US))
    cluster.round()
    cluster.tell(bound([1]), make_tasks([2, 3], 1, queue=A, created_us=NOW_US + 9))
    cluster.tell(bound([3]))
    assert not cluster.round()
    assert uses(cluster) == {"f1": 1, "f2": 1}
