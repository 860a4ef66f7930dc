"""What a round decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from firmament_py.engine.stats import RoundStats
from firmament_py.explain.reason import Waiting
from firmament_py.model.arrays import I64, U8
from firmament_py.network.telemetry import SolvedNetwork
from firmament_py.placement.migration import NO_MIGRATION, Migration
from firmament_py.preemption.outcome import NO_PREEMPTION, Preemption


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Task rows (K,), the node rows (K,) that they were placed on and the steps that did it (K,), PlacedBy; waiting
    classes with reasons; statistics; tasks to evict for others, and nominations; tasks to evict and to place on other
    nodes; the networks that were solved, if they are kept."""

    tasks: I64
    nodes: I64
    placed_by: U8
    waiting: list[Waiting]
    stats: RoundStats
    preemption: Preemption = NO_PREEMPTION
    migration: Migration = NO_MIGRATION
    networks: Sequence[SolvedNetwork] = ()
