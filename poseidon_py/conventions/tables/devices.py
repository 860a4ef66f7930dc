"""Devices of Kubernetes: resource.k8s.io."""

from poseidon_py.conventions.verdicts import (
    HONOURED,
    ConventionTable,
    KeyTable,
    KindTable,
    Rows,
    Verdict,
    delegated,
    honoured,
    refused,
    unneeded,
)

_GROUP = "resource.k8s.io"
_BOTH = ("v1", "v1beta2")
_WRITTEN = honoured("is written into the allocation")
_NODE_RESOURCES = refused("devices that take resources of their node are not supported, so the slice is skipped")
_TEMPLATE = delegated("the resource claim controller, which makes the claims of pods of it; they are read")
_SINCE = delegated("the controller that evicts pods from devices")

_NODES = (
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].key",
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].operator",
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].values[]",
    "nodeSelector.nodeSelectorTerms[].matchFields[].key",
    "nodeSelector.nodeSelectorTerms[].matchFields[].operator",
    "nodeSelector.nodeSelectorTerms[].matchFields[].values[]",
)
_TYPES = ("int", "bool", "string", "version", "ints[]", "bools[]", "strings[]", "versions[]")


def _rows(prefix: str, names: tuple[str, ...], verdict: Verdict) -> Rows:
    return {f"{prefix}{name}": verdict for name in names}


def _device(prefix: str) -> Rows:
    """The fields of a device beside its name. `prefix`: the path of what has them."""
    return {
        **_rows(f"{prefix}attributes{{}}.", _TYPES, HONOURED),
        f"{prefix}capacity{{}}.value": HONOURED,
        f"{prefix}capacity{{}}.requestPolicy.default": HONOURED,
        f"{prefix}capacity{{}}.requestPolicy.validValues[]": HONOURED,
        f"{prefix}capacity{{}}.requestPolicy.validRange.min": HONOURED,
        f"{prefix}capacity{{}}.requestPolicy.validRange.max": HONOURED,
        f"{prefix}capacity{{}}.requestPolicy.validRange.step": HONOURED,
        f"{prefix}consumesCounters[].counterSet": HONOURED,
        f"{prefix}consumesCounters[].counters{{}}.value": HONOURED,
        f"{prefix}nodeName": HONOURED,
        **_rows(prefix, _NODES, HONOURED),
        f"{prefix}allNodes": HONOURED,
        f"{prefix}taints[].key": HONOURED,
        f"{prefix}taints[].value": HONOURED,
        f"{prefix}taints[].effect": HONOURED,
        f"{prefix}taints[].timeAdded": _SINCE,
        f"{prefix}bindsToNode": HONOURED,
        f"{prefix}bindingConditions[]": HONOURED,
        f"{prefix}bindingFailureConditions[]": HONOURED,
        f"{prefix}allowMultipleAllocations": HONOURED,
        f"{prefix}nodeAllocatableResources{{}}.mapping.capacityKey": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResources{{}}.mapping.capacityMultiplier": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResources{{}}.mapping.deviceMultiplier": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResources{{}}.overhead.perPod": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResources{{}}.overhead.perContainer": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResourceMappings{{}}.capacityKey": _NODE_RESOURCES,
        f"{prefix}nodeAllocatableResourceMappings{{}}.allocationMultiplier": _NODE_RESOURCES,
    }


_SLICE: Rows = {
    "spec.driver": HONOURED,
    "spec.pool.name": HONOURED,
    "spec.pool.generation": HONOURED,
    "spec.pool.resourceSliceCount": HONOURED,
    "spec.nodeName": HONOURED,
    **_rows("spec.", _NODES, HONOURED),
    "spec.allNodes": HONOURED,
    "spec.perDeviceNodeSelection": HONOURED,
    "spec.sharedCounters[].name": HONOURED,
    "spec.sharedCounters[].counters{}.value": HONOURED,
    "spec.partitionTypeAttribute": unneeded("it names an attribute that devices have anyway, for summaries of pools"),
    "spec.skipNodeOperations[]": _WRITTEN,
    "spec.devices[].name": HONOURED,
}


