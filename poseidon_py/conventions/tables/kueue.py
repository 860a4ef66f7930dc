"""Kueue: its queues, which are read without its controller; of its own Workloads and checks nothing is read."""

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

_GROUP = "kueue.x-k8s.io"
_BETA = ("v1beta1", "v1beta2")
_KUEUE = delegated("Kueue's controller, where it runs")
_CHECKS = refused(
    "admission checks are not run here, so the queue takes no pods, as in Kueue without the check's controller"
)
_CONCURRENT = reported("has no effect: a workload takes the best flavor at once")
_TOLERATIONS = honoured("of nodeTaints alone; give the pods those that the taints of nodes need")
_SLICES = refused("slices of pod sets are not supported yet, so the pod waits; remove it")
_PREBUILT = refused("Workloads that are made beforehand are not read, so the pods wait for it; remove it")
_READY = reported(
    "has no effect: a workload is placed as a whole and holds no quota before it is; pods that do not become ready are "
    "not evicted, and nobody waits for them"
)
_AMOUNTS = refused(
    "quota counts what the pods request, as it is, so no ClusterQueue takes pods; remove it, and give quota of that"
)
_DEVICES = honoured("of claims from templates, and of extended resources that devices serve")
_SOURCES_OF_DEVICES = reported("is not counted: pods of queues wait that ask for devices of these classes")

_PREFIX = "spec.resourceGroups[]"
_QUOTAS = {
    f"{_PREFIX}.coveredResources[]": HONOURED,
    f"{_PREFIX}.flavors[].name": HONOURED,
    f"{_PREFIX}.flavors[].resources[].name": HONOURED,
    f"{_PREFIX}.flavors[].resources[].nominalQuota": HONOURED,
    f"{_PREFIX}.flavors[].resources[].borrowingLimit": HONOURED,
    f"{_PREFIX}.flavors[].resources[].lendingLimit": HONOURED,
}
_CLUSTER_QUEUE = {
    **_QUOTAS,
    "spec.admissionChecksStrategy.admissionChecks[].name": _CHECKS,
    "spec.admissionChecksStrategy.admissionChecks[].onFlavors[]": _CHECKS,
    "spec.admissionScope.admissionMode": HONOURED,
    "spec.fairSharing.weight": HONOURED,
    "spec.flavorFungibility.preference": HONOURED,
    "spec.flavorFungibility.whenCanBorrow": HONOURED,
    "spec.flavorFungibility.whenCanPreempt": HONOURED,
    "spec.namespaceSelector": HONOURED,
    "spec.preemption.borrowWithinCohort.maxPriorityThreshold": HONOURED,
    "spec.preemption.borrowWithinCohort.policy": HONOURED,
    "spec.preemption.reclaimWithinCohort": HONOURED,
    "spec.preemption.withinClusterQueue": HONOURED,
    "spec.queueingStrategy": HONOURED,
    "spec.stopPolicy": HONOURED,
}
_FRAMEWORKS = reported("has no effect: queue labels count on owners of any kind, listed or not")
_POD_OPTIONS = reported("has no effect: pods with a queue label are in a queue in any namespace, with any labels")
_CONFIGURATION = {
    "manageJobsWithoutQueueName": honoured("pods of Jobs and other workloads that name no queue wait"),
    "managedJobsNamespaceSelector": honoured("of those that wait as they name no queue"),
    "waitForPodsReady.timeout": _READY,
    "waitForPodsReady.blockAdmission": _READY,
    "waitForPodsReady.requeuingStrategy.timestamp": _READY,
    "waitForPodsReady.requeuingStrategy.backoffLimitCount": _READY,
    "waitForPodsReady.requeuingStrategy.backoffBaseSeconds": _READY,
    "waitForPodsReady.requeuingStrategy.backoffMaxSeconds": _READY,
    "waitForPodsReady.recoveryTimeout": _READY,
    "integrations.frameworks[]": _FRAMEWORKS,
    "integrations.externalFrameworks[]": _FRAMEWORKS,
    "integrations.labelKeysToCopy[]": _KUEUE,
    "fairSharing.preemptionStrategies[]": reported(
        "has no effect: LessThanOrEqualToFinalShare, then LessThanInitialShare", ["LessThanOrEqualToFinalShare"]
    ),
    "admissionFairSharing.usageHalfLifeTime": HONOURED,
    "admissionFairSharing.usageSamplingInterval": HONOURED,
    "admissionFairSharing.resourceWeights{}": HONOURED,
    "resources.excludeResourcePrefixes[]": HONOURED,
    "resources.transformations[].input": _AMOUNTS,
    "resources.transformations[].strategy": _AMOUNTS,
    "resources.transformations[].multiplyBy": _AMOUNTS,
    "resources.transformations[].outputs{}": _AMOUNTS,
    "resources.deviceClassMappings[].name": _DEVICES,
    "resources.deviceClassMappings[].deviceClassNames[]": _DEVICES,
}
_SOURCES = "resources.deviceClassMappings[].sources[]"

