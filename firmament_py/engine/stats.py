"""Statistics of a round."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class RoundStats:
    """Statistics of a round; times in seconds. vertices, arcs and objective are those of the first network whose
    solution was accepted; usage_* count placed tasks, see Reading."""

    started_us: int
    policy: str
    seconds: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    solves: int = 0
    vertices: int = 0
    arcs: int = 0
    objective: int = 0
    pending: int = 0
    placed: int = 0
    waiting: int = 0
    placed_by: dict[str, int] = field(default_factory=dict)
    """How many of those that were placed each step has placed, by its label (PlacedBy)."""
    classes: int = 0
    nodes: int = 0
    dropped: int = 0
    fallback: str = ""
    usage_measured: int = 0
    usage_missing: int = 0
    usage_stale: int = 0
    uncertified: int = 0
    """Solutions without a proof of optimality, if the scheduler checks for one."""
    unsolved: dict[str, int] = field(default_factory=dict)
    """Networks that the solver found no flow for, by its status. What a network has is then placed one by one, the
    oldest first, so costs have little effect."""
    compressed: int = 0
    """Networks that the solver found a flow for only once the differences of waiting costs were limited."""
    trials: int = 0
    """Networks solved only to find out what could be placed, and where to reserve capacity; they place nothing."""
    pricing_rounds: int = 0
    """Networks built again with arcs that were left out and could have a negative reduced cost."""
    preempted: int = 0
    nominated: int = 0
    """Tasks that wait, with a node that is kept for them."""
    migrated: int = 0
    """Tasks to evict and to place on other nodes."""
    migrated_for_waiting: int = 0
    """Those of them that leave so that waiting tasks fit."""
    least_moves: int = 0
    """By no fewer moves these waiting tasks fit; 0: not known."""
    delayed: int = 0
    """Tasks that fit, but wait for a node that costs less."""
    gap: int = 0
    """How many more single tasks any packing could have placed at most, given all else that was placed: 0 is a proof
    that none could. An upper bound, by linear relaxation."""
