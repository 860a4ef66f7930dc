"""Gangs that preempt in one domain of a topology: examples."""

from itertools import permutations

import numpy as np
import pytest

from firmament_py.audit.preemptions import preemption_problems
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.arrays import NO_ROWS
from firmament_py.model.options import Migrating
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_gang,
    make_node,
    make_tasks,
    migrating_cluster,
    preempting_cluster,
    removed,
)
from tests.firmament_py.preemption.moving import CLASSES as MOVING_CLASSES
from tests.firmament_py.preemption.moving import LARGE as MOVING_LARGE
from tests.firmament_py.preemption.moving import movable
from tests.firmament_py.preemption.priorities import HIGH, LOW, MID, WITH_LARGE, on_each

ZONE = "zone"


def zones(*events, cpu=4, classes=WITH_LARGE, **of_zone):
    """Equal nodes, each named by a letter, in zones named by the keys."""
    nodes = (make_node(name, cpu=cpu, labels={ZONE: zone}) for zone, names in of_zone.items() for name in names)
    return preempting_cluster(*classes, *nodes, *events)


def gang(size, minimum=None, *, required=True, cls=HIGH):
    return (
        make_gang(7, minimum or size, topology=ZONE, required=required),
        make_tasks(range(11, 11 + size), cls, gang=7),
    )


def test_all_members_preempt_in_the_domain_that_costs_least():
    # in x two of four tasks are of priority 10, in y all are of priority 0, in z is one node only
    cluster = zones(
        *on_each([1, 2], "ab", MID), *on_each([3, 4], "cd"), *on_each([5], "e"), *gang(2), x="ab", y="cd", z="e"
    )
    assert set(cluster.preempted(cluster.run())) == {3, 4}
    assert set(cluster.nominated().values()) == {"c", "d"}


def since(minute):
    """A start so many minutes after the first one."""
    return NOW_US - 3600 * SECOND_US + minute * 60 * SECOND_US


