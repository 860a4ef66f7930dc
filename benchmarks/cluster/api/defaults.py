"""The defaults that the API server sets, as far as a scheduler or kubectl depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cluster.store.quantities import parse

Json = dict[str, Any]

DEFAULT_SCHEDULER = "default-scheduler"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
EVICTION_DELAY_SECONDS = 300


def pod_spec(spec: Json) -> None:
    """Defaults of a pod's specification, also inside templates."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", DEFAULT_SCHEDULER)
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            if isinstance(container, dict):
                _container(container)
    if isinstance(spec.get("resources"), dict):
        _requests_from_limits(spec["resources"])


def _container(container: Json) -> None:
    resources = container.setdefault("resources", {})
    if isinstance(resources, dict):
        _requests_from_limits(resources)
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = tag in ("", "latest") and "@" not in image
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")


def _requests_from_limits(resources: Json) -> None:
    limits = resources.get("limits")
    if isinstance(limits, dict) and limits:
        requests = resources.get("requests")
        resources["requests"] = {**limits, **requests} if isinstance(requests, dict) else dict(limits)


def pod(obj: Json) -> None:
    """Defaults and admission of a pod that do not depend on the store."""
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in (NOT_READY, UNREACHABLE):
        if not any(_tolerates_no_execute(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": EVICTION_DELAY_SECONDS,
                }
            )
    _merge_label_keys(spec, (obj.get("metadata") or {}).get("labels") or {})
    status = obj.get("status")
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if isinstance(status, dict) and status.get("nominatedNodeName"):
        obj["status"]["nominatedNodeName"] = status["nominatedNodeName"]


def _merge_label_keys(spec: Json, labels: Json) -> None:
    """What pkg/registry/core/pod/strategy.go does to a new pod: keys of labels whose values count become part of the
    selectors of its pod affinity and spread, with the values that the pod has then."""
    holders = list(spec.get("topologySpreadConstraints") or ())
    affinity = spec.get("affinity") or {}
    for kind in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        holders += kind.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        weighted = kind.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        holders += [each.get("podAffinityTerm") or {} for each in weighted]
    for holder in holders:
        selector = holder.get("labelSelector")
        if selector is None:
            continue
        for operator, keys in (("In", holder.get("matchLabelKeys")), ("NotIn", holder.get("mismatchLabelKeys"))):
            for key in keys or ():
                if key in labels:
                    merged = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), merged]


def _tolerates_no_execute(toleration: Json, key: str) -> bool:
    named = toleration.get("key") or ""
    return toleration.get("effect") in (None, "", "NoExecute") and named in ("", key)


def quality_of_service(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from the containers' cpu and memory."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = False
    guaranteed = True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = requests.get(name), limits.get(name)
            try:
                asked = asked or bool(parse(request or 0) or parse(limit or 0))
                guaranteed = guaranteed and limit is not None and parse(limit) == parse(request or limit)
            except ValueError:
                guaranteed = False
    return "BestEffort" if not asked else "Guaranteed" if guaranteed else "Burstable"


def _job(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    uid = obj["metadata"]["uid"]
    name = obj["metadata"]["name"]
    template = spec.setdefault("template", {})
    metadata = template.setdefault("metadata", {})
    if not spec.get("manualSelector"):
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    pod_spec(template.setdefault("spec", {}))


def _replicated(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = spec.setdefault("template", {})
    pod_spec(template.setdefault("spec", {}))


def _replication_controller(obj: Json) -> None:
    _replicated(obj)
    spec = obj["spec"]
    spec.setdefault("selector", dict((spec["template"].get("metadata") or {}).get("labels") or {}))


def _deployment(obj: Json) -> None:
    _replicated(obj)
    spec = obj["spec"]
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _stateful_set(obj: Json) -> None:
    _replicated(obj)
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    spec.setdefault("revisionHistoryLimit", 10)


def _namespace(obj: Json) -> None:
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj["status"] = {"phase": "Active"}
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


def _node(obj: Json) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    if isinstance(status.get("capacity"), dict) and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _claim(obj: Json) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    obj["status"] = {"phase": "Pending"}


def _volume(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    obj["status"] = {"phase": "Available"}


def _storage_class(obj: Json) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _priority_class(obj: Json) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def _event(obj: Json) -> None:
    obj.setdefault("involvedObject", {})


def _secret(obj: Json) -> None:
    obj.setdefault("type", "Opaque")


DEFAULTS: dict[tuple[str, str], Callable[[Json], None]] = {
    ("", "Pod"): pod,
    ("", "Node"): _node,
    ("", "Namespace"): _namespace,
    ("", "Event"): _event,
    ("", "Secret"): _secret,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "ReplicationController"): _replication_controller,
    ("batch", "Job"): _job,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
"""(group, kind) to the defaults of a create. Applied after name, UID and time are set."""
