"""Queues, their quotas and the rules between them, as values: one form for all conventions.

A tree is always described as a whole. Amounts are non-negative integers in the unit of their resource
(`model/resources.py`), below UNLIMITED. A queue keeps for itself what it does not lend, nominal - lending limit: so
guarantees are described that no other queue may ever borrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from firmament_py.model.constraints import Taint
from firmament_py.model.resources import has_quota

UNLIMITED = 2**60
"""Stands for an amount without a limit; sums saturate here."""


class Sharing(IntEnum):
    """How queues that compete for capacity share it."""

    CLASSICAL = 0
    """Within nominal quota first, then by priority and age (Kueue without fair sharing)."""
    FAIR = 1
    """The lowest weighted dominant share of what is borrowed first, in a tournament (Kueue with fair sharing)."""
    PROPORTIONAL = 2
    """Fair shares by water filling, for each resource on its own (KAI, and Volcano by `Division`)."""
    HIERARCHICAL_DRF = 3
    """The lowest hierarchical dominant share first (Volcano's plugin drf with hierarchy)."""


class Division(IntEnum):
    """How a parent's share is divided among its children if sharing is PROPORTIONAL."""

    SURPLUS_BY_WEIGHT = 0
    """Nominal amounts first; the surplus by weight, the highest `priority` of queues first (KAI)."""
    TOTAL_BY_WEIGHT = 1
    """All by weight; each queue at least what it does not lend (Volcano's plugin proportion)."""
    AS_STATED = 2
    """Nominal amounts as they are stated (Volcano's plugin capacity)."""


class ReclaimRules(IntEnum):
    """Which rules say what a queue may reclaim from another one."""

    QUOTA = 0
    """Policies of the queues and nominal quota, or dominant shares if sharing is FAIR (Kueue)."""
    FAIR_SHARE = 1
    """Shares that were divided, and nominal amounts (KAI)."""
    DESERVED = 2
    """What exceeds the nominal amount, never what is not lent (Volcano's plugin capacity)."""
    GUARANTEE = 3
    """A queue below its nominal amount takes from queues above theirs (YuniKorn)."""
    DOMINANT_SHARE = 4
    """Between the children of a common ancestor, from the greater weighted dominant share (Volcano's plugin drf)."""


class FairStrategy(IntEnum):
    """Which shares permit reclaim between queues if sharing is FAIR; tried in their order (Kueue)."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = 0
    LESS_THAN_INITIAL_SHARE = 1


class Within(IntEnum):
    """Which tasks of its own queue a task may preempt."""

    NEVER = 0
    LOWER_PRIORITY = 1
    LOWER_OR_NEWER_EQUAL_PRIORITY = 2


class Reclaim(IntEnum):
    """Which tasks of other queues, above their quota, a task may preempt."""

    NEVER = 0
    LOWER_PRIORITY = 1
    ANY = 2


class Stop(IntEnum):
    NONE = 0
    HOLD = 1
    """No task is admitted."""
    HOLD_AND_DRAIN = 2
    """No task is admitted, and running ones are evicted."""


@dataclass(frozen=True, slots=True)
class BorrowWithin:
    """Whether a queue that borrows may preempt in other queues, and there up to which priority (None: any lower)."""

    lower_priority: bool = False
    max_priority: int | None = None


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When the search for a flavor goes on to the next one, although this one would do."""

    try_next_to_avoid_borrowing: bool = False
    try_next_to_avoid_preemption: bool = True
    prefer_preemption_to_borrowing: bool = False


@dataclass(frozen=True, slots=True)
class Flavor:
    """A kind of nodes. `node_labels` select them; without labels, all nodes are of this flavor. `taints`: what tasks
    have to tolerate to be admitted on it, whatever its nodes have."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """Amounts of one resource on one flavor.

    `nominal` is what the queue is entitled to (KAI: quota; Volcano: deserved; YuniKorn: guaranteed). `borrowing_limit`
    is how much above it the queue may use, `lending_limit` how much of it others may use, `limit` an absolute cap on
    what the queue and all queues below it use. None: without a limit. `weight` overrides the queue's for this amount.
    """

    flavor: str
    resource: str
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    limit: int | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class QueueDefinition:
    """One queue. `id` and `parent` are 64-bit hashes; a `parent` of 0 makes it a root.

    The order of `quotas` is that in which flavors are tried. `resource_groups` names the resources whose flavor is
    chosen together; empty: all resources of the quotas are one group. `reclaimable`: whether other queues may reclaim
    from it; `fence`: whether its tasks may not preempt outside of it. `unlimited`: resources without a quota have no
    limit (False: the queue has none of them to offer). `by_past_use`: its tasks are served by what the local queues
    that they came through have used, the least first. `evictions_per_hour`: of its tasks and those of queues below it,
    by queues outside of it; None: any number. `priority_offset` is added to the priorities of its tasks where they are
    compared with tasks outside of it; with `priority_fence` it takes their place there. Times are in seconds.
    """

    id: int
    name: str
    parent: int = 0
    quotas: tuple[Quota, ...] = ()
    resource_groups: tuple[tuple[str, ...], ...] = ()
    weight: float = 1.0
    priority: int = 0
    within: Within = Within.NEVER
    reclaim: Reclaim = Reclaim.NEVER
    borrow_within: BorrowWithin = BorrowWithin()
    strict_fifo: bool = False
    stop: Stop = Stop.NONE
    reclaimable: bool = True
    fence: bool = False
    unlimited: bool = False
    fungibility: Fungibility = Fungibility()
    preempt_min_runtime_s: float = 0.0
    reclaim_min_runtime_s: float = 0.0
    preemption_delay_s: float = 0.0
    by_past_use: bool = False
    evictions_per_hour: int | None = None
    priority_offset: int = 0
    priority_fence: bool = False


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """One of several ways into the queue with the id `queue`. `weight` divides its past usage; 0: it is served last."""

    id: int
    name: str
    queue: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class QueueTree:
    """All queues of a cluster, and how they share it.

    `usage_half_life_s` is the time after which past usage counts half (0: not at all), `usage_weight` how much of it is
    taken off weights (KAI's k-value), `resource_weights` what a unit of a resource counts in sums of usage (1 if
    not named). A task that is admitted counts as if it had run for `usage_sampling_s` already (Kueue's entry penalty).
    `reclaim_ratio` (>= 1) is KAI's utilisation multiplier. `priority_first`: with PROPORTIONAL sharing, of the children
    of a queue that one comes first whose tasks have the highest priority, whatever their shares (YuniKorn).
    `exempt_prefixes`, `exempt_resources`: resources whose names begin with one of these, or are one of these, need no
    quota, and no quota names them (Kueue).
    """

    queues: tuple[QueueDefinition, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    sharing: Sharing = Sharing.CLASSICAL
    division: Division = Division.SURPLUS_BY_WEIGHT
    reclaim_rules: ReclaimRules = ReclaimRules.QUOTA
    strategies: tuple[FairStrategy, ...] = (
        FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
        FairStrategy.LESS_THAN_INITIAL_SHARE,
    )
    usage_half_life_s: float = 0.0
    usage_weight: float = 0.0
    usage_sampling_s: float = 0.0
    local_queues: tuple[LocalQueue, ...] = ()
    resource_weights: Mapping[str, float] = field(default_factory=dict)
    reclaim_ratio: float = 1.0
    priority_first: bool = False
    exempt_prefixes: tuple[str, ...] = ()
    exempt_resources: frozenset[str] = frozenset()

    def needs_quota(self, resource: str) -> bool:
        """Whether a queue without a quota of a resource may not use it, unless it is unlimited."""
        exempt = resource in self.exempt_resources or resource.startswith(self.exempt_prefixes)
        return has_quota(resource) and not exempt