def racks_since(minutes, *, required=True, gangs=True):
    """Racks of two nodes, full of equal victims, which started in these minutes: a gang in each rack, or single tasks.
    Returns the minutes of those that are evicted for a gang of the size of a rack."""
    names = [f"n{number}" for number in range(2 * len(minutes))]
    cluster = preempting_cluster(
        *WITH_LARGE, *(make_node(name, cpu=4, labels={"rack": f"r{i // 2}"}) for i, name in enumerate(names))
    )
    for i, started in enumerate(minutes):
        of_gang = 100 + i if gangs else 0
        if gangs:
            cluster.tell(make_gang(100 + i, 2, whole=True))
        for member, minute in enumerate(started if isinstance(started, tuple) else (started, started)):
            uid = 200 + 2 * i + member
            cluster.tell(make_tasks([uid], LOW, on=names[2 * i + member], started_us=since(minute), gang=of_gang))
    cluster.tell(make_gang(7, 2, topology="rack", required=required), make_tasks([11, 12], HIGH, gang=7))
    evicted = {(uid - 200) // 2 for uid in cluster.preempted(cluster.run())}
    return [minutes[i] for i in sorted(evicted)]


@pytest.mark.parametrize("gangs", [True, False])
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("minutes", [*permutations(range(3))])
def test_of_equal_victims_the_newest_leave(minutes, required, gangs):
    assert racks_since(minutes, required=required, gangs=gangs) == [2]


@pytest.mark.parametrize("newest", range(7))
def test_the_newest_are_found_among_more_domains_than_are_searched(newest):
    minutes = [9 if i == newest else i for i in range(7)]
    assert racks_since(minutes) == [9]


def test_the_oldest_victim_of_each_domain_is_compared_first():
    """As Kueue does, which takes the newest until the preemptor fits, and puts back what is not needed."""
    assert racks_since([(1, 10), (5, 9), (5, 6)], gangs=False) == [(5, 9)]


def test_age_counts_after_priority_and_number():
    # in x one victim, in y two newer ones, in z a newer one of higher priority
    cluster = zones(
        make_tasks([1], LOW, on="a", started_us=since(1)),
        *on_each([2, 3], "cd", started_us=since(2)),
        make_tasks([4], MID, on="e", started_us=since(3)),
        *gang(2),
        x="ab",
        y="cd",
        z="ef",
    )
    assert set(cluster.preempted(cluster.run())) == {1}


def test_a_free_node_of_another_domain_does_not_help():
    cluster = zones(*on_each([1, 2], "ab"), *gang(2), x="ab", y="c")
    assert set(cluster.preempted(cluster.run())) == {1, 2}
    assert set(cluster.nominated().values()) == {"a", "b"}


def test_the_domain_with_fewest_victims_is_chosen():
    cluster = zones(*on_each([1, 2, 3], "abc"), *gang(2), x="ab", y="cd")
    assert set(cluster.preempted(cluster.run())) == {3}
    assert set(cluster.nominated().values()) == {"c", "d"}


def test_the_domain_with_the_fewest_victims_is_searched_first(monkeypatch):
    monkeypatch.setattr("firmament_py.preemption.topology.SEARCHED", 1)
    cluster = zones(*on_each([1, 2, 3, 4, 5], "abcde"), *gang(2), x="ab", y="cd", z="ef")
    assert set(cluster.preempted(cluster.run())) == {5}


def test_no_task_is_evicted_if_no_domain_has_enough_nodes():
    cluster = zones(*on_each([1, 2, 3, 4], "abcd"), *gang(3), x="ab", y="cd")
    result = cluster.run()
    assert not cluster.preempted(result)
    assert not cluster.nominated()
    [waiting] = result.waiting
    assert [(r.kind, r.value) for r in waiting.reasons][1] == (ReasonKind.NOT_BY_PREEMPTION, "2/3")


def test_a_preferred_domain_is_left_only_if_it_cannot_serve():
    running = on_each([1, 2, 3, 4], "abcd")
    cluster = zones(*running, *gang(2, required=False), x="ab", y="cd")
    cluster.run()
    assert set(cluster.nominated().values()) in ({"a", "b"}, {"c", "d"})
    cluster = zones(*running, *gang(3, required=False), x="ab", y="cd")
    assert len(cluster.preempted(cluster.run())) == 3


def racks_in_zones(*events, free=""):
    """Nodes a to f in racks 1 (a, b), 2 (c, d) and 1 again (e, f); the first two racks are in zone x. All but `free`
    run a task of low priority."""
    where = {"a": ("1", "x"), "b": ("1", "x"), "c": ("2", "x"), "d": ("2", "x"), "e": ("1", "y"), "f": ("1", "y")}
    nodes = (make_node(n, cpu=4, labels={"rack": rack, ZONE: zone}) for n, (rack, zone) in where.items())
    running = (make_tasks([i], LOW, on=name) for i, name in enumerate(where, start=1) if name not in free)
    return preempting_cluster(*WITH_LARGE, *nodes, *running, *events)


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    ("size", "free", "expected", "victims"),
    [
        pytest.param(2, "a", {"a", "b"}, 1, id="the-rack-with-fewest-victims"),
        pytest.param(2, "ac", {"a", "c"}, 0, id="no-preemption-while-a-wider-level-has-free-nodes"),
        pytest.param(3, "d", {"a", "b", "c", "d"}, 2, id="a-zone-if-no-rack-is-large-enough"),
    ],
)
def test_the_narrowest_level_that_serves_is_chosen(required, size, free, expected, victims):
    levels = make_gang(7, size, topology=ZONE, narrower=["rack"], required=required)
    cluster = racks_in_zones(levels, make_tasks(range(11, 11 + size), HIGH, gang=7), free=free)
    result = cluster.run()
    where = {*cluster.nominated().values(), *cluster.names(result).values()}
    assert len(where) == size
    assert where <= expected
    assert len(cluster.preempted(result)) == victims


def test_levels_do_not_widen_a_required_domain():
    levels = make_gang(7, 5, topology=ZONE, narrower=["rack"], required=True)
    cluster = racks_in_zones(levels, make_tasks(range(11, 16), HIGH, gang=7))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_gang(7, 5, topology=ZONE, narrower=["rack"]))
    assert len(cluster.preempted(cluster.run())) == 5


def test_members_follow_those_that_run():
    cluster = zones(*on_each([1, 2, 3], "abc"), *gang(1, 2), make_tasks([19], HIGH, on="d", gang=7), x="ab", y="cd")
    assert set(cluster.preempted(cluster.run())) == {3}
    assert cluster.nominated() == {11: "c"}


def test_nodes_without_the_label_are_in_no_domain():
    cluster = zones(*on_each([1, 2], "ab"), *gang(2), make_node("e", cpu=8), x="ab")
    assert set(cluster.preempted(cluster.run())) == {1, 2}


def test_the_gang_is_placed_in_its_domain_once_all_victims_are_gone():
    cluster = zones(*on_each([1, 2, 3, 4], "abcd"), *gang(2), x="ab", y="cd")
    victims = [*cluster.preempted(cluster.run())]
    nominated = cluster.nominated()
    cluster.tell(removed(victims[0]), make_tasks([20], LOW))
    result = cluster.run()
    assert not cluster.names(result)
    assert not cluster.preempted(result)
    # an older single task of the same priority does not take what is kept for a member
    cluster.tell(removed(victims[1]), make_tasks([21], HIGH, created_us=NOW_US - 60 * SECOND_US))
    placed = cluster.round(NOW_US + SECOND_US)
    assert {uid: placed[uid] for uid in (11, 12)} == nominated


