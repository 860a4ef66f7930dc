"""Grove's PodGangs, and Godel's PodGroups."""

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

_OPERATOR = delegated("Grove's operator, which makes PodGangs")
_CREATED = delegated("Grove's operator, which writes it")
_PACK = "spec.{}topologyConstraint.packConstraint.{}"
_NESTED = refused("topologies of parts of a gang are not supported yet, so its pods wait; constrain the whole gang")
_NESTED_SOFT = reported("has no effect: topologies of parts of a gang are not supported yet")

_CLIQUE = [
    "spec.autoScalingConfig.maxReplicas",
    "spec.autoScalingConfig.minReplicas",
    "spec.minAvailable",
    "spec.podSpec",
    "spec.replicas",
    "spec.roleName",
    "spec.startsAfter[]",
]
_CLIQUE_SET = [
    "spec.replicas",
    "spec.template.cliqueStartupType",
    "spec.template.cliques[].annotations{}",
    "spec.template.cliques[].labels{}",
    "spec.template.cliques[].name",
    "spec.template.cliques[].resourceSharing[].name",
    "spec.template.cliques[].resourceSharing[].namespace",
    "spec.template.cliques[].resourceSharing[].scope",
    "spec.template.cliques[].spec.autoScalingConfig.maxReplicas",
    "spec.template.cliques[].spec.autoScalingConfig.minReplicas",
    "spec.template.cliques[].spec.minAvailable",
    "spec.template.cliques[].spec.podSpec",
    "spec.template.cliques[].spec.replicas",
    "spec.template.cliques[].spec.roleName",
    "spec.template.cliques[].spec.startsAfter[]",
    "spec.template.cliques[].topologyConstraint.pack.preferred",
    "spec.template.cliques[].topologyConstraint.pack.required",
    "spec.template.cliques[].topologyConstraint.packDomain",
    "spec.template.cliques[].topologyConstraint.topologyName",
    "spec.template.podCliqueScalingGroups[].annotations{}",
    "spec.template.podCliqueScalingGroups[].cliqueNames[]",
    "spec.template.podCliqueScalingGroups[].minAvailable",
    "spec.template.podCliqueScalingGroups[].name",
    "spec.template.podCliqueScalingGroups[].replicas",
    "spec.template.podCliqueScalingGroups[].resourceSharing[].filter.childCliqueNames[]",
    "spec.template.podCliqueScalingGroups[].resourceSharing[].name",
    "spec.template.podCliqueScalingGroups[].resourceSharing[].namespace",
    "spec.template.podCliqueScalingGroups[].resourceSharing[].scope",
    "spec.template.podCliqueScalingGroups[].scaleConfig.maxReplicas",
    "spec.template.podCliqueScalingGroups[].scaleConfig.minReplicas",
    "spec.template.podCliqueScalingGroups[].topologyConstraint.pack.preferred",
    "spec.template.podCliqueScalingGroups[].topologyConstraint.pack.required",
    "spec.template.podCliqueScalingGroups[].topologyConstraint.packDomain",
    "spec.template.podCliqueScalingGroups[].topologyConstraint.topologyName",
    "spec.template.priorityClassName",
    "spec.template.resourceClaimTemplates[].name",
    "spec.template.resourceClaimTemplates[].templateSpec.metadata",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.config[].opaque.driver",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.config[].opaque.parameters{}",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.config[].requests[]",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.constraints[].distinctAttribute",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.constraints[].matchAttribute",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.constraints[].requests[]",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.adminAccess",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.allocationMode",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.capacity.requests{}",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.count",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.deviceClassName",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.selectors[].cel.expression",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.tolerations[].effect",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.tolerations[].key",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.tolerations[].operator",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.tolerations[].tolerationSeconds",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].exactly.tolerations[].value",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].allocationMode",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].capacity.requests{}",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].count",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].deviceClassName",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].name",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].selectors[].cel.expression",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].tolerations[].effect",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].tolerations[].key",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].tolerations[].operator",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].tolerations[].tolerationSeconds",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].firstAvailable[].tolerations[].value",
    "spec.template.resourceClaimTemplates[].templateSpec.spec.devices.requests[].name",
    "spec.template.resourceSharing[].filter.childCliqueNames[]",
    "spec.template.resourceSharing[].filter.childScalingGroupNames[]",
    "spec.template.resourceSharing[].name",
    "spec.template.resourceSharing[].namespace",
    "spec.template.resourceSharing[].scope",
    "spec.template.terminationDelay",
    "spec.template.topologyConstraint.pack.preferred",
    "spec.template.topologyConstraint.pack.required",
    "spec.template.topologyConstraint.packDomain",
    "spec.template.topologyConstraint.topologyName",
]
_POD_LABELS = [
    "grove.io/base-podgang",
    "grove.io/podcliqueset-replica-index",
    "grove.io/podcliquescalinggroup",
    "grove.io/podcliquescalinggroup-replica-index",
    "grove.io/podclique-pod-index",
    "grove.io/pod-template-hash",
]

