"""When waiting tasks start if running ones end as expected, beside schedules by hand."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.forecast import future as future_module
from firmament_py.model.options import Migrating
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    migrating_cluster,
    preempting_cluster,
)
from tests.effort import examples
from tests.firmament_py.forecast.futures import future, starts

S = SECOND_US


def busy(*events, nodes=("a",), ends_s=(100,), make=make_cluster, **options):
    """Nodes of 4 cpus, each with a task 1, 2, ... of 4 that is expected to end in so many seconds; 0: nothing is known.
    Classes: 10 and 20 request 4 cpus for 100 s, 20 is more important."""
    cluster = make(*(make_node(node, cpu=4) for node in nodes), **options)
    for uid, (node, end) in enumerate(zip(nodes, ends_s, strict=True), start=1):
        cluster.tell(make_class(uid, cpu=4, expected_us=end * S), make_tasks([uid], uid, on=node, started_us=NOW_US))
    for number, priority in ((10, 0), (20, 5)):
        cluster.tell(make_class(number, cpu=4, expected_us=100 * S, priority=priority))
    cluster.tell(*events)
    cluster.run()
    return cluster


def test_what_waits_starts_when_a_running_task_ends():
    cluster = busy(make_tasks([11], 10))
    found = future(cluster)
    assert (found.made_us, found.uids.tolist(), found.whole) == (NOW_US, [11], True)
    assert found.starts_us.tolist() == [NOW_US + 100 * S]
    assert found.nodes == ("id-a",)


def test_what_starts_then_ends_too():
    tasks = (make_tasks([uid], 10, created_us=NOW_US + uid) for uid in (11, 12, 13))
    assert starts(busy(*tasks)) == {11: 100, 12: 200, 13: 300}


def test_the_more_important_starts_first():
    assert starts(busy(make_tasks([11], 10, created_us=NOW_US - S), make_tasks([12], 20))) == {11: 200, 12: 100}


def test_a_gang_starts_as_a_whole():
    gang = make_gang(7, 2), make_tasks([11, 12], 10, gang=7)
    cluster = busy(*gang, nodes=("a", "b"), ends_s=(50, 120))
    found = future(cluster)
    assert found.starts_us.tolist() == [NOW_US + 120 * S] * 2
    assert found.gang_of.tolist() == [7, 7]
    assert sorted(found.nodes) == ["id-a", "id-b"]


def test_members_that_have_ended_count_for_the_minimum():
    """Two members start; the third needs no others when they have ended."""
    gang = make_gang(7, 2), make_tasks([11, 12, 13], 10, gang=7)
    assert sorted(starts(busy(*gang, nodes=("a", "b"), ends_s=(50, 50))).values()) == [50, 50, 150]


def test_without_a_known_end_there_is_no_start():
    found = future(busy(make_tasks([11], 10), ends_s=(0,)))
    assert found.starts_us.tolist() == [0]
    assert found.nodes == ("",)
    assert found.whole, "whatever is known was considered"


def test_what_never_fits_has_no_start_and_delays_nobody():
    big = make_class(30, cpu=8), make_tasks([11], 30, created_us=NOW_US - S), make_tasks([12], 10)
    assert starts(busy(*big)) == {11: -1, 12: 100}


def test_victims_start_again():
    cluster = busy(ends_s=(300,), make=preempting_cluster)
    cluster.tell(make_tasks([11], 20))
    assert starts(cluster) == {11: 0}
    cluster.tell(make_tasks([12], 10, created_us=NOW_US + S))
    assert starts(cluster) == {11: 0, 12: 400}, "after the victim, which is older and runs anew"


def test_a_task_that_is_about_to_start_can_be_a_victim():
    """It is assumed on its node when the forecast is made."""
    cluster = preempting_cluster(make_node("a", cpu=4))
    for number, priority in ((10, 0), (20, 5)):
        cluster.tell(make_class(number, cpu=4, expected_us=100 * S, priority=priority))
    cluster.tell(make_tasks([1], 10))
    assert cluster.round() == {1: "a"}
    cluster.tell(make_tasks([11], 20))
    assert starts(cluster) == {11: 0}


def test_no_task_moves_in_a_forecast():
    """The task on `a` could move to `b`, and the one that waits have `a`: it waits for the end of the one on `b`."""
    small, large = make_class(1, cpu=4), make_class(2, cpu=8)
    lasting, ending = make_class(3, cpu=4, expected_us=100 * S), make_tasks([2], 3, on="b", started_us=NOW_US)
    nodes = (make_node(name, cpu=8) for name in "ab")
    options = {"migrating": Migrating.FOR_WAITING}
    cluster = migrating_cluster(*nodes, small, large, lasting, ending, make_tasks([10], 2), **options)
    cluster.tell(make_tasks([1], 1, on="a", movable=True, job=1))
    assert starts(cluster) == {10: 100}
    assert cluster.migrating(cluster.run()) == {1: "b"}


@pytest.mark.parametrize(("days", "known"), [(13, True), (15, False)])
def test_no_start_is_forecast_that_is_further_away_than_two_weeks(days, known):
    seconds = days * 86_400
    assert starts(busy(make_tasks([11], 10), ends_s=(seconds,))) == {11: seconds if known else -1}


def test_a_forecast_ends_after_so_many_rounds(monkeypatch):
    monkeypatch.setattr(future_module, "ROUNDS", 3)
    found = future(busy(*(make_tasks([uid], 10, created_us=NOW_US + uid) for uid in (11, 12, 13, 14))))
    assert found.starts_us.tolist() == [NOW_US + 100 * S, NOW_US + 200 * S, 0, 0]
    assert not found.whole


def test_ends_are_taken_together_after_the_exact_rounds(monkeypatch):
    monkeypatch.setattr(future_module, "EXACT_ROUNDS", 0)
    cluster = busy(make_tasks([11, 12], 10), nodes=("a", "b"), ends_s=(80, 85))
    assert sorted(starts(cluster).values()) == [80, 90], "80 s and an eighth of that"


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=5),
    st.lists(st.integers(1, 300), max_size=8),
)
@examples(25)
def test_the_oldest_gets_whatever_ends_first(ends_s, durations_s):
    """Nodes with one place: each start is the earliest end that no older task has taken."""
    nodes = [f"n{i}" for i in range(len(ends_s))]
    cluster = busy(nodes=nodes, ends_s=ends_s)
    for i, seconds in enumerate(durations_s):
        number = 100 + i
        cluster.tell(make_class(number, cpu=4, expected_us=seconds * S))
        cluster.tell(make_tasks([number], number, created_us=NOW_US - (100 - i) * 600 * S))
    cluster.run()
    free, expected = list(ends_s), {}
    heapq.heapify(free)
    for i, seconds in enumerate(durations_s):
        start = heapq.heappop(free)
        heapq.heappush(free, start + seconds)
        expected[100 + i] = start
    assert starts(cluster) == pytest.approx(expected)
