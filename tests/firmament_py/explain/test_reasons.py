"""Why a task waits: the nodes that fail for each reason, in kube-scheduler's order, and those that lack least."""

import numpy as np
import pytest
from hypothesis import given

from firmament_py.explain.nearest_nodes import fitting_nodes, nearest
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.explain.reasons import reasons_of_task, waiting_classes
from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerTerm, Taint, Toleration
from firmament_py.model.events import PlacementRejected
from protos.gen import flow_pb2
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_budget,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    selecting,
    tasks_like,
)
from tests.firmament_py.engine.random_rounds import clusters, world_of

LACKS, PODS = ReasonKind.INSUFFICIENT_RESOURCE, ReasonKind.TOO_MANY_TASKS
TAINT, SELECTOR = ReasonKind.UNTOLERATED_TAINT, ReasonKind.SELECTOR_MISMATCH
GPU, SPOT = Taint("gpu", "yes", "NoSchedule"), Taint("spot", "", "NoExecute")
FAST = {"disk": "fast"}


def nodes_nearest(cluster: Cluster, uid: int = 1, limit: int = 3) -> list[tuple[str, dict[str, int]]]:
    row = cluster.state.task_row(uid)
    assert row is not None
    return nearest(cluster.state, row, limit)


def fitting(cluster: Cluster, uid: int = 1) -> int:
    row = cluster.state.task_row(uid)
    assert row is not None
    return fitting_nodes(cluster.state, row)


def why(cluster: Cluster, uid: int = 1) -> tuple[Reason, ...]:
    row = cluster.state.task_row(uid)
    assert row is not None
    return reasons_of_task(cluster.state, row)


def test_the_kinds_are_numbered_as_in_the_contract():
    numbers = dict(flow_pb2.Reason.Kind.items())
    assert {kind.name: kind.value for kind in ReasonKind}.items() <= numbers.items()


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([], (), id="no-nodes"),
        pytest.param([make_node("a", cpu=9, gpu=1, labels=FAST)], (), id="fits"),
        pytest.param([make_node("a", cpu=9, labels=FAST)], (Reason(LACKS, 1, "gpu"),), id="lacks"),
        pytest.param(
            [make_node("a", cpu=1, labels=FAST)], (Reason(LACKS, 1, "cpu"), Reason(LACKS, 1, "gpu")), id="lacks-both"
        ),
        pytest.param([make_node("a", pods=0, cpu=9, gpu=1, labels=FAST)], (Reason(PODS, 1),), id="pods"),
        pytest.param([make_node("a")], (Reason(SELECTOR, 1),), id="selector-hides-lack"),
        pytest.param([make_node("a", taints=[GPU])], (Reason(TAINT, 1, "gpu", "yes"),), id="taint-hides-selector"),
        pytest.param([make_node("a", taints=[SPOT, GPU])], (Reason(TAINT, 1, "spot"),), id="first-taint-only"),
        pytest.param(
            [make_node("a", taints=[GPU]), make_node("b", taints=[GPU, SPOT])],
            (Reason(TAINT, 2, "gpu", "yes"),),
            id="the-same-taint-in-different-sets",
        ),
        pytest.param(
            [make_node("a", taints=[GPU]), make_node("b", taints=[Taint("gpu", "yes", "NoExecute")])],
            (Reason(TAINT, 2, "gpu", "yes"),),
            id="the-same-taint-with-different-effects",
        ),
        pytest.param(
            [
                *(make_node(f"t{i}", taints=[GPU]) for i in range(3)),
                *(make_node(f"s{i}") for i in range(2)),
                make_node("small", cpu=1, gpu=1, labels=FAST),
                make_node("fits", cpu=2, gpu=1, labels=FAST),
            ],
            (Reason(TAINT, 3, "gpu", "yes"), Reason(SELECTOR, 2), Reason(LACKS, 1, "cpu")),
            id="a-bit-of-everything",
        ),
    ],
)
def test_reasons(nodes, expected):
    wants = make_class(1, cpu=2, gpu=1, demand=selecting(needs("disk", "In", "fast")))
    cluster = make_cluster(wants, *nodes, make_tasks([1], 1))
    assert why(cluster) == expected


def test_a_tolerated_taint_is_no_reason():
    demand = NodeDemand(tolerations=(Toleration("gpu", "Exists"),))
    cluster = make_cluster(
        *(make_class(1, cpu=2, demand=demand), make_node("a", taints=[GPU, SPOT]), make_node("b", taints=[GPU])),
        make_tasks([1], 1),
    )
    expected = (Reason(TAINT, 1, "spot"), Reason(LACKS, 1, "cpu"))
    assert why(cluster) == expected


def test_used_capacity_counts():
    # 4 - 3 = 1 cpu is left
    cluster = make_cluster(
        *(make_class(1, cpu=3), make_node("a", cpu=4), make_tasks([1], 1, on="a"), make_tasks([2], 1))
    )
    assert why(cluster, 2) == (Reason(LACKS, 1, "cpu"),)


