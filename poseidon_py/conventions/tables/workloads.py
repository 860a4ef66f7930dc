"""JobSet, LeaderWorkerSet and AppWrapper: owners of pods, whose own controllers run.

Of their fields, those count here that give the number of pods of a gang.
"""

from poseidon_py.conventions.verdicts import HONOURED, ConventionTable, KeyTable, KindTable, delegated, honoured

_CONTROLLER = delegated("its own controller")
_CREATED = delegated("its own controller, which writes it")
_GANG = honoured("the size of a gang: annotation poseidon.io/gang, --gangs-from, or queues of Kueue")

_JOBSET = [
    "spec.coordinator.jobIndex",
    "spec.coordinator.podIndex",
    "spec.coordinator.replicatedJob",
    "spec.failurePolicy.maxRestarts",
    "spec.failurePolicy.restartStrategy",
    "spec.failurePolicy.rules[].action",
    "spec.failurePolicy.rules[].name",
    "spec.failurePolicy.rules[].onJobFailureMessagePatterns[]",
    "spec.failurePolicy.rules[].onJobFailureReasons[]",
    "spec.failurePolicy.rules[].targetReplicatedJobs[]",
    "spec.managedBy",
    "spec.network.enableDNSHostnames",
    "spec.network.publishNotReadyAddresses",
    "spec.network.subdomain",
    "spec.replicatedJobs[].dependsOn[].status",
    "spec.replicatedJobs[].groupName",
    "spec.replicatedJobs[].name",
    "spec.replicatedJobs[].template.metadata",
    "spec.replicatedJobs[].template.spec.activeDeadlineSeconds",
    "spec.replicatedJobs[].template.spec.backoffLimit",
    "spec.replicatedJobs[].template.spec.backoffLimitPerIndex",
    "spec.replicatedJobs[].template.spec.completionMode",
    "spec.replicatedJobs[].template.spec.managedBy",
    "spec.replicatedJobs[].template.spec.manualSelector",
    "spec.replicatedJobs[].template.spec.maxFailedIndexes",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].action",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].onExitCodes.containerName",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].onExitCodes.operator",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].onExitCodes.values[]",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].onPodConditions[].status",
    "spec.replicatedJobs[].template.spec.podFailurePolicy.rules[].onPodConditions[].type",
    "spec.replicatedJobs[].template.spec.podReplacementPolicy",
    "spec.replicatedJobs[].template.spec.selector",
    "spec.replicatedJobs[].template.spec.successPolicy.rules[].succeededCount",
    "spec.replicatedJobs[].template.spec.successPolicy.rules[].succeededIndexes",
    "spec.replicatedJobs[].template.spec.suspend",
    "spec.replicatedJobs[].template.spec.template",
    "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished",
    "spec.successPolicy.operator",
    "spec.successPolicy.targetReplicatedJobs[]",
    "spec.ttlSecondsAfterFinished",
    "spec.volumeClaimPolicies[].retentionPolicy.whenDeleted",
    "spec.volumeClaimPolicies[].templates[]",
]
_JOBSET_SIZE = [
    "spec.replicatedJobs[].replicas",
    "spec.replicatedJobs[].template.spec.parallelism",
    "spec.replicatedJobs[].template.spec.completions",
    "spec.replicatedJobs[].dependsOn[].name",
    "spec.startupPolicy.startupPolicyOrder",
    "spec.suspend",
]
_JOBSET_LABELS = [
    "jobset.sigs.k8s.io/jobset-name",
    "jobset.sigs.k8s.io/replicatedjob-replicas",
    "jobset.sigs.k8s.io/global-replicas",
    "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index",
    "jobset.sigs.k8s.io/job-key",
    "jobset.sigs.k8s.io/group-name",
    "jobset.sigs.k8s.io/group-replicas",
    "jobset.sigs.k8s.io/job-group-index",
    "jobset.sigs.k8s.io/coordinator",
    "jobset.sigs.k8s.io/priority",
]

