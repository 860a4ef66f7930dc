"""The metrics of the bridge's work with the API server and the flow service, of usage, and of the processes."""

from poseidon_py.metrics.declarations import Declaration, Exporter, FormerName, Origin, Stability, labels
from poseidon_py.metrics.scheduling_declarations import SHORT

_WATCHES = Exporter.BOTH

BRIDGE = (
    Declaration(
        "poseidon_build_info",
        "info",
        "1, with the version of Poseidon and of Python.",
        labels("version", "python_version"),
        exporter=Exporter.BOTH,
    ),
    # -- leader election ---------------------------------------------------------------------------------------------
    Declaration(
        "leader_election_master_status",
        "gauge",
        "1: this process leads, 0: it stands by. The name is that of the lease.",
        labels("name"),
        since="0.2.0",
        origin=Origin.KUBERNETES,
        exporter=Exporter.BOTH,
        replaces=(FormerName("poseidon_leader_election_master_status"),),
    ),
    Declaration(
        "poseidon_leader_election_transitions_total",
        "counter",
        "Changes of leadership of this process. To leader, because the lease was: free (without a holder), expired "
        "(its holder did not renew it), own (this process had it before). To standby, because it was: taken (by "
        "another process), or not renewed: error (the API server refused the requests), unanswered (a request), late "
        "(this process did not run in time).",
        labels("to=leader|standby", "cause=free|expired|own|taken|error|unanswered|late"),
        since="0.2.0",
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_leader_election_losses_total",
        "counter",
        "Ends of leadership by cause: taken, error, unanswered, late.",
        labels("cause=taken|error|unanswered|late"),
        stability=Stability.DEPRECATED,
        exporter=Exporter.BOTH,
        instead="poseidon_leader_election_transitions_total",
    ),
    # -- the API server ----------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_watch_events_total",
        "counter",
        "Watch events by type; malformed: not decodable.",
        labels("kind", "type=ADDED|MODIFIED|DELETED|BOOKMARK|malformed"),
        exporter=_WATCHES,
    ),
    Declaration(
        "poseidon_watch_restarts_total",
        "counter",
        "Restarts of watches: ended (by the server), quiet (no data for a while; normal where nothing changes), gone "
        "(410), error.",
        labels("kind", "reason=ended|quiet|gone|error"),
        exporter=_WATCHES,
    ),
    Declaration(
        "poseidon_invalid_objects_total",
        "counter",
        "Objects that were skipped because a field is invalid.",
        labels("kind"),
        exporter=_WATCHES,
    ),
    Declaration(
        "poseidon_nodes_without_allocatable_total", "counter", "Nodes that were seen without allocatable resources."
    ),
    Declaration(
        "poseidon_reports_total",
        "counter",
        "Events and conditions: sent, stale (the object is gone or has changed), refused, conflict (written again), "
        "given up.",
        labels("kind=event|condition", "result=sent|stale|refused|conflict|given up"),
    ),
    Declaration("poseidon_reports_pending", "gauge", "Events and conditions that wait to be sent."),
    # -- work queues -------------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_workqueue_depth", "gauge", "Keys ready for a worker.", labels("name"), exporter=Exporter.BOTH
    ),
    Declaration(
        "poseidon_workqueue_adds_total",
        "counter",
        "Keys added, without coalesced ones.",
        labels("name"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_workqueue_retries_total",
        "counter",
        "Keys added again after a failure.",
        labels("name"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_workqueue_work_duration_seconds",
        "histogram",
        "Duration of the work on one batch of keys.",
        labels("name"),
        SHORT,
        stability=Stability.ALPHA,
    ),
    Declaration(
        "poseidon_workqueue_batch_keys",
        "histogram",
        "Keys of a batch, which go to the flow service in one call.",
        labels("name"),
        (1, 4, 16, 64, 256, 1024, 4096),
        stability=Stability.ALPHA,
    ),
    # -- the flow service --------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_engine_rpc_duration_seconds",
        "histogram",
        "Duration of calls of the flow service.",
        labels("method"),
        SHORT,
    ),
    Declaration(
        "poseidon_engine_rpc_errors_total",
        "counter",
        "Failed calls of the flow service, by gRPC's code; CLOSED: the connection was closed by this process.",
        labels("method", "code"),
    ),
    Declaration("poseidon_engine_resyncs_total", "counter", "Full resynchronisations of the flow service."),
    Declaration(
        "poseidon_engine_refusals_total", "counter", "Descriptions that the flow service refused.", labels("kind")
    ),
    Declaration("poseidon_firmament_starts_total", "counter", "Starts of the supervised flow service."),
    Declaration(
        "poseidon_illegal_pod_transitions_total",
        "counter",
        "Events of pods that were ignored because the state of the pod does not allow them; each is a defect.",
        labels("state=GONE|WAITING|ASSUMED|BOUND", "event=OBSERVE_WAITING|OBSERVE_BOUND|ASSUME|RELEASE|REMOVE"),
    ),
    Declaration(
        "poseidon_task_id_collisions_total",
        "counter",
        "Pods whose UIDs have the same 64-bit hash, so that one got another.",
    ),
    # -- measured usage ----------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_usage_polls_total",
        "counter",
        "Polls of sources of usage.",
        labels("source", "result=answered|failed"),
    ),
    Declaration(
        "poseidon_usage_samples_total",
        "counter",
        "Samples of usage: taken, old (not newer than the last one), refused (invalid), unknown (of an unknown pod or "
        "node).",
        labels("result=taken|old|refused|unknown"),
    ),
    Declaration(
        "poseidon_usage_last_poll_age_seconds",
        "gauge",
        "Seconds since a poll last gave samples; NaN: never, or usage is not polled.",
    ),
    Declaration(
        "poseidon_usage_priced_pods",
        "gauge",
        "Pods on nodes in the last round by the basis of their costs: measured usage, or requests because usage is "
        "missing or stale. All 0: the policy does not ask for usage.",
        labels("by=measured|missing|stale"),
    ),
)


def _process(prefix: str, of: str, exporter: Exporter) -> tuple[Declaration, ...]:
    gauges = {
        "virtual_memory_bytes": "Virtual memory",
        "resident_memory_bytes": "Resident memory",
        "start_time_seconds": "Start, in seconds since the epoch,",
        "open_fds": "Open file descriptors",
        "max_fds": "Limit of file descriptors",
    }
    cpu = Declaration(
        f"{prefix}process_cpu_seconds_total", "counter", f"CPU time{of}.", origin=Origin.PYTHON, exporter=exporter
    )
    return (
        cpu,
        *(
            Declaration(f"{prefix}process_{name}", "gauge", f"{text}{of}.", origin=Origin.PYTHON, exporter=exporter)
            for name, text in gauges.items()
        ),
    )


PROCESSES = (
    *_process("", " of the process", Exporter.BOTH),
    *_process("poseidon_firmament_", " of the supervised flow service", Exporter.SCHEDULER),
    Declaration(
        "python_info",
        "gauge",
        "1, with the version of Python.",
        labels("implementation", "major", "minor", "patchlevel", "version"),
        origin=Origin.PYTHON,
        exporter=Exporter.BOTH,
    ),
    *(
        Declaration(
            f"python_gc_{name}_total",
            "counter",
            f"{text}.",
            labels("generation=0|1|2"),
            origin=Origin.PYTHON,
            exporter=Exporter.BOTH,
        )
        for name, text in {
            "objects_collected": "Objects that the garbage collection of Python freed",
            "objects_uncollectable": "Objects that it could not free",
            "collections": "Its runs",
        }.items()
    ),
)
