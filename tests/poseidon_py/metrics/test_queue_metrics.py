"""Metrics of queues."""

import math

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from poseidon_py.metrics.declarations import BOUND, OF_RESOURCES, OTHER
from poseidon_py.metrics.queue_metrics import FlavorFigures, KueueFigures, QueueFigures, QueueMetrics


def figures(name, pods=0, **used):
    return QueueFigures(name, "Queue", pods // 2, pods - pods // 2, 0.5, used, {}, {})


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return QueueMetrics(registry)


def samples(registry, name):
    return [each for family in registry.collect() for each in family.samples if each.name == name]


def test_of_many_queues_the_largest_have_a_name_and_the_others_are_added_up(registry, metrics):
    metrics.show(figures(f"q{at}", at, cpu=1.0) for at in range(BOUND + 5))
    running = {each.labels["queue"]: each.value for each in samples(registry, "poseidon_queue_running_pods")}
    assert set(running) == {f"q{at}" for at in range(5, BOUND + 5)} | {OTHER}
    assert running[OTHER] == 0 + 1 + 1 + 2 + 2  # the larger halves of 0 to 4 pods
    used = {each.labels["queue"]: each.value for each in samples(registry, "poseidon_queue_used")}
    assert used[OTHER] == 5.0
    assert OTHER not in [each.labels["queue"] for each in samples(registry, "poseidon_queue_share")]


def test_no_number_of_resources_makes_more_samples_than_the_bound(registry, metrics):
    many = {f"example.com/r{at}": 1.0 for at in range(40)}
    metrics.show(figures(f"q{at}", **many) for at in range(BOUND))
    used = samples(registry, "poseidon_queue_used")
    assert len(used) == OF_RESOURCES + 1
    assert sum(each.value for each in used) == 40 * BOUND


def test_queues_that_are_gone_have_no_samples(registry, metrics):
    metrics.show([figures("a", 3, cpu=1.5)])
    assert b'poseidon_queue_used{queue="a",resource="cpu",type="Queue"} 1.5' in generate_latest(registry)
    metrics.show(())
    assert b"{" not in generate_latest(registry)


def test_cluster_queues_have_the_metrics_of_kueue(registry, metrics):
    flavor = FlavorFigures("spot", "cpu", 3.0, 2.0, math.inf, 1.0)
    metrics.show(
        [
            QueueFigures("team", "ClusterQueue", 1, 3, 0.25, {}, {}, {}, KueueFigures("lab", "all", True, (flavor,))),
            QueueFigures("lab", "Cohort", 1, 3, 0.0, {}, {}, {}, KueueFigures("all", "all", True)),
        ]
    )
    text = generate_latest(registry).decode()
    of = 'cluster_queue="team",cohort="lab",flavor="spot",replica_role="leader",resource="cpu"'
    for name, value in (
        ("resource_usage", 3.0),
        ("nominal_quota", 2.0),
        ("borrowing_limit", "+Inf"),
        ("lending_limit", 1.0),
    ):
        assert f"kueue_cluster_queue_{name}{{{of}}} {value}\n" in text
    assert 'kueue_cluster_queue_weighted_share{cluster_queue="team",cohort="lab",replica_role="leader"} 250.0' in text
    assert 'kueue_cluster_queue_status{cluster_queue="team",replica_role="leader",status="active"} 1.0' in text
    assert 'kueue_cluster_queue_status{cluster_queue="team",replica_role="leader",status="pending"} 0.0' in text
    info = 'cluster_queue="team",parent_cohort="lab",replica_role="leader",root_cohort="all"'
    assert f"kueue_cluster_queue_info{{{info}}} 1.0" in text
    assert 'kueue_cohort_info{cohort="lab",parent_cohort="all",replica_role="leader",root_cohort="all"} 1.0' in text
    assert 'kueue_cohort_weighted_share{cohort="lab",replica_role="leader"} 0.0' in text
