"""Rounds with queues: quotas, order, flavors, and why tasks wait."""

from dataclasses import replace

import numpy as np
import pytest

from firmament_py.explain.quota_reasons import AMOUNTS_STEP_US
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.constraints import NodeDemand, Taint, Toleration
from firmament_py.model.events import NodeRemoved, QueuesObserved
from firmament_py.model.queues import Division, Flavor, QueueTree, Reclaim, Sharing, Stop
from firmament_py.sharing.report import queue_report
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks, needs, removed, selecting
from tests.firmament_py.engine.queued import A, B, cluster_of, one_flavor, reasons
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree


def test_a_round_places_no_more_than_the_quota_and_says_what_is_lacking():
    cluster = cluster_of(tree(queue("a", "", quota(2))), make_tasks([1, 2, 3], 1, queue=A), make_tasks([4], 1))
    result = cluster.run()
    assert set(cluster.names(result)) == {1, 2, 4}
    assert reasons(cluster, result) == {3: [("OVER_QUOTA", "a", "cpu: 1")]}
    assert cluster.scheduler.quota_reason(3).kind is ReasonKind.OVER_QUOTA
    assert cluster.scheduler.quota_reason(4) is None


def test_a_limit_holds_although_other_queues_are_of_other_nodes():
    queues = QueueTree(
        (
            queue("a", "", quota(0, limit=2, on="all/cpu"), unlimited=True),
            queue("b", "", quota(0, limit=1, on="gold/cpu"), unlimited=True),
        ),
        (Flavor("all"), Flavor("gold", {"kind": "gold"})),
        Sharing.PROPORTIONAL,
    )
    cluster = cluster_of(queues, make_node("m", cpu=100, labels={"kind": "gold"}))
    cluster.tell(make_tasks([1, 2, 3], 1, queue=A), make_tasks([4, 5], 1, queue=B))
    placed = cluster.round()
    assert sorted(uid <= 3 for uid in placed) == [False, True, True]
    assert {node for uid, node in placed.items() if uid > 3} == {"m"}


@pytest.mark.parametrize(
    ("prefixes", "others", "placed"),
    [
        pytest.param((), (), set(), id="no-queue-has-a-quota"),
        pytest.param(("gp",), (), {1, 2}, id="exempt"),
        pytest.param(("x", "gpu"), (), {1, 2}, id="one-of-several"),
        pytest.param(("pu",), (), set(), id="not-a-prefix"),
        pytest.param((), (quota(9, on="red/gpu"),), set(), id="another-queue-has-one"),
    ],
)
def test_resources_that_are_exempt_need_no_quota(prefixes, others, placed):
    queues = tree(queue("a", "", quota(2)), queue("b", "", *others), exempt_prefixes=prefixes)
    cluster = cluster_of(queues, make_node("m", cpu=9, gpu=9), make_class(2, cpu=1, gpu=1))
    cluster.tell(make_tasks([1, 2, 3], 2, queue=A))
    assert set(cluster.round()) == placed  # of cpu the quota is 2


@pytest.mark.parametrize(("name", "placed"), [("gpu", {1, 2}), ("gp", set())])
def test_resources_that_are_exempt_by_name_need_no_quota(name, placed):
    queues = tree(queue("a", "", quota(2)), exempt_resources=frozenset([name]))
    cluster = cluster_of(queues, make_node("m", cpu=9, gpu=9), make_class(2, cpu=1, gpu=1))
    cluster.tell(make_tasks([1, 2, 3], 2, queue=A))
    assert set(cluster.round()) == placed


def test_a_queue_that_needs_no_quota_of_a_resource_counts_none():
    """c has a quota of gpus; a needs none, and b may use none."""
    queues = tree(
        queue("a", "", quota(2), unlimited=True), queue("b", "", quota(2)), queue("c", "", quota(2, on="red/gpu"))
    )
    cluster = cluster_of(queues, make_node("m", cpu=9, gpu=9), make_class(2, cpu=1, gpu=1))
    cluster.tell(make_tasks([1, 2, 3], 2, queue=A), make_tasks([4], 2, queue=B))
    assert len(set(cluster.round()) & {1, 2, 3}) == 2
    reason = cluster.scheduler.quota_reason(4)
    assert (reason.kind, reason.detail, reason.value) == (ReasonKind.OVER_QUOTA, "b", "gpu: 1")


