"""What the used amounts of nodes are, and which samples count."""

import logging
import math

import numpy as np
import pytest

from firmament_py.model.resources import LIMIT
from firmament_py.usage.usage import Basis, Noted, Usage, UsageOptions
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks, removed
from tests.firmament_py.usage.measuring import SECOND, load, measure, measure_node, usage


@pytest.fixture
def cluster():
    """Node a with tasks 1 and 2, b with task 3, each requesting 1000 millicores and 100 bytes."""
    return make_cluster(
        make_node("a", cpu=8000, memory=800),
        make_node("b", cpu=8000, memory=800),
        make_class(1, cpu=1000, memory=100),
        make_tasks([1, 2], 1, on="a"),
        make_tasks([3], 1, on="b"),
    )


def test_measured_tasks_count_by_usage_and_others_by_requests(cluster):
    used, larger = usage(Basis.USED), usage(Basis.LARGER)
    for one in (used, larger):
        measure(one, cluster.state, 1, cpu=300.2, memory=150)
    assert load(used, cluster.state)["a"] == {"pods": 2, "cpu": 1300, "memory": 250}  # 300 + 1000; 150 + 100
    assert load(larger, cluster.state)["a"] == {"pods": 2, "cpu": 2000, "memory": 250}
    assert load(used, cluster.state)["b"] == {"pods": 1, "cpu": 1000, "memory": 100}


def test_requests_are_the_default_and_need_no_samples(cluster):
    measure(plain := Usage(), cluster.state, 1, cpu=300)
    reading = plain.read(cluster.state, cluster.state.present_nodes(), NOW_US)
    assert (reading.load, reading.measured, reading.missing, reading.stale) == (None, 0, 0, 0)


def test_fallbacks_are_counted(cluster):
    one = usage(stale=300)
    measure(one, cluster.state, 1, cpu=1, memory=1, at=NOW_US - 301 * SECOND)
    measure(one, cluster.state, 2, cpu=1, memory=1)
    nodes = cluster.state.present_nodes()
    reading = one.read(cluster.state, nodes, NOW_US)
    assert (reading.measured, reading.missing, reading.stale) == (1, 1, 1)
    measure(one, cluster.state, 3, cpu=1)
    reading = one.read(cluster.state, nodes, NOW_US)
    assert (reading.measured, reading.missing, reading.stale) == (1, 1, 1), "half measured is missing"
    assert load(one, cluster.state)["b"] == {"pods": 1, "cpu": 1, "memory": 100}


def test_a_node_without_cpu_has_a_reading():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1, on="a"))
    one = usage()
    measure(one, cluster.state, 1, cpu=5)
    assert load(one, cluster.state) == {"a": {"pods": 1}}


def test_raw_usage_of_nodes(cluster):
    one = Usage()
    nodes = cluster.state.present_nodes()
    assert one.read(cluster.state, nodes, NOW_US).usage is None
    measure_node(one, cluster.state, "b", cpu=600, memory=50, rx=7, at=NOW_US - 60 * SECOND)
    measure_node(one, cluster.state, "b", cpu=300, memory=50)
    read = one.read(cluster.state, nodes, NOW_US + SECOND).usage
    assert read is not None
    np.testing.assert_allclose(read.cpu, [math.nan, 400])
    np.testing.assert_allclose(read.memory, [math.nan, 50])
    np.testing.assert_allclose(read.rx, [math.nan, 7])
    np.testing.assert_allclose(read.tx, [math.nan, math.nan])
    np.testing.assert_allclose(read.age_seconds, [math.nan, 1])
    with pytest.raises(ValueError, match="read-only"):
        read.cpu[0] = 1


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param({"cpu": -1.0}, id="negative"),
        pytest.param({"cpu": 100.0, "tx": -0.1}, id="one-negative"),
        pytest.param({"cpu": math.inf}, id="infinite"),
        pytest.param({"rx": float(LIMIT)}, id="beyond-all-measure"),
        pytest.param({"cpu": 32_001.0}, id="over-four-times-its-node"),
        pytest.param({"memory": 3_201.0}, id="memory-in-another-unit"),
        pytest.param({}, id="nothing-measured"),
        pytest.param({"cpu": 1.0, "at": NOW_US + 301 * SECOND, "now": NOW_US}, id="from-the-future"),
        pytest.param({"cpu": 1.0, "at": 0, "now": NOW_US}, id="without-a-time"),
    ],
)
def test_a_bad_sample_is_refused_alone(cluster, sample, caplog):
    one = usage()
    state = cluster.state
    with caplog.at_level(logging.WARNING):
        assert measure(one, state, 1, **sample) == Noted(refused=1)
    assert "task-1" in caplog.text
    assert measure(one, state, 2, cpu=32_000, memory=3_200) == Noted(taken=1)
    assert one.total == Noted(taken=1, refused=1)
    assert load(one, state)["a"]["cpu"] == 33_000


def test_a_slightly_fast_clock_counts_as_now(cluster):
    one = usage()
    assert measure(one, cluster.state, 1, cpu=5, at=NOW_US + 10 * SECOND, now=NOW_US) == Noted(taken=1)
    assert measure(one, cluster.state, 1, cpu=7, at=NOW_US + SECOND, now=NOW_US + SECOND) == Noted(taken=1)


def test_samples_that_are_not_newer_are_skipped(cluster):
    one = usage()
    measure(one, cluster.state, 1, cpu=5)
    assert measure(one, cluster.state, 1, cpu=6) == Noted(old=1)
    assert measure(one, cluster.state, 99, cpu=6) == Noted(unknown=1)
    assert load(one, cluster.state)["a"]["cpu"] == 1005


def test_samples_survive_a_resync(cluster):
    one = usage()
    measure(one, cluster.state, 3, cpu=5, memory=5)
    measure(one, cluster.state, 1, cpu=7, memory=7)
    measure_node(one, cluster.state, "a", cpu=9)
    after = make_cluster(
        make_class(9, cpu=1),
        make_node("b", cpu=8000, memory=800),
        make_class(1, cpu=1000, memory=100),
        make_tasks([7, 3], 1, on="b"),
        make_node("a", cpu=8000, memory=800),
        make_tasks([2], 1, on="a"),
    ).state
    one.carry(cluster.state, after)
    assert load(one, after)["b"]["cpu"] == 1005, "task 3 by use, task 7 by request"
    assert load(one, after)["a"]["cpu"] == 1000
    read = one.read(after, after.present_nodes(), NOW_US).usage
    assert read is not None
    np.testing.assert_allclose(read.cpu, [math.nan, 9])


def test_a_reused_uid_inherits_no_samples(cluster):
    one = usage()
    measure(one, cluster.state, 3, cpu=5, memory=5)
    cluster.tell(removed(3), make_tasks([3], 1, on="b"))
    assert load(one, cluster.state)["b"]["cpu"] == 1000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"samples": 0}, "usage-samples"),
        ({"samples": 10_001}, "usage-samples"),
        ({"stale": 0.0}, "usage-stale"),
        ({"half_life": 0.0}, "usage-half-life"),
        ({"half_life": math.nan}, "usage-half-life"),
        ({"stale": math.inf}, "usage-stale"),
    ],
)
def test_invalid_options(options, says):
    with pytest.raises(ValueError, match=says):
        UsageOptions(**options)
