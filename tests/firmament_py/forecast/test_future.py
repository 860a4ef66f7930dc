"""When waiting tasks start if running ones end as expected, beside schedules by hand."""

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.forecast import future as future_module
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
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