def test_those_below_a_queue_that_is_stopped_wait_for_it():
    """The queue that is stopped is the first one, and the deepest is two levels below."""
    queues = tree(
        queue("top", stop=Stop.HOLD), queue("mid", "top"), queue("a", "mid", quota(1)), queue("b", "", quota(1))
    )
    cluster = cluster_of(queues, make_tasks([1], 1, queue=A), make_tasks([2], 1, queue=B))
    result = cluster.run()
    assert set(cluster.names(result)) == {2}
    assert reasons(cluster, result) == {1: [("QUEUE_STOPPED", "top", "")]}


def test_an_amount_that_has_changed_is_reported_again_after_a_while():
    """A pod that "lacks 1" while its queue lacks 3 misleads whoever reads its condition."""
    cluster = cluster_of(tree(queue("a", "", quota(4))), make_class(2, cpu=4), make_tasks([1], 1, on="n", queue=A))
    cluster.tell(make_tasks([2], 2, queue=A))
    assert reasons(cluster, cluster.run()) == {2: [("OVER_QUOTA", "a", "cpu: 1")]}
    cluster.tell(make_tasks([3, 4], 1, on="n", queue=A))
    assert reasons(cluster, cluster.run(NOW_US + 1)) == {}
    due_us = NOW_US + AMOUNTS_STEP_US
    assert cluster.scheduler.wake_us(NOW_US + 1) == due_us < NOW_US + 300_000_000
    assert reasons(cluster, cluster.run(due_us)) == {2: [("OVER_QUOTA", "a", "cpu: 3")]}
    assert not cluster.scheduler.wake_us(due_us)
    cluster.tell(removed(3))
    assert reasons(cluster, cluster.run(due_us + AMOUNTS_STEP_US)) == {2: [("OVER_QUOTA", "a", "cpu: 2")]}


def test_each_task_is_told_what_it_lacks_itself():
    """Two tasks of one class and queue, of which one is in a gang of two: they lack different amounts."""
    cluster = cluster_of(tree(queue("a", "", quota(0))), make_gang(7, 2), make_tasks([1, 2], 1, gang=7, queue=A))
    cluster.tell(make_tasks([3], 1, queue=A))
    found = reasons(cluster, cluster.run())
    assert {uid: value for uid, [(_, _, value)] in found.items()} == {1: "cpu: 2", 2: "cpu: 2", 3: "cpu: 1"}


def test_siblings_lend_what_they_do_not_use():
    queues = tree(queue("top"), queue("a", "top", quota(1)), queue("b", "top", quota(3, lending_limit=1)))
    cluster = cluster_of(queues, make_tasks(range(1, 5), 1, queue=A))
    assert set(cluster.round()) == {1, 2}


def test_within_their_quotas_queues_go_before_those_that_borrow():
    queues = tree(queue("top"), queue("a", "top", quota(1)), queue("b", "top", quota(1)))
    cluster = cluster_of(
        queues,
        make_class(2, cpu=1, priority=9),
        make_tasks([1, 2], 2, created_us=NOW_US - 10, queue=A),
        make_tasks([3], 1, queue=B),
    )
    assert set(cluster.round()) == {1, 3}


def test_a_gang_needs_quota_for_all_that_it_lacks():
    cluster = cluster_of(
        tree(queue("a", "", quota(3))),
        make_gang(7, 4),
        make_tasks([1, 2, 3, 4], 1, gang=7, queue=A),
        make_tasks([5], 1, created_us=NOW_US + 1, queue=A),
    )
    result = cluster.run()
    assert set(cluster.names(result)) == {5}
    assert reasons(cluster, result)[1] == [("OVER_QUOTA", "a", "cpu: 1")]