GROVE = ConventionTable(
    "grove",
    "Grove",
    (
        KindTable(
            "scheduler.grove.io",
            "PodGang",
            ("v1alpha1",),
            {
                "spec.podgroups[].minReplicas": HONOURED,
                "spec.podgroups[].name": HONOURED,
                "spec.podgroups[].podReferences[].name": unneeded("labels of the pods name their group"),
                "spec.podgroups[].podReferences[].namespace": unneeded("labels of the pods name their group"),
                _PACK.format("podgroups[].", "preferred"): _NESTED_SOFT,
                _PACK.format("podgroups[].", "required"): _NESTED,
                "spec.priorityClassName": honoured("without it the priorities of the pods count"),
                "spec.reuseReservationRef.name": reported("has no effect: nothing is reserved for its successor"),
                "spec.reuseReservationRef.namespace": reported("has no effect: nothing is reserved for its successor"),
                _PACK.format("", "preferred"): honoured("a label of nodes"),
                _PACK.format("", "required"): honoured("a label of nodes"),
                "spec.topologyConstraintGroupConfigs[].name": delegated("the constraint of the configuration"),
                "spec.topologyConstraintGroupConfigs[].podGroupNames[]": delegated(
                    "the constraint of the configuration"
                ),
                _PACK.format("topologyConstraintGroupConfigs[].", "preferred"): _NESTED_SOFT,
                _PACK.format("topologyConstraintGroupConfigs[].", "required"): _NESTED,
            },
        ),
        KindTable("grove.io", "PodClique", ("v1alpha1",), dict.fromkeys(_CLIQUE, _OPERATOR)),
        KindTable("grove.io", "PodCliqueSet", ("v1alpha1",), dict.fromkeys(_CLIQUE_SET, _OPERATOR)),
        KindTable(
            "grove.io",
            "PodCliqueScalingGroup",
            ("v1alpha1",),
            dict.fromkeys(("spec.cliqueNames[]", "spec.minAvailable", "spec.replicas"), _OPERATOR),
        ),
        KindTable("grove.io", "ClusterTopologyBinding", ("v1alpha1",), unread="Grove's operator reads it"),
    ),
    pods=KeyTable(
        labels={
            "grove.io/podgang": HONOURED,
            "grove.io/podclique": HONOURED,
            **dict.fromkeys(_POD_LABELS, _CREATED),
        }
    ),
    objects=KeyTable(
        annotations={
            "grove.io/topology-name": _CREATED,
            "grove.io/mnnvl-group": _OPERATOR,
            "scheduling.grove.io/volcano-queue": _OPERATOR,
            "grove.io/disable-managed-resource-protection": _OPERATOR,
            "grove.io/reconcile-trigger": _OPERATOR,
            "kai.scheduler/queue": _OPERATOR,
        },
        labels={"grove.io/scheduler-name": _CREATED},
    ),
    words=("grove.io",),
)

_GODEL = delegated("Godel's own schedulers, which write it")
_AFFINITY = "spec.affinity.podGroup"
_DOMAIN = refused("affinity between groups by topology is not read, so its pods wait; use poseidon.io/gang-topology")
_DOMAIN_SOFT = reported("has no effect: use poseidon.io/gang-topology with mode preferred")
_RESERVATION = reported("has no effect: nothing is reserved for its successor")
_SCORE = reported("has no effect: the cost policy is that of --policy")
_PLUGINS = refused("its own plug-ins cannot be required, so the pods wait; use node selectors and affinity")
_NUMA = refused("NUMA nodes are not read, so the pod waits; remove it")

