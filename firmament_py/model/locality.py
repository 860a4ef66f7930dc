"""The locations of blocks of input data, as arrays."""

from dataclasses import dataclass

from firmament_py.model.arrays import I64


@dataclass(frozen=True, slots=True)
class BlockReplicas:
    """Blocks (B,): each belongs to set block_set and has block_bytes. Replicas (P,): each is of block replica_block,
    on node replica_node (-1: unknown), in rack replica_rack (-1: none or unknown)."""

    block_set: I64
    block_bytes: I64
    replica_block: I64
    replica_node: I64
    replica_rack: I64
