"""The events that change the cluster state, and their outcomes: plain values without behaviour.

Events come in batches, and tasks as columns of equal length, so that 100,000 tasks do not take 100,000 calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.constraints import (
    NO_DEMAND,
    NO_PEERS,
    NO_PREFERENCES,
    NodeDemand,
    PeerDemand,
    PeerSelector,
    PreferenceSet,
    Taint,
)
from firmament_py.model.immutable import Immutable
from firmament_py.model.queues import QueueTree

NO_NODE = 0
"""TasksObserved.node of a waiting task; k > 0 means nodes[k - 1]."""


@dataclass(frozen=True, slots=True)
class ClassDefined(Immutable):
    """Tasks of class `id` (!= 0) request these amounts (each >= 0) and make these demands on a node.

    Tasks of higher priority go first.
    """

    id: int
    requests: Mapping[str, int]
    demand: NodeDemand = NO_DEMAND
    priority: int = 0
    name: str = ""
    peers: PeerDemand = NO_PEERS
    preferences: PreferenceSet = NO_PREFERENCES
    tokens: tuple[str, ...] = ()  # see model/resources.py
    traits: Mapping[str, str] = field(default_factory=dict)  # properties of the tasks for policies
    expected_us: int = 0  # expected duration of a task, microseconds; 0: unknown
    never_preempts: bool = False  # no task is evicted for one of these


@dataclass(frozen=True, slots=True)
class LabelSetDefined:
    """Tasks of label set `id` (!= 0) have these labels in this namespace."""

    id: int
    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Block(Immutable):
    """A piece of data, and the names of the nodes, or of the racks if nodes are unknown, that each hold all of it."""

    bytes: int
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputsDefined(Immutable):
    """Tasks of input set `id` (!= 0) read these blocks."""

    id: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class NamespaceObserved:
    """The current labels of a namespace; a namespace that was never observed has none."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GangObserved(Immutable):
    """The current definition of a gang: a round places at least `minimum` of its tasks, and at least the minimum of
    each role, or none; never more than `maximum`, 0: no limit.

    roles: (name, minimum), indexed by TasksObserved.role. created_us: orders gangs in the queue. With a
    topology_key the members up to the minimum are placed in one domain of that node label, if possible; if
    topology_required, so are all members, always. Domains of narrower_keys are tried before, the narrowest first:
    nodes with the same values of that label, of those behind it, and of topology_key. Nodes of one domain have the
    same values of outer_keys, too. disrupted_whole: its tasks are evicted all together or not at all; otherwise
    those above the minimum can be evicted one by one. start_amounts: (resource, amount) that must be free, in the
    cluster as a whole and in the quota of its queue, before its first task is placed. keeps: (resource, amount) of
    the quota of `queue`, its id, that the gang keeps since it has started, for its tasks and those that will follow
    them; empty: nothing. keeps_on: id of a node of the flavors of that quota. staged: it has not started, and its first
    tasks are admitted if the queue has all of `keeps`, which others are to follow them for; it keeps that from when one
    of its tasks has a node, or is nominated to one.
    """

    id: int
    minimum: int
    created_us: int = 0
    roles: tuple[tuple[str, int], ...] = ()
    topology_key: str = ""
    topology_required: bool = False
    name: str = ""
    maximum: int = 0
    disrupted_whole: bool = False
    narrower_keys: tuple[str, ...] = ()
    start_amounts: tuple[tuple[str, int], ...] = ()
    keeps: tuple[tuple[str, int], ...] = ()
    queue: int = 0
    keeps_on: str = ""
    outer_keys: tuple[str, ...] = ()
    staged: bool = False

    @property
    def domain_keys(self) -> tuple[str, ...]:
        """The labels whose values together name a domain; empty: there is no topology."""
        return (self.topology_key, *self.outer_keys) if self.topology_key else ()


@dataclass(frozen=True, slots=True)
class GangRemoved:
    """The gang's owner no longer exists; remaining members stay a gang until they are removed too."""

    id: int


@dataclass(frozen=True, slots=True)
class BudgetObserved(Immutable):
    """The current disruption budget `id`: how many of the tasks that the selector matches may be evicted now."""

    id: int
    selector: PeerSelector
    allowed: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class BudgetRemoved:
    id: int


@dataclass(frozen=True, slots=True)
class NodeObserved(Immutable):
    """The current properties of a node: allocatable amounts (each >= 0; absent: 0), labels, taints."""

    id: str
    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: Mapping[str, int] = field(default_factory=dict)  # name -> bytes
    avoids: frozenset[str] = frozenset()  # owners whose tasks should go to other nodes


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    id: str


