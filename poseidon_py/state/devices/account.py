"""Why the device claims of a pod have no devices: request by request, what becomes of all devices."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from poseidon_py.devices.allocator import SelectionError
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.capacity import consumption, fits
from poseidon_py.devices.device_requests import Alternative, ClaimRequests, MissingClassError
from poseidon_py.devices.inventory import ListedDevice
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.devices.extended import extended_claim
from poseidon_py.state.devices.gate import DeviceGate
from poseidon_py.state.records import PodRecord

Json = dict[str, Any]

REASONS = (
    "its pool is incomplete or invalid",
    "the selectors have an error",
    "not selected",
    "tainted",
    "in use",
    "too few counters left",
    "too little capacity left",
    "free",
)
"""What a device fails first, in this order."""


def device_account(gate: DeviceGate, known: PodRecord, nodes: Mapping[str, Mapping[str, str]]) -> list[Json]:
    """For each request of a waiting pod's claims: how many of all devices fail what, and on how many nodes enough of
    them are free one by one. `nodes`: labels by name. A claim that has devices says where."""
    found: list[Json] = []
    for key in gate.keys(known):
        claim = gate.cache.claims.get(key)
        if claim is None:
            continue
        about = {"claim": f"{key[0]}/{key[1]}"}
        if claim.status.allocation is not None:
            results = claim.status.allocation.devices.results or ()
            names = sorted(f"{each.driver}/{each.pool}/{each.device}" for each in results)
            found.append(about | {"devices": names, "users": len(claim.status.users or ())})
            continue
        try:
            requests = gate.book.requests_of(claim)
        except (MissingClassError, InvalidField) as error:
            found.append(about | {"problem": str(error)})
            continue
        found += _of_claim(gate.book, about, requests, nodes)
    extended = extended_claim(known.devices.extended, gate.book.class_serving)
    for resource, request in extended.by_resource:
        found += _of_claim(gate.book, {"resource": resource}, ClaimRequests((request,)), nodes)
    return found


def _of_claim(
    book: DeviceBook, about: Json, claim: ClaimRequests, nodes: Mapping[str, Mapping[str, str]]
) -> Iterable[Json]:
    for request in claim.requests:
        for asked in request.alternatives:
            counts: Counter[str] = Counter()
            for pool in book.inventory.pools():
                sound = pool.complete and not pool.problem
                for device in pool.devices:
                    counts[_first_failure(book, device, asked) if sound else REASONS[0]] += 1
            sufficient = sum(_suffices(book, node, labels, asked) for node, labels in nodes.items())
            yield about | {
                "request": asked.label,
                "class": asked.class_name,
                "count": asked.number or "all",
                "devices": {reason: counts[reason] for reason in REASONS if counts[reason]},
                "nodes_with_enough": sufficient,
                "constraints": [
                    f"{'distinct' if each.distinct else 'equal'} {each.attribute}"
                    for each in claim.constraints
                    if each.concerns(request, asked)
                ],
            }


def _first_failure(book: DeviceBook, device: ListedDevice, asked: Alternative) -> str:
    """What a device fails first; the last of REASONS: nothing."""
    use = book.holdings.use
    try:
        if not book.selectors.suits(asked.selection, device.shape):
            return REASONS[2]
    except SelectionError:
        return REASONS[1]
    if not asked.selection.tolerates(device.taints):
        return REASONS[3]
    taken = consumption(device, asked)
    if taken is None:
        return REASONS[6]
    if asked.admin:
        return REASONS[7]
    shared = use.shared.get(device.id)
    if device.id in use.whole or (shared is not None and not device.shareable):
        return REASONS[4]
    if shared is None and not book.has_counters(device):
        return REASONS[5]
    if device.shareable and not fits(device, shared or {}, taken):
        return REASONS[6]
    return REASONS[7]


def _suffices(book: DeviceBook, node: str, labels: Mapping[str, str], asked: Alternative) -> bool:
    here = book.on(node, labels).devices
    return sum(_first_failure(book, device, asked) == REASONS[7] for device in here) >= max(asked.number, 1)
