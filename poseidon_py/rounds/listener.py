"""What is told of rounds."""

from typing import Protocol

from poseidon_py.preempt.decisions import Decisions
from protos.gen import flow_pb2


class RoundListener(Protocol):
    """Must be fast: the loop calls it between two rounds."""

    def round_ended(self, stats: flow_pb2.RoundStats, seconds: float) -> None:
        """A round with pending tasks has ended, whose call took so many seconds."""

    def decided(self, decisions: Decisions) -> None:
        """A round evicts pods, or lets pods wait for others to leave."""