JOBSET = ConventionTable(
    "jobset",
    "JobSet",
    (
        KindTable(
            "jobset.x-k8s.io",
            "JobSet",
            ("v1alpha2",),
            {**dict.fromkeys(_JOBSET, _CONTROLLER), **dict.fromkeys(_JOBSET_SIZE, _GANG)},
        ),
    ),
    pods=KeyTable(
        annotations={
            "alpha.jobset.sigs.k8s.io/exclusive-topology": honoured(
                "leaders are placed on their own, since the other pods come after them"
            ),
            "alpha.jobset.sigs.k8s.io/node-selector": delegated(
                "JobSet's controller, which gives pods a node selector"
            ),
            "jobset.sigs.k8s.io/jobset-uid": _CREATED,
            "jobset.sigs.k8s.io/in-place-restart-attempt": _CREATED,
        },
        labels={
            "jobset.sigs.k8s.io/replicatedjob-name": HONOURED,
            **dict.fromkeys(_JOBSET_LABELS, _CREATED),
        },
    ),
    objects=KeyTable(
        annotations={"jobset.sigs.k8s.io/disable-in-place-restart": _CONTROLLER},
        labels={
            "alpha.jobset.sigs.k8s.io/namespaced-job": delegated("node selectors of exclusive jobs"),
            "jobset.sigs.k8s.io/restart-attempt": _CREATED,
            "jobset.sigs.k8s.io/job-restart-attempt": _CREATED,
        },
    ),
    words=("jobset.sigs.k8s.io",),
)

_LWS = [
    "spec.leaderWorkerTemplate.leaderTemplate",
    "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenDeleted",
    "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenScaled",
    "spec.leaderWorkerTemplate.restartPolicy",
    "spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
    "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
    "spec.leaderWorkerTemplate.volumeClaimTemplates[]",
    "spec.leaderWorkerTemplate.workerTemplate",
    "spec.networkConfig.subdomainPolicy",
    "spec.replicas",
    "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge",
    "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
    "spec.rolloutStrategy.rollingUpdateConfiguration.partition",
    "spec.rolloutStrategy.type",
]
_LWS_PODS = [
    "leaderworkerset.sigs.k8s.io/leader-name",
    "leaderworkerset.sigs.k8s.io/subgroup-size",
    "leaderworkerset.sigs.k8s.io/subgroup-policy-type",
    "leaderworkerset.sigs.k8s.io/subdomainPolicy",
    "leaderworkerset.sigs.k8s.io/leader-requests-tpus",
]
_LWS_LABELS = [
    "leaderworkerset.sigs.k8s.io/worker-index",
    "leaderworkerset.sigs.k8s.io/template-revision-hash",
    "leaderworkerset.sigs.k8s.io/subgroup-index",
    "leaderworkerset.sigs.k8s.io/subgroup-key",
]
_AFFINITY = delegated("the webhook of LeaderWorkerSet, which gives leaders affinity and workers a node selector")
_PLACEMENT = delegated("its own controller, which gives pods affinity and anti-affinity")
_DISAGGREGATED = [
    "spec.roles[].name",
    "spec.roles[].scaling.mode",
    "spec.roles[].metadata",
    *(f"spec.roles[].{path}" for path in (*_LWS, "spec.leaderWorkerTemplate.size", "spec.startupPolicy")),
    "spec.slices",
]
_DISAGGREGATED_LABELS = [f"disaggregatedset.x-k8s.io/{name}" for name in ("name", "role", "slice", "revision")]

