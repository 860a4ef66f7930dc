"""What is refused of slices, classes and taint rules."""

from __future__ import annotations

import pytest

from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.device_kinds import DEVICE_CLASSES, RESOURCE_SLICES, TAINT_RULES
from benchmarks.cluster.store.errors import ApiError
from tests.benchmarks.cluster.builders import Still
from tests.benchmarks.cluster.device_builders import device, device_class, resource_slice, taint_rule


@pytest.fixture
def still() -> Still:
    return Still(controllers=False)


def refusal(call, *args, **kwargs) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*args, **kwargs)
    return refused.value


def in_zone(terms=1):
    term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}
    return {"nodeSelectorTerms": [term] * terms}


def shared(value="80Gi", **policy):
    capacity = {"memory": {"value": value, "requestPolicy": policy}}
    return resource_slice("s", device(allowMultipleAllocations=True, capacity=capacity))


def counters(name="gpu-0", **amounts):
    return {"name": name, "counters": {key: {"value": value} for key, value in amounts.items()}}


def consumes(*sets):
    return [{"counterSet": name, "counters": {"memory": {"value": "1Gi"}}} for name in sets]


def tainted(**taint):
    return device(taints=[{"key": "example.com/broken", "effect": "NoSchedule", **taint}])


def versions(count, **attribute):
    return device(attributes={f"v{at}": attribute for at in range(count)})


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        pytest.param(
            resource_slice("s", device(), sharedCounters=[counters(memory="80Gi")]),
            'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
            id="counters and devices",
        ),
        pytest.param(
            resource_slice("s", device(), nodeName="n", allNodes=True),
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of',
            id="two places",
        ),
        pytest.param(
            resource_slice("s", device(), allNodes=False),
            "spec.allNodes: Invalid value: false: must be either unset or set to true",
            id="allNodes false",
        ),
        pytest.param(
            resource_slice("s", device(), nodeSelector=in_zone(2)),
            "must have exactly one node selector term",
            id="two terms",
        ),
        pytest.param(
            resource_slice("s", device(nodeName="n")),
            "can only be set if `perDeviceNodeSelection` is set to true",
            id="a device's node",
        ),
        pytest.param(
            resource_slice("s", device(), perDeviceNodeSelection=True),
            "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes`",
            id="a device without place",
        ),
        pytest.param(resource_slice("s", device(), driver="GPU!"), "spec.driver: Invalid value", id="driver"),
        pytest.param(resource_slice("s", device(), pool="a//b"), "spec.pool.name: Invalid value", id="pool"),
        pytest.param(
            resource_slice("s", device(), count=0),
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            id="count of slices",
        ),
        pytest.param(
            resource_slice("s", device(), generation=-1),
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            id="generation",
        ),
        pytest.param(
            resource_slice("s", *(device(f"gpu-{at}") for at in range(129))),
            "spec.devices: Too many: 129: must have at most 128 items",
            id="129 devices",
        ),
        pytest.param(
            resource_slice("s", *(device(f"gpu-{at}") for at in range(64)), tainted(timeAdded=None) | {"name": "x"}),
            "spec.devices: Too many: 65: must have at most 64 items",
            id="65 devices with a taint",
        ),
        pytest.param(
            resource_slice("s", device(), device()), 'spec.devices[1]: Duplicate value: "gpu-0"', id="device twice"
        ),
        pytest.param(resource_slice("s", device("GPU")), "spec.devices[0].name: Invalid value", id="device's name"),
        pytest.param(
            resource_slice("s", versions(33, int=1)),
            "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
            id="33 attributes",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"a": {"ints": list(range(49))}})),
            "spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48",
            id="49 values",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"a": {}})),
            'spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified',
            id="no value",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"a": {"int": 1, "bool": True}})),
            "exactly one value must be specified",
            id="two values",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"a": {"version": "1.2"}})),
            "must be a string compatible with semver.org spec 2.0.0",
            id="version",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"a": {"string": "x" * 65}})),
            "attributes[a].string: Too long: may not be more than 64 bytes",
            id="long value",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"9a": {"int": 1}})),
            "a valid C identifier must start with",
            id="attribute's name",
        ),
        pytest.param(
            resource_slice("s", device(attributes={"/a": {"int": 1}})),
            "the domain must not be empty",
            id="attribute's domain",
        ),
        pytest.param(
            resource_slice("s", device(capacity={"memory": {"value": "1", "requestPolicy": {"default": "1"}}})),
            "requestPolicy: Forbidden: allowMultipleAllocations must be true",
            id="policy of a whole device",
        ),
        pytest.param(
            shared(validValues=["1Gi"], validRange={"min": "1Gi"}, default="1Gi"),
            "exactly one policy",
            id="two policies",
        ),
        pytest.param(
            shared(validValues=["1Gi"]), "default: Required value: required when validValues", id="no default"
        ),
        pytest.param(
            shared(validValues=["2Gi", "1Gi"], default="1Gi"), "values must be sorted in ascending order", id="order"
        ),
        pytest.param(
            shared(validValues=["1Gi", "90Gi"], default="1Gi"),
            "option is larger than capacity value: 80Gi",
            id="large option",
        ),
        pytest.param(
            shared(validValues=["1Gi"], default="2Gi"),
            'Invalid value: "2Gi": default value is not valid according to the requestPolicy',
            id="default that is no option",
        ),
        pytest.param(
            shared(validRange={"max": "8Gi"}, default="1Gi"),
            "min: Required value: required when validRange",
            id="no min",
        ),
        pytest.param(
            shared(validRange={"min": "4Gi", "max": "2Gi"}, default="4Gi"),
            "min is larger than max: 2Gi",
            id="min and max",
        ),
        pytest.param(
            shared(validRange={"min": "2Gi", "step": "2Gi"}, default="5Gi"),
            'step: Invalid value: "5Gi": value is not a multiple of a given step (2Gi) from (2Gi)',
            id="default between steps",
        ),
        pytest.param(
            resource_slice("s", tainted(effect="PreferNoSchedule")),
            'effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule", "None"',
            id="effect",
        ),
        pytest.param(resource_slice("s", tainted(key="")), "taints[0].key: Invalid value", id="key of a taint"),
        pytest.param(
            resource_slice("s", device(consumesCounters=consumes("a", "b", "c"))),
            "consumesCounters: Too many: 3: must have at most 2 items",
            id="three counter sets",
        ),
        pytest.param(
            resource_slice("s", device(consumesCounters=[{"counterSet": "a"}])),
            "consumesCounters[0].counters: Required value",
            id="no counters",
        ),
        pytest.param(
            resource_slice("s", sharedCounters=[counters(f"c{at}", memory="1") for at in range(9)]),
            "sharedCounters: Too many: 9: must have at most 8 items",
            id="9 counter sets",
        ),
        pytest.param(
            resource_slice("s", sharedCounters=[counters(**{f"m{at}": "1" for at in range(33)})]),
            "counters: Too many: 33: must have at most 32 items",
            id="33 counters",
        ),
        pytest.param(
            resource_slice("s", device(bindingConditions=["a.b/R"], bindingFailureConditions=["a.b/R"])),
            "bindingFailureConditions must not overlap with bindingConditions",
            id="conditions that overlap",
        ),
    ],
)
def test_refused_slices(still, manifest, why):
    refused = refusal(still.cluster.create, manifest)
    assert refused.code == 422
    assert why in refused.message


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(resource_slice("s"), id="nothing"),
        pytest.param(resource_slice("s", sharedCounters=[counters(memory="80Gi")]), id="counters"),
        pytest.param(
            resource_slice("s", device(nodeSelector=in_zone(2)), perDeviceNodeSelection=True), id="per device"
        ),
        pytest.param(resource_slice("s", *(device(f"gpu-{at}") for at in range(128))), id="128 devices"),
        pytest.param(resource_slice("s", device(attributes={"a": {"version": "1.2.3-rc.1+b"}})), id="version"),
        pytest.param(resource_slice("s", device(attributes={"a/b/c": {"int": 1}})), id="two slashes"),
        pytest.param(resource_slice("s", device(), pool="rack-1/switch-2", driver="GPU.Example.com"), id="names"),
        pytest.param(shared(validRange={"min": "1Gi", "max": "80Gi", "step": "1Gi"}, default="1Gi"), id="range"),
        pytest.param(shared(validValues=["1Gi", "1024Mi", "2Gi"][::2], default="1024Mi"), id="options"),
    ],
)
def test_accepted_slices(still, manifest):
    assert still.cluster.create(manifest)["metadata"]["generation"] == 1


