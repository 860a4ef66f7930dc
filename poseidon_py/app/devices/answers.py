"""What users are told of devices."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from poseidon_py.devices.allocator import SelectionError
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.device_requests import Selection, selectors_of
from poseidon_py.devices.inventory import DevicePool, ListedDevice
from poseidon_py.state.devices.account import device_account
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store

Json = dict[str, Any]

STATES = ("free", "in use", "tainted", "no counters", "not usable")
"""Of a device: `no counters`, if others have taken what it needs of shared counters; `not usable`, if its pool is
incomplete or invalid."""


class UnknownNode(LookupError):
    """There is no such node."""


def devices_of(store: Store, known: PodRecord) -> list[Json]:
    """The devices of a pod's claims, or why they have none."""
    if not known.devices.any:
        return []
    nodes = {name: node.base.labels for name, node in store.nodes.items() if node.base is not None}
    return device_account(store.devices, known, nodes)


def devices_answer(store: Store, node: str) -> Json:
    """The body of /devices. `node`: the name of one whose devices are listed one by one; empty: none. Raises
    UnknownNode."""
    gate = store.devices
    body: Json = {"problem": gate.unreadable, "classes": list(_classes(gate.book)), "pools": list(_pools(gate.book))}
    if node:
        labels = store.labels_of_node(node)
        if labels is None:
            raise UnknownNode(f"there is no node {node}")
        holders = _holders(store)
        body["devices"] = [
            {
                "device": str(device.id),
                "state": _state(gate.book, device, usable=True),
                "claims": holders.get(str(device.id), []),
                "taints": [f"{each.key}={each.value or ''}:{each.effect}" for each in device.taints],
            }
            for device in gate.book.on(node, labels).devices
        ]
    return body


def count_devices(book: DeviceBook) -> Counter[tuple[str, str]]:
    """Driver and state -> number of devices."""
    found: Counter[tuple[str, str]] = Counter()
    for pool in book.inventory.pools():
        for device in pool.devices:
            found[pool.id.driver, _state(book, device, usable=_is_sound(pool))] += 1
    return found


def _classes(book: DeviceBook) -> Iterable[Json]:
    for name, item in sorted(book.classes.items()):
        selection = Selection(selectors_of(item.spec.selectors or (), "spec"))
        counts: Counter[str] = Counter()
        nodes: set[str] = set()
        for pool in book.inventory.pools():
            for device in pool.devices:
                if _suits(book, selection, device):
                    state = _state(book, device, usable=_is_sound(pool))
                    counts[state] += 1
                    if state == "free":
                        nodes.add(device.target.name or str(pool.id.name))
        yield {
            "name": name,
            "resource": item.spec.extended or "",
            "devices": {state: counts[state] for state in STATES if counts[state]},
            "nodes_with_free": len(nodes),
        }


def _pools(book: DeviceBook) -> Iterable[Json]:
    for pool in book.inventory.pools():
        counts = Counter(_state(book, device, usable=_is_sound(pool)) for device in pool.devices)
        nodes = book.inventory.nodes_of(pool.id)
        yield {
            "driver": pool.id.driver,
            "name": pool.id.name,
            "nodes": sorted(nodes) if nodes is not None else None,
            "devices": {state: counts[state] for state in STATES if counts[state]},
            "problem": "is being updated" if not pool.complete else pool.problem,
        }


def _holders(store: Store) -> dict[str, list[str]]:
    """Device -> the claims that have it."""
    found: dict[str, list[str]] = {}
    for (namespace, name), claim in store.devices.cache.claims.items():
        for each in store.devices.book.holdings.of(claim.metadata.uid):
            found.setdefault(str(each.device), []).append(f"{namespace}/{name}")
    return {device: sorted(names) for device, names in found.items()}


def _is_sound(pool: DevicePool) -> bool:
    return pool.complete and not pool.problem


def _suits(book: DeviceBook, selection: Selection, device: ListedDevice) -> bool:
    try:
        return book.selectors.suits(selection, device.shape)
    except SelectionError:
        return False


def _state(book: DeviceBook, device: ListedDevice, *, usable: bool) -> str:
    use = book.holdings.use
    if not usable:
        return "not usable"
    if device.id in use.whole or (device.id in use.shared):
        return "in use"
    if not Selection(()).tolerates(device.taints):
        return "tainted"
    return "free" if book.has_counters(device) else "no counters"
