"""The table of the events and conditions that Poseidon writes. docs/events.md is generated from it.

Tests compare it with the reasons in the code, so that none is missing and none is left over.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventReason:
    """`of`: the kind of object; `warning`: its type is Warning, else Normal; `remedy`: what to do, empty: nothing."""

    reason: str
    of: str
    warning: bool
    meaning: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ConditionReason:
    """`status`: True or False, as the API has it."""

    type: str
    of: str
    status: str
    reason: str
    meaning: str


_POD, _WORKLOAD, _QUEUE, _JOB = "Pod", "workload", "queue", "Job of Volcano"

EVENTS = (
    EventReason("Scheduled", _POD, False, "The pod was bound."),
    EventReason(
        "FailedScheduling",
        _POD,
        True,
        "The pod waits, and the message says why, in kube-scheduler's words where the reason is one of its own.",
        "`poseidon explain NAMESPACE/POD` says what would let it be placed.",
    ),
    EventReason("Preempted", _POD, False, "The pod was deleted for one of higher priority, its `related` object."),
    EventReason(
        "EvictionAnnounced", _POD, False, "The pod will be evicted for another one at the time in the message."
    ),
    EventReason("EvictionCancelled", _POD, False, "It will not be evicted after all."),
    EventReason("Migrated", _POD, False, "The pod was evicted in order to run on another node."),
    EventReason("QueueDrained", _POD, False, "The pod was evicted because its queue drains."),
    EventReason(
        "DrainDelayed",
        _POD,
        True,
        "The queue drains, and the pod stays for now; mostly a disruption budget protects it.",
        "See what the message says; the eviction is tried again.",
    ),
    EventReason(
        "InvalidAnnotation",
        _POD,
        True,
        "An optional annotation or label is invalid, and has no effect.",
        "Correct it; the message has the valid form.",
    ),
    EventReason(
        "NotHonoured",
        "Pod, owner of pods, queue, device object",
        True,
        "A field, label or annotation of another scheduler's convention has no effect here.",
        "Remove it, or use what the message names. [conventions.md](conventions.md) has all of them.",
    ),
    EventReason(
        "OwnerUnreadable",
        _POD,
        True,
        "The owner of the pod cannot be read, so what it says of the queue and the gang has no effect.",
        "Grant the right that the message names ([rbac.md](rbac.md)).",
    ),
    EventReason(
        "GangInvalid",
        _POD,
        True,
        "The declaration of the gang is invalid or contradicts itself, and its pods wait.",
        "Correct it; the message names the field.",
    ),
    EventReason(
        "GangBelowMinimum",
        _POD,
        True,
        "A bound gang has fewer pods than its minimum by now.",
        "Its controller has to create the missing ones; they are placed first.",
    ),
    EventReason(
        "GangHalfBound",
        _POD,
        True,
        "Binds of some pods of a gang have failed, and the others are bound; the message says what becomes of them.",
    ),
    EventReason("GangUnwound", _POD, True, "The pod is evicted, because the rest of its gang could not be bound."),
    EventReason("Suspended", _WORKLOAD, False, "The workload was suspended, for the reason in the message."),
    EventReason("Resumed", _WORKLOAD, False, "It was resumed."),
    EventReason(
        "NotResumed",
        _WORKLOAD,
        True,
        "It is this workload's turn, but it cannot be resumed.",
        "See what the message says.",
    ),
    EventReason(
        "SuspendFailed",
        _WORKLOAD,
        True,
        "It cannot be suspended, so its pods are deleted one by one.",
        "Grant the right that the message names, if one is missing.",
    ),
    EventReason(
        "InvalidLabel", _WORKLOAD, True, "A label of the workload is invalid, and has no effect.", "Correct it."
    ),
    EventReason(
        "InvalidQueue",
        _QUEUE,
        True,
        "A field is invalid, and the queue takes no pods if its quota depends on it.",
        "Correct it; the message names the field.",
    ),
    EventReason(
        "QueuesTakenOver",
        "Lease of the scheduler",
        True,
        "The controller of a kind of queues is gone, so Poseidon decides by them.",
        "[PoseidonQueuesTakenOver](operations.md#poseidonqueuestakenover).",
    ),
    EventReason("InvalidJob", _JOB, True, "The specification is invalid, and the job is left alone.", "Correct it."),
    EventReason("InvalidCommand", _JOB, True, "A Command has an action that does not exist.", "Create another one."),
    EventReason("NoEffect", _JOB, True, "A field of the job, or a policy, has no effect."),
    EventReason("ExecuteAction", _JOB, False, "An action of a policy or a command was carried out."),
    EventReason("Expired", _JOB, False, "The job was deleted at the end of `ttlSecondsAfterFinished`."),
    EventReason(
        "Refused",
        _JOB,
        True,
        "The API server refuses an object of the job, and it is tried again.",
        "A quota or a webhook, as the message says.",
    ),
)

CONDITIONS = (
    ConditionReason("PodScheduled", _POD, "False", "Unschedulable", "No node fits; an autoscaler may add one."),
    ConditionReason(
        "PodScheduled", _POD, "False", "WaitingForGang", "Pods of the gang are missing; nodes would not help."
    ),
    ConditionReason(
        "PodScheduled", _POD, "False", "WaitingForQuota", "The queue has no quota for it, or takes no pods."
    ),
    ConditionReason(
        "PodScheduled", _POD, "False", "SchedulerError", "A bind or a preemption failed, and is tried again."
    ),
    ConditionReason("DisruptionTarget", "Pod, PodGroup", "True", "PreemptionByScheduler", "It is preempted."),
    ConditionReason(
        "poseidon.io/WillEvicted",
        "Pod, PodGroup",
        "True",
        "PreemptionAnnounced",
        "It will be evicted at an announced time.",
    ),
    ConditionReason("poseidon.io/WillEvicted", _POD, "False", "Cancelled", "It will not be evicted after all."),
    ConditionReason(
        "poseidon.io/Privileged",
        "Pod, PodGroup",
        "True",
        "PreemptionAnnounced",
        "It waits for pods whose eviction is announced.",
    ),
    ConditionReason("poseidon.io/Privileged", _POD, "False", "Ended", "It does not wait for victims any more."),
    ConditionReason("poseidon.io/Privileged", _POD, "False", "Placed", "It is bound to a node."),
    ConditionReason(
        "PodGroupInitiallyScheduled", "PodGroup of Kubernetes", "True", "Scheduled", "All pods that it needs are bound."
    ),
    ConditionReason("PodGroupInitiallyScheduled", "PodGroup of Kubernetes", "False", "Unschedulable", "They are not."),
    ConditionReason(
        "Scheduled", "PodGroup of Volcano", "True", "tasks in gang are ready to be scheduled", "Its minimum is bound."
    ),
    ConditionReason("Unschedulable", "PodGroup of Volcano", "True", "NotEnoughTasks", "Pods are missing."),
    ConditionReason("Unschedulable", "PodGroup of Volcano", "True", "NotEnoughResources", "No nodes fit."),
    ConditionReason("Active", "ClusterQueue, LocalQueue, Queue", "True", "Ready", "It takes pods."),
    ConditionReason("Active", "ClusterQueue, LocalQueue, Queue", "False", "Stopped", "Its `stopPolicy` says so."),
    ConditionReason(
        "Active", "ClusterQueue, LocalQueue, Queue", "False", "Misconfigured", "The message names the field."
    ),
)
