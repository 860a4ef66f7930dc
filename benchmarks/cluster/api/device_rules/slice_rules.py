"""ResourceSlices: the devices of a pool, or the counters that partitions of its devices share."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from benchmarks.cluster.api.device_rules.allocation_rules import binding_conditions
from benchmarks.cluster.api.device_rules.claim_rules import EFFECTS, IMMUTABLE
from benchmarks.cluster.api.device_rules.field_checks import (
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    each_entry,
    exactly_one,
    label_key,
    label_value,
    node_selector,
    pool_name,
    qualified_name,
    quantity_value,
    too_long,
)
from benchmarks.cluster.api.validation import Causes, Json
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.errors import forbidden_field, invalid_value, required
from benchmarks.cluster.store.quantities import parse

MAX_DEVICES, MAX_DEVICES_ADVANCED = 128, 64
"""Devices of a slice; the lower limit is for slices with taints, consumed counters or lists as attributes."""
MAX_COUNTER_SETS, MAX_COUNTERS, MAX_CONSUMPTIONS = 8, 32, 2
MAX_ATTRIBUTES, MAX_ATTRIBUTE_VALUES, MAX_VALUE, MAX_TAINTS, MAX_VALID_VALUES = 32, 48, 64, 16, 10

_WHERE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_WHERE_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_SCALARS, _LISTS = ("bool", "int", "string", "version"), ("bools", "ints", "strings", "versions")
_PART = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-{_PART}(\.{_PART})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


def default_slice(obj: Json) -> None:
    """The defaults of a slice: the time since which a taint is there."""
    for device in obj.setdefault("spec", {}).get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now_text())


def fixed_slice(new: Json, old: Json) -> Causes:
    """A change of a slice: it stays with its pool, driver and node."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    pairs = (
        ("pool.name", (spec.get("pool") or {}).get("name"), (before.get("pool") or {}).get("name")),
        ("driver", spec.get("driver"), before.get("driver")),
        ("nodeName", spec.get("nodeName"), before.get("nodeName")),
    )
    return [invalid_value(f"spec.{name}", now, IMMUTABLE) for name, now, was in pairs if now != was]


