"""Which devices pods are given in a world, and what is written of that."""

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import msgspec

from poseidon_py.devices.objects import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from poseidon_py.devices.results import allocation
from poseidon_py.state.claim_use import PreparationError
from poseidon_py.state.devices.chooser import DeviceChooser, DevicePlan
from poseidon_py.state.devices.gate import DeviceGate
from tests.poseidon_py.state.queues.rig import Rig

Json = dict[str, Any]


def put_devices(rig: Rig, objects: Iterable[tuple[str, Json]]) -> None:
    gate = rig.store.devices
    gate.set_readable("")
    put: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
        "ResourceSlice": (ResourceSlice, gate.put_slice),
        "DeviceClass": (DeviceClass, gate.put_class),
        "DeviceTaintRule": (DeviceTaintRule, gate.put_rule),
        "ResourceClaim": (ResourceClaim, gate.put_claim),
    }
    for kind, body in objects:
        item, observe = put[kind]
        observe(msgspec.json.decode(msgspec.json.encode(body), type=item))


def device_outcome(rig: Rig, pods: Iterable[str]) -> Iterator[object]:
    """Pod by pod, on the first node where it gets its devices: its allocations as they are written."""
    gate = rig.store.devices
    chooser = DeviceChooser(gate, rig.store.nodes.get)
    yield sorted(gate.cache.extended.items())
    for pod in pods:
        known = rig.known(pod)
        yield known.devices.columns, bool(known.devices.blocked)
        yield [gate.groups.consumer(known, claim) for _, claim in gate.keys(known)]
        for name in sorted(rig.store.nodes) if not known.devices.blocked else ():
            try:
                plan = chooser.choose(known, name)
            except PreparationError:
                continue
            if plan is not None:
                yield name, list(_written(gate, plan))
            break


def _written(gate: DeviceGate, plan: DevicePlan) -> Iterator[object]:
    given = [(gate.cache.claims[key], gate.cache.choices) for key in plan.claims]
    for claim, choices in given:
        if (choice := choices.get(claim.metadata.uid)) is not None:
            yield allocation(claim, choice.grants, choice.node, gate.book.classes, repeat("share"), "now")
    if plan.extended is not None:
        spec = plan.extended.spec("v1")
        claim = msgspec.convert({"spec": spec}, ResourceClaim)
        yield spec, allocation(claim, plan.grants, plan.node, gate.book.classes, repeat("share"), "now")
