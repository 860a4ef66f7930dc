"""Types of hosts and kinds of requests, in the proportions of Azure's families of virtual machines.

The families are those of Azure's documentation by their memory for a core: F 2 GiB, D 4, E and L 8, M more; d stands
for a local SSD. As a rule a host is as large as the largest machine of its family. The shares of hosts and of requests
are chosen, not measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RESOURCES = ("cpu", "memory", "ssd", "network", "nvidia.com/gpu", "pods")
"""Millicores, MiB, GiB, Mbit/s, GPUs, virtual machines."""

CPU, GPU = RESOURCES.index("cpu"), RESOURCES.index("nvidia.com/gpu")
HOST, RACK = "kubernetes.io/hostname", "rack"
HIGH, LOW = 1, 0
"""The two priorities of the Azure Trace for Packing 2020."""

_MOST_MACHINES = 250


@dataclass(frozen=True, slots=True)
class HostType:
    """share: of all hosts. gpu: the type of its GPUs; empty: none."""

    name: str
    cores: int
    gib: int
    ssd_gib: int
    network_mbit: int
    share: float
    gpus: int = 0
    gpu: str = ""

    @property
    def amounts(self) -> tuple[int, ...]:
        """What it offers of RESOURCES."""
        return 1000 * self.cores, 1024 * self.gib, self.ssd_gib, self.network_mbit, self.gpus, _MOST_MACHINES


HOST_TYPES = (
    HostType("general-64", 64, 256, 2_400, 40_000, 0.26),
    HostType("general-96", 96, 384, 3_600, 40_000, 0.18),
    HostType("general-128", 128, 512, 4_800, 50_000, 0.10),
    HostType("memory-64", 64, 512, 2_400, 40_000, 0.14),
    HostType("memory-96", 96, 768, 3_600, 40_000, 0.08),
    HostType("large-memory-128", 128, 2_048, 4_096, 40_000, 0.02),
    HostType("compute-72", 72, 144, 1_152, 30_000, 0.10),
    HostType("compute-128", 128, 256, 2_048, 50_000, 0.04),
    HostType("storage-80", 80, 640, 19_200, 40_000, 0.03),
    HostType("t4-64", 64, 448, 2_816, 32_000, 0.025, 4, "t4"),
    HostType("v100-24", 24, 448, 2_948, 24_000, 0.01, 4, "v100"),
    HostType("a100-96", 96, 1_760, 6_400, 40_000, 0.015, 8, "a100"),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of requests: what each requests of RESOURCES, and the type of GPU that it selects. domain: the label of
    which no two of them may share a value; empty: they may. share: of the cores, or GPUs of the type, that the
    requests without a domain ask for; else how many there are for each domain."""

    name: str
    amounts: tuple[int, ...]
    priority: int
    share: float
    gpu: str = ""
    domain: str = ""


_FAMILIES = {  # for a core: GiB, GiB of SSD, Mbit/s; sizes in cores; share of the cores that are requested
    "D": (4, 0, 400, (1, 2, 4, 8, 16, 32, 48, 64), 0.27),
    "Dd": (4, 37, 400, (2, 4, 8, 16, 32, 48, 64), 0.14),
    "E": (8, 0, 400, (2, 4, 8, 16, 20, 32, 48, 64), 0.20),
    "Ed": (8, 37, 400, (2, 4, 8, 16, 20, 32, 48, 64), 0.10),
    "F": (2, 0, 390, (2, 4, 8, 16, 32, 48, 64, 72), 0.20),
    "M": (16, 32, 300, (8, 16, 32, 64, 128), 0.04),
    "L": (8, 240, 400, (8, 16, 32, 48, 64, 80), 0.05),
}
_WITH_GPUS = {  # cores, GiB, GiB of SSD, Mbit/s, GPUs
    "t4": ((4, 28, 176, 2_000, 1), (8, 56, 352, 4_000, 1), (16, 110, 352, 8_000, 1), (64, 440, 2_816, 32_000, 4)),
    "v100": ((6, 112, 736, 6_000, 1), (12, 224, 1_474, 12_000, 2), (24, 448, 2_948, 24_000, 4)),
    "a100": (
        (12, 220, 800, 5_000, 1),
        (24, 440, 1_600, 10_000, 2),
        (48, 880, 3_200, 20_000, 4),
        (96, 1_760, 6_400, 40_000, 8),
    ),
}
_HIGH_SHARE = 0.6
_EVENNESS = 8.0
"""Of the shares of the sizes of a family, drawn from a symmetric Dirichlet distribution with this parameter."""

_SERVICES = (
    ("D", 8, HOST, 0.05),
    ("E", 16, HOST, 0.05),
    ("F", 32, HOST, 0.05),
    ("D", 4, RACK, 1.2),
    ("E", 8, RACK, 1.2),
    ("a100", 1, HOST, 1.2),
)
"""Anti-affine virtual machines: family and cores, or type and number of GPUs; the domain that holds one of each; how
many there are for each domain."""


def kinds(rng: np.random.Generator, least_cores: int = 1) -> list[Kind]:
    """All kinds of requests, without GPUs only those with at least so many cores."""
    found: list[Kind] = []
    for family, (*of_core, sizes, share) in _FAMILIES.items():
        shares = rng.dirichlet(np.full(len(sizes), _EVENNESS)) * share
        for cores, one in zip(sizes, shares.tolist(), strict=True):
            if cores >= least_cores:
                found += _priorities(f"{family}{cores}", _of_family(cores, of_core), one)
    for gpu, shapes in _WITH_GPUS.items():
        of_shapes = rng.dirichlet(np.full(len(shapes), _EVENNESS))
        for shape, one in zip(shapes, of_shapes.tolist(), strict=True):
            found += _priorities(f"{gpu}-{shape[-1]}x{shape[0]}", _with_gpus(shape), one, gpu)
    for number, (family, size, domain, share) in enumerate(_SERVICES):
        if family in _FAMILIES and size < least_cores:
            continue
        name = f"service-{number}"
        if family in _WITH_GPUS:
            (shape,) = (each for each in _WITH_GPUS[family] if each[-1] == size)
            found.append(Kind(name, _with_gpus(shape), HIGH, share, family, domain))
        else:
            found.append(Kind(name, _of_family(size, list(_FAMILIES[family][:3])), HIGH, share, "", domain))
    return found


def _priorities(name: str, amounts: tuple[int, ...], share: float, gpu: str = "") -> list[Kind]:
    return [
        Kind(f"{name}-high", amounts, HIGH, share * _HIGH_SHARE, gpu),
        Kind(f"{name}-low", amounts, LOW, share * (1 - _HIGH_SHARE), gpu),
    ]


def _of_family(cores: int, of_core: list[int]) -> tuple[int, ...]:
    gib, ssd, network = of_core
    return 1000 * cores, 1024 * gib * cores, ssd * cores, network * cores, 0, 1


def _with_gpus(shape: tuple[int, ...]) -> tuple[int, ...]:
    cores, gib, ssd, network, gpus = shape
    return 1000 * cores, 1024 * gib, ssd, network, gpus, 1