@dataclass(frozen=True, slots=True)
class TasksObserved:
    """The current properties of K tasks.

    uid, class_id, job_id: (K,) uint64; created_us: (K,) int64; node: (K,) int64, see NO_NODE; names: K texts;
    nodes: ids of nodes, which can be unknown ones; `node` indexes them from 1. If a uid appears twice, the last row
    counts. label_set_id: (K,) uint64, 0 for no labels; leaving: (K,) bool, terminating: they hold their resources but
    do not count for spreading. gang_id: (K,) uint64, 0 for none; role: (K,) int64, below MAX_ROLES. inputs_id: (K,)
    uint64, 0 for none. started_us: (K,) int64, start of execution, 0: not started; lasting: (K,) bool, runs as long as
    its node exists. nominated: (K,) int64, like `node`: the node that is kept for a waiting task while others leave it;
    unevictable: (K,) bool, is never preempted, neither while it runs nor from a node that it is nominated on;
    checkpoint_us: (K,) int64, when its work was saved last, 0: never; movable: (K,) bool, may be evicted in order to
    run on another node; daemon: (K,) bool, belongs to its node, which is empty though it runs there. queue_id,
    local_queue_id: (K,) uint64, 0 for none. least_preemptor: (K,) int64: until exempt_until_us (K,) int64, microseconds
    since the epoch, only tasks of this priority or a higher one preempt it. required_node: K names of the only
    node for a waiting task, empty: any. None for a column: all of its rows are 0, false or empty.
    """

    uid: U64
    class_id: U64
    job_id: U64
    created_us: I64
    node: I64
    names: list[str]
    nodes: tuple[str, ...] = ()
    label_set_id: U64 | None = None
    leaving: Bools | None = None
    gang_id: U64 | None = None
    role: I64 | None = None
    inputs_id: U64 | None = None
    started_us: I64 | None = None
    lasting: Bools | None = None
    nominated: I64 | None = None
    unevictable: Bools | None = None
    checkpoint_us: I64 | None = None
    movable: Bools | None = None
    daemon: Bools | None = None
    queue_id: U64 | None = None
    local_queue_id: U64 | None = None
    least_preemptor: I64 | None = None
    exempt_until_us: I64 | None = None
    required_node: list[str] | None = None


@dataclass(frozen=True, slots=True)
class PastUse:
    """Decayed means of what queues used until `at_us`, microseconds since the epoch: amounts by id of a queue or local
    queue, and by (flavor, resource). The id 0 stands for what nodes offered."""

    at_us: int = 0
    amounts: Mapping[int, Mapping[tuple[str, str], float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueuesObserved:
    """All queues, in place of those observed before. past_use: counts where none is known."""

    tree: QueueTree
    past_use: PastUse = PastUse()


@dataclass(frozen=True, slots=True)
class TasksEnded:
    """Tasks that completed or, `failed`, failed: they hold no resources but stay known."""

    uid: U64
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TasksRemoved:
    uid: U64


@dataclass(frozen=True, slots=True)
class PlacementRejected:
    """The placement of task `uid` on node `node_id` failed, or the preemption of others for it; ignored if the task has
    another placement by now."""

    uid: int
    node_id: str
    not_before_us: int = 0


Event: TypeAlias = (
    LabelSetDefined
    | InputsDefined
    | GangObserved
    | GangRemoved
    | NamespaceObserved
    | BudgetObserved
    | BudgetRemoved
    | ClassDefined
    | NodeObserved
    | NodeRemoved
    | QueuesObserved
    | TasksObserved
    | TasksEnded
    | TasksRemoved
    | PlacementRejected
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An invalid part of an event, which was skipped; the rest of the event was applied."""

    kind: str  # class, node, task, gang, inputs, queue
    id: str
    field: str
    reason: str
    queue: int = 0  # the id of the queue; 0: of none, or of one that is left out


@dataclass(slots=True)
class Outcome:
    """The outcome of an event.

    refused: parts that were skipped. unknown_classes: undefined classes that tasks refer to (those tasks were skipped).
    unknown: uids or node ids that are not known (nothing was done for these).
    """

    refused: list[Refusal] = field(default_factory=list)
    unknown_classes: set[int] = field(default_factory=set)
    unknown_label_sets: set[int] = field(default_factory=set)
    unknown_gangs: set[int] = field(default_factory=set)
    unknown_inputs: set[int] = field(default_factory=set)
    unknown: list[int | str] = field(default_factory=list)

    def refuse(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self.refused.append(refusal)
