"""Slices, classes, claims and templates of a cluster in which each node has the same devices.

A node has so many devices of the model `new`, two to a rail, and two of the model `old`, which nothing here asks for.
So pods that ask for one device each can have all devices of the model `new`, and a scheduler that ignores selectors
gives some of them devices of the model `old`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

DRIVER = "dra.bench.example.com"
CLASS = "bench-device"
RESOURCE = "bench.example.com/device"
"""The extended resource that the class names."""
API = "resource.k8s.io/v1"
OLD_DEVICES = 2
"""Further devices of each node, of the model that no claim selects."""
PER_RAIL = 2
_ATTRIBUTES = f'device.attributes["{DRIVER}"]'
_NEW = f'{_ATTRIBUTES}.model == "new"'
_LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'

KINDS = ("selector", "match", "extended", "shared")
"""selector: one device, by a selector of the claim; match: two devices of one rail; extended: one device, by the
extended resource of the class; shared: one device for all pods that name the claim."""


def device_count(kind: str) -> int:
    """Devices of a claim of a kind."""
    return 2 if kind == "match" else 1


def device_class() -> Json:
    """The class of all devices of the driver. Its extended resource is served by those of the model `new`, so the class
    selects them; claims select them themselves, by what only these have."""
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {
            "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}" && {_NEW}'}}],
            "extendedResourceName": RESOURCE,
        },
    }


def open_class() -> Json:
    """The class of all devices of the driver, of both models."""
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": f"{CLASS}-any"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


def slice_of(node: str, devices: int) -> Json:
    """The slice of a node: its pool has the node's name."""
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [*_devices(node, devices)],
        },
    }


def _devices(node: str, count: int) -> Iterator[Json]:
    for at in range(count + OLD_DEVICES):
        old = at < OLD_DEVICES  # first, so that the first that is free is a wrong choice
        yield {
            "name": f"old-{at}" if old else f"new-{at - OLD_DEVICES}",
            "attributes": {
                "model": {"string": "old" if old else "new"},
                "rail": {"int": -1 if old else (at - OLD_DEVICES) // PER_RAIL},
                "serial": {"string": f"{node}-{at}"},
            },
            "capacity": {"memory": {"value": "16Gi" if old else "80Gi"}},
        }


def claim_spec(kind: str) -> Json:
    """The spec of a claim, or of a template's. An extended resource has none: its claim is the scheduler's."""
    exactly = {
        "deviceClassName": f"{CLASS}-any",
        "count": device_count(kind),
        "selectors": [{"cel": {"expression": f"{_NEW} && {_LARGE}"}}],
    }
    devices: Json = {"requests": [{"name": "device", "exactly": exactly}]}
    if kind == "match":
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/rail"}]
    return {"devices": devices}


def claim_of(name: str, kind: str) -> Json:
    """A claim in the namespace default."""
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": claim_spec(kind),
    }


def allocation_of(devices: list[tuple[str, str]], request: str = "device") -> Json:
    """status.allocation with devices of one node: pairs of pool, which is its name, and device."""
    results = [{"request": request, "driver": DRIVER, "pool": pool, "device": device} for pool, device in devices]
    here = {"key": "metadata.name", "operator": "In", "values": [devices[0][0]]}
    return {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def devices_in_turn(nodes: list[str], devices: int, each: int) -> Iterator[list[tuple[str, str]]]:
    """Devices for one claim after the other, `each` of one rail, on the nodes in rotation, so that none comes twice."""
    for first in range(0, devices - devices % each, each):
        for node in nodes:
            yield [(node, f"new-{at}") for at in range(first, first + each)]
