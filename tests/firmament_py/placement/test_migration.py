"""Which running tasks migrate: those that cost less elsewhere, by more than moving them costs, and no others."""

import numpy as np
import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm, PreferenceSet, Taint
from firmament_py.model.options import Migrating
from tests.builders import (
    NOW_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    migrating_cluster,
    needs,
    removed,
    selecting,
    tasks_like,
)
from tests.firmament_py.placement.migrations import SMALL, uneven


@pytest.mark.parametrize(("tasks", "migrate"), [(10, 0), (11, 0), (12, 1)])
def test_a_task_migrates_if_that_saves_more_than_moving_costs(tasks, migrate):
    """Beside ten others a task costs 1000, and 9 for the used share; beside eleven 1110. On node b it costs 0."""
    cluster = uneven(tasks=tasks)
    result = cluster.run()
    assert list(cluster.migrating(result).values()) == ["b"] * migrate
    assert result.stats.migrated == migrate
    assert cluster.state.tasks.leaving.sum() == migrate


def test_nothing_migrates_unless_that_is_asked_for():
    cluster = uneven(migrating=Migrating.NEVER)
    assert not cluster.scheduler.due(NOW_US)
    assert not cluster.migrating(cluster.run())


def test_a_task_that_leaves_is_left_alone_and_another_one_follows():
    cluster = uneven(tasks=14)
    [first] = cluster.migrating(cluster.run())
    [second] = cluster.migrating(cluster.run())
    assert first != second


@pytest.mark.parametrize(
    "task",
    [
        {"movable": False},
        {"movable": True, "leaving": True},
        {"movable": True, "unevictable": True},
        {"movable": True, "gang": 7},
        {"movable": True, "started_us": NOW_US - 59_000_000},
    ],
    ids=["not movable", "leaving", "static", "in a gang", "has just started"],
)
def test_tasks_that_stay(task):
    """Eleven tasks that nobody may move, and one that would otherwise."""
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "ab"),
        SMALL,
        make_gang(7, 1),
        make_tasks(range(1, 12), 1, on="a"),
        make_tasks([12], 1, on="a", created_us=NOW_US - 600_000_000, **task),
        migrate_after_us=60_000_000,
    )
    assert not cluster.migrating(cluster.run())
    moved = make_tasks([12], 1, on="a", created_us=NOW_US - 600_000_000, movable=True)
    cluster.tell(moved)
    assert cluster.migrating(cluster.run()) == {12: "b"}


@pytest.mark.parametrize(
    "b",
    [
        make_node("b", cpu=100, taints=[Taint("for", "others", "NoSchedule")]),
        make_node("b", cpu=100, labels={"disk": "hdd"}),
        make_node("b", cpu=0),
    ],
    ids=["tainted", "not selected", "too small"],
)
def test_a_node_that_cannot_take_the_task_is_no_alternative(b):
    cluster = migrating_cluster(
        make_node("a", cpu=100, labels={"disk": "ssd"}),
        b,
        make_class(1, cpu=1, demand=selecting(needs("disk", "In", "ssd"))),
        make_tasks(range(1, 21), 1, on="a", movable=True),
    )
    assert not cluster.migrating(cluster.run())


def test_tasks_with_constraints_or_preferences_about_others_stay():
    label = make_label_set(5, app="web")
    term = PeerTerm(tasks_like(needs("app", "In", "web")), "kubernetes.io/hostname")
    apart = make_class(2, cpu=1, peers=PeerDemand(anti_affinity=(term,)))
    liking = make_class(3, cpu=1, preferences=PreferenceSet(peers=((10, term),)))
    cluster = migrating_cluster(
        *(make_node(name, cpu=100, labels={"kubernetes.io/hostname": name}) for name in "ab"),
        label,
        apart,
        liking,
        SMALL,
        make_tasks(range(1, 15), 1, on="a"),
        make_tasks([20], 2, on="a", movable=True),
        make_tasks([21], 3, on="a", movable=True),
        make_tasks([22], 1, on="a", movable=True, label_set=5),
    )
    assert not cluster.migrating(cluster.run())


