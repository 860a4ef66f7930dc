"""Kubernetes itself: scheduling.k8s.io, and the fields of pods and Jobs that belong to it."""

from poseidon_py.conventions.verdicts import HONOURED, ConventionTable, KindTable, delegated, honoured, refused

_GROUP = "scheduling.k8s.io"
_ORIGIN = delegated("its controllers: where the group comes from")
_CLAIMS = honoured("an equal entry of a pod is the claim of the group, reserved for it and not for its pods")
_TEMPLATE = delegated("the resource claim controller: its claim is the one that status.resourceClaimStatuses names")
_KUBELET = delegated("the kubelet, which gives containers the devices that their pod has")
_COMPOSITE = refused("groups of groups are not supported yet, so its pods wait; remove the parent")
_WORKLOAD_REF = refused(
    "the Workload API of Kubernetes 1.35 is not supported, so the pod waits; use spec.schedulingGroup of 1.36"
)
_JOB = delegated("the Job controller, which makes a PodGroup of it (gate WorkloadWithJob)")

_CLASS = delegated("the API server, which writes it into pods; here it counts for PodGroups that name the class")

_COMMON = {
    "spec.schedulingPolicy.basic{}": HONOURED,
    "spec.schedulingPolicy.gang.minCount": HONOURED,
    "spec.schedulingConstraints.topology[].key": HONOURED,
    "spec.resourceClaims[].name": _CLAIMS,
    "spec.resourceClaims[].resourceClaimName": _CLAIMS,
    "spec.resourceClaims[].resourceClaimTemplateName": _CLAIMS,
    "spec.priorityClassName": honoured("without it the priorities of the pods count"),
    "spec.priority": honoured("as the API server sets it by the class"),
}

NATIVE = ConventionTable(
    "native",
    "Kubernetes",
    (
        KindTable(
            _GROUP,
            "PodGroup",
            ("v1alpha2",),
            {
                **_COMMON,
                "spec.podGroupTemplateRef.workload.workloadName": _ORIGIN,
                "spec.podGroupTemplateRef.workload.podGroupTemplateName": _ORIGIN,
                "spec.disruptionMode": HONOURED,
            },
        ),
        KindTable(
            _GROUP,
            "PodGroup",
            ("v1", "v1beta1", "v1alpha3"),
            {
                **_COMMON,
                "spec.parentCompositePodGroupName": _COMPOSITE,
                "spec.workloadRef.workloadName": _ORIGIN,
                "spec.workloadRef.templateName": _ORIGIN,
                "spec.disruptionMode.single{}": HONOURED,
                "spec.disruptionMode.all{}": HONOURED,
                "spec.preemptionPolicy": HONOURED,
            },
        ),
        KindTable(
            _GROUP,
            "Workload",
            ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1"),
            unread="controllers make PodGroups of it, which are read; pods that name one of v1alpha1 are refused",
        ),
        KindTable(_GROUP, "CompositePodGroup", ("v1alpha3", "v1beta1"), unread="PodGroups that name one are refused"),
        KindTable(
            "",
            "Pod",
            ("v1",),
            {
                "spec.schedulingGroup.podGroupName": HONOURED,
                "spec.resourceClaims[].name": HONOURED,
                "spec.resourceClaims[].resourceClaimName": HONOURED,
                "spec.resourceClaims[].resourceClaimTemplateName": _TEMPLATE,
                "spec.containers[].resources.claims[].name": _KUBELET,
                "spec.containers[].resources.claims[].request": _KUBELET,
                "spec.initContainers[].resources.claims[].name": _KUBELET,
                "spec.initContainers[].resources.claims[].request": _KUBELET,
                "spec.workloadRef.name": _WORKLOAD_REF,
                "spec.workloadRef.podGroup": _WORKLOAD_REF,
                "spec.workloadRef.podGroupReplicaKey": _WORKLOAD_REF,
            },
        ),
        KindTable(
            "batch",
            "Job",
            ("v1",),
            {
                f"spec.scheduling.{name}": _JOB
                for name in (
                    "schedulingPolicy.basic{}",
                    "schedulingPolicy.gang.minCount",
                    "schedulingConstraints.topology[].key",
                    "disruptionMode.single{}",
                    "disruptionMode.all{}",
                    "resourceClaims[].name",
                    "resourceClaims[].resourceClaimName",
                    "resourceClaims[].resourceClaimTemplateName",
                )
            },
        ),
        KindTable(
            _GROUP,
            "PriorityClass",
            ("v1",),
            {
                "value": _CLASS,
                "globalDefault": _CLASS,
                "preemptionPolicy": _CLASS,
                "description": delegated("people"),
            },
        ),
    ),
)