def test_a_slice_stays_with_its_pool_driver_and_node(still):
    made = still.cluster.create(resource_slice("s", device(), node="n"))

    def change(**spec):
        return still.api.patch(RESOURCE_SLICES, "", "s", {"spec": spec}, MERGE_PATCH)[0].parse()

    for spec, field in (
        ({"pool": {"name": "other"}}, "spec.pool.name"),
        ({"driver": "other.example.com"}, "spec.driver"),
        ({"nodeName": "m"}, "spec.nodeName"),
    ):
        assert f"{field}: Invalid value: " in refusal(change, **spec).message
        assert "field is immutable" in refusal(change, **spec).message
    pool = {**made["spec"]["pool"], "generation": 2}
    changed = change(pool=pool, devices=[tainted()])
    assert changed["metadata"]["generation"] == 2
    assert changed["spec"]["devices"][0]["taints"][0]["timeAdded"]


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("nvidia.com/gpu", True),
        ("gpu", False),
        ("kubernetes.io/gpu", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/", False),
    ],
)
def test_the_extended_resource_of_a_class(still, name, accepted):
    manifest = device_class("gpu", extendedResourceName=name)
    if accepted:
        assert still.cluster.create(manifest)["spec"]["extendedResourceName"] == name
    else:
        why = f'spec.extendedResourceName: Invalid value: "{name}": must be a valid extended resource name'
        assert why in refusal(still.cluster.create, manifest).message


