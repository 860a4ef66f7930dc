"""Tasks that require one node each are of one class, and are placed there or wait."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.audit.placements import Checker
from firmament_py.explain.nearest_nodes import fitting_nodes, nearest
from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Term
from firmament_py.snapshot.snapshot import take_snapshot
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    preempting_cluster,
    removed,
)


def named(*names):
    return NodeDemand(affinity=((Term(fields=(Requirement("metadata.name", Operator.IN, names),)),),))


def placed(cluster):
    return cluster.round()


def test_so_many_are_one_class_of_a_round():
    nodes = [make_node(f"n{i}", cpu=4) for i in range(50)]
    cluster = make_cluster(
        *nodes, make_class(1, cpu=1), make_tasks(range(1, 51), 1, required_node=[f"n{i}" for i in range(50)])
    )
    state = cluster.state
    snapshot = take_snapshot(state, NOW_US)
    assert len(snapshot.classes) == 1
    assert (snapshot.settled >= 0).all()
    assert placed(cluster) == {uid: f"n{uid - 1}" for uid in range(1, 51)}


CPU = st.integers(0, 4)


@given(
    capacity=st.lists(CPU, min_size=3, max_size=3),
    kinds=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 1)), min_size=2, max_size=2, unique=True),
    tasks=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=8),
)
def test_each_is_placed_where_it_must_be_the_most_important_first(capacity, kinds, tasks):
    """Nothing waits that fits, or that would fit in place of tasks of lower priority. The last node does not exist."""
    nodes = [make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(capacity)]
    classes = [make_class(k + 1, cpu=cpu, priority=priority) for k, (cpu, priority) in enumerate(kinds)]
    rows = [make_tasks([uid], k + 1, required_node=f"n{n}") for uid, (k, n) in enumerate(tasks, 1)]
    found = placed(make_cluster(*nodes, *classes, *rows))
    assert all(name == f"n{tasks[uid - 1][1]}" for uid, name in found.items())
    for n, cpu in enumerate(capacity):
        here = {uid: kinds[k] for uid, (k, where) in enumerate(tasks, 1) if where == n}
        left = cpu - sum(here[uid][0] for uid in here if uid in found)
        assert left >= 0
        for uid in here.keys() - found.keys():
            size, priority = here[uid]
            assert size > left + sum(here[other][0] for other in here.keys() & found if here[other][1] < priority)


def test_one_whose_node_lacks_room_waits_with_its_reasons():
    cluster = make_cluster(
        make_node("n0", cpu=1), make_node("n1", cpu=4), make_class(1, cpu=2), make_tasks([1], 1, required_node="n0")
    )
    assert placed(cluster) == {}
    row = cluster.state.task_row(1)
    assert row is not None
    found = {reason.kind: reason.nodes for reason in reasons_of_task(cluster.state, row)}
    assert found == {ReasonKind.SELECTOR_MISMATCH: 1, ReasonKind.INSUFFICIENT_RESOURCE: 1}
    assert [name for name, _ in nearest(cluster.state, row)] == ["n0"]
    assert fitting_nodes(cluster.state, row) == 0


def test_one_whose_node_comes_later_is_placed_then():
    cluster = make_cluster(make_node("n1", cpu=4), make_class(1, cpu=2), make_tasks([1], 1, required_node="n0"))
    assert placed(cluster) == {}
    cluster.tell(make_node("n0", cpu=4))
    assert placed(cluster) == {1: "n0"}


def test_a_task_of_higher_priority_that_may_go_anywhere_comes_first():
    cluster = make_cluster(
        make_node("n0", cpu=2),
        make_class(1, cpu=2),
        make_class(2, cpu=2, priority=10),
        make_tasks([1], 1, required_node="n0"),
        make_tasks([2], 2),
    )
    assert placed(cluster) == {2: "n0"}


def test_victims_leave_the_required_node_alone():
    cluster = preempting_cluster(
        make_node("n0", cpu=2),
        make_node("n1", cpu=2),
        make_class(1, cpu=2),
        make_class(2, cpu=2, priority=10),
        make_tasks([1], 1, on="n0"),
        make_tasks([2], 1, on="n1"),
        make_tasks([3], 2, required_node="n1"),
    )
    assert cluster.preempted(cluster.run()) == {2: 3}


def test_the_check_refuses_another_node():
    cluster = make_cluster(
        make_node("n0", cpu=2), make_node("n1", cpu=2), make_class(1, cpu=1), make_tasks([1], 1, required_node="n0")
    )
    state = cluster.state
    row, nodes = np.array([state.task_row(1)]), state.node_rows(["id-n0", "id-n1"])
    batch = np.zeros(1, np.int64)
    assert Checker(state).check(row, nodes[:1], batch).sound.all()
    refused = Checker(state).check(row, nodes[1:], batch)
    assert not refused.sound.any()
    assert "requires another node" in refused.complaints[0]


@pytest.mark.parametrize("count", [10, 3000])
def test_names_that_no_task_has_are_forgotten(count):
    cluster = make_cluster(make_node("n0", cpu=2), make_class(1, cpu=1), make_tasks([1], 1, required_node="n0"))
    for uid in range(count):
        cluster.tell(make_tasks([2], 1, required_node=f"gone-{uid}"))
    names = cluster.state.tasks.required_names
    assert len(names) <= 1030
    assert names.names()[cluster.state.tasks.required_node[cluster.state.task_row(1)]] == "n0"


def pinned(uid, node, *, in_class, **fields):
    """A task of 2 CPUs that requires a node, in its class or itself."""
    if in_class:
        return make_class(1, cpu=2, demand=named(node)), make_tasks([uid], 1, **fields)
    return make_class(1, cpu=2), make_tasks([uid], 1, required_node=node, **fields)


BOTH = pytest.mark.parametrize("in_class", [True, False], ids=["in the class", "of the task"])
LATER_US = NOW_US + 600 * SECOND_US


@BOTH
@pytest.mark.parametrize("priority", [0, 10])
def test_what_is_reserved_for_an_old_gang_is_not_taken(priority, in_class):
    cluster = make_cluster(
        *(make_node("n0", cpu=2), make_node("n1", cpu=2), make_gang(1, 2)),
        *(make_class(2, cpu=2, priority=priority), make_class(3, cpu=2, priority=20)),
        *(make_tasks([9], 3, on="n0"), make_tasks([2, 3], 2, gang=1)),
        reserve_after_us=0,
    )
    assert (cluster.round(NOW_US), cluster.round(LATER_US)) == ({}, {})
    cluster.tell(*pinned(1, "n1", in_class=in_class, created_us=LATER_US + SECOND_US))
    assert cluster.round(LATER_US + SECOND_US) == {}


@BOTH
def test_what_is_reserved_for_an_old_task_is_not_taken(in_class):
    cluster = make_cluster(
        *(make_node("n0", cpu=4), make_class(2, cpu=4, priority=10), make_class(3, cpu=2, priority=20)),
        *(make_tasks([9], 3, on="n0"), make_tasks([2], 2)),
        reserve_after_us=0,
    )
    assert (cluster.round(NOW_US), cluster.round(LATER_US)) == ({}, {})
    cluster.tell(*pinned(1, "n0", in_class=in_class, created_us=LATER_US + SECOND_US))
    assert cluster.round(LATER_US + SECOND_US) == {}


@BOTH
def test_a_gang_of_higher_priority_that_waited_comes_first(in_class):
    cluster = make_cluster(
        *(make_node("n0", cpu=2), make_node("n1", cpu=2), make_gang(1, 2)),
        *(make_class(2, cpu=2, priority=10), make_class(3, cpu=2, priority=20)),
        *(make_tasks([9], 3, on="n0"), make_tasks([8], 3, on="n1"), make_tasks([2, 3], 2, gang=1)),
        *pinned(1, "n1", in_class=in_class),
    )
    assert cluster.round(NOW_US) == {}
    cluster.tell(removed(9, 8))
    assert set(cluster.round(LATER_US)) == {2, 3}


def test_a_gang_of_higher_priority_whose_members_require_nodes_comes_first():
    cluster = make_cluster(
        *(make_node("n0", cpu=2), make_node("n1", cpu=2), make_gang(1, 2), make_class(2, cpu=2, priority=10)),
        *(make_tasks([2, 3], 2, gang=1, required_node=["n0", "n1"]), *pinned(1, "n0", in_class=False)),
    )
    assert set(cluster.round()) == {2, 3}
