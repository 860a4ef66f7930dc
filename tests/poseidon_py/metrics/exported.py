"""The registries of both processes, with all that they can export."""

from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.metrics.metrics import Metrics, ProcessMetrics
from poseidon_py.tracking.metrics import TrackingMetrics


def of_scheduler() -> Metrics:
    """All metrics of `poseidon run`."""
    metrics = Metrics()
    metrics.follow_child(lambda: None)
    TrackingMetrics(metrics.registry)
    HookMetrics(metrics.registry)
    return metrics


def of_jobs() -> ProcessMetrics:
    """All metrics of `poseidon jobs run`."""
    metrics = ProcessMetrics()
    HookMetrics(metrics.registry)
    JobMetrics(metrics)
    return metrics


def families(metrics: ProcessMetrics) -> dict[str, str]:
    """Name of a family -> its type, of all that are registered, with samples or without."""
    found = {}
    for collector in list(metrics.registry._collector_to_names):
        for family in [*(collector.describe() if hasattr(collector, "describe") else []), *collector.collect()]:
            found[family.name] = family.type
    return found