def test_a_class_can_change(still):
    still.cluster.create(device_class("gpu", selectors=[{"cel": {"expression": "true"}}]))
    patch = {"spec": {"selectors": [{"cel": {"expression": 'device.driver == "a"'}}]}}
    assert still.api.patch(DEVICE_CLASSES, "", "gpu", patch, MERGE_PATCH)[0].parse()["metadata"]["generation"] == 2
    refused = refusal(still.api.patch, DEVICE_CLASSES, "", "gpu", {"spec": {"selectors": [{}] * 33}}, MERGE_PATCH)
    assert "spec.selectors: Too many: 33: must have at most 32 items" in refused.message


def test_a_rule_has_its_time_and_its_status_apart(still):
    made = still.cluster.create(taint_rule(effect="NoSchedule", driver="gpu.example.com"))
    assert made["spec"]["taint"]["timeAdded"]
    assert made["status"] == {}
    old = "2020-01-01T00:00:00Z"
    set_time = {"spec": {"taint": {"timeAdded": old}}}
    assert still.api.patch(TAINT_RULES, "", "r", set_time, MERGE_PATCH)[0].parse()["spec"]["taint"]["timeAdded"] == old
    change = {"spec": {"taint": {"effect": "NoExecute"}}, "status": {"conditions": []}}
    changed = still.api.patch(TAINT_RULES, "", "r", change, MERGE_PATCH)[0].parse()
    assert changed["spec"]["taint"]["timeAdded"] > old
    assert changed["metadata"]["generation"] == 3
    assert changed["status"] == {}
    condition = {"type": "EvictionInProgress", "status": "True", "reason": "PodsPendingEviction"}
    refused = refusal(
        still.api.patch, TAINT_RULES, "", "r", {"status": {"conditions": [condition]}}, MERGE_PATCH, "status"
    )
    assert "status.conditions[0].lastTransitionTime: Required value" in refused.message


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        pytest.param(taint_rule(effect=""), "spec.taint.effect: Required value", id="no effect"),
        pytest.param(taint_rule(device="GPU"), "spec.deviceSelector.device: Invalid value", id="device"),
        pytest.param(taint_rule(pool=""), "spec.deviceSelector.pool: Required value", id="pool"),
    ],
)
def test_refused_rules(still, manifest, why):
    assert why in refusal(still.cluster.create, manifest).message
