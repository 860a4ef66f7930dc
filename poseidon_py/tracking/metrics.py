"""Prometheus metrics of observed jobs: by queue, state and outcome, never by job or user.

Samples are made when they are asked for. Totals count from the start of the process.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from poseidon_py.machines.states import JobState
from poseidon_py.tracking.figures import BUCKETS, Durations, Figures

if TYPE_CHECKING:
    from poseidon_py.tracking.tracker import Tracker

LARGEST = 1000
"""Queues that are shown: those with the largest number of pods."""
_EVERY = 4
"""Of the buckets of durations, every fourth is shown: by factors of 4."""
_PREFIX = "poseidon_"
_ENDS = ("succeeded", "failed", "evicted", "deleted")
_EVENTS = ("preempted", "migrated", "retries")


class TrackingMetrics(Collector):
    """`show` a tracker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tracker: Tracker | None = None
        self.transitions = Counter(
            f"{_PREFIX}observed_job_transitions_total",
            "Observed transitions by machine (job, task, replica) and new state.",
            ["machine", "state"],
            registry=registry,
        )
        self.illegal = Counter(
            f"{_PREFIX}observed_job_illegal_transitions_total",
            "Transitions that were observed although the machine does not have them.",
            ["machine", "old", "new"],
            registry=registry,
        )
        registry.register(self)

    def show(self, tracker: "Tracker") -> None:
        self._tracker = tracker

    def describe(self) -> Iterable[Metric]:
        """Names of the metrics without samples."""
        return _families()

    def collect(self) -> Iterator[Metric]:
        """The samples; called by the client library."""
        jobs, ended, events, run, lost, resources, waits = families = _families()
        if self._tracker is not None:
            counts = self._tracker.counts()
            for state in JobState:
                if state is not JobState.NEW:
                    jobs.add_metric([state], counts.get(state, 0))
            for queue, figures in _largest(self._tracker.accounts.of_queues().items()):
                for outcome in _ENDS:
                    ended.add_metric([queue, outcome], getattr(figures, outcome))
                for event in _EVENTS:
                    events.add_metric([queue, event], getattr(figures, event))
                run.add_metric([queue], figures.run)
                lost.add_metric([queue], figures.lost)
                for resource, amount in figures.resource_seconds.items():
                    resources.add_metric([queue, resource], amount)
                waits.add_metric([queue], _buckets(figures.waits), figures.waits.sum)
        yield from families


def _largest(queues: Iterable[tuple[str, Figures]]) -> list[tuple[str, Figures]]:
    return heapq.nsmallest(LARGEST, queues, key=lambda each: (-each[1].created, each[0]))


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Bounds and cumulative counts."""
    found, below, seen = [], sorted(durations.counts.items(), reverse=True), 0
    for at in range(0, len(BUCKETS), _EVERY):
        while below and below[-1][0] <= at:
            seen += below.pop()[1]
        found.append((f"{BUCKETS[at]:g}", float(seen)))
    return [*found, ("+Inf", float(durations.count))]


def _families() -> tuple[
    GaugeMetricFamily,
    CounterMetricFamily,
    CounterMetricFamily,
    CounterMetricFamily,
    CounterMetricFamily,
    CounterMetricFamily,
    HistogramMetricFamily,
]:
    return (
        GaugeMetricFamily(f"{_PREFIX}observed_jobs", "Jobs that have pods, or had, by state.", labels=["state"]),
        CounterMetricFamily(f"{_PREFIX}queue_pods_ended", "Pods that ended or are gone.", labels=["queue", "outcome"]),
        CounterMetricFamily(
            f"{_PREFIX}queue_pod_events", "Pods by event: preempted, migrated, retries.", labels=["queue", "event"]
        ),
        CounterMetricFamily(f"{_PREFIX}queue_run_seconds", "Run time of pods that ended.", labels=["queue"]),
        CounterMetricFamily(
            f"{_PREFIX}queue_lost_seconds", "Run time that evictions lost, since checkpoints.", labels=["queue"]
        ),
        CounterMetricFamily(
            f"{_PREFIX}queue_resource_seconds",
            "Requests of pods that ended, by the time on their nodes: core-seconds, byte-seconds, piece-seconds.",
            labels=["queue", "resource"],
        ),
        HistogramMetricFamily(
            f"{_PREFIX}queue_pod_wait_seconds", "Time from the creation of a pod until it is bound.", labels=["queue"]
        ),
    )
