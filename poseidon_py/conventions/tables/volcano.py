"""Volcano: PodGroup, Queue, Job and HyperNode, and the annotations and labels that its components read."""

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

_TIERS = "tiers of HyperNodes are not read, so a hard network topology cannot be kept"
_HARD = refused(f"{_TIERS} and its pods wait; give mode soft, or poseidon.io/gang-topology with a node label", "soft")
_TIER = reported("has no effect: tiers of HyperNodes are not read")
_SUBGROUPS = refused("groups within a group are not supported yet, so its pods wait; remove spec.subGroupPolicy")
_NODE_GROUPS = refused("node groups of queues are not read, so the queue takes no pods; use node selectors of the pods")
_NODE_GROUPS_SOFT = reported("has no effect: node groups of queues are not read; use preferences of the pods")
_CLUSTERS = reported("has no effect: pods stay in this cluster")
_CONTROLLER = delegated("the controller of Jobs: Volcano's, or `poseidon jobs run`")
_PLUGINS = delegated("Volcano's own scheduler and device plug-ins")
_CREATED = delegated("Volcano's controllers and webhooks write and read it")
_SLA = reported(
    "has no effect: queues order gangs, and capacity is reserved for those that have waited for five minutes"
)
_BUDGET = refused("budgets of jobs are not kept, so the pod waits; use a PodDisruptionBudget")
_TASK_TOPOLOGY = reported("has no effect: use affinity between the pods")
_GPU_CHOICE = refused("shared GPUs are not chosen by type or identity here, so the pod waits; use node selectors")
_SCORING = reported("has no effect: the cost policy is that of --policy")
_NUMA = refused("NUMA nodes are not read, so the pod waits; remove it, or give best-effort", "", "none", "best-effort")

_JOB_FIELDS = (
    "maxRetry",
    "minAvailable",
    "minSuccess",
    "networkTopology.highestTierAllowed",
    "networkTopology.highestTierName",
    "networkTopology.mode",
    "plugins{}[]",
    "policies[].action",
    "policies[].event",
    "policies[].events[]",
    "policies[].exitCode",
    "policies[].timeout",
    "priorityClassName",
    "queue",
    "runningEstimate",
    "schedulerName",
    "tasks[].dependsOn.iteration",
    "tasks[].dependsOn.name[]",
    "tasks[].maxRetry",
    "tasks[].minAvailable",
    "tasks[].name",
    "tasks[].partitionPolicy.minPartitions",
    "tasks[].partitionPolicy.networkTopology.highestTierAllowed",
    "tasks[].partitionPolicy.networkTopology.highestTierName",
    "tasks[].partitionPolicy.networkTopology.mode",
    "tasks[].partitionPolicy.partitionSize",
    "tasks[].partitionPolicy.totalPartitions",
    "tasks[].policies[].action",
    "tasks[].policies[].event",
    "tasks[].policies[].events[]",
    "tasks[].policies[].exitCode",
    "tasks[].policies[].timeout",
    "tasks[].replicas",
    "tasks[].template",
    "tasks[].topologyPolicy",
    "ttlSecondsAfterFinished",
    "volumes[].mountPath",
    "volumes[].volumeClaim",
    "volumes[].volumeClaimName",
)

_AFFINITY = "spec.affinity.nodeGroup{}.{}DuringSchedulingIgnoredDuringExecution[]"

