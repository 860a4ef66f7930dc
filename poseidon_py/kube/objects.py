"""The fields of Kubernetes objects that scheduling needs, decoded straight from bytes.

The compiled decoder skips unknown fields. Fields that are only compared, or read once for many objects, stay undecoded
as `Raw`: pods with equal bytes there have equal requirements (describe/pod_class.py). Every field has a default,
because a bookmark is an object with a version only.
"""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Raw, Struct, field

from poseidon_py.util.decoding import MalformedError, decode_json

NOTHING = Raw()

T = TypeVar("T")

TERMINAL = ("Succeeded", "Failed")

PREEMPTED = ("DisruptionTarget", "PreemptionByScheduler")
"""Type and reason of the condition of a pod that is preempted."""


class OwnerReference(Struct, gc=False):
    uid: str = ""
    kind: str = ""
    name: str = ""
    api_version: str = field(default="", name="apiVersion")
    controller: bool | None = None


class Metadata(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = field(default="", name="resourceVersion")
    created: str | None = field(default=None, name="creationTimestamp")
    deleting: str | None = field(default=None, name="deletionTimestamp")
    owners: list[OwnerReference] | None = field(default=None, name="ownerReferences")
    labels: Raw = NOTHING
    annotations: Raw = NOTHING
    grace: int | None = field(default=None, name="deletionGracePeriodSeconds")
    generation: int | None = None


class Container(Struct, gc=False):
    name: str = ""
    image: str | None = None
    ports: Raw = NOTHING
    resources: Raw = NOTHING
    restart_policy: str | None = field(default=None, name="restartPolicy")
    restart_rules: Raw = field(default=NOTHING, name="restartPolicyRules")


class ClaimSource(Struct, gc=False):
    name: str = field(default="", name="claimName")


class PodVolume(Struct):
    """A volume of a pod, as far as it restricts the nodes of the pod; all other kinds of volume are empty here."""

    name: str = ""
    claim: ClaimSource | None = field(default=None, name="persistentVolumeClaim")
    ephemeral: Raw = NOTHING
    gce_disk: Raw = field(default=NOTHING, name="gcePersistentDisk")
    aws_disk: Raw = field(default=NOTHING, name="awsElasticBlockStore")
    iscsi: Raw = NOTHING
    rbd: Raw = NOTHING
    image: Raw = NOTHING

    @property
    def special(self) -> bool:
        """Whether the volume restricts nodes by itself, not by a claim."""
        return not (
            self.gce_disk is NOTHING
            and self.aws_disk is NOTHING
            and self.iscsi is NOTHING
            and self.rbd is NOTHING
            and self.image is NOTHING
        )


class PodSpec(Struct):
    node_name: str | None = field(default=None, name="nodeName")
    scheduler_name: str | None = field(default=None, name="schedulerName")
    gates: list[Raw] | None = field(default=None, name="schedulingGates")
    scheduling_group: Raw = field(default=NOTHING, name="schedulingGroup")
    workload_ref: Raw = field(default=NOTHING, name="workloadRef")
    containers: list[Container] | None = None
    init_containers: list[Container] | None = field(default=None, name="initContainers")
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    node_selector: Raw = field(default=NOTHING, name="nodeSelector")
    affinity: Raw = NOTHING
    tolerations: Raw = NOTHING
    spread: Raw = field(default=NOTHING, name="topologySpreadConstraints")
    volumes: list[PodVolume] | None = None
    resource_claims: list[Raw] | None = field(default=None, name="resourceClaims")
    host_network: bool | None = field(default=None, name="hostNetwork")
    host_users: bool | None = field(default=None, name="hostUsers")
    priority: int | None = None
    priority_class: str | None = field(default=None, name="priorityClassName")
    preemption_policy: str | None = field(default=None, name="preemptionPolicy")
    deadline: int | None = field(default=None, name="activeDeadlineSeconds")
    restart_policy: str | None = field(default=None, name="restartPolicy")


class Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    changed: str | None = field(default=None, name="lastTransitionTime")


class ContainerStatus(Struct, gc=False):
    name: str = ""
    state: Raw = NOTHING
    resources: Raw = NOTHING
    allocated: Raw = field(default=NOTHING, name="allocatedResources")


class PodStatus(Struct):
    phase: str | None = None
    reason: str | None = None
    conditions: list[Condition] | None = None
    containers: list[ContainerStatus] | None = field(default=None, name="containerStatuses")
    init_containers: list[ContainerStatus] | None = field(default=None, name="initContainerStatuses")
    resources: Raw = NOTHING
    allocated: Raw = field(default=NOTHING, name="allocatedResources")
    nominated: str | None = field(default=None, name="nominatedNodeName")
    claims: Raw = field(default=NOTHING, name="resourceClaimStatuses")
    started: str | None = field(default=None, name="startTime")


class Pod(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class NodeSpec(Struct):
    unschedulable: bool | None = None
    taints: Raw = NOTHING


class NodeStatus(Struct):
    allocatable: Raw = NOTHING
    images: Raw = NOTHING
    declared: Raw = field(default=NOTHING, name="declaredFeatures")


class NodeMetadata(Struct):
    name: str = ""
    uid: str = ""
    resource_version: str = field(default="", name="resourceVersion")
    labels: Raw = NOTHING
    annotations: Raw = NOTHING

    namespace = ""  # nodes have none, but all kinds have the same attributes here


class Node(Struct):
    metadata: NodeMetadata = field(default_factory=NodeMetadata)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class WatchEvent(Struct, Generic[T]):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object, or a Status."""

    type: str
    object: T


class ListMetadata(Struct):
    resource_version: str = field(default="", name="resourceVersion")
    next_page: str | None = field(default=None, name="continue")


class ObjectList(Struct, Generic[T]):
    """One page of a list."""

    metadata: ListMetadata
    items: list[T] | None = None


class RetryDetails(Struct):
    retry_after: float | None = field(default=None, name="retryAfterSeconds")


class Status(Struct):
    """The answer of the API server in case of an error."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: RetryDetails | None = None


# The parts that are decoded only for the first object with these bytes.


Amounts = dict[str, str | int | float | None]


class ResourceRequirements(Struct):
    requests: Amounts | None = None


class Toleration(Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Taint(Struct):
    key: str = ""
    value: str | None = None
    effect: str = ""


class Requirement(Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class SelectorTerm(Struct):
    labels: list[Requirement] | None = field(default=None, name="matchExpressions")
    fields: list[Requirement] | None = field(default=None, name="matchFields")


class RequiredTerms(Struct):
    terms: list[SelectorTerm] | None = field(default=None, name="nodeSelectorTerms")


Labels = dict[str, str]
Tolerations = list[Toleration]
Taints = list[Taint]


class InvalidField(ValueError):
    """A field of an object is invalid. `field`: its path; `reason`: what was found, and the remedy."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def decode(raw: Raw, kind: type[T], path: str) -> T | None:
    """The field of an object at `path`, decoded; None if it is missing or null. Raises InvalidField."""
    data = bytes(raw)
    if not data:
        return None
    try:
        found: T | None = decode_json(data, kind | None, path)
    except MalformedError as error:
        raise InvalidField(path, error.reason) from error
    return found


def labels_of(metadata: Metadata | NodeMetadata) -> Labels:
    """The labels of an object; empty if there are none. Raises InvalidField."""
    return decode(metadata.labels, Labels, "metadata.labels") or {}


def annotations_of(metadata: Metadata | NodeMetadata) -> Labels:
    """The annotations of an object; empty if there are none. Raises InvalidField."""
    return decode(metadata.annotations, Labels, "metadata.annotations") or {}


def annotations_with(metadata: Metadata, part: bytes) -> Labels:
    """The annotations of an object if `part` occurs in their JSON; else, or if they are invalid, empty. Decodes only
    what matters, since it is called for every pod."""
    raw = metadata.annotations
    if raw is NOTHING or part not in bytes(raw):
        return {}
    try:
        return annotations_of(metadata)
    except InvalidField:
        return {}


def micros(timestamp: str | None) -> int:
    """Microseconds since the epoch of an API timestamp; 0 if there is none. Raises InvalidField."""
    if not timestamp:
        return 0
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1_000_000)
    except ValueError as error:
        raise InvalidField(
            "metadata.creationTimestamp", f"{timestamp!r} is not a time; give one like 2006-01-02T15:04:05Z"
        ) from error