KUEUE = ConventionTable(
    "kueue",
    "Kueue",
    (
        KindTable(
            _GROUP,
            "ClusterQueue",
            ("v1beta1",),
            {**_CLUSTER_QUEUE, "spec.admissionChecks[]": _CHECKS, "spec.cohort": HONOURED},
        ),
        KindTable(
            _GROUP,
            "ClusterQueue",
            ("v1beta2",),
            {
                **_CLUSTER_QUEUE,
                "spec.cohortName": HONOURED,
                "spec.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName": _CONCURRENT,
                "spec.concurrentAdmissionPolicy.migration.mode": _CONCURRENT,
            },
        ),
        KindTable(
            _GROUP, "Cohort", _BETA, {**_QUOTAS, "spec.fairSharing.weight": HONOURED, "spec.parentName": HONOURED}
        ),
        KindTable(_GROUP, "Cohort", ("v1alpha1",), {**_QUOTAS, "spec.parent": HONOURED}),
        KindTable(
            _GROUP,
            "LocalQueue",
            _BETA,
            {
                "spec.clusterQueue": HONOURED,
                "spec.fairSharing.weight": HONOURED,
                "spec.stopPolicy": HONOURED,
            },
        ),
        KindTable(
            _GROUP,
            "ResourceFlavor",
            _BETA,
            {
                "spec.nodeLabels{}": HONOURED,
                "spec.nodeTaints[].effect": HONOURED,
                "spec.nodeTaints[].key": HONOURED,
                "spec.nodeTaints[].timeAdded": unneeded("Kueue does not read it"),
                "spec.nodeTaints[].value": HONOURED,
                "spec.tolerations[].effect": _TOLERATIONS,
                "spec.tolerations[].key": _TOLERATIONS,
                "spec.tolerations[].operator": _TOLERATIONS,
                "spec.tolerations[].tolerationSeconds": unneeded("it says nothing of admission"),
                "spec.tolerations[].value": _TOLERATIONS,
                "spec.topologyName": HONOURED,
            },
        ),
        KindTable(_GROUP, "Topology", ("v1alpha1", *_BETA), {"spec.levels[].nodeLabel": HONOURED}),
        KindTable(_GROUP, "WorkloadPriorityClass", _BETA, {"value": HONOURED, "description": delegated("people")}),
        KindTable(_GROUP, "AdmissionCheck", _BETA, unread="ClusterQueues that name one take no pods"),
        KindTable(_GROUP, "Workload", _BETA, unread="Kueue's controller makes and reads it"),
        KindTable(_GROUP, "ProvisioningRequestConfig", _BETA, unread="Kueue's controller makes requests by it"),
        KindTable(
            "config.kueue.x-k8s.io",
            "Configuration",
            ("v1beta1",),
            {
                **_CONFIGURATION,
                "waitForPodsReady.enable": reported(_READY.text, False),
                "integrations.podOptions.namespaceSelector": _POD_OPTIONS,
                "integrations.podOptions.podSelector": _POD_OPTIONS,
                "fairSharing.enable": honoured(
                    "without fairSharing, shares count by weight if a queue or cohort has a fairSharing.weight"
                ),
            },
            selected=True,
        ),
        KindTable(
            "config.kueue.x-k8s.io",
            "Configuration",
            ("v1beta2",),
            {
                **_CONFIGURATION,
                "resources.quotaCheckStrategy": HONOURED,
                f"{_SOURCES}.counter.name": _SOURCES_OF_DEVICES,
                f"{_SOURCES}.counter.driver": _SOURCES_OF_DEVICES,
                f"{_SOURCES}.counter.deviceSelector": _SOURCES_OF_DEVICES,
                f"{_SOURCES}.capacity.name": _SOURCES_OF_DEVICES,
                f"{_SOURCES}.capacity.driver": _SOURCES_OF_DEVICES,
                f"{_SOURCES}.capacity.deviceSelector": _SOURCES_OF_DEVICES,
            },
            selected=True,
        ),
    ),
    pods=KeyTable(
        annotations={
            "kueue.x-k8s.io/prebuilt-workload-name": _PREBUILT,
            "kueue.x-k8s.io/safe-to-forcefully-delete": _KUEUE,
            "kueue.x-k8s.io/workload-slice-name": _KUEUE,
            "kueue.x-k8s.io/podset-required-topology": HONOURED,
            "kueue.x-k8s.io/podset-preferred-topology": HONOURED,
            "kueue.x-k8s.io/podset-unconstrained-topology": unneeded("it asks for no place"),
            "kueue.x-k8s.io/podset-slice-required-topology": _SLICES,
            "kueue.x-k8s.io/podset-slice-size": _SLICES,
            "kueue.x-k8s.io/podset-slice-required-topology-constraints": _SLICES,
            "kueue.x-k8s.io/podset-group-name": refused(
                "pod sets that share a domain are not supported yet, so the pod waits; remove it"
            ),
            "kueue.x-k8s.io/workload": _KUEUE,
            "kueue.x-k8s.io/pod-index-offset": _KUEUE,
            "kueue.x-k8s.io/pod-group-pod-index-label": _KUEUE,
            "kueue.x-k8s.io/pod-group-name": HONOURED,
            "kueue.x-k8s.io/pod-group-total-count": HONOURED,
            "kueue.x-k8s.io/pod-group-fast-admission": reported("has no effect: a group is placed once its pods exist"),
            "kueue.x-k8s.io/pod-group-serving": _KUEUE,
            "kueue.x-k8s.io/role-hash": _KUEUE,
            "kueue.x-k8s.io/retriable-in-group": _KUEUE,
            "kueue.x-k8s.io/pod-suspending-parent": _KUEUE,
        },
        labels={
            "kueue.x-k8s.io/queue-name": HONOURED,
            "kueue.x-k8s.io/priority-class": HONOURED,
            "kueue.x-k8s.io/max-exec-time-seconds": honoured("on the owner: its pods are suspended after that time"),
            "kueue.x-k8s.io/prebuilt-workload-name": _PREBUILT,
            "kueue.x-k8s.io/managed": _KUEUE,
            "kueue.x-k8s.io/podset": _KUEUE,
            "kueue.x-k8s.io/cluster-queue-name": _KUEUE,
            "kueue.x-k8s.io/local-queue-name": _KUEUE,
            "kueue.x-k8s.io/pod-group-pod-index": _KUEUE,
            "kueue.x-k8s.io/pod-group-name": HONOURED,
            "kueue.x-k8s.io/multikueue-worker-workload-pod": _KUEUE,
        },
    ),
    objects=KeyTable(
        annotations={
            "kueue.x-k8s.io/job-owner-gvk": _KUEUE,
            "kueue.x-k8s.io/job-owner-name": _KUEUE,
            "kueue.x-k8s.io/component-workload-index": _KUEUE,
            "kueue.x-k8s.io/priority-boost": _KUEUE,
            "kueue.x-k8s.io/workload-allowed-resource-flavors": _KUEUE,
            "kueue.x-k8s.io/admission-gated-by": refused(
                "gates of admission are not read, so the pods wait; remove it once it may run"
            ),
            "kueue.x-k8s.io/elastic-job": reported("has no effect: pods beyond the first size are admitted one by one"),
            "kueue.x-k8s.io/workload-slice-replacement-for": _KUEUE,
            "kueue.x-k8s.io/is-group-workload": _KUEUE,
            "kueue.x-k8s.io/job-min-parallelism": honoured("the minimum of the gang; the Job keeps its parallelism"),
            "kueue.x-k8s.io/job-completions-equal-parallelism": reported(
                "has no effect: with partial admission the Job keeps its parallelism and completions"
            ),
            "kueue.x-k8s.io/stopping": _KUEUE,
            "kueue.x-k8s.io/raycluster-podset-replica-sizes": _KUEUE,
            "kueue.x-k8s.io/raycluster-generation": _KUEUE,
            "provreq.kueue.x-k8s.io/*": reported("has no effect: no ProvisioningRequests are made"),
            "kueue.x-k8s.io/multikueue-origin-uid": _KUEUE,
        },
        labels={
            "kueue.x-k8s.io/job-uid": _KUEUE,
            "kueue.x-k8s.io/concurrent-admission-parent": _KUEUE,
            "kueue.x-k8s.io/multikueue-origin": _KUEUE,
        },
    ),
    words=("kueue.x-k8s.io",),
)
