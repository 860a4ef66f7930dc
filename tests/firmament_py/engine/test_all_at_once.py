"""Rounds in which all that quotas admit fits at once need neither ranks nor the order of admission."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Reclaim, Sharing
from firmament_py.sharing.decision import _QueueRound
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    selecting,
)
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

A, B = queue_id("a"), queue_id("b")


def described(sharing=Sharing.PROPORTIONAL, reclaim=Reclaim.NEVER, **limits):
    """Queue a is guaranteed 2, b nothing."""
    root, a = queue("root", "", quota(100)), queue("a", "root", quota(2, limit=limits.get("a")), reclaim=reclaim)
    b = queue("b", "root", quota(0, limit=limits.get("b")), reclaim=reclaim)
    return QueuesObserved(tree(root, a, b, sharing=sharing, flavors=["red"]))


@pytest.fixture
def ranked(monkeypatch):
    """A list that grows whenever ranks are determined."""
    calls = []
    ranks = _QueueRound._ranks

    def counted(self):
        calls.append(self)
        return ranks(self)

    monkeypatch.setattr(_QueueRound, "_ranks", counted)
    return calls


@pytest.mark.parametrize("sharing", Sharing)
def test_one_flow_of_the_classes_places_all(sharing, ranked):
    """Within and above the guarantee are two ranks at least, which would be as many classes."""
    nodes, classes = [make_node(f"n{i}", cpu=4) for i in range(3)], [make_class(1, cpu=1), make_class(2, cpu=2)]
    tasks = make_tasks([1, 2, 3], 1, queue=A), make_tasks([4, 5], 2, queue=B), make_tasks([6], 2)
    cluster = make_cluster(*nodes, *classes, described(sharing), *tasks)
    result = cluster.run()
    assert set(cluster.names(result)) == {1, 2, 3, 4, 5, 6}
    assert (result.stats.classes, result.stats.solves, result.stats.pending) == (2, 1, 6)
    assert not ranked


def test_what_exceeds_a_limit_waits_beside_what_fits(ranked):
    cluster = make_cluster(make_node("n", cpu=9), make_class(1, cpu=1), described(b=1), make_tasks([1, 2], 1, queue=A))
    cluster.tell(make_tasks([3, 4], 1, queue=B))
    placed = cluster.round()
    assert {1, 2} < set(placed)
    assert len(placed) == 3
    assert not ranked


def test_ranks_decide_where_the_sum_fits_but_not_each_task(ranked):
    """Two nodes of 3 take two tasks of 2. Those of a are within its guarantee of 4, and younger."""
    cluster = make_cluster(make_node("n1", cpu=3), make_node("n2", cpu=3), make_class(1, cpu=2))
    root, a = queue("root", "", quota(100)), queue("a", "root", quota(4))
    cluster.tell(
        QueuesObserved(tree(root, a, queue("b", "root", quota(0)), sharing=Sharing.PROPORTIONAL, flavors=["red"]))
    )
    cluster.tell(make_tasks([1], 1, queue=B, created_us=NOW_US - 9 * SECOND_US), make_tasks([2, 3], 1, queue=A))
    assert set(cluster.round()) == {2, 3}
    assert ranked


def test_ranks_decide_where_nodes_have_too_little(ranked):
    cluster = make_cluster(make_node("n", cpu=2), make_class(1, cpu=1), described())
    cluster.tell(make_tasks([1], 1, queue=B, created_us=NOW_US - 9 * SECOND_US), make_tasks([2, 3], 1, queue=A))
    result = cluster.run()
    assert set(cluster.names(result)) == {2, 3}
    assert ranked


def test_ranks_decide_beside_a_task_that_waits_for_another_to_end(ranked):
    """Capacity may have to be reserved for it."""
    cluster = make_cluster(make_node("n", cpu=3), make_node("m", cpu=2), make_class(1, cpu=1), make_class(2, cpu=3))
    cluster.tell(described(), make_tasks([1], 1, on="n"), make_tasks([2], 2, queue=A), make_tasks([3], 1, queue=B))
    assert set(cluster.round()) == {3}
    assert ranked


@pytest.mark.parametrize(
    "fits_nowhere",
    [
        pytest.param(make_class(2, cpu=5), id="too large"),
        pytest.param(make_class(2, cpu=1, demand=selecting(needs("gpu"))), id="no node has the label"),
        pytest.param(make_class(2, gpu=1), id="no node has the resource"),
    ],
)
def test_tasks_that_fit_on_no_empty_node_do_not_matter(ranked, fits_nowhere):
    cluster = make_cluster(make_node("n", cpu=4), make_class(1, cpu=1), fits_nowhere, described())
    cluster.tell(make_tasks([1], 2, queue=A), make_tasks([2], 1, queue=A), make_tasks([3, 4], 1, queue=B))
    assert set(cluster.round()) == {2, 3, 4}
    assert not ranked


def test_an_incomplete_gang_in_no_queue_is_not_placed_with_the_others():
    cluster = make_cluster(make_node("n", cpu=9), make_class(1, cpu=1), described(), make_gang(1, 3))
    cluster.tell(make_tasks([1, 2], 1, gang=1), make_tasks([3], 1, queue=A), make_tasks([4, 5, 6], 1, queue=B))
    assert set(cluster.round()) == {3, 4, 5, 6}


def test_a_nominated_task_goes_to_its_node(ranked):
    cluster = make_cluster(make_node("m", cpu=9), make_node("n", cpu=2), make_class(1, cpu=1), described())
    cluster.tell(make_tasks([1], 1, queue=A, nominated="n"), make_tasks([2, 3, 4], 1, queue=B))
    placed = cluster.round()
    assert placed.pop(1) == "n"
    assert set(placed) == {2, 3, 4}
    assert ranked  # nominated tasks come first


@st.composite
def rounds(draw, reclaim=Reclaim.NEVER):
    """Events of a cluster with queues; perhaps all fits, and perhaps not."""
    nodes = [make_node(f"n{i}", cpu=draw(st.integers(1, 8))) for i in range(draw(st.integers(1, 4)))]
    classes = [make_class(number, cpu=number, priority=draw(st.integers(0, 1))) for number in (1, 2, 3)]
    limits = {name: draw(st.one_of(st.none(), st.integers(2, 5))) for name in "ab"}
    tasks, uid = [], 0
    for at in range(draw(st.integers(1, 6))):
        count, of = draw(st.integers(1, 4)), draw(st.sampled_from([A, B, 0]))
        created_us = NOW_US - draw(st.sampled_from([1, 400])) * SECOND_US - at
        cls, on = draw(st.integers(1, 3)), None
        if draw(st.booleans()) and draw(st.booleans()):
            on, count = nodes[0].name, 1
        tasks.append(make_tasks(range(uid + 1, uid + 1 + count), cls, queue=of, created_us=created_us, on=on))
        uid += count
    return [*nodes, *classes, described(draw(st.sampled_from(Sharing)), reclaim, **limits), *tasks]


@examples(75)
@given(rounds())
def test_all_that_is_placed_in_order_is_placed_at_once(events):
    """And the same where not all fits, since the round begins anew then."""

    def outcome(cluster):
        result = cluster.run()
        return cluster.names(result), cluster.preempted(result), {w.cls: w.count for w in result.waiting}

    at_once = outcome(preempting_cluster(*events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firmament_py.engine.round.may_fit_at_once", lambda state, rows: False)
        in_order = outcome(preempting_cluster(*events))
    if at_once != in_order:
        assert set(at_once[0]) >= set(in_order[0])
        assert at_once[1] == in_order[1] == {}
