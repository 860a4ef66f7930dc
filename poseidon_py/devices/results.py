"""The allocation of a claim as it is written into its status."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from poseidon_py.devices.allocator import Grant
from poseidon_py.devices.capacity import Consumption
from poseidon_py.devices.objects import DeviceClass, ResourceClaim, exact_of
from poseidon_py.kube.objects import RequiredTerms, Requirement, SelectorTerm
from poseidon_py.kube.quantity import NANO


def allocation(
    claim: ResourceClaim,
    grants: Sequence[Grant],
    node: str,
    classes: Mapping[str, DeviceClass],
    shares: Iterable[str],
    now: str,
) -> dict[str, Any]:
    """status.allocation. `node`: the name of the node that the devices are for. `shares`: UUIDs for devices that are
    shared. `now`: RFC 3339."""
    fresh = iter(shares)
    found: dict[str, Any] = {"devices": {"results": [_result(claim, each, fresh) for each in grants]}}
    if config := _configuration(claim, grants, classes):
        found["devices"]["config"] = config
    selector = node_selector(grants, node)
    if selector is not None:
        found["nodeSelector"] = _without_nulls(msgspec.to_builtins(selector))
    found["allocationTimestamp"] = now
    return found


def node_selector(grants: Iterable[Grant], node: str) -> RequiredTerms | None:
    """The nodes that reach all devices; None: all."""
    labels, fields = [], []
    for grant in grants:
        target = grant.device.target
        if target.name or grant.device.binds_to_node:
            return RequiredTerms([SelectorTerm(fields=[Requirement("metadata.name", "In", [node])])])
        for term in target.terms or ():
            labels += [each for each in term.labels or () if each not in labels]
            fields += [each for each in term.fields or () if each not in fields]
    if not (labels or fields):
        return None
    return RequiredTerms([SelectorTerm(labels or None, fields or None)])


def written(consumed: Consumption, names: Mapping[str, str]) -> dict[str, str]:
    """Consumed capacities as quantities, by their names in the slice."""
    return {names.get(name, name): _quantity(amount) for name, amount in sorted(consumed.items())}


def _without_nulls(given: Any) -> Any:
    if isinstance(given, dict):
        return {key: _without_nulls(value) for key, value in given.items() if value is not None}
    return [_without_nulls(each) for each in given] if isinstance(given, list) else given


def _quantity(amount: int) -> str:
    whole, fraction = divmod(amount, NANO)
    if fraction:
        return f"{amount}n"
    for unit, power in (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if whole and whole % (1 << power) == 0:
            return f"{whole >> power}{unit}"
    return str(whole)


def _result(claim: ResourceClaim, grant: Grant, shares: Iterable[str]) -> dict[str, Any]:
    driver, pool, name = grant.device.id
    found: dict[str, Any] = {"request": grant.asked.label, "driver": driver, "pool": pool, "device": name}
    if grant.asked.admin:
        found["adminAccess"] = True
    if tolerations := _tolerations(claim, grant.asked.label):
        found["tolerations"] = tolerations
    if grant.device.binding_conditions:
        found["bindingConditions"] = list(grant.device.binding_conditions)
    if grant.device.failure_conditions:
        found["bindingFailureConditions"] = list(grant.device.failure_conditions)
    if grant.consumed is not None:
        found["shareID"] = next(iter(shares))
        if grant.consumed:
            found["consumedCapacity"] = written(grant.consumed, grant.device.written)
    if grant.device.skipped:
        found["skipNodeOperations"] = list(grant.device.skipped)
    return found


def _tolerations(claim: ResourceClaim, label: str) -> list[Any]:
    name, _, sub = label.partition("/")
    for request in claim.spec.devices.requests or ():
        if request.name == name:
            chosen = next((each for each in request.first_available or () if each.name == sub), None)
            given = (chosen or exact_of(request)).tolerations or ()
            return [_without_nulls(msgspec.to_builtins(each)) for each in given]
    return []


def _configuration(
    claim: ResourceClaim, grants: Sequence[Grant], classes: Mapping[str, DeviceClass]
) -> list[dict[str, Any]]:
    """That of the classes first, once for each, and that of the claim, as far as it concerns what was chosen."""
    requests: dict[str, list[str]] = {}
    labels: dict[str, None] = {}
    for grant in grants:
        labels[grant.asked.label] = None
        named = requests.setdefault(grant.asked.class_name, [])
        if grant.asked.label not in named:
            named.append(grant.asked.label)
    found = []
    for class_name, named in requests.items():
        device_class = classes.get(class_name)
        for raw in (device_class.spec.config or ()) if device_class is not None else ():
            found.append({"source": "FromClass", "requests": named, **msgspec.json.decode(raw)})
    chosen = {*labels, *(label.partition("/")[0] for label in labels)}
    for each in claim.spec.devices.config or ():
        if not each.requests or chosen & set(each.requests):
            entry: dict[str, Any] = {"source": "FromClaim"}
            if each.requests:
                entry["requests"] = each.requests
            if bytes(each.opaque):
                entry["opaque"] = msgspec.json.decode(each.opaque)
            found.append(entry)
    return found
