"""Input and output of solvers: networks of vertices and arcs as arrays, and flows."""

from dataclasses import dataclass
from enum import StrEnum

from firmament_py.model.arrays import I32, I64


@dataclass(frozen=True, slots=True)
class FlowNetwork:
    """V vertices and A arcs; supply is positive at sources, negative at the sink, and adds up to 0."""

    tail: I32  # (A,)
    head: I32  # (A,)
    capacity: I64  # (A,) >= 0
    unit_cost: I64  # (A,)
    supply: I64  # (V,)


class Status(StrEnum):
    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"  # not all supply can reach the sink
    UNBALANCED = "unbalanced"  # the supplies do not add up to 0
    BAD_COST_RANGE = "bad cost range"  # unit costs are too large for the number of vertices
    BAD_CAPACITY_RANGE = "bad capacity range"
    FAILED = "failed"  # the solver failed internally
    WRONG = "wrong answer"  # what the solver calls an optimum is no flow of the network, or has another cost


@dataclass(frozen=True, slots=True)
class Solution:
    """flow (A,) and its cost; both meaningful only if the status is OPTIMAL."""

    status: Status
    flow: I64
    cost: int
