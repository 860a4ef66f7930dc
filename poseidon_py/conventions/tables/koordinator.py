"""Koordinator: gangs by annotations, PodGroups of scheduling.sigs.k8s.io, and what its own scheduler alone reads."""

from poseidon_py.conventions.verdicts import (
    HONOURED,
    ConventionTable,
    KeyTable,
    KindTable,
    delegated,
    honoured,
    refused,
    reported,
    unneeded,
)

_KOORDINATOR = delegated("Koordinator's own scheduler, manager and agent")
_CREATED = delegated("Koordinator's components, which write it")
_WEBHOOK = delegated("Koordinator's webhooks, which admit quotas and pods")
_TREE = refused("quota trees are not read, so the pods wait; remove it")
_OF_TREE = unneeded("it says something of a quota tree, and queues of such trees take no pods")
_LENT = refused("idle parts of min are always lent and taken back, so the queue is closed; remove it", "true", "")
_RESERVATION = refused("Reservations are not read, so the pod waits; remove it")
_DEVICES = refused("devices are not chosen here, so the pod waits; request extended resources")
_CPUS = refused("NUMA nodes and processors are not chosen here, so the pod waits; remove it")
_TOPOLOGY = refused("network topologies of Koordinator are not read, so the pods wait; use poseidon.io/gang-topology")
_LOAD = reported("has no effect: flag --usage says how measured load counts")
_HINT = reported("has no effect: all nodes are considered")
_GROUPS = refused("gangs that start together are not supported yet, so its pods wait; make one gang of them")
_MATCH = refused(
    "members that run or have succeeded count, so the pods wait; give waiting-and-running",
    "waiting-and-running",
    "once-satisfied",
)

