"""What Prometheus can ask about the bridge. Names follow kube-scheduler's where the meaning is the same.

Each bridge has metrics of its own, in a registry of their own: two in one process do not take each other's gauges, and
embedding programs keep theirs clean.
"""

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import generate_latest

_PREFIX = "poseidon_"
_SHORT = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16, 32)
_LONG = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5, 10, 20, 40, 80, 160, 320, 640)


class Metrics:
    """All metrics of one bridge, and those of the process that it runs in."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.attempts = self._counter(
            "schedule_attempts_total",
            "Decisions about pods: scheduled, unschedulable (reasons new or changed), error.",
            "result",
        )
        self.sli = self._histogram(
            "pod_scheduling_sli_duration_seconds", "From when a pod was first seen waiting until it was bound.", _LONG
        )
        self.round = self._histogram(
            "round_duration_seconds", "Scheduling rounds, as the engine measures them.", _SHORT
        )
        self.round_call = self._histogram("round_call_duration_seconds", "The same with the call around it.", _SHORT)
        self.round_stage = self._histogram("round_stage_seconds", "Stages of a round.", _SHORT, "stage")
        self.rounds = self._counter("rounds_total", "Rounds: placed, idle (nothing to place), failed.", "result")
        self.dropped = self._counter(
            "placements_dropped_total", "Placements that the engine's independent check refused: defects."
        )
        self.bind = self._histogram("bind_duration_seconds", "Bind requests, each attempt.", _SHORT, "result")
        self.binds_in_flight = self._gauge("binds_in_flight", "Bind requests on their way.")
        self.fallbacks = self._counter(
            "policy_fallbacks_total", "Rounds that placed pods anywhere they fit because the policy failed.", "policy"
        )
        self.bind_stale = self._counter(
            "binds_dropped_total", "Placements not carried out because the state had moved on.", "reason"
        )
        self.gang_units = self._counter(
            "gang_units_total",
            "Gangs: bound whole, refused or aborted before anything was bound, unwound.",
            "result",
        )
        self.pending = self._gauge("pending_pods", "Pods that wait: active (to be placed), gated, nonsense.", "queue")
        self.pods = self._gauge("pods", "Pods known.")
        self.nodes = self._gauge("nodes", "Nodes known.")
        self.queue_depth = self._gauge("workqueue_depth", "Keys that are ready for a worker.", "name")
        self.queue_adds = self._counter("workqueue_adds_total", "Keys added, without those that coalesced.", "name")
        self.queue_retries = self._counter("workqueue_retries_total", "Keys added again after a failure.", "name")
        self.queue_work = self._histogram("workqueue_work_duration_seconds", "One batch of keys.", _SHORT, "name")
        self.batch = self._histogram(
            "workqueue_batch_keys",
            "Keys per batch, which is one call of the engine.",
            (1, 4, 16, 64, 256, 1024, 4096),
            "name",
        )
        self.watch_events = self._counter(
            "watch_events_total", "Events of watches; malformed: cannot be decoded.", "kind", "type"
        )
        self.watch_restarts = self._counter(
            "watch_restarts_total",
            "Watches begun again: ended (by the server), quiet (nothing came for a while), gone (410), error.",
            "kind",
            "reason",
        )
        self.rpc = self._histogram("engine_rpc_duration_seconds", "Calls of the engine.", _SHORT, "method")
        self.rpc_errors = self._counter("engine_rpc_errors_total", "Failed calls of the engine.", "method", "code")
        self.resyncs = self._counter("engine_resyncs_total", "Full resynchronisations of the engine.")
        self.refusals = self._counter("engine_refusals_total", "Descriptions that the engine refused.", "kind")
        self.firmament_starts = self._counter("firmament_starts_total", "Starts of the own flow service.")
        self.invalid = self._counter(
            "nonsense_objects_total", "Objects skipped because a field makes no sense.", "kind"
        )
        self.no_allocatable = self._counter("nodes_without_allocatable_total", "Nodes seen that offer nothing.")
        self.illegal_transitions = self._counter(
            "illegal_pod_transitions_total",
            "Events of pods refused because their state does not allow them.",
            "state",
            "event",
        )
        self.collisions = self._counter("task_id_collisions_total", "Pods whose UIDs have the same 64-bit hash.")
        self.reports = self._counter(
            "reports_total", "Events and condition patches, by what became of them.", "kind", "result"
        )
        self.reports_waiting = self._gauge("reports_pending", "Events and condition patches still to be sent.")
        self.usage_polls = self._counter(
            "usage_polls_total", "Polls of who knows what pods and nodes use: answered, failed.", "source", "result"
        )
        self.usage_samples = self._counter(
            "usage_samples_total",
            "Samples of usage: taken, old (not newer than what was known), refused (make no sense), unknown (of no "
            "pod or node that is known).",
            "result",
        )
        self.usage_age = self._gauge(
            "usage_last_poll_age_seconds", "Since a poll last gave samples; NaN: none has, or nobody polls."
        )
        self.usage_tasks = self._gauge(
            "usage_priced_pods",
            "Placed pods in the last round, by what they were priced by where usage is the basis: measured; by their "
            "requests because usage is missing, or stale.",
            "by",
        )
        self.leader = self._gauge("leader_election_master_status", "1: leads, 0: stands by.")

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(_PREFIX + name, text, labels, buckets=buckets, registry=self.registry)
