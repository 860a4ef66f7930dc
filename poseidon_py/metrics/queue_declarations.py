"""The metrics of queues, jobs and hooks. Kueue's names where its queues are concerned and the meaning is the same."""

from poseidon_py.metrics.declarations import BOUND, OF_RESOURCES, Declaration, Exporter, Origin, labels

_HOOK_SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5, 10, 20, 40, 80, 160, 320)
_ROLE = "replica_role=leader"
_OF_FLAVOR = labels("cohort", "cluster_queue", "flavor", "resource", _ROLE)
_OF_QUEUE = ("queue", "type=ClusterQueue|Cohort|LocalQueue|ElasticQuota|Queue")
_STATES = "Pending|Privileged|Running|WillEvicted|Unknown|Succeeded|Failed|Stopped"
_MACHINES = "machine=job|task|replica"


def _kueue(name: str, meaning: str, of: tuple[str, ...] = ()) -> Declaration:
    return Declaration(
        f"kueue_{name}",
        "gauge",
        meaning,
        labels(*of) if of else _OF_FLAVOR,
        since="0.2.0",
        origin=Origin.KUEUE,
        bound=BOUND if of else OF_RESOURCES,
    )


QUEUES = (
    # -- Kueue's, of its ClusterQueues and Cohorts while Poseidon decides by them ------------------------------------
    _kueue("cluster_queue_resource_usage", "Requests of the pods of a ClusterQueue that are on nodes of a flavor."),
    _kueue("cluster_queue_nominal_quota", "Nominal quota of a ClusterQueue."),
    _kueue("cluster_queue_borrowing_limit", "Borrowing limit of a ClusterQueue; +Inf: none."),
    _kueue("cluster_queue_lending_limit", "Lending limit of a ClusterQueue; +Inf: none."),
    _kueue(
        "cluster_queue_weighted_share",
        "Largest ratio of what a ClusterQueue uses above its nominal quota to what its Cohort can lend, in "
        "thousandths, divided by its weight.",
        ("cluster_queue", "cohort", _ROLE),
    ),
    _kueue("cohort_weighted_share", "The same of a Cohort.", ("cohort", _ROLE)),
    _kueue(
        "cluster_queue_status",
        "1 for the status of a ClusterQueue: active, or pending (it takes no pods). Never terminated.",
        ("cluster_queue", "status=pending|active|terminated", _ROLE),
    ),
    _kueue(
        "cluster_queue_info",
        "1, with the Cohort of a ClusterQueue and the topmost one.",
        ("cluster_queue", "parent_cohort", "root_cohort", _ROLE),
    ),
    _kueue(
        "cohort_info",
        "1, with the parent of a Cohort and the topmost one.",
        ("cohort", "parent_cohort", "root_cohort", _ROLE),
    ),
    # -- queues of all kinds -----------------------------------------------------------------------------------------
    Declaration(
        "poseidon_queue_used",
        "gauge",
        "Requests of the pods of a queue that are on nodes, with the queues below it: cores, bytes, pieces.",
        labels(*_OF_QUEUE, "resource"),
        bound=OF_RESOURCES,
    ),
    Declaration(
        "poseidon_queue_guaranteed",
        "gauge",
        "Guaranteed amount of a queue: cores, bytes, pieces.",
        labels(*_OF_QUEUE, "resource"),
        bound=OF_RESOURCES,
    ),
    Declaration(
        "poseidon_queue_borrowed",
        "gauge",
        "What the pods of a queue use above its guarantee: cores, bytes, pieces.",
        labels(*_OF_QUEUE, "resource"),
        bound=OF_RESOURCES,
    ),
    Declaration("poseidon_queue_pending_pods", "gauge", "Pending pods of a queue.", labels(*_OF_QUEUE)),
    Declaration("poseidon_queue_running_pods", "gauge", "Pods of a queue that are on nodes.", labels(*_OF_QUEUE)),
    Declaration(
        "poseidon_queue_share",
        "gauge",
        "Dominant share of what a queue borrows, by weight; 1: all that its parent can lend.",
        labels(*_OF_QUEUE),
    ),
    Declaration(
        "poseidon_queue_takeovers_total",
        "counter",
        "Kinds of queues that were taken over because their own controller is gone.",
        labels("kind"),
    ),
    Declaration(
        "poseidon_drains_total",
        "counter",
        "Pods of queues that drain: evicted; suspended (with their workload); gone (by themselves); refused (mostly "
        "for a disruption budget).",
        labels("outcome=evicted|suspended|gone|refused"),
    ),
    Declaration(
        "poseidon_workload_suspensions_total",
        "counter",
        "Workloads whose pods all leave, by result: written, overtaken (suspended already), gone, refused (their pods "
        "are deleted), given up (no clear answer for too long, or another replica leads).",
        labels("reason", "result=written|overtaken|gone|refused|given up"),
    ),
    Declaration(
        "poseidon_workload_resumptions_total",
        "counter",
        "Suspended workloads whose turn has come, by result as above.",
        labels("result=written|overtaken|gone|refused|given up"),
    ),
    # -- pods of queues, as observed ---------------------------------------------------------------------------------
    Declaration(
        "poseidon_queue_pods_ended_total",
        "counter",
        "Pods that ended or are gone.",
        labels("queue", "outcome=succeeded|failed|evicted|deleted"),
    ),
    Declaration(
        "poseidon_queue_pod_events_total",
        "counter",
        "Pods by event.",
        labels("queue", "event=preempted|migrated|retries"),
    ),
    Declaration("poseidon_queue_run_seconds_total", "counter", "Run time of pods that ended.", labels("queue")),
    Declaration(
        "poseidon_queue_lost_seconds_total",
        "counter",
        "Run time that evictions lost, since checkpoints.",
        labels("queue"),
    ),
    Declaration(
        "poseidon_queue_resource_seconds_total",
        "counter",
        "Requests of pods that ended, by the time on their nodes: core-seconds, byte-seconds, piece-seconds.",
        labels("queue", "resource"),
        bound=OF_RESOURCES,
    ),
    Declaration(
        "poseidon_queue_pod_wait_seconds",
        "histogram",
        "Time from the creation of a pod until it is bound.",
        labels("queue"),
        tuple(4.0**exponent for exponent in range(12)),
    ),
)

