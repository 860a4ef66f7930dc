"""Devices of Kubernetes: resource.k8s.io."""

from poseidon_py.conventions.tables.devices import _NODES
from tests.poseidon_py.builders import node_json
from tests.poseidon_py.conventions.case import ABSENT, Case, changed, field_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object

CONVENTIONS = ("devices",)

DRIVER = "gpu.example.com"
SERVED = "example.com/gpu"
_VALUE = f'device.attributes["{DRIVER}"].name'
"""The attribute that `changed` sets."""


def _slice(name: str, *devices: Json, count: int = 1, generation: int = 1, **fields: object) -> Json:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    where: Json = {} if {"nodeName", "allNodes", "sharedCounters"} & fields.keys() else {"nodeName": "n"}
    listed = {"devices": list(devices)} if devices else {}
    return an_object(name, namespace="", spec={"driver": DRIVER, "pool": pool, **where, **listed, **fields})


def _class(name: str = "gpu", *expressions: str, **spec: object) -> Json:
    selectors = {"selectors": [{"cel": {"expression": each}} for each in expressions]} if expressions else {}
    return an_object(name, namespace="", spec={**selectors, **spec})


def _claim(*requests: Json, **devices: object) -> Json:
    return an_object("c", spec={"devices": {"requests": list(requests), **devices}})


def _exactly(name: str = "r", **exactly: object) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


CLASS = _class("gpu", f'device.driver == "{DRIVER}"')
CLAIM = _claim(_exactly())
POD = a_pod("a", spec={"resourceClaims": [{"name": "e", "resourceClaimName": "c"}]})
NODE = node_json("n", labels={"zone": "a"})


def _world(*objects: tuple[str, Json], pod: Json = POD) -> World:
    return World(devices=objects, pods=(pod,), nodes=(NODE,))


# -- slices ---------------------------------------------------------------------------------------------------------

D0: Json = {"name": "d0"}


def _of_slice(
    path: str, one: object, other: object, base: Json, *others: Json, claim: Json = CLAIM, prefix: str = ""
) -> Case:
    """`prefix`: where devices have their fields; `base` is in the form of v1."""

    def world(body: Json) -> World:
        slices = [("ResourceSlice", each) for each in (body, *others)]
        return _world(("DeviceClass", CLASS), *slices, ("ResourceClaim", claim))

    if prefix:
        base = {**base, "spec": {**base["spec"], "devices": [_in_basic(each) for each in base["spec"]["devices"]]}}
    return field_case(world, base, path, one, other)


def _in_basic(device: Json) -> Json:
    body = {key: value for key, value in device.items() if key != "name"}
    return {"name": device["name"], "basic": body}


def _selecting(expression: str) -> Json:
    return _claim(_exactly(selectors=[{"cel": {"expression": expression}}]))


def _taking(amount: str) -> Json:
    return _claim(_exactly(capacity={"requests": {"name": amount}}))


def _tolerating(**toleration: object) -> Json:
    wish = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule", **toleration}
    return _claim(_exactly(tolerations=[wish]))


_HERE = {"key": "zone", "operator": "In", "values": ["a"]}
_NAMED = {"key": "metadata.name", "operator": "In", "values": ["n"]}
_SELECTORS: dict[str, tuple[object, object, Json]] = {
    _NODES[0]: ("zone", "rack", {"matchExpressions": [_HERE]}),
    _NODES[1]: ("In", "NotIn", {"matchExpressions": [_HERE]}),
    _NODES[2]: (["a"], ["b"], {"matchExpressions": [_HERE]}),
    _NODES[3]: ("metadata.name", "metadata.namespace", {"matchFields": [_NAMED]}),
    _NODES[4]: ("In", "NotIn", {"matchFields": [_NAMED]}),
    _NODES[5]: (["n"], ["m"], {"matchFields": [_NAMED]}),
}


def _term(term: Json) -> Json:
    return {"nodeSelectorTerms": [term]}


