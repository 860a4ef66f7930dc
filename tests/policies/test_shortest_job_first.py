"""shortest-job-first: short tasks first, priority before duration, age finally outweighs duration."""

import numpy as np
import pytest

from firmament_py.policy import PRIORITY_STEP, WAIT_MIN
from policies.shortest_job_first import ShortestJobFirst
from tests.builders import NOW_US, SECOND_US, ended, make_class, make_node, make_tasks
from tests.policies.rig import cluster_under, make_view, places

NODE = make_node("a", pods=110, cpu=1)


def waits(*tasks, policy=None, priority=None):
    """Waiting costs of tasks (seconds expected, seconds waited), above the least."""
    view = make_view(
        requests=[[1, i] for i in range(len(tasks))],
        allocatable=[[110, 9]],
        priority=priority,
        age_us=[int(age * SECOND_US) for _, age in tasks],
        expected_us=[int(expected * SECOND_US) for expected, _ in tasks],
    )
    return ((policy or ShortestJobFirst()).costs(view).wait - WAIT_MIN).tolist()


def test_the_example_of_the_module():
    # e = log2(11) = 3.46 -> 3.5, log2(3601) = 11.81 -> 11.75, in quarters; a = 0, and log2(361) = 8.5 -> 8
    assert waits((10, 0), (3600, 0), (3600, 360)) == [50_000 * x for x in (50 - 3.5, 50 - 11.75, 50 - 11.75 + 8)]


def test_unknown_durations_count_as_the_mean_or_as_configured():
    # mean of 10 and 20 is 15: log2(16) = 4
    assert waits((10, 0), (20, 0), (0, 0))[2] == 50_000 * 46
    # log2(64) = 6
    assert waits((10, 0), (0, 0), policy=ShortestJobFirst(unknown_seconds=63))[1] == 50_000 * 44
    assert waits((0, 0), (0, 3)) == [50_000 * 50, 50_000 * 52]  # no durations: by age


def test_patience_is_the_weight_of_duration():
    assert waits((3, 0), policy=ShortestJobFirst(patience=0.5)) == [50_000 * 49]


def test_priority_goes_before_duration_and_age():
    dear, cheap = waits((2**40, 0), (1, 2**40), priority=[1, 0])
    assert dear >= cheap + PRIORITY_STEP


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"patience": 0.0}, "option patience is 0.0; give a number above 0, up to 1.0"),
        ({"patience": 1.1}, "option patience is 1.1"),
        ({"patience": float("nan")}, "option patience is nan"),
        ({"unknown_seconds": -1.0}, "option unknown-seconds is -1.0; give 0 for the mean"),
        ({"unknown_seconds": 1e12}, "option unknown-seconds is 1000000000000.0"),
    ],
)
def test_options_have_ranges(options, reported):
    with pytest.raises(ValueError, match="option") as caught:
        ShortestJobFirst(**options)
    assert reported in str(caught.value)


def length(number, seconds, **fields):
    return make_class(number, cpu=1, expected_us=seconds * SECOND_US, **fields)


def test_of_tasks_of_one_age_the_shortest_goes_first():
    events = [NODE, length(1, 3600), length(2, 60), length(3, 600), make_tasks([1, 2, 3], [1, 2, 3])]
    cluster = cluster_under(ShortestJobFirst(), *events)
    order = []
    for _ in range(3):
        (uid,) = cluster.round(NOW_US + 5 * SECOND_US)
        order.append(uid)
        cluster.tell(ended(uid))
    assert order == [2, 3, 1]


def test_a_longer_task_of_a_higher_priority_goes_first():
    events = [NODE, length(1, 3600, priority=1), length(2, 1), make_tasks([1, 2], [1, 2])]
    assert places(ShortestJobFirst(), *events) == {1: "a"}


@pytest.mark.parametrize(
    ("patience", "stride", "earliest", "latest"),
    [
        # the fresh ones have e = 1, a = 1, the long one e = 11.75: it goes first from a = 12 on, at 2**12 - 1 seconds
        pytest.param(1.0, 60, 2047, 4095, id="patience-1"),
        # e = 0.5 and 6: from a = 7 on
        pytest.param(0.5, 1, 63, 127, id="patience-0.5"),
    ],
)
def test_a_stream_of_short_tasks_starves_no_task(patience, stride, earliest, latest):
    """Capacity for one task, and in every round a new task of one second. Ages count in doublings."""
    cluster = cluster_under(ShortestJobFirst(patience), NODE, length(1, 3600), length(2, 1), make_tasks([1], 1))
    uid = seconds = 0
    while uid != 1 and seconds < 2 * latest:
        seconds += stride
        now = NOW_US + seconds * SECOND_US
        cluster.tell(make_tasks([1 + seconds], 2, created_us=now - SECOND_US))
        (uid,) = cluster.round(now)
        cluster.tell(ended(uid))
    assert uid == 1
    assert earliest < seconds <= latest + stride


def test_if_all_tasks_fit_duration_does_not_matter():
    nodes = [make_node(name, cpu=4) for name in "ab"]
    events = [*nodes, length(1, 3600), length(2, 1), make_tasks([1, 2, 3, 4], [1, 1, 2, 2])]
    assert sorted(places(ShortestJobFirst(), *events).values()) == ["a", "a", "b", "b"]


def test_there_are_few_distinct_costs():
    rng = np.random.default_rng(0)
    view = make_view(
        requests=[[1, 1]] * 5000,
        allocatable=[[110, 9]],
        age_us=rng.integers(0, 10**12, 5000).tolist(),
        expected_us=rng.integers(1, 10**12, 5000).tolist(),
    )
    assert len(np.unique(ShortestJobFirst().costs(view).wait)) < 500