VOLCANO = ConventionTable(
    "volcano",
    "Volcano",
    (
        KindTable(
            "scheduling.volcano.sh",
            "PodGroup",
            ("v1beta1",),
            {
                "spec.minMember": HONOURED,
                "spec.minResources{}": HONOURED,
                "spec.minTaskMember{}": HONOURED,
                "spec.networkTopology.highestTierAllowed": _TIER,
                "spec.networkTopology.highestTierName": _TIER,
                "spec.networkTopology.mode": _HARD,
                "spec.priorityClassName": honoured("without it the priorities of the pods count"),
                "spec.queue": HONOURED,
                "spec.subGroupPolicy[].labelSelector": _SUBGROUPS,
                "spec.subGroupPolicy[].matchLabelKeys[]": _SUBGROUPS,
                "spec.subGroupPolicy[].minSubGroups": _SUBGROUPS,
                "spec.subGroupPolicy[].name": _SUBGROUPS,
                "spec.subGroupPolicy[].networkTopology.highestTierAllowed": _SUBGROUPS,
                "spec.subGroupPolicy[].networkTopology.highestTierName": _SUBGROUPS,
                "spec.subGroupPolicy[].networkTopology.mode": _SUBGROUPS,
                "spec.subGroupPolicy[].subGroupSize": _SUBGROUPS,
            },
        ),
        KindTable(
            "scheduling.volcano.sh",
            "Queue",
            ("v1beta1",),
            {
                **{_AFFINITY.format(kind, "required"): _NODE_GROUPS for kind in ("Affinity", "AntiAffinity")},
                **{_AFFINITY.format(kind, "preferred"): _NODE_GROUPS_SOFT for kind in ("Affinity", "AntiAffinity")},
                "spec.capability{}": HONOURED,
                "spec.dequeueStrategy": HONOURED,
                "spec.deserved{}": HONOURED,
                "spec.extendClusters[].capacity{}": _CLUSTERS,
                "spec.extendClusters[].name": _CLUSTERS,
                "spec.extendClusters[].weight": _CLUSTERS,
                "spec.guarantee.resource{}": HONOURED,
                "spec.parent": HONOURED,
                "spec.priority": HONOURED,
                "spec.reclaimable": HONOURED,
                "spec.type": unneeded("Volcano's schedulers read it nowhere"),
                "spec.weight": HONOURED,
            },
        ),
        KindTable("batch.volcano.sh", "Job", ("v1alpha1",), {f"spec.{name}": _CONTROLLER for name in _JOB_FIELDS}),
        KindTable("topology.volcano.sh", "HyperNode", ("v1alpha1",), unread=f"{_TIERS}: PodGroups that do are refused"),
        KindTable("shard.volcano.sh", "NodeShard", ("v1alpha1",), unread="it divides nodes among Volcano's schedulers"),
        KindTable("batch.volcano.sh", "CronJob", ("v1alpha1",), unread="Volcano's controller makes Jobs of it"),
        KindTable("flow.volcano.sh", "JobFlow", ("v1alpha1",), unread="Volcano's controller makes Jobs of it"),
        KindTable("flow.volcano.sh", "JobTemplate", ("v1alpha1",), unread="Volcano's controller makes Jobs of it"),
    ),
    pods=KeyTable(
        annotations={
            "scheduling.k8s.io/group-name": HONOURED,
            "scheduling.k8s.io/group-pod-num": honoured("of the batch tasks with delayed binding"),
            "scheduling.volcano.sh/group-name": _PLUGINS,
            "scheduling.volcano.sh/queue-name": HONOURED,
            "scheduling.volcano.sh/queue-allocation-gate": delegated(
                "Volcano's webhook, which adds a scheduling gate: until it is removed the pod waits"
            ),
            "volcano.sh/preemptable": honoured("false; Volcano's default, true, says nothing"),
            "volcano.sh/cooldown-time": honoured("the pod is not preempted for so long after it was scheduled"),
            "volcano.sh/revocable-zone": reported(
                "has no effect: nodes of revocable zones are used at no time, unless the pod tolerates the taint "
                "volcano.sh/revocable-zone, which they have here"
            ),
            "volcano.sh/jdb-min-available": _BUDGET,
            "volcano.sh/jdb-max-unavailable": _BUDGET,
            "volcano.sh/numa-topology-policy": _NUMA,
            "volcano.sh/topology-decision": _PLUGINS,
            "volcano.sh/qos-level": delegated("Volcano's agent on the node"),
            "volcano.sh/task-spec": HONOURED,
            "volcano.sh/task-index": _CREATED,
            "volcano.sh/task-priority": reported("has no effect: spec.priorityClassName of the pods orders them"),
            "volcano.sh/job-name": _CREATED,
            "volcano.sh/job-version": _CREATED,
            "volcano.sh/job-retry-count": _CREATED,
            "volcano.sh/queue-name": _CREATED,
            "volcano.sh/template-uid": _CREATED,
            "volcano.sh/job-forwarding": _CREATED,
            "volcano.sh/forward-cluster": _CREATED,
            "volcano.sh/controller-out-of-sync": _CREATED,
            "volcano.sh/network-topology-mode": _HARD,
            "volcano.sh/network-topology-highest-tier": _HARD._replace(
                neutral=(), unless=("volcano.sh/network-topology-mode", "soft")
            ),
            "volcano.sh/resource-group": delegated("Volcano's webhook"),
            "volcano.sh/resource-strategy-scoring-type": _SCORING,
            "volcano.sh/resource-strategy-weight": _SCORING,
            "volcano.sh/gpu-index": _PLUGINS,
            "volcano.sh/predicate-time": _PLUGINS,
            "nvidia.com/use-gputype": _GPU_CHOICE,
            "nvidia.com/nouse-gputype": _GPU_CHOICE,
            "volcano.sh/vgpu-use-gpuuuid": _GPU_CHOICE,
            "volcano.sh/vgpu-nouse-gpuuuid": _GPU_CHOICE,
            "volcano.sh/vgpu-mode": refused("modes of shared GPUs are not read, so the pod waits; use node selectors"),
            "volcano.sh/vgpu-podgroup-policy": reported("has no effect: device plug-ins choose GPUs"),
            "volcano.sh/vgpu-time": _PLUGINS,
            "volcano.sh/vgpu-ids-new": _PLUGINS,
            "volcano.sh/devices-to-allocate": _PLUGINS,
            "volcano.sh/vgpu-node": _PLUGINS,
            "volcano.sh/bind-time": _PLUGINS,
            "volcano.sh/bind-phase": _PLUGINS,
            "huawei.com/vnpu-mode": reported("has no effect: device plug-ins choose how devices are shared"),
            "huawei.com/npu-core": _PLUGINS,
            "huawei.com/AscendReal": _PLUGINS,
            "volcano.sh/scheduling-priority": _PLUGINS,
            "volcano.sh/scheduling-priority-reason": _PLUGINS,
        },
        labels={
            "scheduling.volcano.sh/queue-name": HONOURED,
            "volcano.sh/preemptable": honoured("false; Volcano's default, true, says nothing"),
            "volcano.sh/cooldown-time": honoured("the pod is not preempted for so long after it was scheduled"),
            "volcano.sh/task-spec": HONOURED,
            "volcano.sh/task-index": _CREATED,
            "volcano.sh/partition-id": _CREATED,
            "volcano.sh/job-name": _CREATED,
            "volcano.sh/job-namespace": _CREATED,
            "volcano.sh/queue-name": _CREATED,
        },
    ),
    objects=KeyTable(
        annotations={
            "scheduling.volcano.sh/group-min-member": HONOURED,
            "scheduling.volcano.sh/group-min-resources": unneeded("Volcano declares it and reads it nowhere"),
            "volcano.sh/sla-waiting-time": _SLA,
            "sla-waiting-time": _SLA,
            "volcano.sh/hierarchy": HONOURED,
            "volcano.sh/hierarchy-weights": HONOURED,
            "volcano.sh/nodegroup-resource-limits": refused(
                "limits by node group are not read, so the queue takes no pods; use spec.capability"
            ),
            "volcano.sh/job-allocated-hypernode": _PLUGINS,
            "volcano.sh/closed-by-parent": _CREATED,
            "volcano.sh/task-topology": unneeded("Volcano declares it and reads it nowhere"),
            "volcano.sh/task-topology-affinity": _TASK_TOPOLOGY,
            "volcano.sh/task-topology-anti-affinity": _TASK_TOPOLOGY,
            "volcano.sh/task-topology-task-order": _TASK_TOPOLOGY,
            "volcano.sh/oversubscription-cpu": _PLUGINS,
            "volcano.sh/oversubscription-memory": _PLUGINS,
            "volcano.sh/offline-job-evicting": _PLUGINS,
            "volcano.sh/gpu-unhealthy-ids": _PLUGINS,
            "volcano.sh/node-vgpu-register": _PLUGINS,
            "volcano.sh/cronjob-scheduled-timestamp": _CREATED,
        },
        labels={
            "volcano.sh/nodegroup-name": _PLUGINS,
            "volcano.sh/revocable-zone": honoured(
                "on nodes: when zones may be used is not known here, so they have a taint of that name, with NoSchedule"
            ),
            "volcano.sh/job-type": delegated("Volcano's command line"),
            "volcano.sh/network-topology-source": _CREATED,
            "volcano.sh/oversubscription": _PLUGINS,
            "node.volcano.sh/warmup": _PLUGINS,
            "volcano.sh/createdByJobTemplate": _CREATED,
            "volcano.sh/createdByJobFlow": _CREATED,
        },
    ),
    words=("volcano.sh", "scheduling.k8s.io/group", "sla-waiting-time", "gputype", "huawei.com/"),
)
