"""What tasks use of quotas: by queue, and by the flavor of their nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmament_py.model.events import NodeRemoved, QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree
from firmament_py.sharing.use import QueueUse
from tests.builders import make_class, make_cluster, make_node, make_tasks, removed
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

ON_DEMAND, SPOT = Flavor("on-demand", {"kind": "on-demand"}), Flavor("spot", {"kind": "spot"})


def used(cluster, amounts):
    """{"queue flavor/resource": amount} of a matrix, without zeros."""
    queues = cluster.state.queues
    names = [f"{flavor}/{resource}" for flavor in queues.flavors for resource in queues.resources]
    return {
        f"{queues.definitions[row].name} {names[column]}": int(amounts[row, column])
        for row, column in zip(*np.nonzero(amounts), strict=True)
    }


def two_kinds(*events):
    flavors = (ON_DEMAND, SPOT)
    queues = (
        queue("a", "", quota(10, on="on-demand/cpu"), quota(10, on="spot/cpu")),
        queue("b", "", quota(10, on="spot/cpu"), quota(10, on="on-demand/cpu")),
    )
    return make_cluster(
        make_node("n-demand", cpu=100, labels={"kind": "on-demand"}),
        make_node("n-spot", cpu=100, labels={"kind": "spot"}),
        make_node("n-other", cpu=100),
        make_class(1, cpu=2),
        QueuesObserved(QueueTree(queues, flavors)),
        *events,
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("n-demand", {"a on-demand/cpu": 2, "b on-demand/cpu": 2}),
        ("n-spot", {"a spot/cpu": 2, "b spot/cpu": 2}),
        ("n-other", {"a on-demand/cpu": 2, "b spot/cpu": 2}),  # of no flavor: it counts against the first of the queue
    ],
)
def test_a_task_takes_from_the_flavor_of_its_node(node, expected):
    cluster = two_kinds(
        make_tasks([1], 1, on=node, queue=queue_id("a")), make_tasks([2], 1, on=node, queue=queue_id("b"))
    )
    assert used(cluster, QueueUse(cluster.state).running(leaving=True)) == expected


@pytest.mark.parametrize(("name", "flavor"), [("a", "on-demand"), ("b", "spot")])
def test_a_task_holds_quota_until_it_is_gone_whatever_has_become_of_its_node(name, flavor):
    """Kueue: a workload holds its quota until its pods have ended; a node that is deleted ends none of them. The labels
    of the node are gone, so that it counts against the first flavor of its queue."""
    cluster = two_kinds(make_tasks([1, 2], 1, on="n-spot", queue=queue_id(name)), NodeRemoved("id-n-spot"))
    assert used(cluster, QueueUse(cluster.state).running(leaving=True)) == {f"{name} {flavor}/cpu": 4}


def test_nothing_is_placed_with_the_quota_of_tasks_whose_node_is_gone():
    """2 tasks of 2 cpu hold all of the 4 that the queue may use, although their node is gone."""
    cluster = make_cluster(
        *(make_node("n1", cpu=100), make_node("n2", cpu=100), make_class(1, cpu=2)),
        QueuesObserved(tree(queue("a", "", quota(4)))),
        make_tasks([1, 2], 1, on="n1", queue=queue_id("a")),
        *(NodeRemoved("id-n1"), make_tasks([3], 1, queue=queue_id("a"))),
    )
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert cluster.round() == {3: "n2"}


def test_what_is_in_use_counts_as_offered():
    """Of the 100 cpu of each node; one of two nodes has less than is in use there, of two others one is gone."""
    a, b = queue_id("a"), queue_id("b")
    cluster = two_kinds(
        make_tasks(range(1, 31), 1, on="n-demand", queue=a),
        make_tasks(range(31, 41), 1, on="n-spot", queue=b),
        make_tasks(range(41, 46), 1, on="n-other", queue=a),
    )
    columns = QueueUse(cluster.state).queues
    names = [f"{flavor}/{resource}" for flavor in columns.flavors for resource in columns.resources]
    for event, expected in (
        (make_node("n-demand", cpu=70, labels={"kind": "on-demand"}), [70, 100]),
        (make_node("n-demand", cpu=50, labels={"kind": "on-demand"}), [60, 100]),
        (NodeRemoved("id-n-spot"), [60, 20]),
        (NodeRemoved("id-n-other"), [60 + 10, 20]),
        (removed(*range(41, 46)), [60, 20]),
    ):
        cluster.tell(event)
        offered = dict(zip(names, QueueUse(cluster.state).offered.tolist(), strict=True))
        assert [offered["on-demand/cpu"], offered["spot/cpu"]] == expected


def test_what_is_nominated_takes_from_the_flavor_of_its_node():
    a, b = queue_id("a"), queue_id("b")
    cluster = two_kinds(
        make_tasks([1], 1, queue=a, nominated="n-demand"),
        make_tasks([2, 3], 1, queue=b, nominated="n-spot"),
        make_tasks([4], 1, nominated="n-spot"),
        make_tasks([5], 1, queue=a),
    )
    assert used(cluster, QueueUse(cluster.state).nominated()) == {"a on-demand/cpu": 2, "b spot/cpu": 4}


def test_a_local_queue_that_is_named_where_none_is_described():
    cluster = two_kinds(make_tasks([1, 2], 1, on="n-spot", queue=queue_id("a"), local_queue=7))
    assert QueueUse(cluster.state).local_queue_of(np.arange(2)).tolist() == [-1, -1]


def test_what_terminates_is_used_but_does_not_stay():
    a = queue_id("a")
    cluster = two_kinds(
        make_tasks([1, 2], 1, on="n-demand", queue=a), make_tasks([3], 1, on="n-spot", queue=a, leaving=True)
    )
    use = QueueUse(cluster.state)
    everything = use.running(leaving=True)
    assert used(cluster, everything) == {"a on-demand/cpu": 4, "a spot/cpu": 2}
    everything[:] = 0  # the caller's own
    assert used(cluster, use.running(leaving=False)) == {"a on-demand/cpu": 4}
    assert used(cluster, use.running(leaving=True)) == {"a on-demand/cpu": 4, "a spot/cpu": 2}


def test_on_nodes_of_several_flavors_the_order_of_the_queue_decides():
    queues = (
        queue("a", "", quota(10, on="red/cpu"), quota(10, on="blue/cpu")),
        queue("b", "", quota(10, on="blue/cpu"), quota(10, on="red/cpu")),
    )
    cluster = make_cluster(
        make_node("n", cpu=100),
        make_class(1, cpu=2),
        QueuesObserved(tree(*queues)),
        make_tasks([1], 1, on="n", queue=queue_id("a")),
        make_tasks([2], 1, on="n", queue=queue_id("b")),
    )
    assert used(cluster, QueueUse(cluster.state).running(leaving=True)) == {"a red/cpu": 2, "b blue/cpu": 2}


def test_what_leaves_counts_until_it_is_gone_and_nominated_tasks_count_apart():
    cluster = two_kinds(
        make_tasks([1], 1, on="n-spot", queue=queue_id("a"), leaving=True),
        make_tasks([2], 1, on="n-spot", queue=queue_id("a")),
        make_tasks([3], 1, nominated="n-spot", queue=queue_id("a")),
        make_tasks([4], 1, queue=queue_id("a")),
    )
    use = QueueUse(cluster.state)
    assert used(cluster, use.running(leaving=True)) == {"a spot/cpu": 4}
    assert used(cluster, use.running(leaving=False)) == {"a spot/cpu": 2}
    assert used(cluster, use.nominated()) == {"a spot/cpu": 2}


def test_tasks_without_a_queue_or_of_an_unknown_one_count_nowhere():
    cluster = two_kinds(make_tasks([1], 1, on="n-spot"), make_tasks([2], 1, on="n-spot", queue=2**40))
    use = QueueUse(cluster.state)
    assert used(cluster, use.running(leaving=True)) == {}
    assert use.queue_of(cluster.state.task_rows(np.array([1, 2], np.uint64))).tolist() == [-1, -1]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sums_are_those_of_the_tasks(data):
    nodes, names = ["n-demand", "n-spot", "n-other"], ["a", "b", ""]
    tasks = data.draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(names), st.booleans()), max_size=12))
    cluster = two_kinds(
        make_class(2, cpu=3, memory=1),
        *(
            make_tasks([uid], 1 + larger, on=node, queue=queue_id(name))
            for uid, (node, name, larger) in enumerate(tasks, start=1)
        ),
    )
    expected: dict[str, int] = {}
    first = {"a": "on-demand", "b": "spot"}
    for node, name, larger in tasks:
        if name:
            flavor = {"n-demand": "on-demand", "n-spot": "spot"}.get(node, first[name])
            expected[f"{name} {flavor}/cpu"] = expected.get(f"{name} {flavor}/cpu", 0) + 2 + larger
    assert used(cluster, QueueUse(cluster.state).running(leaving=True)) == expected