@pytest.mark.slow
@given(events=clusters())
def test_a_node_has_a_reason_if_and_only_if_it_cannot_take_the_task(events):
    cluster, world = make_cluster(*events), world_of(events)
    for uid, task in world.tasks.items():
        if task.state != "waiting":
            continue
        takes = [node for node in world.nodes if world.takes(task.cls, node)]
        assert fitting(cluster, uid) == len(takes)
        found = why(cluster, uid)
        by_identity = sum(r.nodes for r in found if r.kind in (TAINT, SELECTOR))
        assert by_identity == sum(not world.welcome(task.cls, node) for node in world.nodes)
        lacking = [r.nodes for r in found if r.kind in (LACKS, PODS)]
        short = len(world.nodes) - by_identity - len(takes)
        assert max(lacking, default=0) <= short <= sum(lacking)


def test_the_nearest_nodes_lack_the_smallest_share():
    # of 8 cpu and 4 memory: a lacks 2/8 = 0.25, b 2/4 = 0.5, c 4/8 = 0.5 (row order), d 1/8 and 1/4 = 0.25, e all
    cluster = make_cluster(
        *(make_class(1, cpu=8, memory=4), make_node("b", cpu=8, memory=2), make_node("c", cpu=4, memory=4)),
        *(make_node("a", cpu=6, memory=4), make_node("e"), make_node("d", cpu=7, memory=3)),
        *(make_node("tainted", cpu=8, memory=3, taints=[GPU]), make_tasks([1], 1)),
    )
    found = nodes_nearest(cluster, limit=9)
    assert found == [
        ("a", {"cpu": 2}),
        ("d", {"cpu": 1, "memory": 1}),
        ("b", {"memory": 2}),
        ("c", {"cpu": 4}),
        ("e", {"cpu": 8, "memory": 4}),
    ]
    assert nodes_nearest(cluster) == found[:3]


def test_a_node_that_lacks_nothing_comes_first():
    cluster = make_cluster(
        *(make_class(1, cpu=8), make_node("a", cpu=7), make_node("b", cpu=8), make_tasks([1], 1)),
    )
    assert nodes_nearest(cluster) == [("b", {}), ("a", {"cpu": 1})]
    assert fitting(cluster) == 1


def test_an_over_committed_node_lacks_no_more_than_the_request():
    cluster = make_cluster(
        *(make_class(1, cpu=8), make_tasks([1], 1, on="a"), make_node("a", cpu=3), make_tasks([2], 1)),
    )
    assert nodes_nearest(cluster) == [("a", {"cpu": 8})]


def test_a_node_lacks_what_it_keeps_for_a_nominated_task():
    """4 cpu, of which a victim uses 3 until it has left, are kept for task 2. Tasks like it, less important and more
    important ones that evict no other wait for them."""
    cluster = preempting_cluster(
        *(make_class(1, cpu=3), make_class(2, cpu=4, priority=5), make_class(3, cpu=1)),
        *(make_class(4, cpu=1, priority=9, never_preempts=True), make_node("a", cpu=4)),
        *(make_tasks([1], 1, on="a"), make_tasks([2], 2)),
    )
    assert cluster.preempted(cluster.run()) == {1: 2}
    cluster.tell(make_tasks([3], 3), make_tasks([4], 4), make_tasks([5], 2))
    waiting = cluster.run().waiting
    assert [found.reasons for found in waiting] == [(Reason(LACKS, 1, "cpu"),)] * 3
    for uid in (2, 3, 4, 5):
        assert why(cluster, uid) == (Reason(LACKS, 1, "cpu"),)
        assert fitting(cluster, uid) == 0
    assert nodes_nearest(cluster, 2) == [("a", {"cpu": 3})], "what is kept for it is its own"
    assert nodes_nearest(cluster, 3) == [("a", {"cpu": 1})]


def test_a_member_of_a_nominated_gang_does_not_lack_what_is_kept_for_the_gang():
    """Node a has room for its member at once; the other one waits for the victim on b."""
    cluster = preempting_cluster(
        *(make_class(1, cpu=4), make_class(2, cpu=4, priority=5), make_gang(7, 2)),
        *(make_node("a", cpu=4), make_node("b", cpu=4), make_tasks([1], 1, on="b"), make_tasks([2, 3], 2, gang=7)),
    )
    result = cluster.run()
    assert cluster.preempted(result).keys() == {1}
    assert set(cluster.nominated().values()) == {"a", "b"}
    [found] = result.waiting
    assert Reason(LACKS, 1, "cpu") in found.reasons


def test_a_node_lacks_what_it_keeps_for_the_successor_of_a_task_that_moves():
    cluster = make_cluster(
        *(make_class(1, cpu=2), make_class(2, cpu=3), make_node("a", cpu=4), make_node("b", cpu=3)),
        *(make_tasks([1], 1, on="a", job=7), make_tasks([2], 2), make_tasks([3], 1, job=7)),
    )
    state = cluster.state
    state.successors.expect(state.task_rows(np.array([1], np.uint64)), state.node_rows(["id-b"]), NOW_US + SECOND_US)
    assert why(cluster, 2) == (Reason(LACKS, 2, "cpu"),)
    assert nodes_nearest(cluster, 2) == [("a", {"cpu": 1}), ("b", {"cpu": 2})]
    assert fitting(cluster, 3) == 2, "it is the successor, and b has 3 cpu"