def _slice_fields() -> dict[str, Case]:
    base = _slice("s", D0)
    anywhere = {**base, "spec": {key: value for key, value in base["spec"].items() if key != "nodeName"}}
    newer = _slice("t", {"name": "e0"}, generation=2)
    counters = _slice("c", count=2, sharedCounters=[{"name": "set", "counters": {"name": {"value": "2"}}}])
    using = {"name": "d0", "consumesCounters": [{"counterSet": "set", "counters": {"name": {"value": "2"}}}]}
    found = {
        "spec.driver": _of_slice("spec.driver", DRIVER, "nic.example.com", base),
        "spec.pool.name": _of_slice("spec.pool.name", "p", "q", base),
        "spec.pool.generation": _of_slice("spec.pool.generation", 1, 3, base, newer),
        "spec.pool.resourceSliceCount": _of_slice("spec.pool.resourceSliceCount", 1, 2, base),
        "spec.nodeName": _of_slice("spec.nodeName", "n", "m", base),
        "spec.allNodes": _of_slice("spec.allNodes", True, ABSENT, anywhere),
        "spec.perDeviceNodeSelection": _of_slice(
            "spec.perDeviceNodeSelection",
            True,
            ABSENT,
            changed(anywhere, "spec.devices", [{"name": "d0", "allNodes": True}]),
        ),
        "spec.sharedCounters[].name": _of_slice(
            "spec.sharedCounters[].name", "set", "other", counters, _slice("s", using, count=2)
        ),
        "spec.sharedCounters[].counters{}.value": _of_slice(
            "spec.sharedCounters[].counters{}.value", "2", "1", counters, _slice("s", using, count=2)
        ),
        "spec.skipNodeOperations[]": _of_slice("spec.skipNodeOperations[]", ["*"], ABSENT, base),
        "spec.devices[].name": _of_slice("spec.devices[].name", "d0", "d1", base),
    }
    for name, (one, other, term) in _SELECTORS.items():
        path = f"spec.{name}"
        found[path] = _of_slice(path, one, other, changed(anywhere, "spec.nodeSelector", _term(term)))
    return found


_VALUES: dict[str, tuple[object, object, str]] = {
    "int": (1, 2, f"{_VALUE} == 1"),
    "bool": (True, False, _VALUE),
    "string": ("a", "b", f'{_VALUE} == "a"'),
    "version": ("2.0.0", "1.0.0", f'{_VALUE}.isGreaterThan(semver("1.0.0"))'),
    "ints[]": ([1], [2], f"1 in {_VALUE}"),
    "bools[]": ([True], [False], f"true in {_VALUE}"),
    "strings[]": (["a"], ["b"], f'"a" in {_VALUE}'),
    "versions[]": (["2.0.0"], ["1.0.0"], f'{_VALUE}.exists(each, each.isGreaterThan(semver("1.0.0")))'),
}
_CAPACITY = "capacity{}.requestPolicy."
_POLICIES: dict[str, tuple[object, object, Json, Json]] = {
    "default": ("1", "2", {}, CLAIM),
    "validValues[]": (["1", "4"], ["2", "4"], {"default": "4"}, _taking("1")),
    "validRange.min": ("1", "2", {"default": "4", "validRange": {}}, _taking("1")),
    "validRange.max": ("4", "2", {"default": "2", "validRange": {"min": "1"}}, _taking("3")),
    "validRange.step": ("1", "2", {"default": "1", "validRange": {"min": "1"}}, _taking("2")),
}


def _device_fields(prefix: str) -> dict[str, Case]:
    """Of a device beside its name. `prefix`: the path of what has them."""
    hidden = "basic" if prefix.endswith("basic.") else ""

    def case(path: str, one: object, other: object, device: Json, *others: Json, claim: Json = CLAIM) -> None:
        body = {"name": "d0", **device}
        base = _slice("s", body, count=1 + len(others), **fields)
        found[prefix + path] = _of_slice(prefix + path, one, other, base, *others, claim=claim, prefix=hidden)

    found: dict[str, Case] = {}
    fields: Json = {}
    for kind, (one, other, expression) in _VALUES.items():
        case(f"attributes{{}}.{kind}", one, other, {}, claim=_selecting(expression))
    case("capacity{}.value", "2Gi", "1Gi", {}, claim=_taking("2Gi"))
    for name, (one, other, policy, claim) in _POLICIES.items():
        capacity = {"name": {"value": "8", "requestPolicy": policy}}
        device = {"allowMultipleAllocations": True, "capacity": capacity}
        case(_CAPACITY + name, one, other, device, claim=claim)
    counters = _slice("c", count=2, sharedCounters=[{"name": "set", "counters": {"name": {"value": "2"}}}])
    using = {"consumesCounters": [{"counterSet": "set", "counters": {"name": {"value": "2"}}}]}
    case("consumesCounters[].counterSet", "set", "other", using, counters)
    case("consumesCounters[].counters{}.value", "2", "3", using, counters)
    tainted = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    case("taints[].key", "k", "l", tainted, claim=_tolerating())
    case("taints[].value", "v", "w", tainted, claim=_tolerating())
    case("taints[].effect", "NoSchedule", "NoExecute", tainted, claim=_tolerating())
    case("bindingConditions[]", ["Ready"], ["Warm"], {"bindingFailureConditions": ["Lost"]})
    case("bindingFailureConditions[]", ["Lost"], ["Broken"], {"bindingConditions": ["Ready"]})
    case("allowMultipleAllocations", True, ABSENT, {})
    fields = {"allNodes": True}
    case("bindsToNode", True, ABSENT, {})
    fields = {"allNodes": False, "perDeviceNodeSelection": True}
    case("nodeName", "n", "m", {})
    case("allNodes", True, ABSENT, {})
    for name, (one, other, term) in _SELECTORS.items():
        case(name, one, other, {"nodeSelector": _term(term)})
    return found


