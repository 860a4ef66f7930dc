"""The data that tasks read, as blocks with replicas: described once, then referred to by number.

Blocks refer to nodes and racks by name. Names are resolved at the start of a round: replicas on nodes that do not exist
then do not count, and count again when the node is back.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, group_starts
from firmament_py.model.events import Block, InputsDefined, Refusal
from firmament_py.model.locality import BlockReplicas
from firmament_py.model.ragged_rows import RaggedRows
from firmament_py.state.table import KeyedTable

NO_INPUTS = 0
"""Row of the input set of tasks that read nothing."""

MAX_BLOCKS = 4096
MAX_BYTES = 2**50
"""Largest size of a block, so that the sum over a set stays far below 2**63."""

SPARE_ROWS = 4096
_SPARE_NAMES = 1024


class InputSetTable(KeyedTable[None]):
    """One row per input set."""

    def __init__(self) -> None:
        super().__init__(SPARE_ROWS)
        self.add(0, None)  # NO_INPUTS
        self._bytes = RaggedRows(1)  # of the blocks of each set
        self._replicas = RaggedRows(2)
        """Replicas of blocks: the position of its block in the set, and the number of a node's name, or -1 - that of
        a rack's."""
        self._nodes: dict[str, int] = {}  # name in use by a set -> number
        self._racks: dict[str, int] = {}
        self._removed = 0
        """Number of sets that were removed since names were renumbered, or found to be in use."""
        self._found_in: Mapping[str, int] = {}
        self._node_row: I64 = NO_ROWS  # of each number of a node's name, -1: no such node; as in _found_in

    def define(self, new: InputsDefined) -> Refusal | None:
        """Adds a set, unless its id is known (an id is a hash of the content); returns why it is refused, if it is.

        A refused set counts as a set without blocks.
        """
        if new.id and new.id in self._row:
            return None
        problem = _problem(new)
        if new.id:
            row = self.add(new.id, None)
            self._set_blocks(row, () if problem else new.blocks)
        return Refusal("inputs", str(new.id), *problem) if problem else None

    def placed(
        self, rows: I64, rack: I64, position: I64, row_of: Mapping[str, int], rack_of: Mapping[str, int]
    ) -> BlockReplicas:
        """Replicas of the blocks of sets `rows` (S,). rack: (N,) of each node; position: that of each node row among
        these nodes, -1: none, as for the last, no row; row_of: node rows by name, never changed; rack_of: numbers of
        racks by name."""
        node = position[self._node_rows(row_of)]
        named = np.array([rack_of.get(name, -1) for name in self._racks] or [-1], np.int64)
        sizes, blocks = self._bytes.of(rows)
        replicas, of_set = self._replicas.of(rows)
        block, at = replicas.T
        by_name = at >= 0
        replica_node = np.where(by_name, np.append(node, -1)[np.maximum(at, -1)], -1)
        replica_rack = np.where(by_name, np.append(rack, -1)[replica_node], named[np.maximum(-1 - at, 0)])
        first = group_starts(blocks)
        return BlockReplicas(
            np.repeat(np.arange(len(rows)), blocks),
            sizes[:, 0],
            block + np.repeat(first, of_set),
            replica_node,
            replica_rack,
        )

    def remove_rows(self, rows: I64) -> None:
        """Removes sets and their blocks."""
        self._bytes.remove(rows)
        self._replicas.remove(rows)
        super().remove_rows(rows)

    def sweep(self) -> None:
        """Removes sets that no task has referred to for a while, if there are many of them, and their names."""
        self._removed += len(self.remove_unused())
        if self._removed >= len(self):  # fewer leave few names unused, and looking takes time
            self._removed = 0
            self._renumber()

    def _node_rows(self, row_of: Mapping[str, int]) -> I64:
        """(K,) the node row of each number of a node's name, -1: none."""
        if row_of is not self._found_in:
            self._found_in, self._node_row = row_of, NO_ROWS
        known = len(self._node_row)
        if known < len(self._nodes):
            new = [row_of.get(name, -1) for name in islice(self._nodes, known, None)]
            self._node_row = np.concatenate([self._node_row, np.array(new, np.int64)])
        return self._node_row

    def _set_blocks(self, row: int, blocks: Sequence[Block]) -> None:
        nodes, racks = self._nodes, self._racks
        replicas: list[tuple[int, int]] = []
        for i, described in enumerate(blocks):
            replicas += [(i, nodes.setdefault(name, len(nodes))) for name in described.nodes]
            replicas += [(i, -1 - racks.setdefault(name, len(racks))) for name in described.racks]
        self._bytes.set(row, np.array([described.bytes for described in blocks], np.int64).reshape(-1, 1))
        self._replicas.set(row, np.array(replicas, np.int64).reshape(-1, 2))

    def _renumber(self) -> None:
        """Renumbers the names once the greater part of them is unused."""
        nodes, racks = list(self._nodes), list(self._racks)
        at = self._replicas.all()[:, 1]
        is_used = np.zeros(len(nodes) + len(racks), np.bool_)
        is_used[at] = True  # racks count from the end
        used_nodes, used_racks = np.flatnonzero(is_used[: len(nodes)]), np.flatnonzero(is_used[len(nodes) :][::-1])
        if len(is_used) <= 2 * (len(used_nodes) + len(used_racks)) + _SPARE_NAMES:
            return
        self._nodes = {nodes[old]: i for i, old in enumerate(used_nodes.tolist())}
        self._racks = {racks[old]: i for i, old in enumerate(used_racks.tolist())}
        self._found_in, self._node_row = {}, NO_ROWS
        at[:] = np.where(at >= 0, np.searchsorted(used_nodes, at), -1 - np.searchsorted(used_racks, -1 - at))


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
