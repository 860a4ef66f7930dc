"""The fields of resource.k8s.io that scheduling needs: v1 and v1beta2, which are alike, and v1beta1.

v1beta1 differs in two places. A request has its fields beside its name, where later versions have them in `exactly`;
and a device has its fields in `basic`. `exact_of` and `body_of` hide that. See objects.py of kube for the conventions,
and https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-v1/ for the meaning.
"""

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, Metadata, RequiredTerms, Toleration

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")
"""The versions of the group that are read, best first."""
FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims that a scheduler has made for extended resources."""
IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that each class serves under its own name."""
MAX_USERS = 256
"""Consumers of one claim at most."""
MAX_RESULTS = 32
"""Devices of one claim at most."""

Quantity = str | int | float


# -- devices --------------------------------------------------------------------------------------------------------


class Attribute(Struct, gc=False):
    """Exactly one of these is set."""

    whole: int | None = field(default=None, name="int")
    truth: bool | None = field(default=None, name="bool")
    text: str | None = field(default=None, name="string")
    version: str | None = None
    wholes: list[int] | None = field(default=None, name="ints")
    truths: list[bool] | None = field(default=None, name="bools")
    texts: list[str] | None = field(default=None, name="strings")
    versions: list[str] | None = None


class CapacityRange(Struct, gc=False):
    min: Quantity = "0"
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Struct):
    """How much of a shared capacity a request takes."""

    default: Quantity | None = None
    valid_values: list[Quantity] | None = field(default=None, name="validValues")
    valid_range: CapacityRange | None = field(default=None, name="validRange")


class DeviceCapacity(Struct):
    value: Quantity = "0"
    policy: RequestPolicy | None = field(default=None, name="requestPolicy")


class CounterValue(Struct, gc=False):
    value: Quantity = "0"


class CounterUse(Struct):
    """What a device takes of a set of counters."""

    counter_set: str = field(default="", name="counterSet")
    counters: dict[str, CounterValue] = field(default_factory=dict)


class CounterSet(Struct):
    name: str = ""
    counters: dict[str, CounterValue] = field(default_factory=dict)


class DeviceTaint(Struct, gc=False):
    """`added` matters to the controller that evicts pods."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    added: str | None = field(default=None, name="timeAdded")


class DeviceBody(Struct):
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes: list[CounterUse] | None = field(default=None, name="consumesCounters")
    node_name: str | None = field(default=None, name="nodeName")
    node_selector: RequiredTerms | None = field(default=None, name="nodeSelector")
    all_nodes: bool | None = field(default=None, name="allNodes")
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = field(default=None, name="bindsToNode")
    binding_conditions: list[str] | None = field(default=None, name="bindingConditions")
    failure_conditions: list[str] | None = field(default=None, name="bindingFailureConditions")
    shareable: bool | None = field(default=None, name="allowMultipleAllocations")


class SliceDevice(DeviceBody):
    name: str = ""
    basic: DeviceBody | None = None


class Pool(Struct, gc=False):
    name: str = ""
    generation: int = 0
    slices: int = field(default=1, name="resourceSliceCount")


class SliceSpec(Struct):
    driver: str = ""
    pool: Pool = field(default_factory=Pool)
    node_name: str | None = field(default=None, name="nodeName")
    node_selector: RequiredTerms | None = field(default=None, name="nodeSelector")
    all_nodes: bool | None = field(default=None, name="allNodes")
    per_device: bool | None = field(default=None, name="perDeviceNodeSelection")
    devices: list[SliceDevice] | None = None
    counters: list[CounterSet] | None = field(default=None, name="sharedCounters")
    partition_type: str | None = field(default=None, name="partitionTypeAttribute")
    skipped: list[str] | None = field(default=None, name="skipNodeOperations")
    """What the kubelet leaves out for the devices, as their allocations say."""


class ResourceSlice(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: SliceSpec = field(default_factory=SliceSpec)


class TaintSelector(Struct):
    """What a rule taints; a field that is not given selects everything. Only v1alpha3 of Kubernetes 1.33 and 1.34 has
    classes and selectors."""

    class_name: str | None = field(default=None, name="deviceClassName")
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: list["DeviceSelector"] | None = None


class TaintRuleSpec(Struct):
    selector: TaintSelector | None = field(default=None, name="deviceSelector")
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRule(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: TaintRuleSpec = field(default_factory=TaintRuleSpec)


# -- requests -------------------------------------------------------------------------------------------------------


class Expression(Struct, gc=False):
    expression: str = ""


class DeviceSelector(Struct):
    cel: Expression | None = None


class ClassSpec(Struct):
    selectors: list[DeviceSelector] | None = None
    config: list[Raw] | None = None
    extended: str | None = field(default=None, name="extendedResourceName")


class DeviceClass(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    spec: ClassSpec = field(default_factory=ClassSpec)


class RequestedCapacity(Struct):
    requests: dict[str, Quantity] | None = None


class RequestToleration(Toleration):
    seconds: int | None = field(default=None, name="tolerationSeconds")


class ExactRequest(Struct):
    class_name: str = field(default="", name="deviceClassName")
    selectors: list[DeviceSelector] | None = None
    mode: str | None = field(default=None, name="allocationMode")
    count: int | None = None
    admin: bool | None = field(default=None, name="adminAccess")
    tolerations: list[RequestToleration] | None = None
    capacity: RequestedCapacity | None = None


class SubRequest(ExactRequest):
    name: str = ""


class DeviceRequest(ExactRequest):
    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[SubRequest] | None = field(default=None, name="firstAvailable")


class DeviceConstraint(Struct):
    requests: list[str] | None = None
    match: str | None = field(default=None, name="matchAttribute")
    distinct: str | None = field(default=None, name="distinctAttribute")


class DeviceConfig(Struct):
    """`opaque` stays as it is: its driver's own."""

    requests: list[str] | None = None
    opaque: Raw = NOTHING


