"""Builds slices, devices and requests for tests; selectors are `name=value`, which stand for CEL."""

from typing import Any

from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Constraint, Request, Selection
from poseidon_py.devices.inventory import Inventory, ListedDevice, NodeDevices
from poseidon_py.devices.objects import (
    Attribute,
    CapacityRange,
    CounterSet,
    CounterUse,
    CounterValue,
    DeviceCapacity,
    DeviceTaint,
    Pool,
    RequestPolicy,
    ResourceSlice,
    SliceDevice,
    SliceSpec,
)
from poseidon_py.kube.objects import Metadata

DRIVER = "gpu.example.com"


def attribute(value: Any) -> Attribute:
    match value:
        case bool():
            return Attribute(truth=value)
        case int():
            return Attribute(whole=value)
        case list():
            return Attribute(texts=value)
    return Attribute(text=value)


def device(name: str, *, uses: dict[str, int] | None = None, capacity: dict[str, Any] | None = None, **given: Any):
    """`uses`: counters of the set "set"; `capacity`: quantity or (quantity, policy); `taints`, `shareable` and targets
    as in SliceDevice; other keywords are attributes."""
    fields = {key: given.pop(key) for key in list(given) if key in SliceDevice.__struct_fields__}
    capacities = {
        key: DeviceCapacity(*value) if isinstance(value, tuple) else DeviceCapacity(str(value))
        for key, value in (capacity or {}).items()
    }
    counters = {key: CounterValue(str(value)) for key, value in (uses or {}).items()}
    return SliceDevice(
        name=name,
        attributes={key: attribute(value) for key, value in given.items()},
        capacity=capacities or None,
        consumes=[CounterUse("set", counters)] if counters else None,
        **fields,
    )


def taint(effect: str = "NoSchedule", key: str = "broken", value: str = "") -> DeviceTaint:
    return DeviceTaint(key, value, effect)


def policy(default: Any = None, values: Any = None, minimum: Any = None, maximum: Any = None, step: Any = None):
    given = CapacityRange(minimum, maximum, step) if minimum is not None else None
    return RequestPolicy(default, values, given)


def slice_of(
    *devices: SliceDevice,
    name: str = "slice",
    driver: str = DRIVER,
    pool: str = "pool",
    generation: int = 1,
    of: int = 1,
    counters: dict[str, int] | None = None,
    **target: Any,
) -> ResourceSlice:
    """On node "n" unless `target` says otherwise. `of`: number of slices of the pool."""
    sets = [CounterSet("set", {key: CounterValue(str(value)) for key, value in counters.items()})] if counters else None
    spec = SliceSpec(
        driver,
        Pool(pool, generation, of),
        **(target or {"node_name": "n"}),
        devices=list(devices) or None,
        counters=sets,
    )
    return ResourceSlice(Metadata(name=name, uid=name), spec)


def inventory(*slices: ResourceSlice) -> Inventory:
    found = Inventory()
    for each in slices:
        found.put_slice(each)
    return found


def node_with(*devices: SliceDevice, counters: dict[str, int] | None = None) -> NodeDevices:
    slices = [slice_of(*devices, of=2 if counters else 1)]
    if counters:
        slices.append(slice_of(name="counters", of=2, counters=counters))
    return inventory(*slices).on("n", {})


def suits(selection: Selection, device: ListedDevice) -> bool:
    values = {name.partition("/")[2]: str(value) for name, _, value in device.shape.attributes}
    pairs = (each.partition("=") for each in selection.selectors)
    return all(values.get(name) == value for name, _, value in pairs)


def option(
    *selectors: str, label: str = "r", number: int = 1, admin: bool = False, tolerations: Any = (), **capacity: int
) -> Alternative:
    """`number` 0: all. Capacity in whole units."""
    amounts = tuple(sorted((name, amount * 10**9) for name, amount in capacity.items()))
    return Alternative(label, "class", Selection(selectors, tuple(tolerations)), number, admin, amounts)


def request(*selectors: str, name: str = "r", **given: Any) -> Request:
    return Request(name, (option(*selectors, label=name, **given),))


def one_of(name: str, *options: Alternative) -> Request:
    return Request(name, tuple(each._replace(label=f"{name}/{at}") for at, each in enumerate(options)))


def claim(*requests: Request, same: str = "", distinct: str = "", of: Any = ()) -> ClaimRequests:
    named = ((same, False), (distinct, True))
    constraints = [Constraint(f"{DRIVER}/{name}", kind, tuple(of)) for name, kind in named if name]
    return ClaimRequests(requests, tuple(constraints))