JOBS = (
    Declaration(
        "poseidon_observed_jobs", "gauge", "Jobs that have pods, or had, by state.", labels(f"state={_STATES}")
    ),
    Declaration(
        "poseidon_observed_job_transitions_total",
        "counter",
        "Transitions that were observed, by new state.",
        labels(_MACHINES, "state"),
    ),
    Declaration(
        "poseidon_observed_job_illegal_transitions_total",
        "counter",
        "Transitions that were observed although the machine does not have them; each is a defect.",
        labels(_MACHINES, "old", "new"),
    ),
    Declaration("poseidon_jobs", "gauge", "Jobs by phase.", labels("phase"), exporter=Exporter.JOBS),
    Declaration(
        "poseidon_job_transitions_total",
        "counter",
        "Transitions by new state.",
        labels(_MACHINES, "state"),
        exporter=Exporter.JOBS,
    ),
    Declaration(
        "poseidon_job_illegal_transitions_total",
        "counter",
        "Transitions that were observed although the machine does not have them; each is a defect.",
        labels(_MACHINES, "old", "new"),
        exporter=Exporter.JOBS,
    ),
    Declaration(
        "poseidon_job_pods_total",
        "counter",
        "Pods of jobs: created, deleted, refused (by the API server).",
        labels("what=created|deleted|refused"),
        exporter=Exporter.JOBS,
    ),
)

HOOKS = (
    Declaration(
        "poseidon_hook_attempts_total",
        "counter",
        "Attempts to deliver: delivered, failed (to be repeated), dead (the last one, or permanent).",
        labels("hook", "outcome=delivered|failed|dead"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_attempt_duration_seconds",
        "histogram",
        "Duration of attempts.",
        labels("hook"),
        _HOOK_SECONDS,
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_delivery_latency_seconds",
        "histogram",
        "Time from the report of a transition until its delivery was acknowledged.",
        labels("hook"),
        _HOOK_SECONDS,
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_pending",
        "gauge",
        "Deliveries that wait.",
        labels("hook"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_oldest_pending_seconds",
        "gauge",
        "Time since the report of the oldest delivery that waits; 0: none waits.",
        labels("hook"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_dead_letters",
        "gauge",
        "Dead letters.",
        labels("hook"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_overflow_total",
        "counter",
        "Deliveries that became dead letters because too many were waiting.",
        labels("hook"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_dead_letters_dropped_total",
        "counter",
        "Dead letters that were dropped because there were too many.",
        labels("hook"),
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_transitions_lost_total",
        "counter",
        "Transitions that were not taken: the hooks had been stopped, or the store could not be read for too long.",
        exporter=Exporter.BOTH,
    ),
    Declaration(
        "poseidon_hook_store_writes_total",
        "counter",
        "Writes of the store.",
        labels("result=written|failed"),
        exporter=Exporter.BOTH,
    ),
)