def reported(cluster: Cluster) -> list[tuple[int, int, set[int]]]:
    """(class, waiting, uids with news) of each class that waits."""
    state = cluster.state
    return [
        (int(state.classes.id[w.cls]), w.count, set(state.tasks.uid[w.unreported].tolist()))
        for w in waiting_classes(state, [])
    ]


def test_reasons_are_reported_once():
    cluster = make_cluster(
        *(make_class(1, cpu=8), make_class(2, cpu=9), make_node("a", cpu=1)),
        *(make_tasks([1, 2], 1), make_tasks([3], 2)),
    )
    assert reported(cluster) == [(1, 2, {1, 2}), (2, 1, {3})]
    assert reported(cluster) == [(1, 2, set()), (2, 1, set())]
    cluster.tell(make_tasks([4], 1))
    assert reported(cluster) == [(1, 3, {4}), (2, 1, set())]
    cluster.tell(make_node("a", cpu=8))
    assert reported(cluster)[0] == (1, 3, {1, 2, 4}), "it fits now: other reasons"
    cluster.tell(removed(1, 2, 4))
    assert [cls for cls, _, _ in reported(cluster)] == [2]


def test_nothing_is_reported_of_a_task_that_is_left_out_after_a_failed_placement():
    """The nodes take it, so that its reasons would be none, or those of some nodes alone."""
    cluster = make_cluster(make_class(1, cpu=1), make_node("a", cpu=1), make_node("b"), make_tasks([1], 1))
    cluster.round()
    cluster.tell(PlacementRejected(1, "id-a", NOW_US + SECOND_US))
    result = cluster.run()
    assert [(each.count, each.reasons, len(each.unreported)) for each in result.waiting] == [(1, (), 0)]
    assert result.stats.waiting == 1
    assert cluster.round(NOW_US + SECOND_US) == {1: "a"}


def test_reasons_are_reported_again_after_a_placement():
    cluster = make_cluster(make_class(1, cpu=8), make_node("a", cpu=1), make_tasks([1], 1))
    assert reported(cluster) == [(1, 1, {1})]
    cluster.tell(make_node("a", cpu=8))
    assert cluster.round() == {1: "a"}
    cluster.tell(make_node("a", cpu=1), PlacementRejected(1, "id-a"))
    assert reported(cluster) == [(1, 1, {1})]


def test_other_tasks_can_exclude_a_node():
    web = tasks_like(needs("app", "In", "web"))
    alone = make_class(1, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(web, "host"),)))
    nodes = [make_node(name, cpu=9, labels={"host": name}) for name in "abc"]
    cluster = make_cluster(alone, make_label_set(1, app="web"), *nodes, make_tasks([1, 2, 3, 4], 1, label_set=1))
    [waits] = {1, 2, 3, 4} - set(cluster.round())
    assert why(cluster, waits) == (Reason(ReasonKind.ANTI_AFFINITY, 3),)
    assert fitting(cluster, waits) == 0


def test_the_lacking_amount_of_a_token_is_one():
    cluster = make_cluster(
        *(make_class(1, tokens=["TCP:80"]), make_node("a"), make_tasks([1], 1, on="a"), make_tasks([2], 1)),
    )
    assert nodes_nearest(cluster) == [("a", {"TCP:80": 1})]


@pytest.mark.parametrize(
    ("allowed", "other", "priority", "reasons"),
    [
        pytest.param(0, False, 5, [Reason(LACKS, 2, "cpu"), Reason(ReasonKind.BUDGETS, 1, "budget-1")], id="spent"),
        pytest.param(1, False, 5, None, id="permits an eviction"),
        pytest.param(0, True, 5, None, id="another node will do"),
        pytest.param(0, False, 0, [Reason(LACKS, 2, "cpu")], id="equal priority"),
    ],
)
def test_budgets_are_named_that_alone_prevent_a_preemption(allowed, other, priority, reasons):
    web = needs("app", "In", "web")
    cluster = preempting_cluster(
        *(make_label_set(1, app="web"), make_budget(1, tasks_like(web), allowed)),
        *(make_class(1, cpu=4), make_class(2, cpu=4, priority=priority), make_class(3, cpu=1, priority=9)),
        *(make_node("a", cpu=4), make_node("b", cpu=4)),
        make_tasks([1], 1, on="a", label_set=1),
        make_tasks([2], 1 if other else 3, on="b"),
        make_tasks([3], 2),
    )
    result = cluster.run()
    if reasons is None:
        assert cluster.nominated()
    else:
        assert [list(each.reasons) for each in result.waiting] == [reasons]
