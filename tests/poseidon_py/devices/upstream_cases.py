"""Reads upstream_cases.yaml, which says what its keys mean, and own_cases.yaml into objects of the API."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from poseidon_py.devices.objects import DeviceClass, ResourceClaim, ResourceSlice

HERE = Path(__file__).parent

WHY = {
    "gate": "a feature gate is off there; all are on here, and the outcome is upstream's with all on",
    "node": "an error that ends the pod's scheduling there excludes this node here",
    "type": "an attribute of a type that is not known is an error there; here it is as if it were not there",
    "generation": "a node whose own slices are complete keeps them there, while others have newer ones of its pool",
    "surplus": "a pool of more slices than it says is complete there for a node that reaches just the number",
    "counters": "what a device takes of counters is not given back there if the search rejects or returns the device",
    "exceeded": "one counter that devices in use exceed stops all of the pool there that use any",
    "admin": "administrative access takes counters, and the device from the pod's other claims, there",
    "values": "values that lists have in common are not given back there when the search returns a device",
    "distinct": "of a request for several devices only the last one has to differ from others there",
    "configuration": "a claim's configuration is listed there once for each request that it names",
}
"""Why a case has another outcome here."""


@dataclass(frozen=True, slots=True)
class UpstreamCase:
    node: str
    classes: list[DeviceClass]
    slices: list[ResourceSlice]
    claims: list[ResourceClaim]
    gives: Any
    """Allocations as in the API, or None, or {"error": kind}."""
    here: Any
    why: str
    used: list[str] = field(default_factory=list)
    taken: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        return {"region": f"region-{self.node[-1]}", "planet": "earth"}


def read_cases(file: str) -> dict[str, UpstreamCase]:
    given = yaml.load((HERE / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: _case(case) for name, case in given.items()}


def _case(given: dict[str, Any]) -> UpstreamCase:
    classes = given.get("classes", [])
    gives = _outcome(given["gives"])
    return UpstreamCase(
        given.get("node", "node-1"),
        [_decoded(_class(name, classes[name] if isinstance(classes, dict) else {}), DeviceClass) for name in classes],
        [_decoded(_slice(each), ResourceSlice) for each in given.get("slices", [])],
        [_decoded(_claim(at, each), ResourceClaim) for at, each in enumerate(given.get("claims", []))],
        gives,
        _outcome(given["here"]) if "here" in given else gives,
        given.get("why", ""),
        given.get("used", []),
        given.get("taken", {}),
    )


def _decoded(given: dict[str, Any], kind: type) -> Any:
    return msgspec.json.decode(json.dumps(given), type=kind)


def _name_and_body(given: Any) -> tuple[str, Any]:
    if isinstance(given, str):
        return given, {}
    ((name, body),) = given.items()
    return name, body


def _class(name: str, body: dict[str, Any]) -> dict[str, Any]:
    selectors = body.get("select", [f'device.driver == "driver-{name[-1]}"'])
    spec = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
    return {"metadata": {"name": name}, "spec": spec | {"config": [_opaque(each) for each in body.get("config", [])]}}


def _opaque(text: str) -> dict[str, Any]:
    driver, parameter = text.split()
    return {"opaque": {"driver": driver, "parameters": {parameter: f"{parameter}Value"}}}


# -- slices -----------------------------------------------------------------------------------------------------------


def _slice(given: dict[str, Any]) -> dict[str, Any]:
    name, pool = given["slice"].split()
    driver, pool = pool.split("/")
    devices = given.get("devices", [])
    if isinstance(devices, int):
        devices = [f"device-{at}" for at in range(devices)]
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": given.get("generation", 1), "resourceSliceCount": given.get("of", 1)},
        "devices": [_device(each) for each in devices],
        "sharedCounters": [{"name": of, **_counters(values)} for of, values in given.get("counters", {}).items()],
    }
    return {"metadata": {"name": name, "uid": name}, "spec": spec | _target(given.get("at", "node-1"))}


def _target(at: Any) -> dict[str, Any]:
    if at in ("all", "each"):
        return {"allNodes" if at == "all" else "perDeviceNodeSelection": True}
    return {"nodeSelector": node_selector(at)} if isinstance(at, dict) else {"nodeName": at}


def node_selector(labels: dict[str, list[str]]) -> dict[str, Any]:
    term: dict[str, Any] = {}
    for key, values in labels.items():
        kind = "matchFields" if key == "metadata.name" else "matchExpressions"
        term.setdefault(kind, []).append({"key": key, "operator": "In", "values": values})
    return {"nodeSelectorTerms": [term]}


def _device(given: Any) -> dict[str, Any]:
    name, body = _name_and_body(given)
    kinds = {bool: "bool", int: "int", str: "string"}
    found: dict[str, Any] = {
        "name": name,
        "attributes": {
            key: value if isinstance(value, dict) else {kinds[type(value)]: value}
            for key, value in body.get("attributes", {}).items()
        },
        "capacity": {key: _capacity(value) for key, value in body.get("capacity", {}).items()},
        "consumesCounters": [{"counterSet": of, **_counters(values)} for of, values in body.get("uses", {}).items()],
        "taints": [_taint(each) for each in body.get("taints", [])],
        "allowMultipleAllocations": body.get("shared"),
        "bindsToNode": body.get("binds"),
        "bindingConditions": body.get("conditions"),
        "bindingFailureConditions": body.get("failures"),
    }
    return found | (_target(body["at"]) if "at" in body else {})


def _capacity(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {"value": given}
    return {"value": given["value"], "requestPolicy": {key: each for key, each in given.items() if key != "value"}}


def _counters(values: dict[str, str]) -> dict[str, Any]:
    return {"counters": {name: {"value": value} for name, value in values.items()}}


def _taint(text: str) -> dict[str, Any]:
    name, effect = text.split()
    key, _, value = name.partition("=")
    return {"key": key, "value": value, "effect": effect}


# -- claims -----------------------------------------------------------------------------------------------------------


def _claim(at: int, given: dict[str, Any]) -> dict[str, Any]:
    constraints = []
    for each in given.get("constraints", []):
        named = {"same": "matchAttribute", "distinct": "distinctAttribute", "of": "requests"}
        constraints.append({named[key]: value for key, value in each.items()})
    config = [(_opaque(text), of) for text, of in map(_name_and_body, given.get("config", []))]
    devices = {
        "requests": [_request(each) for each in given["ask"]],
        "constraints": constraints,
        "config": [opaque | ({"requests": of} if of else {}) for opaque, of in config],
    }
    return {"metadata": {"name": f"claim-{at}", "uid": f"claim-{at}"}, "spec": {"devices": devices}}


def _request(given: Any) -> dict[str, Any]:
    if isinstance(given, dict) and "ask" not in given:
        name, alternatives = _name_and_body(given)
        return {"name": name, "firstAvailable": [{"name": label} | body for label, body in map(_exact, alternatives)]}
    name, body = _exact(given)
    return {"name": name, "exactly": body}


def _exact(given: Any) -> tuple[str, dict[str, Any]]:
    given = {"ask": given} if isinstance(given, str) else given
    name, class_name, amount = (*given["ask"].split(), "1")[:3]
    found: dict[str, Any] = {"deviceClassName": "" if class_name == "-" else class_name}
    if amount.isdigit():
        found |= {"allocationMode": "ExactCount", "count": int(amount)}
    elif amount != "-":
        found["allocationMode"] = "All" if amount == "all" else amount
    found["selectors"] = [{"cel": {"expression": each}} if each else {} for each in given.get("select", [])]
    found["tolerations"] = [_toleration(each) for each in given.get("tolerates", [])]
    found["adminAccess"] = given.get("admin")
    return name, found | ({"capacity": {"requests": given["capacity"]}} if "capacity" in given else {})


def _toleration(text: str) -> dict[str, Any]:
    name, *effect = text.split()
    key, equal, value = name.partition("=")
    found = {"key": key, "operator": "Equal" if equal else "Exists"} | ({"value": value} if equal else {})
    return found | ({"effect": effect[0]} if effect else {})


# -- outcomes ---------------------------------------------------------------------------------------------------------


def _outcome(given: Any) -> Any:
    if given == "none":
        return None
    return given if isinstance(given, dict) else [_allocation(each) for each in given]


def _allocation(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"devices": {"results": [_result(each) for each in given["devices"]]}}
    if "config" in given:
        found["devices"]["config"] = [_config(each) for each in given["config"]]
    at = given.get("at", {"metadata.name": ["node-1"]})
    return found | ({"nodeSelector": node_selector(at)} if at != "all" else {})


def _config(given: dict[str, list[str]]) -> dict[str, Any]:
    text, of = _name_and_body(given)
    source, opaque = text.split(maxsplit=1)
    found = {"source": {"class": "FromClass", "claim": "FromClaim"}[source]} | _opaque(opaque)
    return found | ({"requests": of} if of else {})


def _result(given: Any) -> dict[str, Any]:
    text, body = _name_and_body(given)
    request, device = text.split()
    driver, pool, name = device.split("/")
    found: dict[str, Any] = {"request": request, "driver": driver, "pool": pool, "device": name}
    named = {"conditions": "bindingConditions", "failures": "bindingFailureConditions", "admin": "adminAccess"}
    found |= {named[key]: value for key, value in body.items() if key in named}
    if "takes" in body:
        found |= {"shareID": "share"} | ({"consumedCapacity": body["takes"]} if body["takes"] else {})
    return found | ({"tolerations": [_toleration(e) for e in body["tolerates"]]} if "tolerates" in body else {})