def _request(prefix: str, each: Verdict = HONOURED, seconds: Verdict = _WRITTEN, *, admin: bool = True) -> Rows:
    """What a request, or an alternative of it, asks for."""
    return {
        f"{prefix}deviceClassName": each,
        f"{prefix}selectors[].cel.expression": each,
        f"{prefix}allocationMode": each,
        f"{prefix}count": each,
        **({f"{prefix}adminAccess": each} if admin else {}),
        f"{prefix}tolerations[].key": each,
        f"{prefix}tolerations[].operator": each,
        f"{prefix}tolerations[].value": each,
        f"{prefix}tolerations[].effect": each,
        f"{prefix}tolerations[].tolerationSeconds": seconds,
        f"{prefix}capacity.requests{{}}": each,
    }


def _claim(prefix: str, exactly: str, each: Verdict = HONOURED, config: Verdict = _WRITTEN) -> Rows:
    """What a claim asks for. `exactly`: where requests without alternatives have their fields."""
    requests = f"{prefix}requests[]."
    return {
        f"{requests}name": each,
        **_request(f"{requests}{exactly}", each, config),
        f"{requests}firstAvailable[].name": each,
        **_request(f"{requests}firstAvailable[].", each, config, admin=False),
        f"{prefix}constraints[].requests[]": each,
        f"{prefix}constraints[].matchAttribute": each,
        f"{prefix}constraints[].distinctAttribute": each,
        f"{prefix}config[].requests[]": config,
        f"{prefix}config[].opaque.driver": config,
        f"{prefix}config[].opaque.parameters{{}}": config,
    }


def _template(exactly: str) -> Rows:
    return {
        "spec.metadata.labels{}": _TEMPLATE,
        "spec.metadata.annotations{}": _TEMPLATE,
        **_claim("spec.spec.devices.", exactly, _TEMPLATE, _TEMPLATE),
    }


_RULE: Rows = {
    "spec.deviceSelector.driver": HONOURED,
    "spec.deviceSelector.pool": HONOURED,
    "spec.deviceSelector.device": HONOURED,
    "spec.taint.key": HONOURED,
    "spec.taint.value": HONOURED,
    "spec.taint.effect": HONOURED,
    "spec.taint.timeAdded": _SINCE,
}

DEVICES = ConventionTable(
    "devices",
    "Devices of Kubernetes (Dynamic Resource Allocation)",
    (
        KindTable(_GROUP, "ResourceSlice", _BOTH, {**_SLICE, **_device("spec.devices[].")}),
        KindTable(_GROUP, "ResourceSlice", ("v1beta1",), {**_SLICE, **_device("spec.devices[].basic.")}),
        KindTable(
            _GROUP,
            "DeviceClass",
            (*_BOTH, "v1beta1"),
            {
                "spec.selectors[].cel.expression": HONOURED,
                "spec.config[].opaque.driver": _WRITTEN,
                "spec.config[].opaque.parameters{}": _WRITTEN,
                "spec.extendedResourceName": HONOURED,
            },
        ),
        KindTable(_GROUP, "ResourceClaim", _BOTH, _claim("spec.devices.", "exactly.")),
        KindTable(_GROUP, "ResourceClaim", ("v1beta1",), _claim("spec.devices.", "")),
        KindTable(_GROUP, "ResourceClaimTemplate", _BOTH, _template("exactly.")),
        KindTable(_GROUP, "ResourceClaimTemplate", ("v1beta1",), _template("")),
        KindTable(_GROUP, "DeviceTaintRule", _BOTH, _RULE),
        KindTable(
            _GROUP,
            "DeviceTaintRule",
            ("v1alpha3",),
            {
                **_RULE,
                "spec.deviceSelector.deviceClassName": HONOURED,
                "spec.deviceSelector.selectors[].cel.expression": HONOURED,
            },
        ),
        KindTable(
            _GROUP,
            "ResourcePoolStatusRequest",
            ("v1alpha3",),
            unread="it is a question to the controller manager, which answers it",
        ),
    ),
    objects=KeyTable(
        annotations={
            "resource.kubernetes.io/extended-resource-claim": honoured("of a claim that a scheduler has made"),
            "resource.kubernetes.io/pod-claim-name": delegated("the resource claim controller, which sets it"),
        },
        labels={
            "resource.kubernetes.io/admin-access": delegated(
                "the API server: in a namespace without it, claims cannot ask for administrative access"
            )
        },
    ),
)