# -- classes, rules and claims --------------------------------------------------------------------------------------

_TWO = _slice(
    "s",
    *(
        {"name": name, "attributes": {"x": {"int": value}, "y": {"int": 0}}, "capacity": {"name": {"value": "4"}}}
        for name, value in (("d0", 0), ("d1", 1))
    ),
)
_OTHER = _class("other", f'device.attributes["{DRIVER}"].x == 1')


def _of_class(path: str, one: object, other: object, pod: Json = POD, **spec: object) -> Case:
    def world(body: Json) -> World:
        slices = ("ResourceSlice", _TWO)
        return _world(slices, ("DeviceClass", body), ("ResourceClaim", CLAIM), pod=pod)

    return field_case(world, _class("gpu", **spec), path, one, other)


def _config(driver: str = DRIVER) -> list[Json]:
    return [{"opaque": {"driver": driver, "parameters": {"mode": "a"}}}]


_ASKING = a_pod("a", requests={"cpu": "100m", SERVED: "1"})
_CLASS_FIELDS = {
    "spec.selectors[].cel.expression": _of_class(
        "spec.selectors[].cel.expression", "true", f'device.attributes["{DRIVER}"].x == 1'
    ),
    "spec.config[].opaque.driver": _of_class(
        "spec.config[].opaque.driver", DRIVER, "nic.example.com", config=_config()
    ),
    "spec.config[].opaque.parameters{}": _of_class(
        "spec.config[].opaque.parameters{}", {"mode": "a"}, {"mode": "b"}, config=_config()
    ),
    "spec.extendedResourceName": _of_class("spec.extendedResourceName", SERVED, "example.com/nic", pod=_ASKING),
}


def _of_rule(path: str, one: object, other: object, selector: Json, claim: Json = CLAIM) -> Case:
    def world(body: Json) -> World:
        classes = ("DeviceClass", CLASS), ("DeviceClass", _OTHER)
        return _world(("ResourceSlice", _TWO), *classes, ("DeviceTaintRule", body), ("ResourceClaim", claim))

    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    base = an_object("rule", namespace="", spec={"deviceSelector": selector, "taint": taint})
    return field_case(world, base, path, one, other)


_IS_FIRST, _IS_SECOND = (f'device.attributes["{DRIVER}"].x == {value}' for value in (0, 1))
_RULE_FIELDS = {
    path: _of_rule(path, one, other, selector, claim)
    for path, one, other, selector, claim in (
        ("spec.deviceSelector.driver", DRIVER, "nic.example.com", {}, CLAIM),
        ("spec.deviceSelector.pool", "p", "q", {}, CLAIM),
        ("spec.deviceSelector.device", "d0", "d1", {}, CLAIM),
        ("spec.deviceSelector.deviceClassName", "gpu", "other", {}, CLAIM),
        ("spec.deviceSelector.selectors[].cel.expression", _IS_FIRST, _IS_SECOND, {}, CLAIM),
        ("spec.taint.key", "k", "l", {"driver": DRIVER}, _tolerating()),
        ("spec.taint.value", "v", "w", {"driver": DRIVER}, _tolerating()),
        ("spec.taint.effect", "NoSchedule", "NoExecute", {"driver": DRIVER}, _tolerating()),
    )
}


def _of_claim(path: str, one: object, other: object, base: Json, *devices: Json) -> Case:
    def world(body: Json) -> World:
        slices = ("ResourceSlice", _slice("s", *devices) if devices else _TWO)
        classes = ("DeviceClass", CLASS), ("DeviceClass", _OTHER)
        return _world(slices, *classes, ("ResourceClaim", body))

    return field_case(world, base, path, one, other)


