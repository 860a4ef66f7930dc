"""The models of GPUs, with attributes and capacities in the form of NVIDIA's driver for DRA (gpu.nvidia.com).

The partitions are those of NVIDIA's Multi-Instance GPU User Guide: a partition takes a run of the eight memory slices
of its GPU from one of a few places, and a number of its multiprocessors; both are counters of the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.nodes.devices.stable_ids import stable_uuid

Json = dict[str, Any]

GPU_DRIVER = "gpu.nvidia.com"
MEMORY_SLICES = 8
_DRIVER_VERSION, _CUDA_VERSION = "580.65.6", "13.0.0"


@dataclass(frozen=True)
class Partition:
    """A kind of partition of a GPU."""

    profile: str
    number: int
    """The number of the profile in the driver's names of devices."""
    places: tuple[int, ...]
    """The memory slices at which it can begin."""
    slices: int
    multiprocessors: int
    memory_mib: int


@dataclass(frozen=True)
class GpuModel:
    """A model of GPU."""

    product: str
    architecture: str
    compute_capability: str
    memory: str
    multiprocessors: int = 0
    """Those that partitions share; 0: it has none."""
    partitions: tuple[Partition, ...] = ()


def _partitions(unit_gib: int, multiprocessors: tuple[int, ...], unit_mib: int) -> tuple[Partition, ...]:
    """The six profiles of an A100 or H100: unit_gib, unit_mib: the memory of one slice, in the profile's name and as it
    is; multiprocessors: of 1g, 1g with two slices, 2g, 3g, 4g, 7g."""
    one, wide, two, three, four, seven = multiprocessors
    return (
        Partition(f"1g.{unit_gib}gb", 19, (0, 1, 2, 3, 4, 5, 6), 1, one, unit_mib),
        Partition(f"1g.{2 * unit_gib}gb", 15, (0, 2, 4, 6), 2, wide, 2 * unit_mib),
        Partition(f"2g.{2 * unit_gib}gb", 14, (0, 2, 4), 2, two, 2 * unit_mib),
        Partition(f"3g.{4 * unit_gib}gb", 9, (0, 4), 4, three, 4 * unit_mib),
        Partition(f"4g.{4 * unit_gib}gb", 5, (0,), 4, four, 4 * unit_mib),
        Partition(f"7g.{8 * unit_gib}gb", 0, (0,), 8, seven, 8 * unit_mib),
    )


GPU_MODELS: Mapping[str, GpuModel] = {
    "t4": GpuModel("Tesla T4", "Turing", "7.5.0", "15360Mi"),
    "v100": GpuModel("Tesla V100-SXM2-32GB", "Volta", "7.0.0", "32Gi"),
    "l4": GpuModel("NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi"),
    "a100": GpuModel(
        "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi", 98, _partitions(5, (14, 14, 28, 42, 56, 98), 4864)
    ),
    "h100": GpuModel(
        "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", 132, _partitions(10, (16, 26, 32, 60, 64, 132), 9984)
    ),
    "b200": GpuModel("NVIDIA B200", "Blackwell", "10.0.0", "183359Mi"),
}


def gpu(model: GpuModel, node: str, index: int, root: str, numa: int) -> Json:
    """A whole GPU. root: its PCIe root; numa: its NUMA node."""
    return {
        "name": f"gpu-{index}",
        "attributes": _attributes(model, "gpu", f"GPU-{stable_uuid(node, 'gpu', index)}", index, root, numa),
        "capacity": {"memory": {"value": model.memory}},
    }


def partitioned(model: GpuModel, node: str, index: int, root: str, numa: int) -> tuple[list[Json], Json]:
    """A GPU with all partitions that it can have, and the counter set that they and the GPU itself consume."""
    if not model.partitions:
        raise ValueError(f"{model.product} cannot be partitioned; use {' or '.join(PARTITIONABLE)}")
    parent = gpu(model, node, index, root, numa)
    uuid = parent["attributes"]["uuid"]["string"]
    counter_set = f"gpu-{index}"
    found = [parent | {"consumesCounters": [_consumption(counter_set, range(MEMORY_SLICES), model.multiprocessors)]}]
    for partition in model.partitions:
        for place in partition.places:
            name = f"gpu-{index}-mig-{partition.number}-{place}-{partition.slices}"
            own = f"MIG-{stable_uuid(node, name)}"
            attributes = _attributes(model, "mig", own, index, root, numa)
            attributes |= {"parentUUID": {"string": uuid}, "profile": {"string": partition.profile}}
            taken = range(place, min(place + partition.slices, MEMORY_SLICES))
            capacity = {
                "memory": {"value": f"{partition.memory_mib}Mi"},
                "multiprocessors": {"value": str(partition.multiprocessors)},
                **{f"memorySlice{at}": {"value": "1"} for at in taken},
            }
            consumed = [_consumption(counter_set, taken, partition.multiprocessors)]
            found.append({"name": name, "attributes": attributes, "capacity": capacity, "consumesCounters": consumed})
    counters = _consumption(counter_set, range(MEMORY_SLICES), model.multiprocessors)["counters"]
    return found, {"name": counter_set, "counters": counters}


PARTITIONABLE = tuple(name for name, model in GPU_MODELS.items() if model.partitions)


def shared_gpu(model: GpuModel, node: str, index: int, root: str, numa: int) -> Json:
    """A GPU that several claims share: its memory by Gi, its cores by percent."""
    device = gpu(model, node, index, root, numa)
    device["attributes"]["type"] = {"string": "shared"}
    memory = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    cores = {"default": "10", "validRange": {"min": "1", "max": "100", "step": "1"}}
    capacity = {
        "memory": {"value": model.memory, "requestPolicy": memory},
        "cores": {"value": "100", "requestPolicy": cores},
    }
    return device | {"allowMultipleAllocations": True, "capacity": capacity}


def _consumption(counter_set: str, slices: range, multiprocessors: int) -> Json:
    counters = {f"memory-slice-{at}": {"value": "1"} for at in slices}
    return {"counterSet": counter_set, "counters": {"multiprocessors": {"value": str(multiprocessors)}, **counters}}


def _attributes(model: GpuModel, kind: str, uuid: str, index: int, root: str, numa: int) -> Json:
    texts = {
        "type": kind,
        "uuid": uuid,
        "productName": model.product,
        "brand": "Nvidia",
        "architecture": model.architecture,
        "pcieBusID": f"0000:{16 + index:02x}:00.0",
        "resource.kubernetes.io/pcieRoot": root,
    }
    versions = {
        "cudaComputeCapability": model.compute_capability,
        "driverVersion": _DRIVER_VERSION,
        "cudaDriverVersion": _CUDA_VERSION,
    }
    return {
        **{name: {"string": text} for name, text in texts.items()},
        **{name: {"version": version} for name, version in versions.items()},
        "resource.kubernetes.io/numaNode": {"int": numa},
    }
