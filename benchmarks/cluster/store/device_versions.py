"""How resource.k8s.io/v1beta1 writes what v1 stores: devices within `basic`, and requests without `exactly`.

Both functions leave whatever has another type than the API as it is, so that its decoding is refused afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

_EXACT = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)
_UNSET = ("", 0, None)


def to_v1beta1(obj: Json) -> Json:
    """A stored object as a client of v1beta1 sees it."""
    return _converted(obj, _basic, _flat)


def from_v1beta1(obj: Json) -> Json:
    """An object of a client of v1beta1, or a patch of its status, as it is stored."""
    return _converted(obj, _without_basic, _exactly)


def _converted(obj: Json, device: Callable[[Json], Json], request: Callable[[Json], Json]) -> Json:
    match obj.get("kind"), obj.get("spec"):
        case "ResourceSlice", dict(spec):
            spec = _each(spec, "devices", device)
        case "ResourceClaim", dict(spec):
            spec = _inside(spec, "devices", lambda devices: _each(devices, "requests", request))
        case "ResourceClaimTemplate", dict(spec):
            spec = _inside(
                spec, "spec", lambda claim: _inside(claim, "devices", lambda one: _each(one, "requests", request))
            )
        case _:
            return obj
    return {**obj, "spec": spec}


def _inside(obj: Json, name: str, change: Callable[[Json], Json]) -> Json:
    value = obj.get(name)
    return {**obj, name: change(value)} if isinstance(value, dict) else obj


def _each(obj: Json, name: str, change: Callable[[Json], Json]) -> Json:
    values = obj.get(name)
    if not isinstance(values, list):
        return obj
    return {**obj, name: [change(one) if isinstance(one, dict) else one for one in values]}


def _basic(device: Json) -> Json:
    """Of v1: a device's fields beside its name."""
    return {"name": device.get("name", ""), "basic": {key: one for key, one in device.items() if key != "name"}}


def _without_basic(device: Json) -> Json:
    basic = device.get("basic")
    if basic is None:
        return {key: one for key, one in device.items() if key != "basic"}
    return {"name": device.get("name", ""), **basic} if isinstance(basic, dict) else device


def _flat(request: Json) -> Json:
    exactly = request.get("exactly")
    if not isinstance(exactly, dict):
        return request
    return {**{key: request[key] for key in request if key != "exactly"}, **exactly}


def _exactly(request: Json) -> Json:
    given = {key: request[key] for key in _EXACT if key in request and request[key] not in _UNSET}
    others = {key: one for key, one in request.items() if key not in _EXACT}
    return {**others, "exactly": given} if given else others
