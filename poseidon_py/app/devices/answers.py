"""What users are told of devices."""

from typing import Any

from poseidon_py.state.devices.account import device_account
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store


def devices_of(store: Store, known: PodRecord) -> list[dict[str, Any]]:
    """The devices of a pod's claims, or why they have none."""
    if not known.devices.any:
        return []
    nodes = {name: node.base.labels for name, node in store.nodes.items() if node.base is not None}
    return device_account(store.devices, known, nodes)
