"""The columns of every built-in kind, by group and kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.cluster.nodes.registration import KUBELET_VERSION
from benchmarks.cluster.views.columns import AGE, NAME, Column, Json, age
from benchmarks.cluster.views.device_columns import DEVICE_COLUMNS
from benchmarks.cluster.views.pod_columns import DEPLOYMENT, JOB, POD, REPLICA_SET, STATEFUL_SET

_ROLE = "node-role.kubernetes.io/"


def _at(*path: str, default: Any = "", show: Callable[[Any], Any] | None = None) -> Callable[[Json], Any]:
    """The value at a path, or the default if there is none."""

    def cell(obj: Json) -> Any:
        value: Any = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None or value == "":
            return default
        return value if show is None else show(value)

    return cell


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _count(name: str) -> Callable[[Json], int]:
    return lambda obj: len(obj.get(name) or ())


def _node_status(node: Json) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), None)
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return word + (",SchedulingDisabled" if node["spec"].get("unschedulable") else "")


def _roles(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    return ",".join(sorted(roles)) or "<none>"


def _address(type_: str) -> Callable[[Json], str]:
    def cell(node: Json) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((str(one["address"]) for one in addresses if one["type"] == type_), "<none>")

    return cell


def _info(name: str, default: str = "<unknown>") -> Callable[[Json], Any]:
    return _at("status", "nodeInfo", name, default=default)


NODE = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    Column("Version", _info("kubeletVersion", KUBELET_VERSION)),
    Column("Internal-IP", _address("InternalIP"), priority=1),
    Column("External-IP", _address("ExternalIP"), priority=1),
    Column("OS-Image", _info("osImage"), priority=1),
    Column("Kernel-Version", _info("kernelVersion"), priority=1),
    Column("Container-Runtime", _info("containerRuntimeVersion"), priority=1),
)


def _last_seen(event: Json) -> str:
    stamp = event.get("lastTimestamp") or event.get("eventTime")
    series = event.get("series") or {}
    if series.get("lastObservedTime"):
        return f"{age(series['lastObservedTime'])} (x{series.get('count', 1)} over {_first_seen(event)})"
    count = event.get("count") or 1
    if count > 1:
        return f"{age(stamp)} (x{count} over {_first_seen(event)})"
    return age(stamp)


def _first_seen(event: Json) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"))


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or {}
    kind, name = (involved.get("kind") or "").lower(), involved.get("name") or ""
    return f"{kind}/{name}" if name else kind


def _event_source(event: Json) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


EVENT = (
    Column("Last Seen", _last_seen),
    Column("Type", _at("type")),
    Column("Reason", _at("reason")),
    Column("Object", _event_object),
    Column("Subobject", _at("involvedObject", "fieldPath"), priority=1),
    Column("Source", _event_source, priority=1),
    Column("Message", _at("message", show=lambda text: text.strip())),
    Column("First Seen", _first_seen, priority=1),
    Column("Count", lambda event: str(event.get("count") or (event.get("series") or {}).get("count") or 1), priority=1),
    Column("Name", _at("metadata", "name"), priority=1, format="name"),
)

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(obj: Json) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in obj["spec"].get("accessModes") or ())


def _claim_of(volume: Json) -> str:
    claim = volume["spec"].get("claimRef") or {}
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _phase(obj: Json) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str((obj.get("status") or {}).get("phase") or "")


VOLUME = (
    NAME,
    Column("Capacity", _at("spec", "capacity", "storage")),
    Column("Access Modes", _modes),
    Column("Reclaim Policy", _at("spec", "persistentVolumeReclaimPolicy")),
    Column("Status", _phase),
    Column("Claim", _claim_of),
    Column("StorageClass", _at("spec", "storageClassName")),
    Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", default="<unset>")),
    Column("Reason", _at("status", "reason")),
    AGE,
    Column("VolumeMode", _at("spec", "volumeMode", default="<unset>"), priority=1),
)
CLAIM = (
    NAME,
    Column("Status", _phase),
    Column("Volume", _at("spec", "volumeName")),
    Column("Capacity", _at("status", "capacity", "storage")),
    Column("Access Modes", lambda obj: _modes(obj) if obj["spec"].get("volumeName") else ""),
    Column("StorageClass", _at("spec", "storageClassName")),
    Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", default="<unset>")),
    AGE,
    Column("VolumeMode", _at("spec", "volumeMode", default="<unset>"), priority=1),
)
BUDGET = (
    NAME,
    Column("Min Available", _at("spec", "minAvailable", default="N/A", show=_text)),
    Column("Max Unavailable", _at("spec", "maxUnavailable", default="N/A", show=_text)),
    Column("Allowed Disruptions", _at("status", "disruptionsAllowed", default=0), "integer"),
    AGE,
)
PRIORITY_CLASS = (
    NAME,
    Column("Value", _at("value", default=0), "integer"),
    Column("Global-Default", _at("globalDefault", default=False), "boolean"),
    AGE,
    Column("PreemptionPolicy", _at("preemptionPolicy", default="PreemptLowerPriority")),
)
STORAGE_CLASS = (
    NAME,
    Column("Provisioner", _at("provisioner")),
    Column("ReclaimPolicy", _at("reclaimPolicy", default="Delete")),
    Column("VolumeBindingMode", _at("volumeBindingMode", default="Immediate")),
    Column("AllowVolumeExpansion", _at("allowVolumeExpansion", default="false", show=_text)),
    AGE,
)
CSI_DRIVER = (
    NAME,
    Column("AttachRequired", _at("spec", "attachRequired", default=True), "boolean"),
    Column("PodInfoOnMount", _at("spec", "podInfoOnMount", default=False), "boolean"),
    Column("StorageCapacity", _at("spec", "storageCapacity", default=False), "boolean"),
    Column("TokenRequests", lambda obj: "<unset>"),
    Column("RequiresRepublish", _at("spec", "requiresRepublish", default=False), "boolean"),
    Column("Modes", lambda obj: ",".join(obj.get("spec", {}).get("volumeLifecycleModes") or ["Persistent"])),
    AGE,
)
SERVICE = (
    NAME,
    Column("Type", _at("spec", "type", default="ClusterIP")),
    Column("Cluster-IP", _at("spec", "clusterIP", default="None")),
    Column("External-IP", lambda obj: "<none>"),
    Column(
        "Port(s)",
        lambda obj: ",".join(
            f"{one.get('port')}/{one.get('protocol', 'TCP')}" for one in obj.get("spec", {}).get("ports") or ()
        ) or "<none>",
    ),
    AGE,
)  # fmt: skip

COLUMNS: dict[tuple[str, str], Sequence[Column]] = {
    ("", "Pod"): POD,
    ("", "Node"): NODE,
    ("", "Event"): EVENT,
    ("", "Namespace"): (NAME, Column("Status", _phase), AGE),
    ("", "ConfigMap"): (NAME, Column("Data", _count("data"), "integer"), AGE),
    ("", "Secret"): (NAME, Column("Type", _at("type")), Column("Data", _count("data"), "integer"), AGE),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Service"): SERVICE,
    ("", "ReplicationController"): REPLICA_SET,
    ("", "PersistentVolume"): VOLUME,
    ("", "PersistentVolumeClaim"): CLAIM,
    ("batch", "Job"): JOB,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("policy", "PodDisruptionBudget"): BUDGET,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", _at("spec", "holderIdentity")), AGE),
    ("storage.k8s.io", "StorageClass"): STORAGE_CLASS,
    ("storage.k8s.io", "CSINode"): (
        NAME,
        Column("Drivers", lambda obj: len((obj.get("spec") or {}).get("drivers") or ()), "integer"),
        AGE,
    ),
    ("storage.k8s.io", "CSIDriver"): CSI_DRIVER,
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column("Attacher", _at("spec", "attacher")),
        Column("PV", _at("spec", "source", "persistentVolumeName")),
        Column("Node", _at("spec", "nodeName")),
        Column("Attached", _at("status", "attached", default=False), "boolean"),
        AGE,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): (
        NAME,
        Column("StorageClassName", _at("storageClassName")),
        Column("Capacity", _at("capacity")),
    ),
    **DEVICE_COLUMNS,
}
