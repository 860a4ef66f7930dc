"""Slices, classes and taint rules."""

from __future__ import annotations

from tests.e2e.api import MERGE
from tests.e2e.device_answers.device_requests import (
    CLASSES,
    ONE_TERM,
    RULES,
    SLICES,
    STRATEGIC,
    Exchange,
    accepted,
    attributes,
    consuming,
    counters,
    creating,
    device,
    device_class,
    expression,
    opaque,
    refused,
    resource_slice,
    rule,
    shared,
    tainted,
)

SLICES_AND_CLASSES = [
    accepted("slice", resource_slice("x", device())),
    accepted("slice without devices", resource_slice("x")),
    accepted("counters", resource_slice("x", sharedCounters=[counters()])),
    refused(
        "counters and devices",
        resource_slice("x", device(), sharedCounters=[counters()]),
        "only one of `sharedCounters`",
    ),
    refused("two places", resource_slice("x", device(), nodeName="n", allNodes=True), "but multiple fields are set"),
    refused(
        "no place", resource_slice("x", device(), allNodes=None), "spec: Required value: exactly one of `nodeName`"
    ),
    refused("allNodes false", resource_slice("x", device(), allNodes=False), "spec.allNodes: Invalid value: false"),
    refused("no node's name", resource_slice("x", device(), nodeName=""), "must be either unset or set to a non-empty"),
    accepted("selector", resource_slice("x", device(), nodeSelector={"nodeSelectorTerms": [ONE_TERM]})),
    refused(
        "two terms",
        resource_slice("x", device(), nodeSelector={"nodeSelectorTerms": [ONE_TERM] * 2}),
        "exactly one node selector term",
    ),
    refused(
        "no terms",
        resource_slice("x", device(), nodeSelector={"nodeSelectorTerms": []}),
        "must have at least one node selector term",
    ),
    refused(
        "a device's node", resource_slice("x", device(nodeName="n")), "can only be set if `perDeviceNodeSelection`"
    ),
    accepted("per device", resource_slice("x", device(nodeName="n"), perDeviceNodeSelection=True)),
    refused(
        "a device without place",
        resource_slice("x", device(), perDeviceNodeSelection=True),
        "devices[0]: Required value",
    ),
    refused("driver", resource_slice("x", device(), driver="GPU!"), "spec.driver: Invalid value"),
    accepted("driver in capitals", resource_slice("x", device(), driver="GPU.example.com")),
    refused("long driver", resource_slice("x", device(), driver="a" * 64), "spec.driver: Too long"),
    accepted(
        "pool with slashes",
        resource_slice("x", device(), pool={"name": "a/b", "resourceSliceCount": 1, "generation": 1}),
    ),
    refused(
        "no pool",
        resource_slice("x", device(), pool={"name": "", "resourceSliceCount": 1, "generation": 1}),
        "spec.pool.name: Required value",
    ),
    refused(
        "no count",
        resource_slice("x", device(), pool={"name": "a", "generation": 1}),
        "resourceSliceCount: Invalid value: 0",
    ),
    refused(
        "generation",
        resource_slice("x", device(), pool={"name": "a", "resourceSliceCount": 1, "generation": -1}),
        "greater than or equal to zero",
    ),
    accepted("128 devices", resource_slice("x", *(device(f"d{at}") for at in range(128)))),
    refused(
        "129 devices",
        resource_slice("x", *(device(f"d{at}") for at in range(129))),
        "Too many: 129: must have at most 128",
    ),
    refused(
        "65 devices with a taint",
        resource_slice("x", tainted(), *(device(f"d{at}") for at in range(64))),
        "Too many: 65",
    ),
    refused("device twice", resource_slice("x", device(), device()), "Duplicate value"),
    refused("device in capitals", resource_slice("x", device("GPU")), "devices[0].name: Invalid value"),
    accepted("32 attributes", attributes(**{f"a{at}": {"int": 1} for at in range(32)})),
    refused("33 attributes", attributes(**{f"a{at}": {"int": 1} for at in range(33)}), "must not exceed 32"),
    refused("no value", attributes(a={}), "exactly one value must be specified"),
    refused("two values", attributes(a={"int": 1, "bool": True}), "exactly one value must be specified"),
    accepted("version", attributes(a={"version": "1.2.3-rc.1+b"})),
    refused("no version", attributes(a={"version": "1.2"}), "must be a string compatible with semver.org spec 2.0.0"),
    refused("long text", attributes(a={"string": "x" * 65}), "string: Too long: may not be more than 64"),
    refused("attribute's name", attributes(**{"9a": {"int": 1}}), "a valid C identifier must start with"),
    refused("long name", attributes(**{"a" * 33: {"int": 1}}), "Too long: may not be more than 32"),
    refused("attribute's domain", attributes(**{"/a": {"int": 1}}), "the domain must not be empty"),
    refused("domain alone", attributes(**{"a.b/": {"int": 1}}), "the name must not be empty"),
    accepted("capacity as a number", resource_slice("x", device(capacity={"memory": {"value": 7}}))),
    creating("capacity that is none", resource_slice("x", device(capacity={"memory": {"value": "x"}})), 400),
    refused(
        "policy of a whole device",
        resource_slice("x", device(capacity={"m": {"value": "1", "requestPolicy": {"default": "1"}}})),
        "allowMultipleAllocations must be true",
    ),
    accepted("range", shared(default="1Gi", validRange={"min": "1Gi", "max": "80Gi", "step": "1Gi"})),
    accepted("options", shared(default="1Gi", validValues=["1Gi", "2Gi"])),
    refused(
        "range and options",
        shared(default="1Gi", validValues=["1Gi"], validRange={"min": "1Gi"}),
        "exactly one policy can be specified",
    ),
    refused(
        "options without default", shared(validValues=["1Gi"]), "default: Required value: required when validValues"
    ),
    refused(
        "options in disorder",
        shared(default="1Gi", validValues=["2Gi", "1Gi"]),
        "values must be sorted in ascending order",
    ),
    refused(
        "option beyond",
        shared(default="1Gi", validValues=["1Gi", "90Gi"]),
        "option is larger than capacity value: 80Gi",
    ),
    refused(
        "default beside options",
        shared(default="2Gi", validValues=["1Gi"]),
        "default value is not valid according to the requestPolicy",
    ),
    refused("range without min", shared(default="1Gi", validRange={"max": "8Gi"}), "min: Required value"),
    refused(
        "range upside down",
        shared(default="4Gi", validRange={"min": "4Gi", "max": "2Gi"}),
        "min is larger than max: 2Gi",
    ),
    refused(
        "default between steps",
        shared(default="5Gi", validRange={"min": "2Gi", "step": "2Gi"}),
        "value is not a multiple of a given step (2Gi) from (2Gi)",
    ),
    accepted("taint", resource_slice("x", tainted())),
    refused(
        "taint's effect",
        resource_slice("x", tainted(effect="PreferNoSchedule")),
        'Unsupported value: "PreferNoSchedule"',
    ),
    refused("taint without effect", resource_slice("x", tainted(effect="")), "effect: Required value"),
    refused("taint without key", resource_slice("x", tainted(key="")), "taints[0].key"),
    accepted("consumed counters", resource_slice("x", device(consumesCounters=consuming("a", "b")))),
    refused(
        "three counter sets", resource_slice("x", device(consumesCounters=consuming("a", "b", "c"))), "Too many: 3"
    ),
    refused(
        "no counters", resource_slice("x", device(consumesCounters=[{"counterSet": "a"}])), "counters: Required value"
    ),
    refused(
        "9 counter sets", resource_slice("x", sharedCounters=[counters(f"c{at}") for at in range(9)]), "Too many: 9"
    ),
    refused("33 counters", resource_slice("x", sharedCounters=[counters(count=33)]), "Too many: 33"),
    accepted(
        "conditions", resource_slice("x", device(bindingConditions=["a.b/R"], bindingFailureConditions=["a.b/F"]))
    ),
    refused(
        "conditions without failure",
        resource_slice("x", device(bindingConditions=["a.b/R"])),
        "bindingFailureConditions are required",
    ),
    refused(
        "conditions that overlap",
        resource_slice("x", device(bindingConditions=["a.b/R"], bindingFailureConditions=["a.b/R"])),
        "must not overlap",
    ),
    Exchange(
        "another pool",
        "PATCH",
        f"{SLICES}/s",
        {"spec": {"pool": {"name": "x"}}},
        422,
        "spec.pool.name: Invalid value",
        MERGE,
    ),
    Exchange(
        "another driver", "PATCH", f"{SLICES}/s", {"spec": {"driver": "x"}}, 422, "spec.driver: Invalid value", MERGE
    ),
    Exchange(
        "another node", "PATCH", f"{SLICES}/s", {"spec": {"nodeName": "x"}}, 422, "spec.nodeName: Invalid value", MERGE
    ),
    Exchange("another generation", "PATCH", f"{SLICES}/s", {"spec": {"pool": {"generation": 2}}}, 200, "", MERGE),
    Exchange("another device", "PATCH", f"{SLICES}/s", {"spec": {"devices": [device("gpu-1")]}}, 200, "", STRATEGIC),
    accepted("class", device_class("x", selectors=expression("true"), config=[opaque()])),
    accepted("empty class", device_class("x")),
    refused("class without CEL", device_class("x", selectors=[{}]), "selectors[0].cel: Required value"),
    accepted("extended resource", device_class("x", extendedResourceName="nvidia.com/gpu")),
    refused(
        "extended resource without domain",
        device_class("x", extendedResourceName="gpu"),
        "must be a valid extended resource name",
    ),
    refused(
        "extended resource of Kubernetes",
        device_class("x", extendedResourceName="kubernetes.io/gpu"),
        "must be a valid extended resource name",
    ),
    Exchange(
        "class with another selector",
        "PATCH",
        f"{CLASSES}/gpu",
        {"spec": {"selectors": expression("false")}},
        200,
        "",
        MERGE,
    ),
    accepted("rule", rule("x")),
    refused("rule's effect", rule("x", effect="Never"), 'spec.taint.effect: Unsupported value: "Never"'),
    refused("rule without key", rule("x", key=""), "spec.taint.key"),
    Exchange(
        "rule with another effect", "PATCH", f"{RULES}/r", {"spec": {"taint": {"effect": "NoExecute"}}}, 200, "", MERGE
    ),
    Exchange(
        "rule's status",
        "PATCH",
        f"{RULES}/r/status",
        {"status": {"conditions": [{"type": "A"}]}},
        422,
        "conditions[0].status",
        MERGE,
    ),
    Exchange("slices of a node", "GET", f"{SLICES}?fieldSelector=spec.nodeName%3Dn", None, 200),
    Exchange("slices of a driver", "GET", f"{SLICES}?fieldSelector=spec.driver%3Dx", None, 200),
    Exchange(
        "slices by nonsense",
        "GET",
        f"{SLICES}?fieldSelector=spec.allNodes%3Dtrue",
        None,
        400,
        "field label not supported",
    ),
]
