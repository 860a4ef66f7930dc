"""A load whose pods read data: nodes in racks, and blocks of random sizes with replicas on random nodes.

The bytes that a placement moves are added up here from the blocks, pod by pod, independently of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.loads.engine import EngineLoad, LoadSpec
from firmament_py.model.arrays import I64, U64
from firmament_py.model.events import Block, InputsDefined, NodeObserved, TasksObserved

RACK = "topology.kubernetes.io/rack"
MIB = 2**20

_SMALLEST, _LARGEST = 256, 4096
"""MiB of a block."""


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Every pod reads its own data: `min_blocks` to `max_blocks` blocks with `replicas` each. spots: the share of
    all replicas that is on a hundredth of the nodes."""

    min_blocks: int = 3
    max_blocks: int = 8
    replicas: int = 3
    rack_nodes: int = 40
    spots: float = 0.0


class DataLoad:
    """An EngineLoad and the data of its pending pods; P pods, N nodes."""

    def __init__(self, spec: LoadSpec, data: DataSpec) -> None:
        self.load = EngineLoad(spec)
        self._spec = data
        rng = np.random.default_rng(spec.seed)
        nodes = len(self.load.nodes)
        self.rack: I64 = np.arange(nodes) // data.rack_nodes
        blocks = rng.integers(data.min_blocks, data.max_blocks + 1, spec.pods)
        self._pod: I64 = np.repeat(np.arange(spec.pods), blocks)  # of each block
        self._bytes: I64 = rng.integers(_SMALLEST, _LARGEST + 1, len(self._pod)) * MIB
        at = rng.integers(0, nodes, (len(self._pod), data.replicas))
        hot = rng.random(at.shape) < data.spots
        self._at: I64 = np.where(hot, at % max(nodes // 100, 1), at)
        self._start = np.cumsum(blocks) - blocks

    def nodes(self) -> list[NodeObserved]:
        """The nodes, with racks."""
        racks = self.rack.tolist()
        return [
            replace(node, labels={**node.labels, RACK: f"rack-{rack}"})
            for node, rack in zip(self.load.nodes, racks, strict=True)
        ]

    def inputs(self) -> list[InputsDefined]:
        """One input set per pod, numbered from 1."""
        names = [node.name for node in self.load.nodes]
        sizes, at = self._bytes.tolist(), self._at.tolist()
        described = [Block(size, tuple(names[n] for n in on)) for size, on in zip(sizes, at, strict=True)]
        ends = [*self._start[1:].tolist(), len(described)]
        return [
            InputsDefined(pod + 1, tuple(described[start:end]))
            for pod, (start, end) in enumerate(zip(self._start.tolist(), ends, strict=True))
        ]

    def tasks(self) -> TasksObserved:
        """The running tasks, without inputs, then the pending ones."""
        tasks = self.load.tasks()
        ids = np.zeros(len(tasks.uid), np.uint64)
        ids[self.load.running :] = np.arange(1, self.load.spec.pods + 1)
        return replace(tasks, inputs_id=ids)

    def moved(self, uids: U64, node_ids: Iterable[str]) -> tuple[int, int, int]:
        """Bytes that tasks `uids` (K,) read on `node_ids` (K): in total, from other racks, and from other nodes of the
        same rack."""
        row = {node.id: i for i, node in enumerate(self.load.nodes)}
        node = np.full(self.load.spec.pods, -1, np.int64)
        node[uids.astype(np.int64) - 1 - self.load.running] = [row[i] for i in node_ids]
        placed = node[self._pod] >= 0
        where = node[self._pod][placed]
        on_node = (self._at[placed] == where[:, None]).any(axis=1)
        in_rack = (self.rack[self._at[placed]] == self.rack[where][:, None]).any(axis=1)
        size = self._bytes[placed]
        return int(size.sum()), int(size[~in_rack].sum()), int(size[in_rack & ~on_node].sum())
