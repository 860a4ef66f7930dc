"""The metrics of scheduling: pods, rounds, binds, preemption, moves. kube-scheduler's where the meaning is the same."""

from poseidon_py.metrics.declarations import Declaration, FormerName, Origin, Stability, exponential, labels

SHORT = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16, 32)
"""Seconds, of rounds and requests."""
_PROFILE = "profile"

SCHEDULING = (
    # -- kube-scheduler's --------------------------------------------------------------------------------------------
    Declaration(
        "scheduler_schedule_attempts_total",
        "counter",
        "Decisions about pods: scheduled, unschedulable (reasons new or changed; a pod that waits on for the same "
        "ones is not counted again), error. The profile is the scheduler name of the pod.",
        labels("result=scheduled|unschedulable|error", _PROFILE),
        since="0.2.0",
        origin=Origin.KUBERNETES,
        replaces=(FormerName("poseidon_schedule_attempts_total", ("result",)),),
    ),
    Declaration(
        "scheduler_scheduling_attempt_duration_seconds",
        "histogram",
        "Duration of attempts: of a pod that is bound, from the start of the call of the round that placed it to the "
        "answer to its bind; of one that is unschedulable, the call of the round.",
        labels("result=scheduled|unschedulable|error", _PROFILE),
        exponential(0.001, 2, 15),
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "histogram",
        "Time from when a pod was first seen pending without gates until it is bound, by the number of attempts.",
        labels("attempts"),
        exponential(0.01, 2, 20),
        since="0.2.0",
        origin=Origin.KUBERNETES,
        replaces=(FormerName("poseidon_pod_scheduling_sli_duration_seconds"),),
    ),
    Declaration(
        "scheduler_pod_scheduling_attempts",
        "histogram",
        "Attempts until a pod is bound, that one included.",
        (),
        exponential(1, 2, 5),
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "scheduler_pending_pods",
        "gauge",
        "Pending pods: active (about to be tried), backoff (left out of rounds for a while, because their bind or "
        "their preemption failed), unschedulable (tried, and nowhere feasible now, or invalid), gated (by scheduling "
        "gates).",
        labels("queue=active|backoff|unschedulable|gated"),
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "scheduler_unschedulable_pods",
        "gauge",
        "Unschedulable pods by what refuses them: kube-scheduler's plug-in for the same rule, or Queue, Reservation, "
        "Delay, Invalid. A pod counts for each.",
        labels(
            "plugin=NodeResourcesFit|TaintToleration|NodeAffinity|InterPodAffinity|PodTopologySpread|NodePorts|"
            "VolumeRestrictions|VolumeBinding|DynamicResources|GangScheduling|DefaultPreemption|Queue|Reservation|Delay|Invalid|Other",
            _PROFILE,
        ),
        stability=Stability.ALPHA,
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "scheduler_preemption_victims",
        "histogram",
        "Victims of a pod for which pods are preempted; a victim of several counts for the most important one. The "
        "count is the number of such pods.",
        (),
        exponential(1, 2, 7),
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "scheduler_cache_size",
        "gauge",
        "Objects that the scheduler has: nodes; pods (on nodes, or about to be); assumed_pods (whose bind is not "
        "confirmed).",
        labels("type=nodes|pods|assumed_pods"),
        stability=Stability.ALPHA,
        since="0.2.0",
        origin=Origin.KUBERNETES,
    ),
    Declaration(
        "poseidon_devices",
        "gauge",
        "Devices that drivers publish: free, in use, tainted (and free), no counters (others have taken what it "
        "shares), not usable (its pool is incomplete or invalid).",
        labels("driver", "state=free|in use|tainted|no counters|not usable"),
    ),
    # -- rounds ------------------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_rounds_total",
        "counter",
        "Rounds: placed (there were pods to place), idle (there were none), failed.",
        labels("result=placed|idle|failed"),
    ),
    Declaration(
        "poseidon_round_duration_seconds", "histogram", "Duration of rounds, as the engine measures it.", (), SHORT
    ),
    Declaration(
        "poseidon_round_call_duration_seconds", "histogram", "Duration of rounds, including the call.", (), SHORT
    ),
    Declaration(
        "poseidon_round_stage_seconds",
        "histogram",
        "Duration of the stages of rounds.",
        labels("stage"),
        SHORT,
        stability=Stability.ALPHA,
    ),
    Declaration(
        "poseidon_round_gap_pods",
        "gauge",
        "Gap to the optimum: how many more pods any packing could have placed in the last round, at most; 0 proves "
        "that none could.",
    ),
    Declaration(
        "poseidon_placements_total",
        "counter",
        "Placements by the [step of the round](architecture.md#which-step-places-a-pod) that decided them: flow, "
        "cheapest slots, packing, ...",
        labels("step"),
        since="0.2.0",
    ),
    Declaration(
        "poseidon_placements_dropped_total",
        "counter",
        "Placements that the engine's independent check rejected; each is a defect.",
    ),
    Declaration(
        "poseidon_networks_unsolved_total",
        "counter",
        "Networks that the solver found no flow for, by its status (infeasible, bad cost range, wrong answer, ...), "
        "whose pods are placed one by one, without regard to costs; each is a defect.",
        labels("status"),
    ),
    Declaration(
        "poseidon_networks_compressed_total",
        "counter",
        "Networks that the solver found a flow for only once the differences of waiting costs were limited, since they "
        "were too large for so many vertices.",
        since="0.2.0",
    ),
    Declaration(
        "poseidon_policy_fallbacks_total",
        "counter",
        "Rounds that placed pods anywhere they fit because the policy failed.",
        labels("policy"),
    ),
    # -- binds -------------------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_bind_duration_seconds",
        "histogram",
        "Duration of bind requests: bound, lost (no answer), busy (429), conflict (409, 404), error.",
        labels("result=bound|lost|busy|conflict|error"),
        SHORT,
    ),
    Declaration("poseidon_binds_in_flight", "gauge", "Bind requests in flight."),
    Declaration(
        "poseidon_binds_dropped_total",
        "counter",
        "Placements that were not bound because the state had changed.",
        labels("reason=gone|bound|deleting|replaced|elsewhere|node gone|not wanted"),
    ),
    Declaration(
        "poseidon_gang_units_total",
        "counter",
        "Gangs: bound as a whole, refused or aborted before any bind, unwound.",
        labels("result=bound|refused|aborted|unwound"),
    ),
    # -- preemption and moves ----------------------------------------------------------------------------------------
    Declaration(
        "poseidon_preemption_victims_total",
        "counter",
        "Victims by outcome: deleted; suspended (with their workload); unbound (not bound yet: they wait again); gone "
        "(by themselves); dropped (no longer needed, or another replica leads); refused (by the API server).",
        labels("outcome=deleted|suspended|unbound|gone|dropped|refused"),
    ),
    Declaration(
        "poseidon_migrations_total",
        "counter",
        "Pods that move to other nodes: evicted; gone (by themselves); dropped (decision obsolete, or another replica "
        "leads); refused (by the API server, mostly for a disruption budget).",
        labels("outcome=evicted|gone|dropped|refused"),
    ),
    Declaration(
        "poseidon_moves_decided_total", "counter", "Decisions that a running pod moves so that a pending one fits."
    ),
    Declaration(
        "poseidon_moves_needed_total",
        "counter",
        "A lower bound on the moves by which these pending pods could have fitted.",
    ),
    # -- former names ------------------------------------------------------------------------------------------------
    Declaration(
        "poseidon_pending_pods",
        "gauge",
        "Pending pods: active (to be placed), gated, invalid.",
        labels("queue=active|gated|invalid"),
        stability=Stability.DEPRECATED,
        instead="scheduler_pending_pods",
    ),
    Declaration(
        "poseidon_pods",
        "gauge",
        "Pods, pending ones included.",
        stability=Stability.DEPRECATED,
        instead="scheduler_cache_size and scheduler_pending_pods",
    ),
    Declaration(
        "poseidon_nodes",
        "gauge",
        "Nodes.",
        stability=Stability.DEPRECATED,
        instead="scheduler_cache_size",
    ),
    Declaration(
        "poseidon_preemption_attempts_total",
        "counter",
        "Decisions of rounds that a pending pod waits for its victims on a node.",
        stability=Stability.DEPRECATED,
        instead="scheduler_preemption_victims_count",
    ),
)