def resource_slice(obj: Json) -> Causes:
    """A slice."""
    spec = obj.get("spec") or {}
    pool = spec.get("pool") or {}
    causes = driver_name(spec.get("driver"), "spec.driver") + pool_name(pool.get("name"), "spec.pool.name")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        count = pool.get("resourceSliceCount") or 0
        causes.append(invalid_value("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if (pool.get("generation") or 0) < 0:
        why = "must be greater than or equal to zero"
        causes.append(invalid_value("spec.pool.generation", pool["generation"], why))
    causes += _where(spec, "spec", ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"), _WHERE)
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if spec.get("nodeSelector") is not None and len(terms) != 1:
        why = "must have exactly one node selector term"
        causes.append(invalid_value("spec.nodeSelector.nodeSelectorTerms", terms, why))
    devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and counters:
        causes.append(invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def device(one: Json, field: str) -> Causes:
        return _device(one, field, per_device)

    limit = MAX_DEVICES_ADVANCED if any(map(_is_advanced, devices)) else MAX_DEVICES
    causes += each(devices, limit, "spec.devices", device, lambda one: one.get("name"))
    return causes + each(counters, MAX_COUNTER_SETS, "spec.sharedCounters", _counter_set, lambda one: one.get("name"))


def _is_advanced(device: Json) -> bool:
    lists = any(name in attribute for attribute in (device.get("attributes") or {}).values() for name in _LISTS)
    return lists or bool(device.get("taints") or device.get("consumesCounters"))


def _where(holder: Json, field: str, names: tuple[str, ...], rule: str) -> Causes:
    """Which nodes reach the devices: exactly one of these fields, as `rule` says."""
    causes: Causes = []
    stated = []
    for name in names:
        value = holder.get(name)
        if value is None:
            continue
        place = f"{field}.{name}"
        if name == "nodeName" and not value:
            why = "must be either unset or set to a non-empty string" if field == "spec" else "must not be empty"
            causes.append(invalid_value(place, value, why))
        elif value is False:
            causes.append(invalid_value(place, False, "must be either unset or set to true"))
        else:
            stated.append(f"`{name}`")
            if name == "nodeName":
                causes += dns_subdomain(value, place)
            elif name == "nodeSelector":
                causes += node_selector(value, place)
    if not stated:
        causes.append(required(field, rule))
    elif len(stated) > 1:
        message = rule if field != "spec" else f"{rule}, but multiple fields are set"
        causes.append(invalid_value(field, f"{{{', '.join(stated)}}}", message))
    return causes


def _counter_set(counters: Json, field: str) -> Causes:
    name = counters.get("name")
    causes = dns_label(name, f"{field}.name") if name else [required(f"{field}.name")]
    return causes + _counters(counters, field)


def _consumption(consumption: Json, field: str) -> Causes:
    name = consumption.get("counterSet")
    causes = dns_label(name, f"{field}.counterSet") if name else [required(f"{field}.counterSet")]
    return causes + _counters(consumption, field)


def _counters(holder: Json, field: str) -> Causes:
    if not holder.get("counters"):
        return [required(f"{field}.counters")]
    return each_entry(holder["counters"], MAX_COUNTERS, f"{field}.counters", dns_label, quantity_value)


def _device(device: Json, field: str, per_device: bool) -> Causes:
    causes = dns_label(device.get("name") or "", f"{field}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    together = len(attributes) + len(capacity)
    if together > MAX_ATTRIBUTES:
        why = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        causes.append(invalid_value(field, together, why))
    values = sum(max(sum(len(one.get(name) or ()) for name in _LISTS), 1) for one in attributes.values())
    if values > MAX_ATTRIBUTE_VALUES:
        why = f"the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}"
        causes.append(invalid_value(field, values, why))
    shared = bool(device.get("allowMultipleAllocations"))
    causes += each_entry(attributes, -1, f"{field}.attributes", qualified_name, _attribute)
    causes += each_entry(
        capacity, -1, f"{field}.capacity", qualified_name, _shared_capacity if shared else _whole_capacity
    )
    causes += each(device.get("taints"), MAX_TAINTS, f"{field}.taints", taint)
    consumed = device.get("consumesCounters")
    place = f"{field}.consumesCounters"
    causes += each(consumed, MAX_CONSUMPTIONS, place, _consumption, lambda one: one.get("counterSet"))
    names = ("nodeName", "nodeSelector", "allNodes")
    if per_device:
        causes += _where(device, field, names, _WHERE_DEVICE)
    elif any(device.get(name) is not None for name in names):
        why = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        causes.append(invalid_value(field, None, why))
    return causes + binding_conditions(device, field)


def _attribute(attribute: Json, field: str) -> Causes:
    causes: Causes = []
    stated = [name for name in (*_SCALARS, *_LISTS) if attribute.get(name) is not None]
    for name in stated:
        value: Any = attribute[name]
        if name in _LISTS and not value:
            causes.append(invalid_value(f"{field}.{name}", value, "must not be empty if specified"))
        listed = value if name in _LISTS else [value]
        for at, one in enumerate(listed):
            place = f"{field}.{name}[{at}]" if name in _LISTS else f"{field}.{name}"
            if name.startswith("version") and not _SEMVER.fullmatch(one):
                why = "must be a string compatible with semver.org spec 2.0.0"
                causes.append(invalid_value(place, one, why))
            if name.startswith(("version", "string")) and len(one.encode()) > MAX_VALUE:
                causes.append(too_long(place, MAX_VALUE))
    if len(stated) != 1:
        causes.append(invalid_value(field, attribute if stated else "", "exactly one value must be specified"))
    return causes


def _whole_capacity(capacity: Json, field: str) -> Causes:
    causes = quantity_value(capacity, field)
    if capacity.get("requestPolicy") is not None:
        causes.append(forbidden_field(f"{field}.requestPolicy", "allowMultipleAllocations must be true"))
    return causes


def _shared_capacity(capacity: Json, field: str) -> Causes:
    value, policy = parse(capacity.get("value", "0")), capacity.get("requestPolicy")
    if policy is None:
        return []
    place = f"{field}.requestPolicy"
    default, options, bounds = policy.get("default"), policy.get("validValues"), policy.get("validRange")
    if options and bounds is not None:
        why = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden_field(place, why)]
    name = "validValues" if options else "validRange" if bounds is not None else ""
    if name and default is None:
        return [required(f"{place}.default", f"required when {name} is defined")]
    if options:
        return _options(options, default, value, capacity["value"], f"{place}.validValues")
    if bounds is not None:
        return _range(bounds, default, value, capacity["value"], f"{place}.validRange")
    return []


def _options(options: list[Any], default: Any, value: Fraction, shown: Any, field: str) -> Causes:
    numbers = [parse(option) for option in options]
    causes = [
        invalid_value(f"{field}[{at}]", options[at], "values must be sorted in ascending order")
        for at in range(1, len(numbers))
        if numbers[at] < numbers[at - 1]
    ]
    why = f"option is larger than capacity value: {shown}"

    def option(one: Any, place: str) -> Causes:
        return [invalid_value(place, one, why)] if parse(one) > value else []

    causes += each(options, MAX_VALID_VALUES, field, option, parse)
    if parse(default) not in numbers:
        causes.append(invalid_value(field, default, "default value is not valid according to the requestPolicy"))
    return causes


def _range(bounds: Json, default: Any, value: Fraction, shown: Any, field: str) -> Causes:
    if bounds.get("min") is None:
        return [required(f"{field}.min", "required when validRange is defined")]
    low, least = parse(bounds["min"]), bounds["min"]
    causes: Causes = []

    def refuse_if(wrong: bool, name: str, quantity: Any, why: str) -> None:
        if wrong:
            causes.append(invalid_value(f"{field}.{name}", quantity, why))

    refuse_if(low > value, "min", least, f"min is larger than capacity value: {shown}")
    refuse_if(parse(default) < low, "min", default, f"default is less than min: {least}")
    greatest, step = bounds.get("max"), bounds.get("step")
    if greatest is not None:
        refuse_if(low > parse(greatest), "max", least, f"min is larger than max: {greatest}")
        refuse_if(parse(greatest) > value, "max", greatest, f"max is larger than capacity value: {shown}")
        refuse_if(parse(default) > parse(greatest), "max", default, f"default is more than max: {greatest}")
    if step is not None and parse(step) > 0:
        refuse_if(low + parse(step) > value, "step", step, f"one step {step} is larger than capacity value: {shown}")
        for quantity in (default, *([greatest] if greatest is not None else ())):
            uneven = (parse(quantity) - low) % parse(step) != 0
            refuse_if(uneven, "step", quantity, f"value is not a multiple of a given step ({step}) from ({least})")
    return causes


def taint(given: Json, field: str) -> Causes:
    """A taint of a device."""
    return [
        *label_key(given.get("key"), f"{field}.key"),
        *label_value(given.get("value"), f"{field}.value"),
        *exactly_one(given.get("effect"), EFFECTS, f"{field}.effect"),
    ]