def test_a_queue_that_goes_strictly_by_age_waits_for_its_first_job():
    queues = tree(queue("a", "", quota(3), strict_fifo=True))
    cluster = cluster_of(
        queues,
        make_gang(7, 4, created_us=NOW_US - 1),
        make_tasks([1, 2, 3, 4], 1, gang=7, queue=A),
        make_tasks([5], 1, queue=A),
    )
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result)[5] == [("QUEUE_BEHIND", "a", "")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unknown", ("QUEUE_UNKNOWN", "", "")),
        ("top", ("QUEUE_UNKNOWN", "", "")),
        ("stopped", ("QUEUE_STOPPED", "stopped", "")),
        ("below", ("QUEUE_STOPPED", "held", "")),
    ],
)
def test_queues_that_take_no_tasks(name, expected):
    queues = tree(
        queue("top"),
        queue("a", "top", quota(9)),
        queue("stopped", "", quota(9), stop=Stop.HOLD),
        queue("held", "", stop=Stop.HOLD),
        queue("below", "held", quota(9)),
    )
    cluster = cluster_of(queues, make_tasks([1], 1, queue=queue_id(name)), make_tasks([2], 1, queue=A))
    result = cluster.run()
    assert set(cluster.names(result)) == {2}
    assert reasons(cluster, result) == {1: [expected]}


def test_a_resource_that_no_quota_names():
    queues = tree(queue("a", "", quota(9)), queue("b", "", quota(9), unlimited=True))
    cluster = make_cluster(
        make_node("n", cpu=9, memory=9),
        make_class(1, cpu=1, memory=2),
        QueuesObserved(queues),
        make_tasks([1], 1, queue=A),
        make_tasks([2], 1, queue=B),
    )
    result = cluster.run()
    assert set(cluster.names(result)) == {2}
    assert reasons(cluster, result) == {1: [("OVER_QUOTA", "a", "memory: 2")]}


def two_flavors(*events):
    flavors = Flavor("on-demand", {"kind": "on-demand"}), Flavor("spot", {"kind": "spot"})
    queues = (queue("a", "", quota(1, on="on-demand/cpu"), quota(2, on="spot/cpu")),)
    return make_cluster(
        make_node("n-demand", cpu=100, labels={"kind": "on-demand"}),
        make_node("n-spot", cpu=100, labels={"kind": "spot"}),
        make_node("n-other", cpu=100),
        make_class(1, cpu=1),
        make_class(2, cpu=1, demand=selecting(needs("kind", "In", "spot"))),
        make_class(3, cpu=1, demand=selecting(needs("kind", "DoesNotExist"))),
        QueuesObserved(QueueTree(queues, flavors)),
        *events,
    )


def test_each_flavor_has_its_quota_on_its_nodes():
    cluster = two_flavors(make_tasks([1, 2, 3, 4], 1, queue=A))
    placed = cluster.round()
    assert sorted(placed.values()) == ["n-demand", "n-spot", "n-spot"]


def test_a_task_takes_the_flavor_that_suits_it():
    cluster = two_flavors(make_tasks([1], 2, queue=A), make_tasks([2], 3, queue=A))
    result = cluster.run()
    assert cluster.names(result) == {1: "n-spot"}
    assert reasons(cluster, result) == {2: [("NO_FLAVOR", "a", "")]}


@pytest.mark.parametrize("spot_first", [False, True])
def test_a_task_takes_only_a_flavor_whose_taints_it_tolerates(spot_first):
    """No node has the taint. Class 4 tolerates it; class 1 finds its place on the other flavor, or waits."""
    spot = Flavor("spot", {"kind": "spot"}, (Taint("spot", "true", "NoSchedule"),))
    order = ("spot/cpu", "on-demand/cpu") if spot_first else ("on-demand/cpu", "spot/cpu")
    queues = (queue("a", "", *(quota(1, on=each) for each in order)),)
    cluster = two_flavors(
        QueuesObserved(QueueTree(queues, (Flavor("on-demand", {"kind": "on-demand"}), spot))),
        make_class(4, cpu=1, demand=NodeDemand(tolerations=(Toleration("spot", "Exists"),))),
        make_tasks([1, 2], 1, created_us=NOW_US - 9, queue=A),
        make_tasks([3], 4, queue=A),
        make_tasks([4], 2, queue=A),
    )
    result = cluster.run()
    placed = cluster.names(result)
    assert sorted(placed.values()) == ["n-demand", "n-spot"]
    assert placed[3] == "n-spot"
    assert reasons(cluster, result)[4] == [("NO_FLAVOR", "a", "")]


def test_a_task_waits_where_the_only_flavor_has_a_taint_that_it_does_not_tolerate():
    tree = QueueTree((queue("a", "", quota(9, on="x/cpu")),), (Flavor("x", taints=(Taint("k", "v", "NoExecute"),)),))
    cluster = two_flavors(QueuesObserved(tree), make_tasks([1], 1, queue=A))
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result) == {1: [("NO_FLAVOR", "a", "")]}