def _request_fields(prefix: str) -> dict[str, Case]:
    """Of a request. `prefix`: the path of what has them."""

    def base(**fields: object) -> Json:
        asked = {"deviceClassName": "gpu", **fields}
        if prefix.endswith("exactly."):
            return _claim({"name": "r", "exactly": asked})
        alternative = prefix.endswith("firstAvailable[].")
        return _claim(
            {"name": "r", "firstAvailable": [{"name": "a", **asked}]} if alternative else {"name": "r"} | asked
        )

    def toleration(**fields: object) -> Json:
        return {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule", **fields}

    tainted: Json = {"name": "d0", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    sharing: Json = {"name": "d0", "allowMultipleAllocations": True, "capacity": {"name": {"value": "4"}}}
    given = {
        "deviceClassName": ("gpu", "other", base(), ()),
        "selectors[].cel.expression": ("true", _IS_SECOND, base(), ()),
        "allocationMode": ("ExactCount", "All", base(), ()),
        "count": (1, 2, base(), ()),
        "tolerations[].key": ("k", "l", base(tolerations=[toleration()]), (tainted,)),
        "tolerations[].operator": ("Equal", "Exists", base(tolerations=[toleration(value="w")]), (tainted,)),
        "tolerations[].value": ("v", "w", base(tolerations=[toleration()]), (tainted,)),
        "tolerations[].effect": ("NoSchedule", "NoExecute", base(tolerations=[toleration()]), (tainted,)),
        "tolerations[].tolerationSeconds": (5, 9, base(tolerations=[toleration()]), (tainted,)),
        "capacity.requests{}": ({"name": "1"}, {"name": "2"}, base(), (sharing,)),
    }
    if "firstAvailable" not in prefix:
        given["adminAccess"] = (True, ABSENT, base(), ())
    return {
        prefix + path: _of_claim(prefix + path, one, other, body, *devices)
        for path, (one, other, body, devices) in given.items()
    }


_PAIR = _exactly("r"), _exactly("s")
_REQUESTS = "spec.devices.requests[]."
_CONSTRAINTS = "spec.devices.constraints[]."
_CLAIM_FIELDS = {
    **{
        path: _of_claim(path, one, other, base)
        for path, one, other, base in (
            (f"{_REQUESTS}name", "r", "s", CLAIM),
            (
                f"{_REQUESTS}firstAvailable[].name",
                "a",
                "b",
                _claim({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}),
            ),
            (
                f"{_CONSTRAINTS}requests[]",
                ["r"],
                ["r", "s"],
                _claim(*_PAIR, constraints=[{"matchAttribute": f"{DRIVER}/x"}]),
            ),
            (f"{_CONSTRAINTS}matchAttribute", f"{DRIVER}/x", f"{DRIVER}/y", _claim(*_PAIR)),
            (f"{_CONSTRAINTS}distinctAttribute", f"{DRIVER}/x", f"{DRIVER}/y", _claim(*_PAIR)),
            ("spec.devices.config[].requests[]", ["r"], ["s"], _claim(_exactly(), config=_config())),
            ("spec.devices.config[].opaque.driver", DRIVER, "x.example.com", _claim(_exactly(), config=_config())),
            (
                "spec.devices.config[].opaque.parameters{}",
                {"mode": "a"},
                {"mode": "b"},
                _claim(_exactly(), config=_config()),
            ),
        )
    },
    **_request_fields(f"{_REQUESTS}exactly."),
    **_request_fields(f"{_REQUESTS}firstAvailable[]."),
    **_request_fields(_REQUESTS),
}

FIELDS = {
    (kind, path): case
    for kind, cases in (
        ("ResourceSlice", _slice_fields()),
        ("ResourceSlice", _device_fields("spec.devices[].")),
        ("ResourceSlice", _device_fields("spec.devices[].basic.")),
        ("DeviceClass", _CLASS_FIELDS),
        ("ResourceClaim", _CLAIM_FIELDS),
        ("DeviceTaintRule", _RULE_FIELDS),
    )
    for path, case in cases.items()
}


def _left(value: str) -> World:
    owner = {"uid": "uid-a", "controller": True, "kind": "Pod", "name": "a"}
    key = "resource.kubernetes.io/extended-resource-claim"
    left = an_object("left", owner=owner, annotations={key: value})
    return _world(("DeviceClass", CLASS), ("ResourceClaim", left), pod=_ASKING)


ANNOTATIONS = {"resource.kubernetes.io/extended-resource-claim": Case(_left("true"), _left("false"))}
