"""The status of a claim: an allocation is complete when it is written and never changes, but can be cleared."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.device_rules.claim_rules import (
    IMMUTABLE,
    MAX_CONFIGS,
    configuration,
    refused_admin,
    request_names,
    request_reference,
    request_references,
)
from benchmarks.cluster.api.device_rules.field_checks import (
    dns_label,
    driver_name,
    duplicate,
    each,
    exactly_one,
    label_key,
    node_selector,
    pool_name,
    raw_object,
    same,
    share_id,
    too_long,
    too_many,
)
from benchmarks.cluster.api.validation import Causes, Json, unsupported
from benchmarks.cluster.store.errors import forbidden_field, invalid_value, required

MAX_CONSUMERS, MAX_RESULTS, MAX_CONDITIONS, MAX_DEVICE_CONDITIONS, MAX_DATA = 256, 32, 4, 8, 10 * 1024
MAX_ADDRESSES, MAX_INTERFACE, MAX_HARDWARE_ADDRESS = 16, 256, 128

_STATUSES = ["False", "True", "Unknown"]

DeviceId = tuple[str, str, str, str]
"""Driver, pool, device, and the share of the device (empty: the whole)."""


def device_id(entry: Json) -> DeviceId:
    """Which device a result or a status is about."""
    return entry.get("driver") or "", entry.get("pool") or "", entry.get("device") or "", entry.get("shareID") or ""


def _shown(entry: Json) -> Json:
    """A device as messages have it."""
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_id(entry), strict=True))


def results_of(obj: Json) -> list[Json]:
    """The devices that a claim has been given."""
    allocation = (obj.get("status") or {}).get("allocation") or {}
    results: list[Json] = (allocation.get("devices") or {}).get("results") or []
    return results


def prepare_status(new: Json, old: Json) -> None:
    """The reports of drivers about devices that a claim loses are dropped; tolerations get their defaults."""
    for result in results_of(new):
        for toleration in result.get("tolerations") or ():
            toleration.setdefault("operator", "Equal")
    lost = set(map(device_id, results_of(old))) - set(map(device_id, results_of(new)))
    status = new.get("status") or {}
    if status.get("devices"):
        status["devices"] = [one for one in status["devices"] if device_id(one) not in lost]
        if not status["devices"]:
            del status["devices"]


def claim_status(new: Json, old: Json) -> Causes:
    """A change of a claim's status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    consumers, allocation = status.get("reservedFor") or [], status.get("allocation")
    causes = each(consumers, MAX_CONSUMERS, "status.reservedFor", _consumer, lambda one: one.get("uid"))
    allocated = frozenset(map(device_id, results_of(new)))

    def device(one: Json, field: str) -> Causes:
        return _device_status(one, field, allocated)

    reports = status.get("devices") or []
    causes += each(reports, -1, "status.devices", device)
    ids = list(map(device_id, reports))
    causes += [duplicate(f"status.devices[{at}]", _shown(one)) for at, one in enumerate(reports) if ids[at] in ids[:at]]
    if consumers and allocation is None:
        causes.append(forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set"))
    added = any(one not in (before.get("reservedFor") or ()) for one in consumers)
    if allocation is not None and added and "deletionTimestamp" in new["metadata"]:
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        causes.append(forbidden_field("status.reservedFor", why))
    if allocation is not None:
        if before.get("allocation") is None:
            known = request_names((new.get("spec") or {}).get("devices") or {})
            causes += _allocation(allocation, "status.allocation", known)
        elif not same(allocation, before["allocation"]):
            causes.append(invalid_value("status.allocation", allocation, IMMUTABLE))
    return causes


def admin_results(new: Json, old: Json, namespace_labels: dict[str, str], label: str) -> Causes:
    """Administrative access in an allocation needs a label of the namespace, unless it has been given before."""
    if any(result.get("adminAccess") for result in results_of(old)):
        return []
    for at, result in enumerate(results_of(new)):
        if result.get("adminAccess"):
            field = f"status.allocation.devices.results[{at}].adminAccess"
            return refused_admin(field, namespace_labels, label)
    return []


def _consumer(consumer: Json, field: str) -> Causes:
    return [required(f"{field}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)]


def _allocation(allocation: Json, field: str, known: frozenset[str]) -> Causes:
    def result(one: Json, at: str) -> Causes:
        return [
            *request_reference(one.get("request") or "", f"{at}.request", known),
            *driver_name(one.get("driver"), f"{at}.driver"),
            *pool_name(one.get("pool"), f"{at}.pool"),
            *dns_label(one.get("device") or "", f"{at}.device"),
            *binding_conditions(one, at),
            *(share_id(one["shareID"], f"{at}.shareID") if one.get("shareID") is not None else ()),
        ]

    def config(one: Json, at: str) -> Causes:
        return [
            *exactly_one(one.get("source"), ["FromClaim", "FromClass"], f"{at}.source"),
            *request_references(one.get("requests"), f"{at}.requests", known),
            *configuration(one, at),
        ]

    devices, place = allocation.get("devices") or {}, f"{field}.devices"
    causes = each(devices.get("results"), MAX_RESULTS, f"{place}.results", result)
    causes += each(devices.get("config"), 2 * MAX_CONFIGS, f"{place}.config", config)
    if allocation.get("nodeSelector") is not None:
        causes += node_selector(allocation["nodeSelector"], f"{field}.nodeSelector")
    return causes


def binding_conditions(holder: Json, field: str) -> Causes:
    """The conditions that a device or a result must meet before pods are bound, and those that end the attempt."""
    met, failed = holder.get("bindingConditions") or [], holder.get("bindingFailureConditions") or []
    places = f"{field}.bindingConditions", f"{field}.bindingFailureConditions"
    causes = each(met, MAX_CONDITIONS, places[0], label_key) + each(failed, MAX_CONDITIONS, places[1], label_key)
    for names, place in zip((met, failed), places, strict=True):
        causes += [duplicate(f"{place}[{at}]", name) for at, name in enumerate(names) if name in names[:at]]
    for at, name in enumerate(failed):
        if name in met:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            causes.append(invalid_value(f"{places[1]}[{at}]", name, why))
    if failed and not met:
        why = "bindingConditions are required to use bindingFailureConditions"
        causes.append(invalid_value(places[0], holder.get("bindingConditions"), why))
    if met and not failed:
        why = "bindingFailureConditions are required to use bindingConditions"
        causes.append(invalid_value(places[1], holder.get("bindingFailureConditions"), why))
    return causes


def _device_status(status: Json, field: str, allocated: frozenset[DeviceId]) -> Causes:
    causes = driver_name(status.get("driver"), f"{field}.driver") + pool_name(status.get("pool"), f"{field}.pool")
    causes += dns_label(status.get("device") or "", f"{field}.device")
    if device_id(status) not in allocated:
        why = "must be an allocated device in the claim"
        causes.append(invalid_value(field, _shown(status), why))
    conditions = status.get("conditions") or []
    if len(conditions) > MAX_DEVICE_CONDITIONS:
        causes.append(too_many(f"{field}.conditions", len(conditions), MAX_DEVICE_CONDITIONS))
    causes += conditions_of(conditions, f"{field}.conditions")
    if status.get("data") is not None:
        causes += raw_object(status["data"], f"{field}.data", MAX_DATA)
    return causes + _network(status.get("networkData") or {}, f"{field}.networkData")


def conditions_of(conditions: list[Json], field: str) -> Causes:
    """Conditions in the form of metav1.Condition."""
    causes: Causes = []
    for at, condition in enumerate(conditions):
        place = f"{field}[{at}]"
        causes += label_key(condition.get("type"), f"{place}.type")
        if condition.get("status") not in _STATUSES:
            causes.append(unsupported(f"{place}.status", condition.get("status") or "", _STATUSES))
        causes += [required(f"{place}.{name}") for name in ("lastTransitionTime", "reason") if not condition.get(name)]
    types = [condition.get("type") for condition in conditions]
    return causes + [duplicate(f"{field}[{at}]", one) for at, one in enumerate(types) if one in types[:at]]


def _network(data: dict[str, Any], field: str) -> Causes:
    causes: Causes = []
    for name, limit in (("interfaceName", MAX_INTERFACE), ("hardwareAddress", MAX_HARDWARE_ADDRESS)):
        if len((data.get(name) or "").encode()) > limit:
            causes.append(too_long(f"{field}.{name}", limit))
    return causes + each(data.get("ips"), MAX_ADDRESSES, f"{field}.ips", lambda one, at: [], lambda one: one)
