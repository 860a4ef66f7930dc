"""Node shapes and sorts of pods for synthetic clusters, by seed.

The demo turns sorts into manifests (apps.py), the benchmarks into manifests or events of the engine: with one
generator the benchmarks measure what the demo shows. Pure: the same arguments and seed give the same result on every
machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.cluster import NodeShape
from benchmarks.cluster.store.quantities import units

GPU = "nvidia.com/gpu"
POOL_LABEL = "pool"
MIB = 2**20

GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
GPU_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}

UNIFORM = (NodeShape(cpu="32", memory="128Gi", pods=110),)
"""Equal nodes: the easiest case for a network that groups equal nodes."""

MIXED = (
    NodeShape(cpu="16", memory="64Gi", pods=110, weight=6, labels={POOL_LABEL: "general"}),
    NodeShape(cpu="32", memory="128Gi", pods=110, weight=2, labels={POOL_LABEL: "general"}),
    NodeShape(cpu="16", memory="256Gi", pods=110, weight=1, labels={POOL_LABEL: "memory"}),
    NodeShape(
        cpu="32",
        memory="256Gi",
        pods=110,
        weight=1,
        extended={GPU: "8"},
        labels={POOL_LABEL: "gpu"},
        taints=(GPU_TAINT,),
    ),
)
"""Three pools; the GPU pool is tainted, so that only pods that request GPUs run there."""

CARDS_PER_NODE = 2
CARD_CLASS = "rdma.dra.net"
WITH_CARDS = (replace(MIXED[0], devices=(("nic", CARDS_PER_NODE),)), *MIXED[1:])
"""The same shapes, of which the most common one has network cards to claim."""

SHAPES: Mapping[str, tuple[NodeShape, ...]] = {"uniform": UNIFORM, "mixed": MIXED}


@dataclass(frozen=True, slots=True)
class PodSort:
    """Pods that are equal to a scheduler. cpu in millicores, memory in bytes."""

    name: str
    cpu_milli: int
    memory_bytes: int
    gpus: int = 0
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()

    @property
    def requests(self) -> dict[str, int]:
        """The requests of a pod in base units: millicores, bytes, pieces."""
        amounts = {"cpu": self.cpu_milli, "memory": self.memory_bytes}
        return {**amounts, GPU: self.gpus} if self.gpus else amounts


def shape_of_each(shapes: Sequence[NodeShape], nodes: int) -> Iterator[NodeShape]:
    """The shape of node 0, 1, ...: shapes alternate in proportion to their weights, as in the synthetic cluster."""
    cycle = [shape for shape in shapes for _ in range(shape.weight)]
    return (cycle[i % len(cycle)] for i in range(nodes))


def allocatable(shape: NodeShape) -> dict[str, int]:
    """What a node of this shape offers, in base units; `pods` is one of the resources."""
    offered = {
        "cpu": units("cpu", shape.cpu) - shape.reserved_cpu_milli,
        "memory": units("memory", shape.memory) - units("memory", shape.reserved_memory),
        "ephemeral-storage": units("ephemeral-storage", shape.ephemeral_storage),
        "pods": shape.pods,
    }
    return offered | {name: units(name, amount) for name, amount in shape.extended.items()}


def open_capacity(shapes: Sequence[NodeShape], nodes: int) -> dict[str, int]:
    """The total that the untainted nodes offer, in base units."""
    total: dict[str, int] = {}
    for shape in shape_of_each(shapes, nodes):
        if not shape.taints:
            for name, amount in allocatable(shape).items():
                total[name] = total.get(name, 0) + amount
    return total


def pod_sorts(count: int, pods: int, fill: float, offered: Mapping[str, int], seed: int) -> list[PodSort]:
    """`count` different sorts such that `pods` pods, of the sorts in rotation, request about `fill` of `offered`.

    cpu is the scarce resource; each sort requests memory in another proportion, on average 0.8 of the share of cpu,
    so that nodes fill unevenly in two dimensions.
    """
    rng = random.Random(f"sorts {seed} {count}")
    cpu_weights = [rng.lognormvariate(0.0, 0.6) for _ in range(count)]
    memory_weights = [weight * rng.uniform(0.4, 1.6) for weight in cpu_weights]
    of_sort = [pods // count + (i < pods % count) for i in range(count)]
    cpu = _spread(fill * offered["cpu"], cpu_weights, of_sort, step=10)
    memory = _spread(0.8 * fill * offered["memory"], memory_weights, of_sort, step=MIB)
    return [PodSort(f"sort-{i:03d}", cpu[i], memory[i]) for i in range(count)]


def _spread(total: float, weights: Sequence[float], counts: Sequence[int], step: int) -> list[int]:
    """Amounts in proportion to `weights`, in multiples of `step`, that add up to about `total` over `counts` pods."""
    weighted = sum(weight * count for weight, count in zip(weights, counts, strict=True)) or 1.0
    return [max(step, round(total * weight / weighted / step) * step) for weight in weights]
