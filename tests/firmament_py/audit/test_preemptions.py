"""The independent check of preemptions: each way in which a round could be wrong is named."""

import numpy as np
import pytest

from firmament_py.audit.preemptions import preemption_problems
from firmament_py.engine.scheduler import DROPPED_STEP_US
from firmament_py.model.arrays import NO_ROWS
from firmament_py.state.tables import EXEMPT_FOREVER_US
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    tasks_like,
)

LOW, EQUAL, LEAVING, STATIC, WEB, SECOND, FREE, EXEMPT = 1, 2, 3, 4, 5, 6, 7, 8
HIGH, NEVER, OTHER = 10, 11, 12


@pytest.fixture
def cluster():
    """Node a of 20 cpu is full with tasks of 4 cpu; b is empty; c has a task that is exempt from preemption by tasks
    below 6."""
    return preempting_cluster(
        make_class(1, cpu=4),
        make_class(2, cpu=4, priority=5),
        make_class(3, cpu=4, priority=5, never_preempts=True),
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 0),
        make_node("a", cpu=20),
        make_node("b", cpu=4),
        make_tasks([LOW], 1, on="a"),
        make_tasks([EQUAL], 2, on="a"),
        make_tasks([LEAVING], 1, on="a", leaving=True),
        make_tasks([STATIC], 1, on="a", unevictable=True),
        make_tasks([WEB], 1, on="a", label_set=1),
        make_node("c", cpu=4),
        make_tasks([EXEMPT], 1, on="c", least_preemptor=6, exempt_until_us=EXEMPT_FOREVER_US),
        make_tasks([SECOND], 1),
        make_tasks([HIGH, OTHER], 2),
        make_tasks([NEVER], 3),
    )


def problems(cluster, victims=(), nominated=(), placed=(), unnominated=(), moved=(), beyond_budgets=False, after_us=0):
    """victims: (victim, preemptor); nominated, placed, moved: (task, node name)."""
    state = cluster.state

    def rows(uids):
        return state.task_rows(np.array(list(uids), np.uint64)) if uids else NO_ROWS

    def pairs(of):
        return rows([uid for uid, _ in of]), np.array([state.nodes.row[f"id-{name}"] for _, name in of], np.int64)

    return preemption_problems(
        state,
        pairs(placed),
        (rows([victim for victim, _ in victims]), rows([preemptor for _, preemptor in victims])),
        pairs(nominated),
        rows(list(unnominated)),
        pairs(moved),
        now_us=NOW_US + after_us,
        beyond_budgets=beyond_budgets,
    )


def test_a_sound_preemption_has_no_problems(cluster):
    assert problems(cluster, [(LOW, HIGH)], [(HIGH, "a")]) == []
    assert problems(cluster, [], [(HIGH, "a")]) == [], "a task leaves the node anyway"
    assert problems(cluster) == []


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        ({"victims": [(LOW, HIGH), (LOW, OTHER)]}, "a task is evicted twice"),
        ({"victims": [(SECOND, HIGH)]}, "a victim does not run"),
        ({"victims": [(LEAVING, HIGH)]}, "a victim leaves already, or cannot be evicted"),
        ({"victims": [(STATIC, HIGH)]}, "a victim leaves already, or cannot be evicted"),
        ({"victims": [(EQUAL, HIGH)]}, "a victim's priority is not lower than its preemptor's"),
        ({"victims": [(EXEMPT, HIGH)]}, "a victim is exempt from preemption by its preemptor"),
        ({"victims": [(LOW, NEVER)]}, "a preemptor never preempts"),
        ({"nominated": [(LOW, "b")]}, "a nominated task does not wait"),
        ({"nominated": [(HIGH, "b")], "placed": [(HIGH, "b")]}, "a nominated task is placed, too"),
        ({"victims": [(WEB, HIGH)], "nominated": [(HIGH, "a")]}, "a disruption budget is exceeded"),
        ({"nominated": [(HIGH, "a"), (OTHER, "a")]}, "a node could not take its nominated tasks"),
        ({"nominated": [(HIGH, "b")], "placed": [(SECOND, "b")]}, "a node could not take its nominated tasks"),
        ({"moved": [(LOW, "b"), (EQUAL, "b")]}, "a node could not take its nominated tasks"),
        ({"moved": [(LOW, "b")], "nominated": [(HIGH, "b")]}, "a node could not take its nominated tasks"),
    ],
)
def test_a_defect_is_named(cluster, decision, problem):
    assert problem in problems(cluster, **decision)


