"""Single tasks that have waited for long: small ones cannot starve them, and capacity is reserved as for gangs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.admission import overdue_tasks
from firmament_py.engine.engine import Engine
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Outcome
from firmament_py.model.options import RESERVE_AFTER_US, EngineOptions
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
)
from tests.firmament_py.gang_builders import OVERDUE_US, WITH_LEAD

SMALL, LARGE = 1, 2
CLASSES = (make_class(SMALL, cpu=1), make_class(LARGE, cpu=4))


def waits(uid=100, cls=LARGE, created_us=OVERDUE_US, **fields):
    return make_tasks([uid], cls, created_us=created_us, **fields)


@pytest.mark.parametrize("after_s", [300, 60, None])
def test_a_large_task_is_not_starved_by_a_stream_of_small_ones(after_s):
    """One node of 4 cpu, small tasks of two minutes that come every half a minute, and one that needs all of it."""
    after_us = None if after_s is None else after_s * SECOND_US
    engine = Engine(LoadSpreading(), OrToolsSolver(), options=EngineOptions(reserve_after_us=after_us))
    began = NOW_US
    assert engine.apply([make_node("n", cpu=4), *CLASSES, waits(created_us=began)]) == Outcome()
    ends: dict[int, int] = {}
    for step in range(60):
        now = began + step * 30 * SECOND_US
        gone = [uid for uid, end in ends.items() if end <= now]
        for uid in gone:
            del ends[uid]
        events = [removed(uid) for uid in gone]
        engine.apply([*events, make_tasks([1000 + step], SMALL, created_us=now)])
        if step == 0:
            engine.apply([make_tasks([1, 2, 3], SMALL, on="n")])
            ends |= {uid: now + 30 * uid * SECOND_US for uid in (1, 2, 3)}
        result = engine.run_round(now)
        placed = [] if result is None else engine.state.tasks.uid[result.tasks].tolist()
        if 100 in placed:
            assert after_s is not None
            assert after_s <= 30 * step <= after_s + 150
            return
        ends |= dict.fromkeys(placed, now + 120 * SECOND_US)
    assert after_s is None, "it was starved"


def test_capacity_is_reserved_for_the_oldest_placeable_task_and_explained():
    cluster = make_cluster(
        *(make_node("n", cpu=4), *CLASSES, make_class(3, cpu=5), make_tasks([1], SMALL, on="n")),
        *(waits(99, 3, OVERDUE_US - SECOND_US), waits(), waits(101, created_us=OVERDUE_US + 1)),  # 99 is too large
        make_tasks([2], SMALL, created_us=NOW_US),
    )
    result = cluster.run()
    assert cluster.names(result) == {}
    assert cluster.scheduler.task_starts_us == {100: 0}
    assert cluster.scheduler.gang_starts_us == {}
    reasons = {waiting.cls: waiting.reasons for waiting in result.waiting}
    small = int(cluster.state.tasks.cls[cluster.state.task_row(2) or 0])
    name = str(cluster.state.tasks.name[cluster.state.task_row(100) or 0])
    assert reasons[small] == (Reason(ReasonKind.RESERVED, 1, name),)
    cluster.tell(removed(1))
    assert cluster.round() == {100: "n"}
    assert cluster.scheduler.task_starts_us == {}


def test_tasks_that_end_in_time_can_use_reserved_capacity():
    brief, minute = make_class(3, cpu=1, expected_us=30 * SECOND_US), make_class(4, cpu=1, expected_us=60 * SECOND_US)
    cluster = make_cluster(
        *(make_node("n", cpu=4), *CLASSES, brief, minute, waits()),
        make_tasks([1], 4, on="n", started_us=NOW_US),
        *(make_tasks([2], 3, created_us=NOW_US), make_tasks([3], SMALL, created_us=NOW_US)),
    )
    assert cluster.round() == {2: "n"}
    assert cluster.scheduler.task_starts_us == {100: NOW_US + 60 * SECOND_US}


def test_each_priority_reserves_against_its_own_and_lower_ones():
    high, urgent = make_class(3, cpu=4, priority=5), make_class(4, cpu=1, priority=9)
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=4), *CLASSES, high, urgent),
        *(make_tasks([1], SMALL, on="a"), make_tasks([2], SMALL, on="b")),
        *(waits(100, 3), waits(101, LARGE), make_tasks([4], SMALL)),
    )
    assert cluster.round() == {}
    assert set(cluster.scheduler.task_starts_us) == {100, 101}
    cluster.tell(make_tasks([3], 4, created_us=NOW_US))
    assert 3 in cluster.round()


@pytest.mark.parametrize("gang_is_older", [False, True])
def test_of_a_gang_and_a_task_of_one_priority_the_older_gets_the_reservation(gang_is_older):
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=4), *CLASSES, make_tasks([1], SMALL, on="a")),
        make_tasks([2], SMALL, on="b"),
        *(waits(), make_gang(1, 2, created_us=OVERDUE_US + (-1 if gang_is_older else 1))),
        make_tasks([201, 202], LARGE, gang=1),
    )
    assert cluster.round() == {}
    remaining = (set(cluster.scheduler.gang_starts_us), set(cluster.scheduler.task_starts_us))
    assert remaining == (({1}, set()) if gang_is_older else (set(), {100}))


def test_members_beyond_the_minimum_get_no_reservation():
    cluster = make_cluster(
        *(make_node("n", cpu=4), *CLASSES, make_gang(1, 1, created_us=OVERDUE_US)),
        *(make_tasks([201], SMALL, gang=1, on="n"), make_tasks([202], LARGE, gang=1, created_us=OVERDUE_US)),
        make_tasks([2], SMALL, created_us=NOW_US),
    )
    assert cluster.round() == {2: "n"}
    assert cluster.scheduler.task_starts_us == {}


def test_unplaceable_tasks_get_no_reservation_and_block_others_only_briefly():
    """Classes with affinity to a task that does not exist."""
    lonely = [make_class(10 + i, cpu=4, peers=WITH_LEAD) for i in range(overdue_tasks.CLASSES_OF_A_PRIORITY - 1)]
    cluster = make_cluster(
        make_node("n", cpu=4, labels={"host": "n"}),
        *CLASSES,
        *lonely,
        make_tasks(range(50, 53), [10, 11, 12], created_us=OVERDUE_US - SECOND_US),
        *(make_tasks([1], SMALL, on="n"), waits(), make_tasks([2], SMALL, created_us=NOW_US)),
    )
    assert cluster.round() == {}
    assert set(cluster.scheduler.task_starts_us) == {100}


def test_classes_that_fit_nowhere_block_no_others():
    """However many there are: tasks with wrong selectors are common, and wait for ever."""
    nowhere = [make_class(10 + i, cpu=1, demand=selecting(needs("zone", "In", f"z{i}"))) for i in range(6)]
    too_large = [make_class(20 + i, cpu=5 + i) for i in range(6)]
    before = make_tasks(range(50, 62), [*range(10, 16), *range(20, 26)], created_us=OVERDUE_US - SECOND_US)
    cluster = make_cluster(
        *(make_node("n", cpu=4), *CLASSES, *nowhere, *too_large, before, make_tasks([1], SMALL, on="n"), waits()),
        make_tasks([2], SMALL, created_us=NOW_US),
    )
    assert cluster.round() == {}
    assert set(cluster.scheduler.task_starts_us) == {100}


def test_affinity_to_an_overdue_task_of_lower_priority_is_met_in_one_round():
    """Priorities with an overdue task are placed separately."""
    lead, follower = make_class(3, cpu=1, demand=selecting(needs("host", "In", "a"))), 4
    cluster = make_cluster(
        *(make_node("a", cpu=9, labels={"host": "a"}), make_node("b", cpu=20, labels={"host": "b"}), *CLASSES, lead),
        make_label_set(1, app="lead"),
        *(make_class(follower, cpu=4, priority=5, peers=WITH_LEAD), make_class(5, cpu=20)),
        *(make_tasks([1], SMALL, on="b"), waits(99, 5)),  # capacity is reserved on b
        *(make_tasks([2], 3, label_set=1), make_tasks([3], follower)),
    )
    assert cluster.round() == {2: "a", 3: "a"}


@pytest.mark.parametrize("first", ["a", "b"])
def test_an_overdue_task_that_fits_leaves_others_their_only_node(first):
    """As many are placed as without anybody who is overdue."""
    picky = make_class(3, cpu=1, demand=selecting(needs("zone", "In", "x")))
    nodes = {"a": make_node("a", cpu=1, labels={"zone": "x"}), "b": make_node("b", cpu=1)}
    cluster = make_cluster(
        *(nodes.pop(first), *nodes.values()),
        *(*CLASSES, picky, waits(100, SMALL), make_tasks([2], 3, created_us=NOW_US)),
    )
    assert cluster.round() == {100: "b", 2: "a"}


def test_a_stream_of_gangs_does_not_starve_a_task_behind_a_gang_that_never_fits():
    cluster = make_cluster(
        *(make_node("n", cpu=4), *CLASSES, make_class(3, cpu=9)),
        *(make_gang(9, 2, created_us=OVERDUE_US - SECOND_US), make_tasks([901, 902], 3, gang=9)),
        *(waits(), make_tasks([1], SMALL, on="n")),
        *(make_gang(1, 2, created_us=NOW_US), make_tasks([101, 102], SMALL, gang=1)),
    )
    assert cluster.round() == {}
    assert set(cluster.scheduler.task_starts_us) == {100}
    cluster.tell(removed(1))
    assert cluster.round() == {100: "n"}


def test_the_next_task_of_a_class_gets_the_reservation_when_the_oldest_is_placed():
    """From lower priorities, in the same round."""
    low = make_class(3, cpu=1, priority=-1)
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=4), *CLASSES, low, make_tasks([1], SMALL, on="b")),
        *(waits(100), waits(101), make_tasks([2], 3, created_us=NOW_US)),
    )
    assert cluster.round() == {100: "a"}
    assert set(cluster.scheduler.task_starts_us) == {101}


@pytest.mark.parametrize(
    ("priority_of_a", "priority_of_b", "gang"),
    [
        pytest.param(0, 0, 0, id="of its priority"),
        pytest.param(-1, 0, 1, id="and a gang of a lower one may have it"),
        pytest.param(-1, -1, 0, id="of a lower one"),
    ],
)
def test_a_reservation_ends_if_the_task_is_placed_later_in_the_round(priority_of_a, priority_of_b, gang):
    """It has affinity to a task whose node is full; another such task arrives on a node with capacity for both."""
    near = make_class(3, cpu=4, peers=WITH_LEAD)
    on_a = make_class(5, cpu=1, demand=selecting(needs("host", "In", "a")), priority=priority_of_a)
    on_b = make_class(6, cpu=1, demand=selecting(needs("host", "In", "b")), priority=priority_of_b)
    cluster = make_cluster(
        *(make_node("a", cpu=5, labels={"host": "a"}), make_node("b", cpu=5, labels={"host": "b"}), *CLASSES),
        *(near, on_a, on_b, make_label_set(1, app="lead"), make_tasks([1], LARGE, on="a", label_set=1)),
        *(make_gang(1, 1), make_tasks([2], 6, label_set=1), waits(100, 3), make_tasks([3], 5, gang=gang)),
    )
    assert cluster.round() == {2: "b", 100: "b", 3: "a"}
    assert cluster.scheduler.task_starts_us == {}
    assert cluster.scheduler.reservation_holders == []


def test_an_overdue_task_that_fits_leaves_lower_priorities_their_only_node():
    """As many are placed as without anybody who is overdue."""
    picky, high = make_class(3, cpu=1, demand=selecting(needs("zone", "In", "x"))), make_class(4, cpu=1, priority=1)
    cluster = make_cluster(
        *(make_node("a", cpu=1, labels={"zone": "x"}), make_node("b", cpu=3), *CLASSES, picky, high),
        *(waits(100, 4), make_tasks([2], 3, created_us=NOW_US)),
    )
    assert cluster.round() == {100: "b", 2: "a"}


@given(ages=st.lists(st.integers(0, 2 * RESERVE_AFTER_US), max_size=8), sizes=st.data())
def test_at_most_one_task_has_a_reservation_and_only_if_overdue_and_not_placed(ages, sizes):
    classes = [make_class(i + 1, cpu=i + 1) for i in range(4)]
    tasks = [waits(100 + i, sizes.draw(st.integers(1, 4)), NOW_US - age) for i, age in enumerate(ages)]
    cluster = make_cluster(make_node("a", cpu=4), make_node("b", cpu=3), *classes, waits(1, 2, on="a"), *tasks)
    placed = cluster.round()
    keeping = cluster.scheduler.task_starts_us
    overdue = {100 + i for i, age in enumerate(ages) if age >= RESERVE_AFTER_US} - set(placed)
    assert set(keeping) <= overdue
    # 4 cpu fit on a some day, whatever else
    assert len(keeping) == (1 if overdue else 0)
    if overdue:
        eldest = max(ages[uid - 100] for uid in overdue)
        assert ages[next(iter(keeping)) - 100] == eldest