def test_tasks_that_fit_nowhere_leave_their_quota_to_others_in_the_next_round():
    queues = tree(queue("a", "", quota(2)))
    cluster = cluster_of(
        queues,
        make_node("m", cpu=1),
        make_class(2, cpu=2),
        make_tasks([1], 2, created_us=NOW_US - 9, queue=A),
        make_tasks([2, 3], 1, queue=A),
        cpu=1,
    )
    result = cluster.run()
    assert cluster.names(result) == {}
    assert reasons(cluster, result)[1][0][:2] == ("INSUFFICIENT_RESOURCE", "cpu")
    assert cluster.scheduler.due(NOW_US)
    assert set(cluster.round()) == {2, 3}
    assert not cluster.scheduler.due(NOW_US)


def test_contention_for_nodes_is_resolved_by_entitlement_and_not_by_priority():
    queues = tree(queue("top"), queue("a", "top", quota(1)), queue("b", "top", quota(3)))
    cluster = cluster_of(
        queues,
        make_class(2, cpu=1, priority=9),
        make_tasks([1, 2, 3], 2, queue=A),
        make_tasks([4], 1, queue=B),
        cpu=2,
    )
    assert set(cluster.round()) in ({1, 4}, {2, 4}, {3, 4})


def test_fair_sharing_alternates():
    queues = tree(
        queue("top", "", quota(6)), queue("a", "top", quota(0)), queue("b", "top", quota(0)), sharing=Sharing.FAIR
    )
    cluster = cluster_of(
        queues, make_tasks(range(1, 7), 1, created_us=NOW_US - 9, queue=A), make_tasks(range(11, 17), 1, queue=B)
    )
    placed = cluster.round()
    assert sum(uid > 10 for uid in placed) == 3
    assert len(placed) == 6


@pytest.mark.parametrize(("reclaim", "borrows"), [(Reclaim.NEVER, False), (Reclaim.ANY, True)])
def test_the_head_of_a_strict_queue_does_not_starve_behind_borrowers(reclaim, borrows):
    """Each has 3 of 6. The head of a needs 3, of which its own tasks use 2; the third stays free, whatever b has."""
    queues = one_flavor(
        queue("a", "c", quota(3), strict_fifo=True, reclaim=reclaim),
        queue("b", "c", quota(3)),
        queue("c"),
    )
    cluster = cluster_of(
        queues,
        make_class(2, cpu=3),
        make_tasks([1, 2], 1, on="n", queue=A),
        make_tasks([11, 12, 13], 1, on="n", queue=B),
        make_tasks([3], 2, queue=A),
        make_tasks([14], 1, created_us=NOW_US + 1, queue=B),
    )
    assert cluster.round() == ({14: "n"} if borrows else {})
    if not borrows:
        cluster.tell(removed(1, 2))
        assert cluster.round() == {3: "n"}
        cluster.tell(removed(3))
        assert cluster.round() == {14: "n"}, "nothing is kept for whom nothing waits"


def test_changed_queues_are_an_opportunity():
    cluster = cluster_of(tree(queue("a", "", quota(0))), make_tasks([1], 1, queue=A))
    assert cluster.round() == {}
    cluster.tell(QueuesObserved(tree(queue("a", "", quota(0)))))
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(QueuesObserved(tree(queue("a", "", quota(1)))))
    assert cluster.scheduler.due(NOW_US)
    assert set(cluster.round()) == {1}


def test_bad_descriptions_are_refused_by_name_and_the_others_count():
    cluster = make_cluster(make_node("n", cpu=9), make_class(1, cpu=1))
    queues = tree(queue("a", "", quota(1)), queue("b", "b", quota(1)))
    (outcome,) = cluster.tell(QueuesObserved(queues))
    assert [(r.kind, r.id, r.field, r.queue) for r in outcome.refused] == [("queue", "b", "parent", B)]
    cluster.tell(make_tasks([1], 1, queue=A), make_tasks([2], 1, queue=B))
    assert set(cluster.round()) == {1}


def test_a_cohort_and_a_queue_of_one_name_both_count():
    cohort = replace(queue("b"), id=5, parent=0)
    below = (replace(queue(name, "", quota(2)), parent=5) for name in ("a", "b"))
    cluster = cluster_of(tree(cohort, *below), make_tasks([1, 2, 3], 1, queue=A), make_tasks([4], 1, queue=B))
    assert set(cluster.round()) == {1, 2, 3, 4}  # a borrows from b


