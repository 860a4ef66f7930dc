"""The served resources: names, scope, verbs, subresources, and the fields that field selectors may use.

One `Kind` per resource, all in one `Kinds` table; custom resource definitions add to it while the server runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _nothing(_: Json) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, eq=False)
class Kind:
    """One served resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    generation: bool = False
    """Whether metadata.generation counts changes of the specification."""
    field_names: tuple[str, ...] = ()
    """Field selectors besides metadata.name and metadata.namespace."""
    fields: Callable[[Json], tuple[str, ...]] = _nothing
    """The values of `field_names` in an object."""
    stored_as: Kind | None = None
    """Set if this is another view of a resource that is stored under a different group."""
    extra_columns: tuple[Json, ...] = field(default=())
    """additionalPrinterColumns of a custom resource."""
    custom: bool = False
    to_stored: Callable[[Json], Json] | None = None
    """With `stored_as`: an object of this version as it is stored, where more differs than apiVersion."""
    from_stored: Callable[[Json], Json] | None = None
    """The reverse."""
    status_alone: bool = False
    """Whether a write of the status leaves all metadata as they are, as with custom resources."""

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """Lower-case kind, as discovery names one object."""
        return self.kind.lower()

    @property
    def has_status(self) -> bool:
        """Whether status is written through its own subresource only."""
        return "status" in self.subresources

    def key(self, namespace: str, name: str) -> str:
        """The storage key; keys sort as the API server's do."""
        return f"{namespace}/{name}" if self.namespaced else name


def _pod_fields(pod: Json) -> tuple[str, ...]:
    spec = pod.get("spec") or {}
    status = pod.get("status") or {}
    return (
        intern(spec.get("nodeName") or ""),
        intern(spec.get("schedulerName") or ""),
        intern(status.get("phase") or ""),
        intern(spec.get("restartPolicy") or ""),
        intern(spec.get("serviceAccountName") or ""),
        status.get("podIP") or "",
        intern(status.get("nominatedNodeName") or ""),
        "true" if spec.get("hostNetwork") else "false",
    )


POD_FIELDS = (
    "spec.nodeName",
    "spec.schedulerName",
    "status.phase",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "status.podIP",
    "status.nominatedNodeName",
    "spec.hostNetwork",
)
POD_NODE, POD_SCHEDULER, POD_PHASE = 0, 1, 2
"""Positions in a pod record's `fields`."""


def _node_fields(node: Json) -> tuple[str, ...]:
    return ("true" if (node.get("spec") or {}).get("unschedulable") else "false",)


EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)


def _event_fields(event: Json) -> tuple[str, ...]:
    involved = event.get("involvedObject") or {}
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    return (
        intern(involved.get("kind") or ""),
        intern(involved.get("namespace") or ""),
        involved.get("name") or "",
        involved.get("uid") or "",
        intern(involved.get("apiVersion") or ""),
        involved.get("resourceVersion") or "",
        involved.get("fieldPath") or "",
        intern(event.get("reason") or ""),
        intern(event.get("reportingComponent") or ""),
        intern(source),
        intern(event.get("type") or ""),
    )


def _job_fields(job: Json) -> tuple[str, ...]:
    return (str((job.get("status") or {}).get("succeeded") or 0),)


def _phase_field(obj: Json) -> tuple[str, ...]:
    return (intern((obj.get("status") or {}).get("phase") or ""),)


def _type_field(secret: Json) -> tuple[str, ...]:
    return (intern(secret.get("type") or ""),)


def _replicas_field(obj: Json) -> tuple[str, ...]:
    return (str((obj.get("status") or {}).get("replicas") or 0),)


