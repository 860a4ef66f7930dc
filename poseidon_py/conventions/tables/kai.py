"""KAI: PodGroup, Queue, Topology and SchedulingShard, and its annotations and labels."""

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

_KAI = delegated("KAI's own scheduler and pod grouper")
_CREATED = delegated("KAI's components, which write it")
_TREES = refused("groups within a group are not supported yet, so its pods wait")
_DELAY = refused(
    "pods preempt as soon as they may, so its pods wait; remove it, or give the pods preemptionPolicy Never", "0", "0s"
)
_STALE = reported("has no effect: a gang below its minimum stays, and its replacements come first")
_SHARE = refused("shares of a GPU are not supported yet, so the pod waits; request whole GPUs")
_SEGMENTS = refused("segments of a workload are not supported yet, so the pod waits; remove it")
_PLACEMENT = refused(
    "aliases and Topology objects of KAI are not read, so the pod waits; give poseidon.io/gang-topology a node label"
)
_SHARD_SETTINGS = reported("has no effect: flags of the scheduler set what it does")
_ROLE = unneeded("nodes are chosen by node selectors and taints")

_QUEUE_FIELDS = {
    f"spec.resources.{resource}.{name}": HONOURED
    for resource in ("cpu", "gpu", "memory")
    for name in ("limit", "overQuotaWeight", "quota")
}
_USAGE = "spec.usageDBConfig"