def test_single_tasks_of_the_same_class_are_not_bound_to_the_domain():
    cluster = zones(*on_each([1, 2, 3], "abc"), *gang(2), make_tasks([20], HIGH), x="ab", y="c")
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3}
    assert cluster.nominated()[20] == "c"


def test_two_gangs_get_a_domain_each():
    other = make_gang(8, 2, topology=ZONE, required=True), make_tasks([31, 32], HIGH, gang=8)
    cluster = zones(*on_each([1, 2, 3, 4], "abcd"), *gang(2), *other, x="ab", y="cd")
    cluster.run()
    cluster.run(NOW_US + SECOND_US)
    where = cluster.nominated()
    assert {frozenset((where[11], where[12])), frozenset((where[31], where[32]))} == {
        frozenset("ab"),
        frozenset("cd"),
    }


def test_a_whole_gang_of_the_domain_is_evicted():
    low = make_gang(5, 2, whole=True), make_tasks([1], LOW, on="a", gang=5), make_tasks([2], LOW, on="b", gang=5)
    cluster = zones(*low, *on_each([3, 4], "cd", HIGH), *gang(2), x="ab", y="cd")
    assert set(cluster.preempted(cluster.run())) == {1, 2}
    assert set(cluster.nominated().values()) == {"a", "b"}


def test_tasks_move_out_of_the_domain():
    nodes = [make_node(name, cpu=8, labels={ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    cluster = migrating_cluster(
        *MOVING_CLASSES,
        *nodes,
        movable(1, "a"),
        movable(2, "b"),
        *gang(2, cls=MOVING_LARGE),
        migrating=Migrating.FOR_WAITING,
    )
    assert cluster.migrating(cluster.run()) == {1: "c", 2: "c"}
    assert set(cluster.nominated().values()) == {"a", "b"}


@pytest.mark.parametrize(("nodes", "sound"), [("ab", True), ("ac", False)])
def test_the_audit_refuses_members_in_several_domains(nodes, sound):
    cluster = zones(*gang(2), x="ab", y="c")
    state = cluster.state
    rows = [state.task_row(uid) for uid in (11, 12)]
    at = state.node_rows([f"id-{name}" for name in nodes])
    none = (NO_ROWS, NO_ROWS)
    problems = preemption_problems(
        state, none, none, (np.array(rows), at), NO_ROWS, now_us=NOW_US, beyond_budgets=False
    )
    assert problems == ([] if sound else ["gang gang-7 would not be in one domain of its topology"])


@pytest.mark.parametrize(("required", "to", "sound"), [(True, "b", True), (True, "c", False), (False, "c", True)])
def test_the_audit_binds_further_members_to_a_required_domain(required, to, sound):
    cluster = zones(*gang(2, 1, required=required), make_tasks([19], HIGH, on="a", gang=7), x="ab", y="c")
    state = cluster.state
    none = (NO_ROWS, NO_ROWS)
    nominated = np.array([state.task_row(11)]), state.node_rows([f"id-{to}"])
    found = preemption_problems(state, none, none, nominated, NO_ROWS, now_us=NOW_US, beyond_budgets=False)
    assert (not found) is sound


@pytest.mark.parametrize("required", [True, False])
def test_members_that_needed_no_domain_lose_what_they_wait_for_when_they_need_one(required):
    """Further members preempt in y. Once their gang requires its domain, and a member of x has ended, one of them is of
    the minimum, which is where the other member is; there its node has been taken. One of a preferred domain may be
    anywhere."""
    running = [*on_each([1, 2], "cd"), make_gang(7, 2, topology=ZONE)]
    cluster = zones(
        *running, *on_each([11, 12], "ab", HIGH, gang=7), make_tasks([13, 14], HIGH, gang=7), x="ab", y="cd"
    )
    assert set(cluster.preempted(cluster.run())) == {1, 2}
    assert cluster.nominated() == {13: "c", 14: "d"}
    cluster.tell(make_gang(7, 2, topology=ZONE, required=required), removed(11), *on_each([3], "a", HIGH))
    cluster.run(NOW_US + SECOND_US)
    assert cluster.nominated() == ({} if required else {13: "c", 14: "d"})
    cluster.tell(removed(3))
    assert cluster.names(cluster.run(NOW_US + 2 * SECOND_US)) == {13: "a"}