def test_an_exemption_ends(cluster):
    cluster.tell(make_tasks([EXEMPT], 1, on="c", least_preemptor=6, exempt_until_us=NOW_US + SECOND_US))
    assert problems(cluster, [(EXEMPT, HIGH)], [(HIGH, "c")], after_us=SECOND_US) == []


def test_budgets_may_be_exceeded_if_that_is_permitted(cluster):
    assert problems(cluster, [(WEB, HIGH)], [(HIGH, "a")], beyond_budgets=True) == []


def test_earlier_nominations_count_unless_they_are_over(cluster):
    cluster.tell(make_tasks([OTHER], 2, nominated="b"))
    assert problems(cluster, [], [(HIGH, "b")]) == ["a node could not take its nominated tasks"]
    assert problems(cluster, [], [(HIGH, "b")], unnominated=[OTHER]) == []


def test_a_mover_makes_place_on_its_node(cluster):
    assert problems(cluster, [], [(HIGH, "a"), (OTHER, "a")], moved=[(LOW, "b")]) == []


def test_what_is_reserved_for_successors_counts(cluster):
    cluster.tell(make_tasks([30], 1, on="a", job=30))
    state = cluster.state
    state.successors.expect(state.task_rows(np.array([30], np.uint64)), np.array([state.nodes.row["id-b"]]), NOW_US)
    assert problems(cluster, [], [(HIGH, "b")]) == ["a node could not take its nominated tasks"]


@pytest.mark.parametrize(
    ("definition", "victims", "halved"),
    [
        pytest.param({"minimum": 2}, [41], False, id="the minimum stays"),
        pytest.param({"minimum": 2}, [41, 42], True, id="fewer than the minimum stay"),
        pytest.param({"minimum": 2}, [41, 42, 43], False, id="none stays"),
        pytest.param({"minimum": 2, "whole": True}, [41], True, id="disrupted as a whole"),
        pytest.param({"minimum": 2, "roles": {"head": 1, "worker": 1}}, [41], True, id="no member of a role stays"),
    ],
)
def test_a_gang_keeps_its_minimum_or_no_member(definition, victims, halved):
    """Member 41 is the only one of the first role."""
    cluster = preempting_cluster(
        make_class(1, cpu=1),
        make_class(2, cpu=1, priority=5),
        make_node("a", cpu=3),
        make_gang(7, **definition),
        make_tasks([41, 42, 43], 1, on="a", gang=7, role=[0, 1, 1] if "roles" in definition else 0),
        make_tasks([50], 2),
    )
    expected = ["gang gang-7 would keep too few members"] if halved else []
    assert problems(cluster, [(victim, 50) for victim in victims]) == expected


def test_an_absent_node_cannot_be_nominated(cluster):
    cluster.tell(make_tasks([20], 1, on="ghost"))
    assert "a nominated node is absent" in problems(cluster, [], [(HIGH, "ghost")])


def test_a_round_whose_preemptions_are_unsound_evicts_no_task(cluster, monkeypatch, caplog):
    monkeypatch.setattr("firmament_py.engine.verification.preemption_problems", lambda *_, **__: ["it is wrong"])
    cluster.tell(make_tasks([SECOND], 1, on="b"))
    result = cluster.scheduler.run(1)
    assert result.stats.dropped > 0
    assert not len(result.preemption.victims)
    assert not cluster.nominated()
    assert "no task is preempted in this round, by the independent check: it is wrong" in caplog.text


def test_after_dropped_preemptions_a_round_is_due_later(cluster, monkeypatch):
    """Nothing else changes; the next round is sound."""
    scheduler = cluster.scheduler
    cluster.tell(make_tasks([SECOND], 1, on="b"))
    with monkeypatch.context() as patch:
        patch.setattr("firmament_py.engine.verification.preemption_problems", lambda *_, **__: ["it is wrong"])
        assert scheduler.run(NOW_US).stats.dropped > 0
    later_us = NOW_US + DROPPED_STEP_US
    assert scheduler.wake_us(NOW_US) == later_us
    assert not scheduler.quiet
    assert not scheduler.due(later_us - 1), "it would decide the same"
    assert scheduler.due(later_us)
    assert cluster.preempted(cluster.run(later_us))
    assert not scheduler.wake_us(later_us)


def test_nominations_without_victims_count_as_dropped(cluster, monkeypatch):
    """HIGH gets node b, and what LEAVING uses suffices for OTHER."""
    monkeypatch.setattr("firmament_py.engine.verification.preemption_problems", lambda *_, **__: ["it is wrong"])
    result = cluster.scheduler.run(NOW_US)
    assert cluster.names(result) == {HIGH: "b"}
    assert result.stats.dropped == 1
    assert not cluster.nominated()
