"""How long tasks run on: medians over what is known of ended tasks, beside counts by hand."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.forecast.run_times import FEW, KINDS, SHARES, RunTimes
from firmament_py.snapshot.expected_releases import FOREVER
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_node, make_tasks
from tests.effort import examples

S = SECOND_US


def running(*, declared=0, ran_s=(), **fields):
    """A state in which tasks 1, 2, ... of one class run, since so many seconds each."""
    cluster = make_cluster(make_node("a", cpu=1000), make_class(1, cpu=1, expected_us=declared * S))
    for uid, seconds in enumerate(ran_s, start=1):
        cluster.tell(make_tasks([uid], 1, on="a", started_us=NOW_US - seconds * S, **fields))
    return cluster.state


def rows(state):
    return state.tasks.on_nodes.nonzero()[0]


def noted(times, lengths, declared=0):
    """Tasks that have run for so many seconds end."""
    state = running(declared=declared, ran_s=lengths)
    times.note_ends(state, rows(state), NOW_US)


def left(times, ran_s, declared=0, **fields):
    state = running(declared=declared, ran_s=[ran_s], **fields)
    [found] = times.remaining(state, rows(state), NOW_US).tolist()
    return found if found == FOREVER else found / S


def test_a_declared_duration_is_taken_whole_until_some_have_ended():
    assert left(RunTimes(), 30, declared=100) == 70


def test_the_share_that_tasks_take_of_what_they_declare_counts():
    """Ended: 10, 20 and 60 of 100 s. One that has run for 5 s: the median is 20; for 15 s: that of 20 and 60, the
    later one; for 30 s: 60."""
    times = RunTimes()
    noted(times, [10, 20, 60], declared=100)
    assert times.learned == 3
    assert left(times, 5, declared=100) == 15
    assert left(times, 15, declared=100) == 45
    assert left(times, 30, declared=100) == 30
    assert left(times, 30, declared=1000) == pytest.approx(170), "its share is 0.03: the median is 0.2"


def test_what_has_run_for_longer_than_any_other_runs_on_for_a_quarter():
    times = RunTimes()
    noted(times, [10, 20], declared=100)
    assert left(times, 80, declared=100) == 20


def test_without_declared_durations_those_of_tasks_alike_count():
    times = RunTimes()
    noted(times, [10] * (FEW - 1))
    assert left(times, 4) == FOREVER, "too few are known"
    noted(times, [10])
    assert times.learned == FEW
    assert left(times, 4) == 6
    assert left(times, 4, lasting=True) == FOREVER, "it runs as long as its node"
    other = make_cluster(make_node("a", cpu=1000), make_class(1, cpu=2), make_tasks([1], 1, on="a", started_us=NOW_US))
    assert times.remaining(other.state, rows(other.state), NOW_US).tolist() == [FOREVER], "it requests more"


def test_a_task_that_leaves_ends_now_and_teaches_nothing():
    times = RunTimes()
    assert left(times, 4, declared=100, leaving=True) == 0
    state = running(declared=100, ran_s=[10], leaving=True)
    times.note_ends(state, rows(state), NOW_US)
    assert times.learned == 0


def test_what_is_known_is_bounded(monkeypatch):
    times = RunTimes()
    noted(times, range(1, SHARES + 100), declared=100)
    assert times.learned == SHARES
    assert left(times, 0, declared=100) == 100 + 512 / 2, "the median of the last ones, 100 to 611"
    monkeypatch.setattr("firmament_py.forecast.run_times.KINDS", 2)
    for cpu in (1, 2, 3):
        cluster = make_cluster(make_node("a", cpu=1000), make_class(1, cpu=cpu))
        cluster.tell(make_tasks([*range(1, FEW + 1)], 1, on="a", started_us=NOW_US - 10 * S))
        times.note_ends(cluster.state, rows(cluster.state), NOW_US)
    assert left(times, 4) == FOREVER, "the kind used longest ago is forgotten"
    assert KINDS == 1024


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=30),
    st.integers(0, 250),
    st.integers(1, 300),
)
@examples(60)
def test_the_median_of_those_beyond(lengths, ran, declared):
    """Declared: 100 s, of which the ended ones took `lengths`."""
    times = RunTimes()
    noted(times, lengths, declared=100)
    shares = sorted(length / 100 for length in lengths)
    longer = [share for share in shares if share > ran / declared]
    expected = statistics.median_high(longer) * declared - ran if longer else ran / 4
    assert left(times, ran, declared=declared) == pytest.approx(expected, abs=1e-5)
    assert np.isfinite(expected)
