"""Kueue's queues, and what pods and owners declare about them."""

import json
from typing import Any

from tests.poseidon_py.conventions.case import ABSENT, Case, changed, key_case
from tests.poseidon_py.conventions.outcomes import JOB, Json, World, a_job, a_pod, an_object
from tests.poseidon_py.state.queues.kueue_objects import flavor, group

CONVENTIONS = ("kueue",)

PREFIX = "kueue.x-k8s.io/"
QUEUE = PREFIX + "queue-name"
QUOTA = {"nominalQuota": "9", "borrowingLimit": "2", "lendingLimit": "1"}


def _objects(**bodies: Json) -> tuple[tuple[str, Json], ...]:
    """All kinds; `bodies`: fields in place of the usual ones, by kind."""
    usual: dict[str, Json] = {
        "ResourceFlavor": {"spec": {"nodeLabels": {"tier": "spot"}, "topologyName": "dc"}},
        "Topology": {"spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}},
        "Cohort": {"spec": {"parentName": "root", "resourceGroups": [group(flavor("f", cpu=QUOTA), covered=["cpu"])]}},
        "ClusterQueue": {
            "spec": {
                "cohortName": "c",
                "namespaceSelector": {},
                "resourceGroups": [group(flavor("f", cpu=QUOTA), flavor("g", cpu=QUOTA), covered=["cpu"])],
            }
        },
        "LocalQueue": {"spec": {"clusterQueue": "q"}},
        "WorkloadPriorityClass": {"value": 70},
        "ConfigMap": {"data": {"controller_manager_config.yaml": "{}"}},
    }
    names = {"ResourceFlavor": "f", "Topology": "dc", "Cohort": "c", "ClusterQueue": "q", "LocalQueue": "lq"}
    found = []
    for kind, body in {**usual, **bodies}.items():
        name = names.get(kind, "high" if kind == "WorkloadPriorityClass" else "kueue-manager-config")
        namespace = "default" if kind in ("LocalQueue", "ConfigMap") else ""
        found.append((kind, an_object(name, namespace=namespace, **body)))
    second: list[tuple[str, str, Json]] = [
        ("ResourceFlavor", "g", {}),
        ("Topology", "hall", {}),
        ("Cohort", "d", {}),
        ("ClusterQueue", "r", {}),
    ]
    others = tuple((kind, an_object(name, namespace="", spec=spec)) for kind, name, spec in second)
    local = ("LocalQueue", an_object("mq", spec={"clusterQueue": "r"}))
    return (*found, *others, local)


def _world(**bodies: Json) -> World:
    required = {PREFIX + "podset-required-topology": "rack"}
    labels = {QUEUE: "lq", PREFIX + "priority-class": "high"}
    pods = (a_pod("a", labels=labels), a_pod("b", labels=labels, annotations=required, owner=JOB))
    namespace = an_object("default", namespace="", labels={"team": "x"})
    return World("kueue", (a_job(),), _objects(**bodies), pods, namespaces=(namespace,))


def _base(kind: str) -> Json:
    return next(body for name, body in _objects() if name == kind)


def _field(kind: str, path: str, one: object, other: object, **spec: Any) -> Case:
    base = {key: value for key, value in _base(kind).items() if key != "metadata"}
    if spec:
        base["spec"] = {**base["spec"], **spec}
    return Case(*(_world(**{kind: changed(base, path, value)}) for value in (one, other)))


def _configured(**config: Any) -> World:
    """With a pod of a Job that names no queue."""
    text = json.dumps(config)
    objects = _objects(ConfigMap={"data": {"controller_manager_config.yaml": text}})
    namespace = an_object("default", namespace="", labels={"team": "x"})
    return World("kueue", (a_job(),), objects, (a_pod("a", owner=JOB),), namespaces=(namespace,))


def _mapping(mapping: Json) -> World:
    """With a pod in no queue, whose claim is one of a template."""
    owner = {"uid": "uid-a", "controller": True, "kind": "Pod", "name": "a"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    pod = a_pod("a", spec={"resourceClaims": [{"name": "e", "resourceClaimTemplateName": "t"}]})
    pod["status"]["resourceClaimStatuses"] = [{"name": "e", "resourceClaimName": "c"}]
    return _configured(resources={"deviceClassMappings": [mapping]})._replace(
        pods=(pod,),
        devices=(
            ("DeviceClass", an_object("gpu", namespace="", spec={})),
            ("ResourceClaim", an_object("c", owner=owner, spec={"devices": {"requests": [request]}})),
        ),
    )


def _config(field: str, one: object, other: object) -> Case:
    def world(value: object) -> World:
        sharing = {"usageHalfLifeTime": "1h", field: value}
        text = str({"admissionFairSharing": sharing}).replace("'", '"')
        return _world(
            ConfigMap={"data": {"controller_manager_config.yaml": text}},
            ClusterQueue={
                "spec": {
                    **_base("ClusterQueue")["spec"],
                    "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
                }
            },
        )

    return Case(world(one), world(other))


def _pods(labels: Json, annotations: Json, owner: Json | None = None) -> World:
    pods = tuple(a_pod(name, labels=labels, annotations=annotations, owner=owner) for name in "ab")
    return World("kueue", (a_job(),), _objects(), pods)


def _labelled(labels: Json) -> World:
    return _pods(labels, {PREFIX + "pod-group-total-count": "2"} if PREFIX + "pod-group-name" in labels else {})


def _annotated(annotations: Json) -> World:
    return _pods({QUEUE: "lq"}, annotations, None if PREFIX + "pod-group-name" in annotations else JOB)


def _owner(annotations: Json) -> World:
    job = a_job(annotations=annotations, labels={QUEUE: "lq"})
    return World("kueue", (job,), _objects(), tuple(a_pod(name, owner=JOB) for name in "ab"))


def _labelled_owner(labels: Json) -> World:
    return World("kueue", (a_job(labels=labels),), _objects(), (a_pod("a", owner=JOB),))


def _quotas(kind: str) -> dict[tuple[str, str], Case]:
    flavors = "spec.resourceGroups[].flavors[]"
    one, other = QUOTA, {**QUOTA, "nominalQuota": "8"}

    def resource_groups(*quotas: Json, covered=("cpu",)) -> list[Json]:
        return [group(flavor("f", **{each["of"]: each["quota"] for each in quotas}), covered=list(covered))]

    cpu, memory = {"of": "cpu", "quota": one}, {"of": "memory", "quota": {"nominalQuota": "9"}}
    return {
        (kind, "spec.resourceGroups[].coveredResources[]"): _field(
            kind, "spec.resourceGroups", resource_groups(cpu), resource_groups(cpu, memory, covered=("cpu", "memory"))
        ),
        (kind, f"{flavors}.name"): _field(kind, f"{flavors}.name", "f", "g", resourceGroups=resource_groups(cpu)),
        (kind, f"{flavors}.resources[].name"): _field(
            kind, "spec.resourceGroups", resource_groups(memory, covered=("memory",)), resource_groups(cpu)
        ),
        (kind, f"{flavors}.resources[].nominalQuota"): _field(kind, f"{flavors}.resources[].nominalQuota", "9", "8"),
        (kind, f"{flavors}.resources[].borrowingLimit"): _field(
            kind, f"{flavors}.resources[].borrowingLimit", one["borrowingLimit"], other["lendingLimit"]
        ),
        (kind, f"{flavors}.resources[].lendingLimit"): _field(kind, f"{flavors}.resources[].lendingLimit", "1", "3"),
    }


_PREEMPTION = {"borrowWithinCohort": {"policy": "LowerPriority"}, "reclaimWithinCohort": "Any"}


def _queue(path: str, one: object, other: object, **spec: Any) -> dict[tuple[str, str], Case]:
    return {("ClusterQueue", path): _field("ClusterQueue", path, one, other, **spec)}


FIELDS = {
    **_quotas("ClusterQueue"),
    **_quotas("Cohort"),
    **_queue("spec.cohortName", "c", "d"),
    **_queue("spec.cohort", "c", "d", cohortName=None),
    **_queue("spec.admissionScope.admissionMode", "NoAdmissionFairSharing", "UsageBasedAdmissionFairSharing"),
    **_queue("spec.fairSharing.weight", "1", "2"),
    **_queue("spec.flavorFungibility.preference", ABSENT, "PreemptionOverBorrowing"),
    **_queue("spec.flavorFungibility.whenCanBorrow", "Borrow", "TryNextFlavor"),
    **_queue("spec.flavorFungibility.whenCanPreempt", "TryNextFlavor", "Preempt"),
    **_queue("spec.namespaceSelector", {}, {"matchLabels": {"team": "y"}}),
    **_queue("spec.preemption.borrowWithinCohort.maxPriorityThreshold", 1, 2, preemption=_PREEMPTION),
    **_queue("spec.preemption.borrowWithinCohort.policy", "Never", "LowerPriority", preemption=_PREEMPTION),
    **_queue("spec.preemption.reclaimWithinCohort", "Never", "Any"),
    **_queue("spec.preemption.withinClusterQueue", "Never", "LowerPriority"),
    **_queue("spec.queueingStrategy", "BestEffortFIFO", "StrictFIFO"),
    **_queue("spec.stopPolicy", "None", "Hold"),
    ("Cohort", "spec.fairSharing.weight"): _field("Cohort", "spec.fairSharing.weight", "1", "2"),
    ("Cohort", "spec.parentName"): _field("Cohort", "spec.parentName", "root", "d"),
    ("Cohort", "spec.parent"): _field("Cohort", "spec.parent", "root", "d", parentName=None),
    ("LocalQueue", "spec.clusterQueue"): _field("LocalQueue", "spec.clusterQueue", "q", "r"),
    ("LocalQueue", "spec.fairSharing.weight"): _field("LocalQueue", "spec.fairSharing.weight", "1", "2"),
    ("LocalQueue", "spec.stopPolicy"): _field("LocalQueue", "spec.stopPolicy", "None", "Hold"),
    ("ResourceFlavor", "spec.nodeLabels{}"): _field("ResourceFlavor", "spec.nodeLabels", {"a": "b"}, {"a": "c"}),
    **{
        ("ResourceFlavor", f"spec.nodeTaints[].{name}"): _field("ResourceFlavor", f"spec.nodeTaints[].{name}", *values)
        for name, values in (("key", "ab"), ("value", "ab"), ("effect", ("NoSchedule", "NoExecute")))
    },
    **{
        ("ResourceFlavor", f"spec.tolerations[].{name}"): _field(
            "ResourceFlavor", f"spec.tolerations[].{name}", *values
        )
        for name, values in (
            *(("key", "ab"), ("value", "ab"), ("effect", ("NoSchedule", "NoExecute"))),
            ("operator", ("Equal", "Exists")),
        )
    },
    ("ResourceFlavor", "spec.topologyName"): _field("ResourceFlavor", "spec.topologyName", "dc", "gone"),
    ("Topology", "spec.levels[].nodeLabel"): _field(
        "Topology", "spec.levels", [{"nodeLabel": "rack"}], [{"nodeLabel": "hall"}]
    ),
    ("WorkloadPriorityClass", "value"): _field("WorkloadPriorityClass", "value", 50, 70),
    ("Configuration", "fairSharing.enable"): Case(
        *(_configured(fairSharing={"enable": value}) for value in (True, False))
    ),
    ("Configuration", "manageJobsWithoutQueueName"): Case(
        *(_configured(manageJobsWithoutQueueName=value, managedJobsNamespaceSelector={}) for value in (True, False))
    ),
    ("Configuration", "managedJobsNamespaceSelector"): Case(
        *(
            _configured(manageJobsWithoutQueueName=True, managedJobsNamespaceSelector={"matchLabels": {"team": value}})
            for value in "xy"
        )
    ),
    ("Configuration", "resources.excludeResourcePrefixes[]"): Case(
        *(_configured(resources={"excludeResourcePrefixes": value}) for value in ([], ["example.com/"]))
    ),
    ("Configuration", "resources.deviceClassMappings[].name"): Case(
        *(_mapping({"name": name, "deviceClassNames": ["gpu"]}) for name in ("gpus", "devices"))
    ),
    ("Configuration", "resources.deviceClassMappings[].deviceClassNames[]"): Case(
        *(_mapping({"name": "gpus", "deviceClassNames": names}) for names in (["gpu"], ["fpga"]))
    ),
    ("Configuration", "resources.quotaCheckStrategy"): Case(
        *(_configured(resources={"quotaCheckStrategy": value}) for value in ("BlockUndeclared", "IgnoreUndeclared"))
    ),
    ("Configuration", "admissionFairSharing.usageHalfLifeTime"): _config("usageHalfLifeTime", "1h", "2h"),
    ("Configuration", "admissionFairSharing.usageSamplingInterval"): _config("usageSamplingInterval", "1m", "2m"),
    ("Configuration", "admissionFairSharing.resourceWeights{}"): _config("resourceWeights", {"cpu": 1}, {"cpu": 2}),
}

_NAME, _COUNT = PREFIX + "pod-group-name", PREFIX + "pod-group-total-count"

ANNOTATIONS = {
    PREFIX + "podset-required-topology": key_case(_annotated, PREFIX + "podset-required-topology", "zone", "rack"),
    PREFIX + "podset-preferred-topology": key_case(_annotated, PREFIX + "podset-preferred-topology", "zone", "rack"),
    _NAME: key_case(_annotated, _NAME, "g", "h", **{_COUNT: "2"}),
    _COUNT: key_case(_annotated, _COUNT, "2", "3", **{_NAME: "g"}),
    PREFIX + "job-min-parallelism": key_case(_owner, PREFIX + "job-min-parallelism", "2", "1"),
}

LABELS = {
    PREFIX + "max-exec-time-seconds": key_case(_labelled_owner, PREFIX + "max-exec-time-seconds", "60", "90"),
    QUEUE: key_case(_labelled, QUEUE, "lq", "mq"),
    PREFIX + "priority-class": key_case(_labelled, PREFIX + "priority-class", ABSENT, "high", **{QUEUE: "lq"}),
    _NAME: key_case(_labelled, _NAME, "g", "h", **{QUEUE: "lq"}),
}
