"""How metrics are made: bounded labels, former names."""

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from poseidon_py.metrics.declarations import BOUND, OTHER
from poseidon_py.metrics.instruments import BoundedLabels, Instruments, Samples
from poseidon_py.metrics.table import TABLE


@pytest.fixture
def make():
    return Instruments(CollectorRegistry())


def values(make, sample):
    """Labels -> value."""
    found = [each for family in make.registry.collect() for each in family.samples if each.name == sample]
    return {tuple(sorted(each.labels.items())): each.value for each in found}


def test_no_number_of_values_of_an_open_label_makes_more_samples_than_the_bound(make):
    counter = make.counter("poseidon_hook_attempts_total")
    for at in range(BOUND + 500):
        counter.labels(f"hook-{at}", "failed").inc()
    counter.labels("hook-3", "failed").inc()
    counter.labels("hook-1400", "delivered").inc(2)
    found = values(make, "poseidon_hook_attempts_total")
    assert len(found) == BOUND + 2  # OTHER with each outcome that it had
    assert found[("hook", OTHER), ("outcome", "failed")] == 500
    assert found[("hook", OTHER), ("outcome", "delivered")] == 2
    assert found[("hook", "hook-3"), ("outcome", "failed")] == 2
    assert sum(found.values()) == BOUND + 503


def test_a_label_with_listed_values_is_not_counted_against_the_bound(make):
    gauge = make.gauge("scheduler_unschedulable_pods")
    for plugin in TABLE["scheduler_unschedulable_pods"].labels[0].values:
        gauge.labels(plugin, "poseidon").set(1)
    assert OTHER not in str(values(make, "scheduler_unschedulable_pods"))


def test_samples_beyond_the_bound_are_added_and_a_counter_stays_the_same_in_the_next_request():
    name = "poseidon_queue_pod_wait_seconds"
    limits = BoundedLabels(TABLE[name])
    for count in (BOUND, BOUND + 3):  # three queues appear later
        samples = Samples(name, limits)
        for at in reversed(range(count)):
            samples.add_buckets([f"q{at}"], [("1", 1.0), ("+Inf", 2.0)], 5.0)
        found = {
            (each.name, each.labels["queue"], each.labels.get("le")): each.value for each in samples.family().samples
        }
        assert found[f"{name}_sum", "q7", None] == 5.0
    assert found[f"{name}_bucket", OTHER, "1"] == 3.0
    assert found[f"{name}_bucket", OTHER, "+Inf"] == found[f"{name}_count", OTHER, None] == 6.0
    assert found[f"{name}_sum", OTHER, None] == 15.0
    assert len(found) == 4 * (BOUND + 1)


def test_a_renamed_metric_keeps_its_former_name_and_labels(make):
    attempts = make.counter("scheduler_schedule_attempts_total")
    attempts.labels("scheduled", "a").inc(2)
    attempts.labels("scheduled", "b").inc(3)
    attempts.labels("error", "b").inc()
    text = generate_latest(make.registry).decode()
    assert 'scheduler_schedule_attempts_total{profile="b",result="scheduled"} 3.0' in text
    assert 'poseidon_schedule_attempts_total{result="scheduled"} 5.0' in text
    assert 'poseidon_schedule_attempts_total{result="error"} 1.0' in text
    assert "Deprecated, use scheduler_schedule_attempts_total." in text


def test_a_renamed_histogram_keeps_its_former_name(make):
    sli = make.histogram("scheduler_pod_scheduling_sli_duration_seconds")
    sli.labels("1").observe(0.015)
    sli.labels("15+").observe(100.0)
    text = generate_latest(make.registry).decode()
    assert 'poseidon_pod_scheduling_sli_duration_seconds_bucket{le="0.02"} 1.0' in text
    assert 'poseidon_pod_scheduling_sli_duration_seconds_bucket{le="+Inf"} 2.0' in text
    assert "poseidon_pod_scheduling_sli_duration_seconds_sum 100.015" in text


def test_a_metric_that_is_not_declared_cannot_be_made(make):
    with pytest.raises(KeyError):
        make.counter("poseidon_surprises_total")
    with pytest.raises(TypeError, match="poseidon_reports_pending is declared as a gauge"):
        make.counter("poseidon_reports_pending")