LWS = ConventionTable(
    "lws",
    "LeaderWorkerSet",
    (
        KindTable(
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            ("v1",),
            {
                **dict.fromkeys(_LWS, _CONTROLLER),
                "spec.leaderWorkerTemplate.size": honoured("with --gangs-from leaderworkersets"),
                "spec.startupPolicy": honoured("with --gangs-from leaderworkersets"),
            },
        ),
        KindTable(
            "disaggregatedset.x-k8s.io",
            "DisaggregatedSet",
            ("v1",),
            {
                **dict.fromkeys(_DISAGGREGATED, delegated("its own controller, which makes LeaderWorkerSets")),
                "spec.placementPolicy.type": _PLACEMENT,
                "spec.placementPolicy.topology": _PLACEMENT,
            },
        ),
    ),
    pods=KeyTable(
        annotations={
            "leaderworkerset.sigs.k8s.io/size": HONOURED,
            "leaderworkerset.sigs.k8s.io/exclusive-topology": honoured(
                "leaders are placed on their own, since workers come after them"
            ),
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": _AFFINITY,
            **dict.fromkeys(_LWS_PODS, _CREATED),
        },
        labels={
            "leaderworkerset.sigs.k8s.io/name": HONOURED,
            "leaderworkerset.sigs.k8s.io/group-index": HONOURED,
            "leaderworkerset.sigs.k8s.io/group-key": HONOURED,
            **dict.fromkeys((*_LWS_LABELS, *_DISAGGREGATED_LABELS), _CREATED),
        },
    ),
    objects=KeyTable(
        annotations={
            "leaderworkerset.sigs.k8s.io/replicas": _CREATED,
            "disaggregatedset.x-k8s.io/initial-replicas": _CREATED,
            "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start": _CONTROLLER,
            "volcano.sh/*": delegated("the controller of LeaderWorkerSet, which copies it to PodGroups"),
        }
    ),
    words=("leaderworkerset.sigs.k8s.io", "disaggregatedset.x-k8s.io", "volcano.sh"),
)

_APPWRAPPER = [
    "spec.components[].annotations{}",
    "spec.components[].podSetInfos[].annotations{}",
    "spec.components[].podSetInfos[].labels{}",
    "spec.components[].podSetInfos[].nodeSelector{}",
    "spec.components[].podSetInfos[].schedulingGates[].name",
    "spec.components[].podSetInfos[].tolerations[].effect",
    "spec.components[].podSetInfos[].tolerations[].key",
    "spec.components[].podSetInfos[].tolerations[].operator",
    "spec.components[].podSetInfos[].tolerations[].tolerationSeconds",
    "spec.components[].podSetInfos[].tolerations[].value",
    "spec.components[].podSets[].annotations{}",
    "spec.components[].podSets[].path",
    "spec.components[].podSets[].replicas",
    "spec.components[].template{}",
    "spec.managedBy",
    "spec.suspend",
]
_APPWRAPPER_ANNOTATIONS = [
    "workload.codeflare.dev.appwrapper/admissionGracePeriodDuration",
    "workload.codeflare.dev.appwrapper/warmupGracePeriodDuration",
    "workload.codeflare.dev.appwrapper/failureGracePeriodDuration",
    "workload.codeflare.dev.appwrapper/retryPausePeriodDuration",
    "workload.codeflare.dev.appwrapper/retryLimit",
    "workload.codeflare.dev.appwrapper/forcefulDeletionGracePeriodDuration",
    "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration",
    "workload.codeflare.dev.appwrapper/successTTLDuration",
    "workload.codeflare.dev.appwrapper/terminalExitCodes",
    "workload.codeflare.dev.appwrapper/retryableExitCodes",
    "workload.codeflare.dev.appwrapper/tas-pod-index-label",
    "workload.codeflare.dev.appwrapper/tas-sub-group-index-label",
    "workload.codeflare.dev.appwrapper/tas-sub-group-count",
]

APPWRAPPER = ConventionTable(
    "appwrapper",
    "AppWrapper",
    (
        KindTable(
            "workload.codeflare.dev",
            "AppWrapper",
            ("v1beta2",),
            dict.fromkeys(_APPWRAPPER, _CONTROLLER),
        ),
    ),
    pods=KeyTable(labels={"workload.codeflare.dev/appwrapper": _CREATED}),
    objects=KeyTable(
        annotations=dict.fromkeys(_APPWRAPPER_ANNOTATIONS, _CONTROLLER),
        labels={"workload.codeflare.dev/user": _CREATED, "workload.codeflare.dev/userid": _CREATED},
    ),
    words=("workload.codeflare.dev",),
)
