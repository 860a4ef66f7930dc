"""The metrics of one process, by the names that the code has for them.

Each bridge has its own metrics in its own registry: they never appear among those of another bridge in the same
process, or of a program that embeds it.
"""

import platform
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

from poseidon_py import __version__
from poseidon_py.metrics.instruments import Instruments
from poseidon_py.metrics.queue_metrics import QueueMetrics


class ProcessMetrics:
    """Of the scheduler and the controller of jobs: build, process, watches, work queues, leadership."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.instruments = make = Instruments(self.registry)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        make.info("poseidon_build_info").info({"version": __version__, "python_version": platform.python_version()})
        self.queue_depth = make.gauge("poseidon_workqueue_depth")
        self.queue_adds = make.counter("poseidon_workqueue_adds_total")
        self.queue_retries = make.counter("poseidon_workqueue_retries_total")
        self.watch_events = make.counter("poseidon_watch_events_total")
        self.watch_restarts = make.counter("poseidon_watch_restarts_total")
        self.invalid = make.counter("poseidon_invalid_objects_total")
        self.leader = make.gauge("leader_election_master_status")
        self.leadership_changes = make.counter("poseidon_leader_election_transitions_total")
        self.lease_losses = make.counter("poseidon_leader_election_losses_total")

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format, without the times at which counters were created."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        return generate_latest(self.registry)


class Metrics(ProcessMetrics):
    """All metrics of the scheduler, but those of hooks and of observed jobs."""

    def __init__(self) -> None:
        super().__init__()
        make = self.instruments
        self.attempts = make.counter("scheduler_schedule_attempts_total")
        self.attempt_seconds = make.histogram("scheduler_scheduling_attempt_duration_seconds")
        self.sli = make.histogram("scheduler_pod_scheduling_sli_duration_seconds")
        self.pod_attempts = make.histogram("scheduler_pod_scheduling_attempts")
        self.pending = make.gauge("scheduler_pending_pods")
        self.unschedulable = make.gauge("scheduler_unschedulable_pods")
        self.victims_of_pod = make.histogram("scheduler_preemption_victims")
        self.cache_size = make.gauge("scheduler_cache_size")
        self.devices = make.gauge("poseidon_devices")
        self.round = make.histogram("poseidon_round_duration_seconds")
        self.round_call = make.histogram("poseidon_round_call_duration_seconds")
        self.round_stage = make.histogram("poseidon_round_stage_seconds")
        self.gap = make.gauge("poseidon_round_gap_pods")
        self.rounds = make.counter("poseidon_rounds_total")
        self.placed_by = make.counter("poseidon_placements_total")
        self.dropped = make.counter("poseidon_placements_dropped_total")
        self.unsolved = make.counter("poseidon_networks_unsolved_total")
        self.compressed = make.counter("poseidon_networks_compressed_total")
        self.fallbacks = make.counter("poseidon_policy_fallbacks_total")
        self.bind = make.histogram("poseidon_bind_duration_seconds")
        self.binds_in_flight = make.gauge("poseidon_binds_in_flight")
        self.bind_stale = make.counter("poseidon_binds_dropped_total")
        self.victims = make.counter("poseidon_preemption_victims_total")
        self.migrations = make.counter("poseidon_migrations_total")
        self.drains = make.counter("poseidon_drains_total")
        self.suspensions = make.counter("poseidon_workload_suspensions_total")
        self.resumptions = make.counter("poseidon_workload_resumptions_total")
        self.moves_decided = make.counter("poseidon_moves_decided_total")
        self.moves_needed = make.counter("poseidon_moves_needed_total")
        self.gang_units = make.counter("poseidon_gang_units_total")
        self.queue_work = make.histogram("poseidon_workqueue_work_duration_seconds")
        self.batch = make.histogram("poseidon_workqueue_batch_keys")
        self.rpc = make.histogram("poseidon_engine_rpc_duration_seconds")
        self.rpc_errors = make.counter("poseidon_engine_rpc_errors_total")
        self.resyncs = make.counter("poseidon_engine_resyncs_total")
        self.refusals = make.counter("poseidon_engine_refusals_total")
        self.firmament_starts = make.counter("poseidon_firmament_starts_total")
        self.no_allocatable = make.counter("poseidon_nodes_without_allocatable_total")
        self.illegal_transitions = make.counter("poseidon_illegal_pod_transitions_total")
        self.collisions = make.counter("poseidon_task_id_collisions_total")
        self.reports = make.counter("poseidon_reports_total")
        self.reports_waiting = make.gauge("poseidon_reports_pending")
        self.usage_polls = make.counter("poseidon_usage_polls_total")
        self.usage_samples = make.counter("poseidon_usage_samples_total")
        self.usage_age = make.gauge("poseidon_usage_last_poll_age_seconds")
        self.usage_tasks = make.gauge("poseidon_usage_priced_pods")
        self.queue_takeovers = make.counter("poseidon_queue_takeovers_total")
        self.queues = QueueMetrics(self.registry)
        self.former_pending = make.gauge("poseidon_pending_pods")
        self.former_pods = make.gauge("poseidon_pods")
        self.former_nodes = make.gauge("poseidon_nodes")
        self.former_preemptions = make.counter("poseidon_preemption_attempts_total")

    def follow_child(self, pid: Callable[[], int | None]) -> None:
        """Adds the cpu, memory and files of the supervised flow service, which is started again from time to time.
        `pid`: its id now."""
        ProcessCollector(namespace="poseidon_firmament", pid=lambda: pid() or "none", registry=self.registry)