class ClaimDevices(Struct):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceConfig] | None = None


class DeviceClaimSpec(Struct):
    devices: ClaimDevices = field(default_factory=ClaimDevices)


class AllocatedDevice(Struct):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin: bool | None = field(default=None, name="adminAccess")
    share: str | None = field(default=None, name="shareID")
    consumed: dict[str, Quantity] | None = field(default=None, name="consumedCapacity")
    binding_conditions: list[str] | None = field(default=None, name="bindingConditions")
    failure_conditions: list[str] | None = field(default=None, name="bindingFailureConditions")


class AllocatedDevices(Struct):
    results: list[AllocatedDevice] | None = None


class Allocation(Struct):
    devices: AllocatedDevices = field(default_factory=AllocatedDevices)
    node_selector: RequiredTerms | None = field(default=None, name="nodeSelector")


class Consumer(Struct, gc=False):
    """A pod or another object that a claim is reserved for."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    group: str | None = field(default=None, name="apiGroup")


class DeviceCondition(Struct, gc=False):
    type: str = ""
    status: str = ""


class DeviceStatus(Struct):
    """What a driver reports of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share: str | None = field(default=None, name="shareID")
    conditions: list[DeviceCondition] | None = None


class DeviceClaimStatus(Struct):
    allocation: Allocation | None = None
    users: list[Consumer] | None = field(default=None, name="reservedFor")
    devices: list[DeviceStatus] | None = None


class DeviceClaimMetadata(Metadata):
    finalizers: list[str] | None = None


class WatchedObject(Struct):
    """An object of any kind, with spec and status undecoded."""

    metadata: DeviceClaimMetadata = field(default_factory=DeviceClaimMetadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING


class ResourceClaim(Struct):
    metadata: DeviceClaimMetadata = field(default_factory=DeviceClaimMetadata)
    spec: DeviceClaimSpec = field(default_factory=DeviceClaimSpec)
    status: DeviceClaimStatus = field(default_factory=DeviceClaimStatus)


# -- of pods --------------------------------------------------------------------------------------------------------


class PodClaim(Struct, gc=False):
    """An entry of spec.resourceClaims."""

    name: str = ""
    claim: str | None = field(default=None, name="resourceClaimName")
    template: str | None = field(default=None, name="resourceClaimTemplateName")


class PodClaimStatus(Struct, gc=False):
    """An entry of status.resourceClaimStatuses. Without a claim, the pod needs none for it."""

    name: str = ""
    claim: str | None = field(default=None, name="resourceClaimName")


def exact_of(request: DeviceRequest) -> ExactRequest:
    """What a request without alternatives asks for."""
    return request.exactly or request


def body_of(device: SliceDevice) -> DeviceBody:
    return device.basic or device
