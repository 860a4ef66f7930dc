"""scheduler-plugins: PodGroup and ElasticQuota, the labels of earlier releases; Fluence, which builds on them."""

from poseidon_py.conventions.verdicts import (
    HONOURED,
    ConventionTable,
    KeyTable,
    KindTable,
    delegated,
    honoured,
    refused,
    unneeded,
)

_PODGROUP = {
    "spec.minMember": HONOURED,
    "spec.minResources{}": HONOURED,
    "spec.scheduleTimeoutSeconds": HONOURED,
}
_QUOTA = {"spec.min{}": HONOURED, "spec.max{}": HONOURED}
_TOLERATION = {
    "minimum-preemptable-priority": "pods of lower priority do not preempt theirs; its value + 1 without it",
    "toleration-seconds": "for how long after a pod was bound; -1: for ever; 0 without it",
}
_QUOTA_OF_KOORDINATOR = honoured("read as a quota of Koordinator: that of a namespace has its name, or lists it")

COSCHEDULING = ConventionTable(
    "coscheduling",
    "coscheduling",
    (
        KindTable("scheduling.x-k8s.io", "PodGroup", ("v1alpha1",), _PODGROUP),
        KindTable("scheduling.x-k8s.io", "ElasticQuota", ("v1alpha1",), _QUOTA),
        KindTable("scheduling.sigs.k8s.io", "PodGroup", ("v1alpha1",), _PODGROUP),
        KindTable(
            "scheduling.sigs.k8s.io", "ElasticQuota", ("v1alpha1",), dict.fromkeys(_QUOTA, _QUOTA_OF_KOORDINATOR)
        ),
    ),
    pods=KeyTable(
        labels={
            "scheduling.x-k8s.io/pod-group": HONOURED,
            "pod-group.scheduling.x-k8s.io/name": HONOURED,
            "pod-group.scheduling.x-k8s.io/min-available": HONOURED,
            "pod-group.scheduling.sigs.k8s.io": HONOURED,
            "pod-group.scheduling.sigs.k8s.io/name": HONOURED,
            "pod-group.scheduling.sigs.k8s.io/min-available": HONOURED,
        }
    ),
    objects=KeyTable(
        annotations={
            f"preemption-toleration.scheduling.{group}/{name}": honoured(f"of PriorityClasses: {text}")
            for group in ("x-k8s.io", "sigs.k8s.io")
            for name, text in _TOLERATION.items()
        }
    ),
    words=("scheduling.x-k8s.io", "scheduling.sigs.k8s.io"),
)

_FLUX = "fluence.flux-framework.org"
_QUANTUM = delegated("Fluence's own controllers, for quantum backends")

FLUENCE = ConventionTable(
    "fluence",
    "Fluence",
    pods=KeyTable(
        annotations={
            f"{_FLUX}/group-size": HONOURED,
            f"{_FLUX}/backend": _QUANTUM,
            f"{_FLUX}/jobid": delegated("Fluence: its allocation of the group"),
            f"{_FLUX}/require-*": refused("attributes of Fluence's backends are not read, so the pod waits; remove it"),
            f"{_FLUX}/attr-*": _QUANTUM,
            f"{_FLUX}/depends-on-kind": _QUANTUM,
            f"{_FLUX}/depends-on-producer": _QUANTUM,
            f"{_FLUX}/depends-on-gate": delegated("Fluence's controller removes that gate; until then the pod waits"),
            f"{_FLUX}/coordination": _QUANTUM,
            f"{_FLUX}/quantum-job-id": _QUANTUM,
        },
        labels={
            "fluence.group-size": HONOURED,
            "fluence.pod-group": HONOURED,
            "flunce.created-at": unneeded("Fluence writes it"),
            f"{_FLUX}/group": HONOURED,
            f"{_FLUX}/observe": _QUANTUM,
        },
    ),
    objects=KeyTable(annotations={f"{_FLUX}/created-by": delegated("Fluence, which makes PodGroups")}),
    words=("fluence", "flunce"),
)
