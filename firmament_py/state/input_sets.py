"""The data that tasks read, as blocks with replicas: described once, then referred to by number.

Blocks refer to nodes and racks by name. Names are resolved at the start of a round: replicas on nodes that do not exist
then do not count, and count again when the node is back.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.model.events import InputsDefined, Refusal
from firmament_py.model.locality import BlockReplicas
from firmament_py.state.keyed_table import KeyedTable

NO_INPUTS = 0
"""Row of the input set of tasks that read nothing."""

MAX_BLOCKS = 4096
MAX_BYTES = 2**50
"""Largest size of a block, so that the sum over a set stays far below 2**63."""

SPARE_ROWS = 4096
_SPARE_NAMES = 1024


class _Blocks(NamedTuple):
    """B blocks with P replicas. at (P,): number of a node's name, or -1 - number of a rack's."""

    bytes: I64  # (B,)
    block: I64  # (P,)
    at: I64  # (P,)


_NONE = _Blocks(*(np.zeros(0, np.int64) for _ in range(3)))


class InputSetTable(KeyedTable[_Blocks]):
    """One row per input set."""

    def __init__(self) -> None:
        super().__init__(SPARE_ROWS)
        self.add(0, _NONE)  # NO_INPUTS
        self._nodes: dict[str, int] = {}  # name in use by a set -> number
        self._racks: dict[str, int] = {}
        self._removed = 0
        """Number of sets that were removed since names were renumbered, or found to be in use."""

    def define(self, new: InputsDefined) -> Refusal | None:
        """Adds a set, unless its id is known (an id is a hash of the content); returns why it is refused, if it is.

        A refused set counts as a set without blocks.
        """
        if new.id and new.id in self._row:
            return None
        problem = _problem(new)
        if new.id:
            self.add(new.id, _NONE if problem else self._encoded(new))
        return Refusal("inputs", str(new.id), *problem) if problem else None

    def placed(self, rows: I64, rack: I64, node_of: Mapping[str, int], rack_of: Mapping[str, int]) -> BlockReplicas:
        """Replicas of the blocks of sets `rows` (S,). rack: (N,) of each node; node_of, rack_of: numbers by name."""
        node = np.array([node_of.get(name, -1) for name in self._nodes] or [-1], np.int64)
        named = np.array([rack_of.get(name, -1) for name in self._racks] or [-1], np.int64)
        of_rows = [self._definition[row] for row in rows.tolist()]
        count = np.array([len(blocks.bytes) for blocks in of_rows], np.int64)
        replicas = np.array([len(blocks.block) for blocks in of_rows], np.int64)
        at = _joined([blocks.at for blocks in of_rows])
        by_name = at >= 0
        replica_node = np.where(by_name, node[np.maximum(at, 0)], -1)
        replica_rack = np.where(by_name, np.append(rack, -1)[replica_node], named[np.maximum(-1 - at, 0)])
        first = np.cumsum(count) - count
        return BlockReplicas(
            np.repeat(np.arange(len(rows)), count),
            _joined([blocks.bytes for blocks in of_rows]),
            _joined([blocks.block for blocks in of_rows]) + np.repeat(first, replicas),
            replica_node,
            replica_rack,
        )

    def sweep(self) -> None:
        """Removes sets that no task has referred to for a while, if there are many of them, and their names."""
        self._removed += len(self.remove_unused())
        if self._removed >= len(self._definition):  # fewer leave few names unused, and looking takes time
            self._removed = 0
            self._renumber()

    def _encoded(self, new: InputsDefined) -> _Blocks:
        nodes, racks = self._nodes, self._racks
        block: list[int] = []
        at: list[int] = []
        for i, described in enumerate(new.blocks):
            at += [nodes.setdefault(name, len(nodes)) for name in described.nodes]
            at += [-1 - racks.setdefault(name, len(racks)) for name in described.racks]
            block += [i] * (len(at) - len(block))
        sizes = [described.bytes for described in new.blocks]
        return _Blocks(np.array(sizes, np.int64), np.array(block, np.int64), np.array(at, np.int64))

    def _renumber(self) -> None:
        """Renumbers the names once most of them are unused."""
        nodes, racks = list(self._nodes), list(self._racks)
        at = _joined([blocks.at for blocks in self._definition.values()])
        is_used = np.zeros(len(nodes) + len(racks), np.bool_)
        is_used[at] = True  # racks count from the end
        used_nodes, used_racks = np.flatnonzero(is_used[: len(nodes)]), np.flatnonzero(is_used[len(nodes) :][::-1])
        if len(is_used) <= 2 * (len(used_nodes) + len(used_racks)) + _SPARE_NAMES:
            return
        self._nodes = {nodes[old]: i for i, old in enumerate(used_nodes.tolist())}
        self._racks = {racks[old]: i for i, old in enumerate(used_racks.tolist())}
        for row, blocks in self._definition.items():
            by_name = blocks.at >= 0
            new_node = np.searchsorted(used_nodes, blocks.at)
            new_rack = np.searchsorted(used_racks, -1 - blocks.at)
            self._definition[row] = blocks._replace(at=np.where(by_name, new_node, -1 - new_rack))


def _joined(arrays: list[I64]) -> I64:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _problem(new: InputsDefined) -> tuple[str, str] | None:
    """Field and reason of the first invalid value of a definition; None if all are valid."""
    if new.id == 0:
        return "id", "must not be 0"
    if len(new.blocks) > MAX_BLOCKS:
        return "blocks", f"has {len(new.blocks)} entries; give at most {MAX_BLOCKS}"
    for i, block in enumerate(new.blocks):
        if not 0 <= block.bytes <= MAX_BYTES:
            return f"blocks[{i}].bytes", f"is {block.bytes}; give 0 .. {MAX_BYTES}"
    return None
