"""What the nodes of a cluster, and the cluster itself, can be equipped with: kinds of devices, by name.

    a100, h100, l4, ...  whole GPUs
    a100-mig             GPUs with their partitions, which share the counters of their GPU
    l4-shared            GPUs that several claims share, with consumable capacity
    nic                  RDMA network cards; card i is on rail i, and on the PCIe root of GPU i
    fabric, zone-fabric  pools that are attached to the network: for all nodes, or for the nodes of each zone

`-tainted` after a name: the devices have a taint with the effect NoSchedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.nodes.devices.gpu_models import (
    GPU_DRIVER,
    GPU_MODELS,
    PARTITIONABLE,
    gpu,
    partitioned,
    shared_gpu,
)

Json = dict[str, Any]

NIC_DRIVER = "dra.net"
FABRIC_DRIVER = "fabric.example.com"
FABRICS = ("fabric", "zone-fabric")
EQUIPMENT = (
    *GPU_MODELS,
    *(f"{name}-mig" for name in PARTITIONABLE),
    *(f"{name}-shared" for name in GPU_MODELS),
    "nic",
)
"""What nodes can have."""
UNHEALTHY = {"key": "example.com/unhealthy", "value": "true", "effect": "NoSchedule"}
_TAINTED = "-tainted"
_PER_NUMA_NODE = 4
"""GPUs, or network cards, of one NUMA node."""


@dataclass(frozen=True)
class DevicePool:
    """What a driver publishes under one name."""

    driver: str
    name: str
    devices: tuple[Json, ...]
    counters: tuple[Json, ...] = ()
    """Counter sets that partitions of its devices share."""
    nodes: Json | None = None
    """The field of the slices that says where: nodeName, nodeSelector or allNodes; None: allNodes."""


def check_equipment(name: str) -> None:
    """Raises ValueError for a name that is not in `EQUIPMENT`."""
    if name.removesuffix(_TAINTED) not in EQUIPMENT:
        raise ValueError(f"unknown devices {name!r}: use one of {', '.join(EQUIPMENT)}, or one of them with {_TAINTED}")


def node_pools(node: str, equipment: Sequence[tuple[str, int]]) -> list[DevicePool]:
    """The pools that the drivers of a node publish: one of each driver, named like the node. Raises ValueError."""
    devices: dict[str, list[Json]] = {}
    counters: list[Json] = []
    gpus = nics = 0
    for name, count in equipment:
        check_equipment(name)
        kind = name.removesuffix(_TAINTED)
        for _ in range(count):
            if kind == "nic":
                new, driver = [nic(nics)], NIC_DRIVER
                nics += 1
            else:
                new, shared = _gpus(kind, node, gpus)
                counters += shared
                driver = GPU_DRIVER
                gpus += 1
            if name.endswith(_TAINTED):
                new = [device | {"taints": [dict(UNHEALTHY)]} for device in new]
            devices.setdefault(driver, []).extend(new)
    where = {"nodeName": node}
    return [
        DevicePool(driver, node, tuple(found), tuple(counters) if driver == GPU_DRIVER else (), where)
        for driver, found in devices.items()
    ]


def _gpus(kind: str, node: str, index: int) -> tuple[list[Json], list[Json]]:
    """The devices that one GPU is, and its counter set."""
    name, _, form = kind.partition("-")
    place = (GPU_MODELS[name], node, index, pcie_root(index), index // _PER_NUMA_NODE)
    if form == "mig":
        found, counters = partitioned(*place)
        return found, [counters]
    return [shared_gpu(*place) if form == "shared" else gpu(*place)], []


def pcie_root(index: int) -> str:
    """The PCIe root that GPU `index` and network card `index` of a node share."""
    return f"pci0000:{16 * (index + 1):02x}"


def nic(index: int) -> Json:
    """A network card."""
    attributes = {
        "ifName": {"string": f"eth{index + 1}"},
        "rdma": {"bool": True},
        "rail": {"int": index},
        "resource.kubernetes.io/pcieRoot": {"string": pcie_root(index)},
        "resource.kubernetes.io/numaNode": {"int": index // _PER_NUMA_NODE},
    }
    return {"name": f"nic-{index}", "attributes": attributes, "capacity": {"bandwidth": {"value": "400G"}}}


def fabric_pools(name: str, count: int, zones: Sequence[str]) -> list[DevicePool]:
    """Pools of `count` devices that are attached to the network. Raises ValueError."""
    if name not in FABRICS:
        raise ValueError(f"unknown pool {name!r}: use {' or '.join(FABRICS)}")
    devices = tuple(
        {"name": f"port-{at}", "attributes": {"kind": {"string": "port"}}, "capacity": {"bandwidth": {"value": "100G"}}}
        for at in range(count)
    )
    if name == "fabric":
        return [DevicePool(FABRIC_DRIVER, "fabric", devices)]
    return [DevicePool(FABRIC_DRIVER, f"fabric-{zone}", devices, nodes=_in_zone(zone)) for zone in zones]


def _in_zone(zone: str) -> Json:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _class(name: str, expression: str, **spec: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}}


def _gpu_class(name: str, kind: str, **spec: str) -> Json:
    of_driver = f'device.driver == "{GPU_DRIVER}"'
    return _class(name, f'{of_driver} && device.attributes["{GPU_DRIVER}"].type == "{kind}"', **spec)


DEVICE_CLASSES_OF_DRIVERS = (
    _gpu_class("gpu.nvidia.com", "gpu", extendedResourceName="nvidia.com/gpu"),
    _gpu_class("mig.nvidia.com", "mig"),
    _gpu_class("shared.nvidia.com", "shared"),
    _class("rdma.dra.net", f'device.driver == "{NIC_DRIVER}" && device.attributes["{NIC_DRIVER}"].rdma'),
    _class("port.fabric.example.com", f'device.driver == "{FABRIC_DRIVER}"'),
)
"""Made with the first devices. Pods that ask for nvidia.com/gpu get a whole GPU."""
