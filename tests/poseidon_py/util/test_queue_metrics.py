"""Metrics of queues."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from poseidon_py.util.queue_metrics import LARGEST, QueueFigures, QueueMetrics


def figures(name, pods=0, **used):
    return QueueFigures(name, "Queue", pods // 2, pods - pods // 2, 0.5, used, {}, {})


def test_the_largest_queues_are_shown():
    registry = CollectorRegistry()
    metrics = QueueMetrics("x_", registry)
    metrics.show(figures(f"q{at}", at, cpu=1.0) for at in range(LARGEST + 5))
    shown = {
        sample.labels["queue"]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "x_queue_running_pods"
    }
    assert shown == {f"q{at}" for at in range(5, LARGEST + 5)}


def test_queues_that_are_gone_have_no_samples():
    registry = CollectorRegistry()
    metrics = QueueMetrics("x_", registry)
    metrics.show([figures("a", 3, cpu=1.5)])
    assert b'x_queue_used{queue="a",resource="cpu",type="Queue"} 1.5' in generate_latest(registry)
    metrics.show(())
    assert b"{" not in generate_latest(registry)
