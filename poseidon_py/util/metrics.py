"""Prometheus metrics of the bridge. Names follow kube-scheduler's where the meaning is the same.

Each bridge has its own metrics in its own registry: they never appear among those of another bridge in the same
process, or of a program that embeds it.
"""

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

from poseidon_py import __version__
from poseidon_py.util.queue_metrics import QueueMetrics

_PREFIX = "poseidon_"
_SHORT = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16, 32)
_LONG = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5, 10, 20, 40, 80, 160, 320, 640)


class Metrics:
    """All metrics of one bridge, and of its process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        Info(f"{_PREFIX}build", "The version of the scheduler.", registry=self.registry).info({"version": __version__})
        self.attempts = self._counter(
            "schedule_attempts_total",
            "Decisions about pods: scheduled, unschedulable (reasons new or changed), error.",
            "result",
        )
        self.sli = self._histogram(
            "pod_scheduling_sli_duration_seconds",
            "Time from the first observation of a pending pod until it is bound.",
            _LONG,
        )
        self.round = self._histogram(
            "round_duration_seconds", "Duration of scheduling rounds, measured by the engine.", _SHORT
        )
        self.round_call = self._histogram(
            "round_call_duration_seconds", "Duration of scheduling rounds, including the call.", _SHORT
        )
        self.round_stage = self._histogram("round_stage_seconds", "Duration of the stages of a round.", _SHORT, "stage")
        self.gap = self._gauge(
            "round_gap_pods", "How many more pods any packing could have placed in the last round, at most."
        )
        self.rounds = self._counter(
            "rounds_total", "Rounds by result: placed, idle (nothing to place), failed.", "result"
        )
        self.placed_by = self._counter(
            "placements_total",
            "Placements by the step of the round that decided them: flow, cheapest slots, packing, lists, ...",
            "step",
        )
        self.dropped = self._counter(
            "placements_dropped_total", "Placements that the engine's independent check rejected; each is a defect."
        )
        self.unsolved = self._counter(
            "networks_unsolved_total",
            "Networks that the solver found no flow for, by its status; each is a defect.",
            "status",
        )
        self.compressed = self._counter(
            "networks_compressed_total",
            "Networks that the solver found a flow for only once the differences of waiting costs were limited.",
        )
        self.bind = self._histogram("bind_duration_seconds", "Duration of bind requests, by attempt.", _SHORT, "result")
        self.binds_in_flight = self._gauge("binds_in_flight", "Bind requests in flight.")
        self.fallbacks = self._counter(
            "policy_fallbacks_total", "Rounds that placed pods anywhere they fit because the policy failed.", "policy"
        )
        self.bind_stale = self._counter(
            "binds_dropped_total", "Placements that were not bound because the state had changed.", "reason"
        )
        self.preemptions = self._counter(
            "preemption_attempts_total", "Decisions of rounds that a pending pod waits for its victims on a node."
        )
        self.victims = self._counter(
            "preemption_victims_total",
            "Victims by outcome: deleted; suspended (with their workload); unbound (not bound yet: they wait again); "
            "gone (by themselves); dropped (no longer needed, or another replica leads); refused (by the API server).",
            "outcome",
        )
        self.migrations = self._counter(
            "migrations_total",
            "Pods that move to other nodes, by outcome: evicted; gone (by themselves); dropped (decision obsolete, or "
            "another replica leads); refused (by the API server, mostly for a disruption budget).",
            "outcome",
        )
        self.drains = self._counter(
            "drains_total",
            "Pods of queues that drain, by outcome: evicted; suspended (with their workload); gone (by themselves); "
            "refused (mostly for a disruption budget).",
            "outcome",
        )
        self.suspensions = self._counter(
            "workload_suspensions_total",
            "Workloads whose pods all leave, by reason and result: written, overtaken (suspended already), gone, "
            "refused (their pods are deleted), given up (no clear answer for too long, or another replica leads).",
            "reason",
            "result",
        )
        self.resumptions = self._counter(
            "workload_resumptions_total", "Suspended workloads whose turn has come, by result as above.", "result"
        )
        self.moves_decided = self._counter(
            "moves_decided_total", "Decisions that a running pod moves so that a pending one fits."
        )
        self.moves_needed = self._counter(
            "moves_needed_total", "A lower bound on the moves by which these pending pods could have fitted."
        )
        self.gang_units = self._counter(
            "gang_units_total",
            "Gangs by result: bound as a whole, refused or aborted before any bind, unwound.",
            "result",
        )
        self.pending = self._gauge(
            "pending_pods", "Pending pods by queue: active (to be placed), gated, invalid.", "queue"
        )
        self.pods = self._gauge("pods", "Number of pods.")
        self.nodes = self._gauge("nodes", "Number of nodes.")
        self.queue_depth = self._gauge("workqueue_depth", "Keys ready for a worker.", "name")
        self.queue_adds = self._counter("workqueue_adds_total", "Keys added, without coalesced ones.", "name")
        self.queue_retries = self._counter("workqueue_retries_total", "Keys added again after a failure.", "name")
        self.queue_work = self._histogram(
            "workqueue_work_duration_seconds", "Duration of the work on one batch of keys.", _SHORT, "name"
        )
        self.batch = self._histogram(
            "workqueue_batch_keys",
            "Keys per batch, that is, per call of the engine.",
            (1, 4, 16, 64, 256, 1024, 4096),
            "name",
        )
        self.watch_events = self._counter(
            "watch_events_total", "Watch events by type; malformed: not decodable.", "kind", "type"
        )
        self.watch_restarts = self._counter(
            "watch_restarts_total",
            "Restarts of watches by reason: ended (by the server), quiet (no data for a while), gone (410), error.",
            "kind",
            "reason",
        )
        self.rpc = self._histogram("engine_rpc_duration_seconds", "Duration of calls of the engine.", _SHORT, "method")
        self.rpc_errors = self._counter("engine_rpc_errors_total", "Failed calls of the engine.", "method", "code")
        self.resyncs = self._counter("engine_resyncs_total", "Full resynchronisations of the engine.")
        self.refusals = self._counter("engine_refusals_total", "Descriptions that the engine rejected.", "kind")
        self.firmament_starts = self._counter("firmament_starts_total", "Starts of the supervised flow service.")
        self.invalid = self._counter("invalid_objects_total", "Objects skipped because a field is invalid.", "kind")
        self.no_allocatable = self._counter(
            "nodes_without_allocatable_total", "Nodes observed without allocatable resources."
        )
        self.illegal_transitions = self._counter(
            "illegal_pod_transitions_total",
            "Events of pods that were ignored because the state of the pod does not allow them.",
            "state",
            "event",
        )
        self.collisions = self._counter("task_id_collisions_total", "Pods whose UIDs have the same 64-bit hash.")
        self.reports = self._counter("reports_total", "Events and condition patches by result.", "kind", "result")
        self.reports_waiting = self._gauge("reports_pending", "Events and condition patches waiting to be sent.")
        self.usage_polls = self._counter(
            "usage_polls_total", "Polls of usage sources by result: answered, failed.", "source", "result"
        )
        self.usage_samples = self._counter(
            "usage_samples_total",
            "Usage samples by result: taken, old (not newer than the last one), refused (invalid), unknown (of an "
            "unknown pod or node).",
            "result",
        )
        self.usage_age = self._gauge(
            "usage_last_poll_age_seconds", "Seconds since a poll last gave samples; NaN: never, or not polling."
        )
        self.usage_tasks = self._gauge(
            "usage_priced_pods",
            "Placed pods in the last round by the basis of their costs: measured usage, or requests because usage is "
            "missing or stale.",
            "by",
        )
        self.queue_takeovers = self._counter(
            "queue_takeovers_total",
            "Kinds of queues that were taken over because their own controller is gone.",
            "kind",
        )
        self.queues = QueueMetrics(_PREFIX, self.registry)
        self.leader = self._gauge("leader_election_master_status", "1: leader, 0: standby.")
        self.lease_losses = self._counter(
            "leader_election_losses_total",
            "Ends of leadership by cause: taken (by another process), error (of requests), unanswered (a request), "
            "late (this process did not run in time).",
            "cause",
        )

    def follow_child(self, prefix: str, pid: Callable[[], int | None]) -> None:
        """Adds the cpu, memory and files of a process that is started again from time to time. `pid`: its id now."""
        ProcessCollector(namespace=prefix, pid=lambda: pid() or "none", registry=self.registry)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format, without the times at which counters were created."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(_PREFIX + name, text, labels, buckets=buckets, registry=self.registry)