def test_labels_that_others_select_keep_a_task_where_it_is():
    """Tasks 1 and 2 are of one class. Task 2 loses less work, but a task on node c must not be near its label."""
    term = PeerTerm(tasks_like(needs("app", "In", "web")), "kubernetes.io/hostname")
    cluster = migrating_cluster(
        *(make_node(name, cpu=100, labels={"kubernetes.io/hostname": name}) for name in "abc"),
        make_label_set(5, app="web"),
        make_label_set(6, app="other"),
        SMALL,
        make_class(2, cpu=1, peers=PeerDemand(anti_affinity=(term,))),
        make_tasks([99], 2, on="c", label_set=6),
        make_tasks(range(10, 50), 1, on="a"),
        make_tasks([1], 1, on="a", movable=True, label_set=6, started_us=NOW_US - 600_000_000),
        make_tasks([2], 1, on="a", movable=True, label_set=5),
    )
    found = [uid for _ in range(4) for uid in cluster.migrating(cluster.run())]
    assert found == [1]


def test_a_task_that_may_be_moved_from_now_on_causes_a_round():
    cluster = uneven()
    cluster.tell(make_tasks(range(1, 13), 1, on="a"))
    assert not cluster.migrating(cluster.run())
    assert cluster.scheduler.quiet
    cluster.tell(make_tasks([3], 1, on="a", movable=True))
    assert not cluster.scheduler.quiet
    assert cluster.scheduler.due(NOW_US)
    assert cluster.migrating(cluster.run()) == {3: "b"}


def test_a_round_is_due_when_a_task_has_run_for_long_enough():
    cluster = uneven(migrate_after_us=60_000_000)
    assert not cluster.migrating(cluster.run())
    wake_us = cluster.scheduler.wake_us(NOW_US)
    assert NOW_US + 60_000_000 <= wake_us < NOW_US + 66_000_000
    assert not cluster.scheduler.due(wake_us - 1)
    assert cluster.scheduler.due(wake_us)
    assert cluster.migrating(cluster.run(wake_us))
    assert not cluster.scheduler.due(wake_us + 10**9)


def test_a_node_gains_at_most_one_task_in_a_round_and_loses_at_most_one():
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "abcd"),
        SMALL,
        make_tasks(range(1, 41), 1, on="a", movable=True),
        make_tasks(range(41, 81), 1, on="b", movable=True),
    )
    found = cluster.migrating(cluster.run())
    assert sorted(found.values()) == ["c", "d"]
    assert {uid > 40 for uid in found} == {True, False}


def test_several_nodes_do_not_fill_one():
    """Each would save more than moving costs, also as the second one that arrives there."""
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "abcd"),
        SMALL,
        make_class(2, cpu=1),
        *(
            make_tasks(range(uid, uid + 40), c, on=on, movable=True)
            for uid, c, on in ((1, 1, "a"), (50, 1, "b"), (99, 2, "c"))
        ),
    )
    assert list(cluster.migrating(cluster.run()).values()) == ["d"]


def test_of_a_node_the_task_goes_that_saves_most(monkeypatch):
    cluster = uneven(
        make_tasks([1], 1, on="a", movable=True, started_us=NOW_US - 600_000_000),
        make_tasks([2], 1, on="a", movable=True, started_us=NOW_US - 60_000_000),
        tasks=30,
    )
    cluster.tell(make_tasks(range(3, 31), 1, on="a"))
    assert list(cluster.migrating(cluster.run())) == [2]


def test_of_several_nodes_the_one_goes_first_that_saves_most():
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "abcd"),
        SMALL,
        make_tasks(range(1, 31), 1, on="a", movable=True),
        make_tasks(range(31, 81), 1, on="b", movable=True),
        moves_at_once=1,
    )
    [uid] = cluster.migrating(cluster.run())
    assert uid > 30


def test_a_settled_cluster_needs_no_network():
    result = uneven(tasks=11).run()
    assert (result.stats.migrated, result.stats.trials) == (0, 0)
    assert uneven(tasks=12).run().stats.trials > 0


