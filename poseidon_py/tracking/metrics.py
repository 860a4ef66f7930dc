"""Prometheus metrics of observed jobs: by queue, state and outcome, never by job or user.

Samples are made when they are asked for. Totals count from the start of the process.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from poseidon_py.machines.states import JobState
from poseidon_py.metrics.instruments import BoundedLabels, Instruments, Samples
from poseidon_py.metrics.table import TABLE
from poseidon_py.tracking.figures import BUCKETS, Durations

if TYPE_CHECKING:
    from poseidon_py.tracking.tracker import Tracker

_EVERY = 4
"""Of the buckets of durations, every fourth is shown: by factors of 4."""
_ENDS = ("succeeded", "failed", "evicted", "deleted")
_EVENTS = ("preempted", "migrated", "retries")
_NAMES = {
    "jobs": "poseidon_observed_jobs",
    "ended": "poseidon_queue_pods_ended_total",
    "events": "poseidon_queue_pod_events_total",
    "run": "poseidon_queue_run_seconds_total",
    "lost": "poseidon_queue_lost_seconds_total",
    "resources": "poseidon_queue_resource_seconds_total",
    "waits": "poseidon_queue_pod_wait_seconds",
}


class TrackingMetrics(Collector):
    """`show` a tracker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tracker: Tracker | None = None
        make = Instruments(registry)
        self.transitions = make.counter("poseidon_observed_job_transitions_total")
        self.illegal = make.counter("poseidon_observed_job_illegal_transitions_total")
        self._limits = {of: BoundedLabels(TABLE[name]) for of, name in _NAMES.items()}
        registry.register(self)

    def show(self, tracker: "Tracker") -> None:
        self._tracker = tracker

    def describe(self) -> Iterable[Metric]:
        """Names of the metrics without samples."""
        return [samples.family() for samples in self._samples().values()]

    def collect(self) -> Iterator[Metric]:
        """The samples; called by the client library."""
        samples = self._samples()
        if self._tracker is not None:
            counts = self._tracker.counts()
            for state in JobState:
                if state is not JobState.NEW:
                    samples["jobs"].add([state], counts.get(state, 0))
            for queue, figures in self._tracker.accounts.of_queues().items():
                for outcome in _ENDS:
                    samples["ended"].add([queue, outcome], getattr(figures, outcome))
                for event in _EVENTS:
                    samples["events"].add([queue, event], getattr(figures, event))
                samples["run"].add([queue], figures.run)
                samples["lost"].add([queue], figures.lost)
                for resource, amount in figures.resource_seconds.items():
                    samples["resources"].add([queue, resource], amount)
                samples["waits"].add_buckets([queue], _buckets(figures.waits), figures.waits.sum)
        yield from (each.family() for each in samples.values())

    def _samples(self) -> dict[str, Samples]:
        return {of: Samples(name, self._limits[of]) for of, name in _NAMES.items()}


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Bounds and cumulative counts."""
    found, below, seen = [], sorted(durations.counts.items(), reverse=True), 0
    for at in range(0, len(BUCKETS), _EVERY):
        while below and below[-1][0] <= at:
            seen += below.pop()[1]
        found.append((f"{BUCKETS[at]:g}", float(seen)))
    return [*found, ("+Inf", float(durations.count))]