GODEL = ConventionTable(
    "godel",
    "Godel",
    (
        KindTable(
            "scheduling.godel.kubewharf.io",
            "PodGroup",
            ("v1alpha1",),
            {
                f"{_AFFINITY}Affinity.nodeSelector": _DOMAIN,
                f"{_AFFINITY}Affinity.preferred[].topologyKey": _DOMAIN_SOFT,
                f"{_AFFINITY}Affinity.required[].topologyKey": _DOMAIN,
                f"{_AFFINITY}Affinity.sortRules[].dimension": _SCORE,
                f"{_AFFINITY}Affinity.sortRules[].order": _SCORE,
                f"{_AFFINITY}Affinity.sortRules[].resource": _SCORE,
                f"{_AFFINITY}AntiAffinity.preferred[].topologyKey": _DOMAIN_SOFT,
                f"{_AFFINITY}AntiAffinity.required[].topologyKey": _DOMAIN,
                "spec.application": delegated("people"),
                "spec.minMember": HONOURED,
                "spec.priorityClassName": honoured("without it the priorities of the pods count"),
                "spec.scheduleTimeoutSeconds": HONOURED,
            },
        ),
        KindTable("scheduling.godel.kubewharf.io", "Reservation", ("v1alpha1",), unread="nothing is kept free for it"),
        KindTable("scheduling.godel.kubewharf.io", "Movement", ("v1alpha1",), unread="Godel's rescheduler makes it"),
        KindTable("scheduling.godel.kubewharf.io", "Scheduler", ("v1alpha1",), unread="Godel's dispatcher reads it"),
    ),
    pods=KeyTable(
        annotations={
            "godel.bytedance.com/pod-group-name": HONOURED,
            **{
                f"godel.bytedance.com/{name}": _GODEL
                for name in (
                    "pod-state",
                    "selected-scheduler",
                    "failed-schedulers",
                    "assumed-node",
                    "assumed-cross-node",
                    "nominated-node",
                    "potential-victims",
                    "initial-handled-timestamp",
                    "micro-topology",
                    "movement-name",
                    "matched-reservation-placeholder",
                    "e2e-excluded",
                )
            },
            "godel.bytedance.com/pod-resource-type": reported(
                "has no effect: each pod counts in full against what nodes offer", "guaranteed"
            ),
            "godel.bytedance.com/pod-launcher": refused(
                "node managers are not read, so the pod waits; give kubelet", "kubelet", ""
            ),
            "godel.bytedance.com/ignore-pods-limit": reported(
                "has no effect: each pod counts against the node's limit, beyond which kubelets refuse pods"
            ),
            "godel.bytedance.com/protection-duration-from-preemption": honoured(
                "the pod is not preempted for so many seconds after it was scheduled"
            ),
            "godel.bytedance.com/increase-percentage-of-nodes-to-score": unneeded("all nodes are considered"),
            "godel.bytedance.com/request-template": unneeded("pods with equal requirements are found"),
            "godel.bytedance.com/reservation-ttl": _RESERVATION,
            "godel.bytedance.com/reservation": _RESERVATION,
            "pod.tce.kubernetes.io/reservation": _RESERVATION,
            "godel.bytedance.com/reservation-index": _RESERVATION,
            "godel.bytedance.com/hard-constraints": _PLUGINS,
            "godel.bytedance.com/soft-constraints": _SCORE,
            "godel.bytedance.com/can-be-preempted": honoured(
                "also on PriorityClasses; without it pods may be preempted, unlike with Godel"
            ),
            "godel.bytedance.com/preemption-policy": unneeded(
                "spec.preemptionPolicy counts before it, and the API server gives each pod one"
            ),
            "godel.bytedance.com/customized-priority-for-debug": unneeded("it is for debugging"),
            "godel.bytedance.com/debug-mode": unneeded("it is for debugging"),
            "godel.bytedance.com/aligned-resources": _NUMA,
            "katalyst.kubewharf.io/qos_level": delegated("Katalyst's agent on the node"),
            "katalyst.kubewharf.io/memory_enhancement": _NUMA,
        },
        labels={"godel.bytedance.com/pod-group-name": honoured("in place of the annotation")},
    ),
    objects=KeyTable(
        annotations={
            "godel.bytedance.com/podgroup-final-op-lock": _GODEL,
            "godel.bytedance.com/scheduler-name": _GODEL,
        }
    ),
    words=("godel.bytedance.com", "pod.tce.kubernetes.io", "katalyst.kubewharf.io"),
)