KAI = ConventionTable(
    "kai",
    "KAI",
    (
        KindTable(
            "scheduling.run.ai",
            "PodGroup",
            ("v2alpha2",),
            {
                "spec.markUnschedulable": unneeded("pods that do not fit are always marked"),
                "spec.minMember": HONOURED,
                "spec.minSubGroup": _TREES,
                "spec.preemptibility": honoured("non-preemptible: its pods are never victims"),
                "spec.preemptionDelay": _DELAY,
                "spec.priorityClassName": honoured("without it the priorities of the pods count"),
                "spec.queue": HONOURED,
                "spec.schedulingBackoff": unneeded("pods are tried again when something changes"),
                "spec.stalenessGracePeriod": _STALE,
                "spec.subGroups[].minMember": HONOURED,
                "spec.subGroups[].minSubGroup": _TREES,
                "spec.subGroups[].name": HONOURED,
                "spec.subGroups[].parent": honoured("of those that are parents of others no minimum counts"),
                "spec.subGroups[].topologyConstraint.preferredTopologyLevel": reported(
                    "has no effect: topologies of subgroups are not supported yet"
                ),
                "spec.subGroups[].topologyConstraint.requiredTopologyLevel": refused(
                    "topologies of subgroups are not supported yet, so its pods wait"
                ),
                "spec.subGroups[].topologyConstraint.topology": reported("has no effect: levels are labels of nodes"),
                "spec.topologyConstraint.preferredTopologyLevel": honoured("a label of nodes"),
                "spec.topologyConstraint.requiredTopologyLevel": honoured("a label of nodes"),
                "spec.topologyConstraint.topology": reported("has no effect: levels are labels of nodes, not aliases"),
            },
        ),
        KindTable(
            "scheduling.run.ai",
            "Queue",
            ("v2",),
            {
                "spec.displayName": delegated("people"),
                "spec.parentQueue": HONOURED,
                "spec.preemptMinRuntime": HONOURED,
                "spec.priority": HONOURED,
                "spec.reclaimMinRuntime": HONOURED,
                **_QUEUE_FIELDS,
            },
        ),
        KindTable("kai.scheduler", "Topology", ("v1alpha1",), unread="levels of topologies are labels of nodes here"),
        KindTable(
            "kai.scheduler",
            "SchedulingShard",
            ("v1",),
            {
                "spec.actions{}.enabled": _SHARD_SETTINGS,
                "spec.actions{}.priority": _SHARD_SETTINGS,
                "spec.args{}": _SHARD_SETTINGS,
                "spec.goMemLimit": _KAI,
                "spec.goMemLimitRatio": _KAI,
                "spec.kValue": HONOURED,
                "spec.minRuntime.preemptMinRuntime": HONOURED,
                "spec.minRuntime.reclaimMinRuntime": HONOURED,
                "spec.partitionLabelValue": HONOURED,
                "spec.placementStrategy.cpu": _SHARD_SETTINGS,
                "spec.placementStrategy.gpu": _SHARD_SETTINGS,
                "spec.plugins{}.arguments{}": _SHARD_SETTINGS,
                "spec.plugins{}.enabled": _SHARD_SETTINGS,
                "spec.plugins{}.priority": _SHARD_SETTINGS,
                "spec.queueDepthPerAction{}": _SHARD_SETTINGS,
                "spec.scenarioSearchBudgets.maxActionSearchDuration{}": _SHARD_SETTINGS,
                "spec.scenarioSearchBudgets.maxGeneratorSearchDuration{}": _SHARD_SETTINGS,
                "spec.scenarioSearchBudgets.maxJobSearchDuration": _SHARD_SETTINGS,
                "spec.scenarioSearchBudgets.minJobSearchDuration": _SHARD_SETTINGS,
                f"{_USAGE}.clientType": _KAI,
                f"{_USAGE}.connectionString": _KAI,
                f"{_USAGE}.connectionStringEnvVar": _KAI,
                f"{_USAGE}.usageParams.cronString": unneeded("cron windows are reported as sliding ones"),
                f"{_USAGE}.usageParams.extraParams{{}}": _KAI,
                f"{_USAGE}.usageParams.fetchInterval": _KAI,
                f"{_USAGE}.usageParams.halfLifePeriod": HONOURED,
                f"{_USAGE}.usageParams.stalenessPeriod": _KAI,
                f"{_USAGE}.usageParams.tumblingWindowStartTime": unneeded(
                    "tumbling windows are reported as sliding ones"
                ),
                f"{_USAGE}.usageParams.waitTimeout": _KAI,
                f"{_USAGE}.usageParams.windowSize": HONOURED,
                f"{_USAGE}.usageParams.windowType": unneeded("others than sliding are reported"),
            },
        ),
    ),
    pods=KeyTable(
        annotations={
            "user": _KAI,
            "kai.scheduler/preemption-delay": _DELAY,
            "kai.scheduler/staleness-grace-period": _STALE,
            "kai.scheduler/topology": reported("has no effect: levels are labels of nodes, not aliases"),
            "kai.scheduler/topology-required-placement": _PLACEMENT,
            "kai.scheduler/topology-preferred-placement": reported(
                "has no effect: use poseidon.io/gang-topology with mode preferred"
            ),
            "kai.scheduler/segment-size": _SEGMENTS,
            "kai.scheduler/segment-topology-required-placement": _SEGMENTS,
            "kai.scheduler/segment-topology-preferred-placement": reported("has no effect: there are no segments"),
            "pod-group-name": HONOURED,
            "kai.scheduler/skip-podgrouper": _KAI,
            "gpu-fraction": _SHARE,
            "gpu-memory": _SHARE,
            "gpu-fraction-num-devices": _SHARE,
            "gpu-fraction-container-name": _KAI,
            "mps": _KAI,
            "received-resource-type": _CREATED,
            "runai/shared-gpu-configmap": _CREATED,
            "run.ai/reserve_for_gpu_index": _CREATED,
            "kai.scheduler/numa-placement-predicted": _CREATED,
            "kai.scheduler/numa-placement-observed": _CREATED,
        },
        labels={
            "kai.scheduler/queue": HONOURED,
            "kai.scheduler/node-pool": honoured(
                "a label of nodes. With queues of KAI in force also on owners, and on queues, which take pods of their "
                "pool only; pods that name none go to nodes without the label"
            ),
            "project": _KAI,
            "priorityClassName": honoured("while queues of KAI are in force"),
            "kai.scheduler/preemptibility": honoured("non-preemptible: never a victim"),
            "user": _KAI,
            "kai.scheduler/subgroup-name": HONOURED,
            "kai.scheduler/task-priority": reported("has no effect: spec.priorityClassName of the pods orders them"),
            "runai-gpu-group": _CREATED,
            "runai-gpu-group/*": _CREATED,
            "serving.knative.dev/revision": _KAI,
            "training.kubeflow.org/job-role": _KAI,
        },
    ),
    objects=KeyTable(
        annotations={
            "kai.scheduler/batch-min-member": honoured(
                "of pods without a PodGroup; on a JobSet it is refused, as it may be a number of groups"
            ),
            "kai.scheduler/stale-podgroup-timestamp": _CREATED,
            "kai.scheduler/last-start-timestamp": _CREATED,
            "kai.scheduler/last-eviction-timestamp": _CREATED,
            "kai.scheduler/top-owner-metadata": _CREATED,
            "autoscaling.knative.dev/min-scale": delegated("Knative"),
        },
        labels={
            "nvidia.com/gpu.memory": _KAI,
            "nvidia.com/gpu.count": _KAI,
            "nvidia.com/mig.strategy": _KAI,
            "node-role.kubernetes.io/cpu-worker": _ROLE,
            "node-role.kubernetes.io/gpu-worker": _ROLE,
            "node-role.kubernetes.io/mig-enabled": _ROLE,
        },
    ),
    words=("kai.scheduler", "gpu-fraction", "gpu-memory", "pod-group-name"),
)
