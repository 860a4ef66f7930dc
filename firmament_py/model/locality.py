"""Where the blocks of input data are, as arrays."""

from dataclasses import dataclass

from firmament_py.model.arrays import I64


@dataclass(frozen=True, slots=True)
class BlockReplicas:
    """Where blocks are: block (B,) belongs to set block_set and has block_bytes; replica (P,) is of block
    replica_block, on node replica_node (-1: only its rack is known, or not even that), in rack replica_rack (-1: in
    none)."""

    block_set: I64
    block_bytes: I64
    replica_block: I64
    replica_node: I64
    replica_rack: I64