def test_no_more_tasks_leave_at_once_than_the_limit():
    nodes = [make_node(f"{kind}{i}", cpu=100) for kind in "ab" for i in range(5)]
    loaded = [make_tasks(range(100 * i + 1, 100 * i + 30), 1, on=f"a{i}", movable=True) for i in range(5)]
    cluster = migrating_cluster(*nodes, SMALL, *loaded, moves_at_once=2)
    first = cluster.migrating(cluster.run())
    assert len(first) == 2
    assert not cluster.migrating(cluster.run())
    cluster.tell(removed(next(iter(first))))
    assert len(cluster.migrating(cluster.run())) == 1


def test_disruption_budgets_hold():
    app = make_label_set(5, app="web")
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "abcd"),
        SMALL,
        app,
        make_tasks(range(1, 41), 1, on="a", movable=True, label_set=5),
        make_tasks(range(41, 81), 1, on="b", movable=True, label_set=5),
        make_budget(1, tasks_like(needs("app", "In", "web")), 1),
    )
    assert len(cluster.migrating(cluster.run())) == 1
    assert not cluster.migrating(cluster.run()), "the budget counts the task that leaves"


def test_the_tasks_that_wait_come_first():
    """Node b has capacity for one more task."""
    cluster = uneven(make_class(2, cpu=99), make_tasks([100], 2, on="b"), make_tasks([101], 1), tasks=12)
    cluster.tell(*(make_tasks([uid], 1, on="a") for uid in range(200, 288)))
    assert cluster.round() == {101: "b"}


def test_reserved_capacity_is_not_for_migrants():
    """A task that has waited long needs both nodes' free capacity added up; node b is reserved for it."""
    since = NOW_US - 10**10
    cluster = migrating_cluster(
        make_node("a", cpu=100),
        make_node("b", cpu=20),
        SMALL,
        make_class(2, cpu=20),
        make_class(3, cpu=1, expected_us=3_600_000_000),
        make_tasks(range(1, 31), 1, on="a", movable=True),
        make_tasks(range(31, 101), 1, on="a"),
        make_tasks([150], 3, on="b", started_us=NOW_US),
        make_tasks([200], 2, created_us=since),
    )
    result = cluster.run()
    assert cluster.waiting() == {200}
    assert not cluster.migrating(result)
    cluster.tell(removed(200))
    assert list(cluster.migrating(cluster.run()).values()) == ["b"]


def test_the_check_refuses_what_is_not_allowed():
    cluster = uneven(make_tasks([50], 1, on="b"))
    state, checker = cluster.state, cluster.scheduler.verification.checker
    row, fixed = state.task_row(1), state.task_row(50)
    a, b = (state.node_row(f"id-{name}") for name in "ab")
    assert checker.migration_problems(np.array([row]), np.array([b])) == []
    assert checker.migration_problems(np.array([row]), np.array([a])) == ["a node is absent, or the task's own"]
    assert checker.migration_problems(np.array([fixed]), np.array([a])) == ["a task does not run, or may not migrate"]
    assert "a task migrates twice" in checker.migration_problems(np.array([row, row]), np.array([b, b]))
    cluster.tell(make_class(2, cpu=99), make_tasks([60], 2, on="b"))
    assert checker.migration_problems(np.array([row]), np.array([b])) == ["a node would be over-committed"]
    assert checker.migration_problems(np.array([row]), np.array([b]), at_once=False) == []
    cluster.tell(removed(60))
    state.preempt(np.array([row]))
    assert checker.migration_problems(np.array([row]), np.array([b])) == ["a task leaves already, or is in a gang"]


def test_a_task_that_its_budget_protects_does_not_keep_others_on_its_node():
    guarded = make_tasks([1], 1, on="a", movable=True, label_set=5)
    cluster = uneven(
        make_label_set(5, app="web"), make_budget(1, tasks_like(needs("app", "In", "web")), 0), guarded, tasks=14
    )
    assert list(cluster.migrating(cluster.run())) == [2]
