"""What may be chosen about rounds, apart from policy and solver. `firmament serve` has the flags."""

from dataclasses import dataclass
from enum import Enum

RESERVE_AFTER_US = 300_000_000
MIGRATE_AFTER_US = 600_000_000
AT_ONCE = 16


class Preempting(Enum):
    """Whether tasks are preempted, and whether disruption budgets limit it."""

    OFF = "off"
    WITHIN_BUDGETS = "within budgets"
    BEYOND_BUDGETS = "beyond budgets"


class Migrating(Enum):
    """When movable tasks are evicted, and placed on other nodes: never, so that waiting tasks fit, or also because
    another node costs less."""

    NEVER = "never"
    FOR_WAITING = "for-waiting"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Passed whole, so that whatever runs rounds beside others (a search, a plan, `poseidon fits`) has the same."""

    certified: bool = False
    """Whether each solution is checked for optimality (flow/certificate.py). One that fails is counted and logged, but
    still used: the independent check does not depend on it."""
    reserve_after_us: int | None = RESERVE_AFTER_US
    """How long a gang or a task waits before capacity is reserved for it, microseconds; None: it never is."""
    improve: float = 1.0
    """Multiplies the effort of placing single tasks anew where the flow has left some that would have fitted, and of
    the search of victims and moves; 0: neither is improved."""
    preempting: Preempting = Preempting.WITHIN_BUDGETS
    """Whether tasks of lower priority are evicted for those that fit nowhere."""
    original_preempts: bool = False
    """Whether rounds for clients of the original contract evict tasks, too."""
    migrating: Migrating = Migrating.NEVER
    migrate_after_us: int = MIGRATE_AFTER_US
    """How long a task runs before it may be moved, microseconds."""
    moves_at_once: int = AT_ONCE
    """How many tasks may be on their way: leaving by decisions of rounds, victims included, or expected as
    successors."""
    moves_per_hour: int = 0
    """How many tasks may be moved in an hour; 0: any number."""
    kept_networks: int = 32
    """The networks of how many rounds are kept, for those who want to look at them (drawing/network_log.py)."""