def test_a_task_that_changes_its_queue():
    cluster = cluster_of(tree(queue("a", "", quota(0)), queue("b", "", quota(1))), make_tasks([1], 1, queue=A))
    assert cluster.round() == {}
    cluster.tell(make_tasks([1], 1, queue=B))
    assert cluster.scheduler.due(NOW_US)
    assert set(cluster.round()) == {1}
    assert cluster.state.tasks.queue[cluster.state.task_rows(np.array([1], np.uint64))].tolist() == [B]


@pytest.mark.parametrize("sharing", [Sharing.PROPORTIONAL, Sharing.HIERARCHICAL_DRF])
def test_weights_alone_divide_what_nodes_offer(sharing):
    queues = tree(queue("a", weight=1.0, unlimited=True), queue("b", weight=2.0, unlimited=True), sharing=sharing)
    old = NOW_US - 9
    cluster = cluster_of(
        replace(queues, flavors=()),
        make_tasks(range(1, 21), 1, created_us=old, queue=A),
        make_tasks(range(31, 51), 1, queue=B),
        cpu=9,
    )
    placed = cluster.round()
    assert sum(uid > 30 for uid in placed) == 6
    assert len(placed) == 9


@pytest.mark.parametrize("fails", [make_node("n1", gpu=7), NodeRemoved("id-n1")], ids=["a gpu", "the node"])
def test_what_fails_beneath_tasks_takes_nothing_from_those_that_fit_elsewhere(fails):
    """Four nodes of 8, of which 16 are in use: a gang of 16 fits on the other two. Queues by weight have as much as
    there is, which is 31 if one fails that is in use."""
    queues = tree(queue("a", "", quota(0, limit=32, on="red/gpu"), weight=1.0), sharing=Sharing.PROPORTIONAL)
    queues = replace(queues, division=Division.TOTAL_BY_WEIGHT)
    cluster = make_cluster(
        *(make_node(f"n{number}", gpu=8) for number in range(1, 5)),
        make_class(1, gpu=8),
        QueuesObserved(queues),
        *(make_tasks([number], 1, on=f"n{number}", queue=A) for number in (1, 2)),
    )
    cluster.tell(fails, make_gang(1, 2), make_tasks([3, 4], 1, queue=A, gang=1))
    assert cluster.round() == {3: "n3", 4: "n4"}


def test_weights_divide_resources_that_only_some_quotas_name():
    queues = tree(
        queue("a", "", quota(0, limit=9), weight=1.0, unlimited=True),
        queue("b", weight=2.0, unlimited=True),
        sharing=Sharing.PROPORTIONAL,
        flavors=("red",),
    )
    cluster = cluster_of(queues, make_tasks(range(1, 21), 1, queue=A), make_tasks(range(31, 51), 1, queue=B), cpu=9)
    assert sum(uid > 30 for uid in cluster.round()) == 6


@pytest.mark.parametrize("sharing", [Sharing.CLASSICAL, Sharing.FAIR])
@pytest.mark.parametrize(
    "queues",
    [
        pytest.param([queue("a", "", quota(3))], id="a flavor that is missing"),
        pytest.param([queue("a", "", quota(3), resource_groups=(("cpu",),))], id="likewise, with a group of resources"),
        pytest.param([queue("a")], id="no quota"),
        pytest.param(
            [queue("a", "", quota(3, on="x/gpu")), queue("b", "", quota(3, on="x/cpu"))], id="that of b alone"
        ),
    ],
)
@pytest.mark.parametrize("flavors", [(), (Flavor("x"),)], ids=["no flavors", "one flavor"])
def test_a_queue_without_quota_takes_no_tasks_and_the_others_are_placed(queues, sharing, flavors):
    cluster = cluster_of(tree(queue("b")), make_tasks([1], 1), make_tasks([2], 1, queue=A))
    cluster.tell(
        make_tasks([3], 1, on="n", queue=A), QueuesObserved(replace(tree(*queues, sharing=sharing), flavors=flavors))
    )
    assert set(cluster.round()) == {1}
    report = queue_report(cluster.state)
    assert report.running[report.queues.row[A]] == 1
