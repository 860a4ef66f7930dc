"""Queues in one form, whatever kind of object declares them; the fields are those of the contract."""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2

EVERY_NODE = "default"
"""Name of the flavor of all nodes, for kinds without flavors."""

UNBOUNDED = 2**53
"""A guarantee without a bound: more than any cluster has, and many of them still add up in 64 bits."""


class Victims(IntEnum):
    """Whose tasks a queue's tasks may preempt."""

    NEVER = flow_pb2.Queue.NEVER
    LOWER_PRIORITY = flow_pb2.Queue.LOWER_PRIORITY
    LOWER_OR_NEWER_EQUAL_PRIORITY = flow_pb2.Queue.LOWER_OR_NEWER_EQUAL_PRIORITY
    ANY = flow_pb2.Queue.ANY


class Stop(IntEnum):
    """Whether a queue takes tasks."""

    NONE = flow_pb2.Queue.NONE
    HOLD = flow_pb2.Queue.HOLD
    HOLD_AND_DRAIN = flow_pb2.Queue.HOLD_AND_DRAIN


class Sharing(IntEnum):
    """How capacity is shared by queues that want more than their guarantees."""

    CLASSICAL = flow_pb2.Queues.CLASSICAL
    FAIR = flow_pb2.Queues.FAIR
    PROPORTIONAL = flow_pb2.Queues.PROPORTIONAL
    HIERARCHICAL_DRF = flow_pb2.Queues.HIERARCHICAL_DRF


class Division(IntEnum):
    """How a parent's share is divided among its children, if sharing is PROPORTIONAL."""

    SURPLUS_BY_WEIGHT = flow_pb2.Queues.SURPLUS_BY_WEIGHT
    TOTAL_BY_WEIGHT = flow_pb2.Queues.TOTAL_BY_WEIGHT
    AS_STATED = flow_pb2.Queues.AS_STATED


class ReclaimRules(IntEnum):
    """What a queue may reclaim from another one."""

    QUOTA = flow_pb2.Queues.QUOTA
    FAIR_SHARE = flow_pb2.Queues.FAIR_SHARE
    DESERVED = flow_pb2.Queues.DESERVED
    GUARANTEE = flow_pb2.Queues.GUARANTEE
    DOMINANT_SHARE = flow_pb2.Queues.DOMINANT_SHARE


@dataclass(frozen=True, slots=True)
class PastUseRules:
    """How what queues used in the past counts. `weight`: KAI's k. `sampling_seconds`: so long a pod counts as if it had
    run when it is admitted (Kueue). `resource_weights`: of the engine's units in sums of use, sorted; 1 if not
    named."""

    half_life_seconds: float = 0.0
    """0: it does not count."""
    weight: float = 1.0
    sampling_seconds: float = 0.0
    resource_weights: tuple[tuple[str, float], ...] = ()


NO_PAST_USE = PastUseRules()


@dataclass(frozen=True, slots=True)
class Rules:
    """How the queues of a kind share capacity, and take it back."""

    sharing: Sharing = Sharing.CLASSICAL
    division: Division = Division.SURPLUS_BY_WEIGHT
    reclaim: ReclaimRules = ReclaimRules.QUOTA
    past_use: PastUseRules = NO_PAST_USE
    priority_first: bool = False
    """Whether priorities of tasks come before shares."""
    exempt_prefixes: tuple[str, ...] = ()
    """Resources whose names begin with one of these need no quota; the quotas name none of them."""
    exempt_resources: tuple[str, ...] = ()
    """Resources that need none either, sorted: they count as others."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A kind of nodes. `labels`: those of its nodes, sorted; empty: all nodes. `taints`: key, value and effect of what
    pods have to tolerate to be admitted on it. `tolerations`: key, operator, value and effect of those that count for
    all pods, of `taints` alone."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    tolerations: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """Amounts of one resource on the nodes of one flavor, in the engine's units. None: no limit."""

    flavor: str
    resource: str
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    limit: int | None = None
    implied: bool = False
    """Whether it only confines pods to the nodes of the flavor: users did not state it."""


@dataclass(frozen=True)
class Queue:
    """One queue, or with children the parent of others."""

    key: str
    """Kind and name, like `clusterqueue/team-a`: unique in the tree, and the origin of the id."""
    name: str
    """As messages show it."""
    parent: str = ""
    """Key of the parent; empty: none."""
    quotas: tuple[Quota, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """Resources whose flavor is chosen together; others are a group each."""
    weight: float | None = None
    priority: int = 0
    within: Victims = Victims.NEVER
    reclaim: Victims = Victims.NEVER
    borrow_within: Victims = Victims.NEVER
    borrow_within_threshold: int | None = None
    strict_fifo: bool = False
    stop: Stop = Stop.NONE
    preempt_min_runtime_seconds: float = 0.0
    reclaim_min_runtime_seconds: float = 0.0
    preemption_delay_seconds: float = 0.0
    unlimited: bool = True
    reclaimable: bool = True
    """Whether other queues may reclaim from it."""
    fence: bool = False
    """Whether its tasks preempt only in it and below it."""
    fungibility: tuple[bool, bool, bool] = (False, False, False)
    """Whether the next flavor is tried rather than borrow; whether preemption comes before the next flavor, and before
    borrowing."""
    by_past_use: bool = False
    """Whether its tasks are served by what the local queues that they came through have used."""
    evictions_per_hour: int | None = None
    """How many pods of it and of queues below it others may evict within an hour; None: any number."""
    priority_offset: int = 0
    """Added to the priorities of its tasks as other queues see them."""
    priority_fence: bool = False
    """Whether other queues see the offset alone."""

    @cached_property
    def id(self) -> int:
        return id_of(self.key)


@dataclass(frozen=True)
class LocalQueue:
    """One of several ways into a queue. `queue`: the key of that."""

    key: str
    name: str
    queue: str
    weight: float | None = None

    @cached_property
    def id(self) -> int:
        return id_of(self.key)


@dataclass(frozen=True)
class Tree:
    """All queues of a cluster, and the flavors that their quotas name."""

    queues: tuple[Queue, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    rules: Rules = Rules()
    problems: dict[str, str] = field(default_factory=dict)
    """By key: why queues are not in the tree although they are declared, and the remedy."""
    local_queues: tuple[LocalQueue, ...] = ()


def id_of(key: str) -> int:
    """The id of the queue with a key."""
    return hash64(f"queue/{key}")