NODES = Kind(
    "", "v1", "nodes", "Node", False, ("no",), (), ("status",),
    field_names=("spec.unschedulable",), fields=_node_fields,
)  # fmt: skip
PODS = Kind(
    "", "v1", "pods", "Pod", True, ("po",), ("all",),
    ("status", "binding", "eviction", "log", "ephemeralcontainers", "resize", "portforward"),
    generation=True, field_names=POD_FIELDS, fields=_pod_fields,
)  # fmt: skip
NAMESPACES = Kind(
    "", "v1", "namespaces", "Namespace", False, ("ns",), (), ("status", "finalize"),
    field_names=("status.phase",), fields=_phase_field,
)  # fmt: skip
EVENTS = Kind("", "v1", "events", "Event", True, ("ev",), field_names=EVENT_FIELDS, fields=_event_fields)
EVENTS_NEW = Kind("events.k8s.io", "v1", "events", "Event", True, ("ev",), stored_as=EVENTS)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CONFIGMAPS = Kind("", "v1", "configmaps", "ConfigMap", True, ("cm",))
SECRETS = Kind("", "v1", "secrets", "Secret", field_names=("type",), fields=_type_field)
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",), (), ("token",))
SERVICES = Kind("", "v1", "services", "Service", True, ("svc",), ("all",), ("status",))
REPLICATION_CONTROLLERS = Kind(
    "", "v1", "replicationcontrollers", "ReplicationController", True, ("rc",), ("all",), ("status",),
    generation=True, field_names=("status.replicas",), fields=_replicas_field,
)  # fmt: skip
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",), (), ("status",))
VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",), (), ("status",))
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",), (), ("status",))
LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange", True, ("limits",))
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",))
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",))
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes", "CSINode", False)
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False)
ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, (), (), ("status",))
CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
BUDGETS = Kind(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",), (), ("status",),
    generation=True,
)  # fmt: skip
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, ("netpol",))
"""Stored, and not enforced: pods here have no network."""
WEBHOOKS = tuple(
    Kind("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)
"""Stored, and not called."""
ADMISSION_POLICIES = (
    Kind(
        "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False, (), (),
        ("status",), generation=True,
    ),
    Kind(
        "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
        False,
    ),
)  # fmt: skip
"""Stored, and not carried out."""
RBAC = tuple(
    Kind("rbac.authorization.k8s.io", "v1", f"{kind.lower()}s", kind, kind.startswith("Role"))
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)
"""In force with ClusterSettings.rbac."""
JOBS = Kind(
    "batch", "v1", "jobs", "Job", True, (), ("all",), ("status",), generation=True,
    field_names=("status.successful",), fields=_job_fields,
)  # fmt: skip
REPLICA_SETS = Kind(
    "apps", "v1", "replicasets", "ReplicaSet", True, ("rs",), ("all",), ("status", "scale"), generation=True,
    field_names=("status.replicas",), fields=_replicas_field,
)  # fmt: skip
DEPLOYMENTS = Kind(
    "apps", "v1", "deployments", "Deployment", True, ("deploy",), ("all",), ("status", "scale"), generation=True
)
STATEFUL_SETS = Kind(
    "apps", "v1", "statefulsets", "StatefulSet", True, ("sts",), ("all",), ("status", "scale"), generation=True
)
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False,
    ("crd", "crds"), ("api-extensions",), ("status",), generation=True,
)  # fmt: skip
NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False, verbs=("get", "list"))
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True, verbs=("get", "list"))

REVIEWS = tuple(
    Kind(group, "v1", f"{kind.lower()}s", kind, namespaced, verbs=("create",))
    for group, kind, namespaced in (
        ("authorization.k8s.io", "SelfSubjectAccessReview", False),
        ("authorization.k8s.io", "SubjectAccessReview", False),
        ("authorization.k8s.io", "LocalSubjectAccessReview", True),
        ("authorization.k8s.io", "SelfSubjectRulesReview", False),
        ("authentication.k8s.io", "SelfSubjectReview", False),
        ("authentication.k8s.io", "TokenReview", False),
    )
)
"""Access reviews, which are answered but not stored."""

BUILT_IN: tuple[Kind, ...] = (
    NODES, PODS, NAMESPACES, EVENTS, EVENTS_NEW, LEASES, CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS, SERVICES,
    REPLICATION_CONTROLLERS,
    CLAIMS, VOLUMES, RESOURCE_QUOTAS, LIMIT_RANGES, PRIORITY_CLASSES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS,
    ATTACHMENTS, CAPACITIES, BUDGETS, NETWORK_POLICIES, *WEBHOOKS, *ADMISSION_POLICIES, *RBAC, JOBS, REPLICA_SETS,
    DEPLOYMENTS, STATEFUL_SETS,
    DEFINITIONS, NODE_METRICS, POD_METRICS, *REVIEWS,
)  # fmt: skip


class Kinds:
    """The table of served resources; (group, version, plural) finds one."""

    def __init__(self, kinds: Sequence[Kind] = BUILT_IN) -> None:
        self._table: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._table.values()))

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The resource at a path, if it is served."""
        return self._table.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The resource that an object's apiVersion and kind name."""
        return next((k for k in self._table.values() if k.kind == kind and k.api_version == api_version), None)

    def add(self, kind: Kind) -> None:
        """Serve one more resource, or replace its description."""
        self._table[kind.group, kind.version, kind.plural] = kind

    def remove(self, kind: Kind) -> None:
        """Stop serving a resource."""
        self._table.pop((kind.group, kind.version, kind.plural), None)

    def groups(self) -> dict[str, list[str]]:
        """Group name to its versions, in the order they were added, without the core group."""
        found: dict[str, list[str]] = {}
        for kind in self._table.values():
            if kind.group and kind.version not in found.setdefault(kind.group, []):
                found[kind.group].append(kind.version)
        return found