KOORDINATOR = ConventionTable(
    "koordinator",
    "Koordinator",
    (
        KindTable(
            "scheduling.sigs.k8s.io",
            "PodGroup",
            ("v1alpha1",),
            {
                "spec.minMember": HONOURED,
                "spec.minResources{}": HONOURED,
                "spec.scheduleTimeoutSeconds": HONOURED,
            },
        ),
        KindTable(
            "scheduling.sigs.k8s.io",
            "ElasticQuota",
            ("v1alpha1",),
            {"spec.min{}": HONOURED, "spec.max{}": HONOURED},
        ),
        KindTable(
            "quota.koordinator.sh",
            "ElasticQuotaProfile",
            ("v1alpha1",),
            unread="Koordinator's manager makes a quota tree of it, whose queues take no pods",
        ),
        KindTable(
            "scheduling.koordinator.sh",
            "ClusterNetworkTopology",
            ("v1alpha1",),
            unread="gangs and pods that ask for a network topology are refused",
        ),
        KindTable(
            "scheduling.koordinator.sh",
            "Reservation",
            ("v1alpha1",),
            unread="pods that require one are refused; what reservations hold is not kept free",
        ),
    ),
    pods=KeyTable(
        annotations={
            "gang.scheduling.koordinator.sh/name": HONOURED,
            "gang.scheduling.koordinator.sh/min-available": HONOURED,
            "gang.scheduling.koordinator.sh/total-number": unneeded("the pods that exist count"),
            "gang.scheduling.koordinator.sh/waiting-time": honoured("how long the gang may stay partly bound"),
            "gang.scheduling.koordinator.sh/mode": reported(
                "has no effect: a gang that does not fit holds nothing", "Strict", "NonStrict"
            ),
            "gang.scheduling.koordinator.sh/groups": _GROUPS,
            "gang.scheduling.koordinator.sh/match-policy": _MATCH,
            "pod-group.scheduling.sigs.k8s.io/match-policy": _MATCH,
            "gang.scheduling.koordinator.sh/timeout": _CREATED,
            "gang.scheduling.koordinator.sh/network-topology-index": _KOORDINATOR,
            "scheduling.koordinator.sh/network-topology-selector": _TOPOLOGY,
            "scheduling.koordinator.sh/bind-gang-group-id": _CREATED,
            "internal.scheduling.koordinator.sh/bind-gang-group-id": _CREATED,
            "internal.scheduling.koordinator.sh/bind-gang-member-count": _CREATED,
            "koordinator.sh/eviction-policy": _KOORDINATOR,
            "koordinator.sh/eviction-priority": _KOORDINATOR,
            "scheduling.koordinator.sh/reservation-allocated": _CREATED,
            "scheduling.koordinator.sh/reservation-affinity": _RESERVATION,
            "scheduling.koordinator.sh/exact-match-reservation": _RESERVATION,
            "pod.koordinator.sh/pre-allocatable-priority": _KOORDINATOR,
            "scheduling.koordinator.sh/reservation-owners": _KOORDINATOR,
            "scheduling.koordinator.sh/reservation-current-owner": _CREATED,
            "internal.scheduling.koordinator.sh/original-scheduler-name": _CREATED,
            "scheduling.koordinator.sh/scheduling-hint": _HINT,
            "internal.scheduling.koordinator.sh/scheduling-hint": _HINT,
            "scheduling.koordinator.sh/device-allocated": _CREATED,
            "scheduling.koordinator.sh/device-allocate-hint": _DEVICES,
            "scheduling.koordinator.sh/device-joint-allocate": _DEVICES,
            "scheduling.koordinator.sh/gpu-partition-spec": _DEVICES,
            "scheduling.koordinator.sh/numa-topology-spec": _CPUS,
            "scheduling.koordinator.sh/resource-spec": _CPUS,
            "scheduling.koordinator.sh/resource-status": _CREATED,
            "scheduling.koordinator.sh/load-estimated-scaling-factors": _LOAD,
            "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled": _LOAD,
            "scheduling.koordinator.sh/load-estimated-seconds-after-initialized": _LOAD,
            "scheduling.koordinator.sh/eviction-cost": _KOORDINATOR,
            "scheduling.koordinator.sh/soft-eviction": _CREATED,
        },
        labels={
            "pod-group.scheduling.sigs.k8s.io": HONOURED,
            "pod-group.scheduling.sigs.k8s.io/name": HONOURED,
            "pod-group.scheduling.sigs.k8s.io/min-available": HONOURED,
            "quota.scheduling.koordinator.sh/name": HONOURED,
            "quota.scheduling.koordinator.sh/tree-id": _TREE,
            "quota.scheduling.koordinator.sh/preemptible": honoured(
                "false: never a victim; such pods may use more than min, too"
            ),
            "koordinator.sh/qosClass": _KOORDINATOR,
            "koordinator.sh/priority": reported("has no effect: spec.priorityClassName of the pods orders them"),
            "koordinator.sh/priority-class": _KOORDINATOR,
            "koordinator.sh/eviction-enabled": _KOORDINATOR,
            "scheduling.koordinator.sh/preemption-policy": _KOORDINATOR,
            "scheduling.koordinator.sh/disable-preemptible": HONOURED,
            "scheduling.koordinator.sh/reservation-ignored": unneeded("no reservation counts"),
            "scheduling.koordinator.sh/pre-allocation-required": _RESERVATION,
            "pod.koordinator.sh/is-pre-allocatable": _KOORDINATOR,
            "scheduling.koordinator.sh/operating-mode": _RESERVATION,
            "scheduling.koordinator.sh/scheduler-name": unneeded("spec.schedulerName counts"),
            "koordinator.sh/gpu-isolation-provider": _KOORDINATOR,
            "scheduling.koordinator.sh/questioned-object-key": unneeded("see `poseidon explain`"),
            "scheduling.koordinator.sh/topology-key-to-explain": unneeded("see `poseidon explain`"),
        },
    ),
    objects=KeyTable(
        annotations={
            "gang.scheduling.koordinator.sh/network-topology-spec": _TOPOLOGY,
            "quota.scheduling.koordinator.sh/shared-weight": honoured(
                "of one resource: the first of GPUs, CPU and memory of which all quotas with the same parent have one"
            ),
            "quota.scheduling.koordinator.sh/namespaces": HONOURED,
            "quota.scheduling.koordinator.sh/admission": _WEBHOOK,
            "quota.scheduling.koordinator.sh/max-strict-check-resource-keys": _WEBHOOK,
            "quota.scheduling.koordinator.sh/resource-keys": _KOORDINATOR,
            "quota.scheduling.koordinator.sh/total-resource": _OF_TREE,
            "quota.scheduling.koordinator.sh/unschedulable-resource": _CREATED,
            **{
                f"quota.scheduling.koordinator.sh/{name}": _CREATED
                for name in (
                    "runtime",
                    "request",
                    "child-request",
                    "guaranteed",
                    "allocated",
                    "non-preemptible-request",
                    "non-preemptible-used",
                )
            },
            "scheduling.koordinator.sh/reservation-restricted-options": _KOORDINATOR,
            "node.koordinator.sh/reservation": honoured("it is deducted from what the node offers"),
            "scheduling.koordinator.sh/usage-thresholds": honoured(
                "usageThresholds, of cpu and memory; the node takes no pods while its usage is unknown, or with "
                "prodUsageThresholds or aggregatedUsage, which are not read"
            ),
        },
        labels={
            "quota.scheduling.koordinator.sh/parent": HONOURED,
            "quota.scheduling.koordinator.sh/is-parent": honoured("true: a quota with none below it takes no pods"),
            "quota.scheduling.koordinator.sh/allow-lent-resource": _LENT,
            "quota.scheduling.koordinator.sh/is-root": _OF_TREE,
            "quota.scheduling.koordinator.sh/ignore-default-tree": _OF_TREE,
            "quota.scheduling.koordinator.sh/profile": _CREATED,
            "quota.scheduling.koordinator.sh/allow-force-update": _WEBHOOK,
            "scheduling.koordinator.sh/reservation-order": _KOORDINATOR,
            "node.koordinator.sh/gpu-partition-policy": _KOORDINATOR,
            "node.koordinator.sh/gpu-model": _KOORDINATOR,
            "node.koordinator.sh/cpu-bind-policy": _KOORDINATOR,
            "node.koordinator.sh/numa-allocate-strategy": _KOORDINATOR,
            "node.koordinator.sh/numa-topology-policy": _KOORDINATOR,
        },
    ),
    words=("koordinator.sh", "scheduling.sigs.k8s.io"),
)
