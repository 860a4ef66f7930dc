"""What can be told to the cluster state, and what it answers: plain values, no behaviour.

Events come in batches, tasks as columns of equal length, so that 100,000 of them cost no 100,000 calls.
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
    PreferenceSet,
    Taint,
)

NO_NODE = 0
"""Value in TasksObserved.node of a task that waits; k > 0 means nodes[k - 1]."""


@dataclass(frozen=True, slots=True)
class ClassDefined:
    """Tasks of class `id` (!= 0) request these amounts (each >= 0) and demand this of a node.

    Higher priority goes first.
    """

    id: int
    requests: Mapping[str, int]
    demand: NodeDemand = NO_DEMAND
    priority: int = 0
    name: str = ""
    peers: PeerDemand = NO_PEERS
    preferences: PreferenceSet = NO_PREFERENCES
    tokens: tuple[str, ...] = ()  # see model/resources.py
    traits: Mapping[str, str] = field(default_factory=dict)  # what policies may know of the tasks' nature
    expected_us: int = 0  # how long a task expects to run, microseconds; 0: unknown


@dataclass(frozen=True, slots=True)
class LabelSetDefined:
    """Tasks of label set `id` (!= 0) have these labels in this namespace."""

    id: int
    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of data, and the names of nodes, or of racks where no more is known, that each hold all of it."""

    bytes: int
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputsDefined:
    """Tasks of input set `id` (!= 0) read these blocks."""

    id: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class NamespaceObserved:
    """The labels of a namespace as they are now; one that was never observed has none."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GangObserved:
    """A gang as it is now: at least `minimum` of its tasks are placed in one round, and of each role at least that
    role's minimum, or none is; never more than `maximum`, 0: no such limit.

    roles: (name, minimum) by the number that TasksObserved.role counts. created_us: its place in the queue. With a
    topology_key all that the minimum takes is placed in one domain of that node label, if topology_required in any
    case, else if possible.
    """

    id: int
    minimum: int
    created_us: int = 0
    roles: tuple[tuple[str, int], ...] = ()
    topology_key: str = ""
    topology_required: bool = False
    name: str = ""
    maximum: int = 0


@dataclass(frozen=True, slots=True)
class GangRemoved:
    """The gang's owner is gone; members that are left stay a gang until they are gone too."""

    id: int


@dataclass(frozen=True, slots=True)
class NodeObserved:
    """A node as it is now: allocatable amounts (each >= 0; absent: 0), labels, taints."""

    id: str
    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    images: Mapping[str, int] = field(default_factory=dict)  # name -> bytes
    avoids: frozenset[str] = frozenset()  # owners whose tasks should rather go elsewhere


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    id: str


@dataclass(frozen=True, slots=True)
class TasksObserved:
    """Tasks as they are now; K rows.

    uid, class_id, job_id: (K,) uint64; created_us: (K,) int64; node: (K,) int64, see NO_NODE; names: K texts;
    nodes: the ids that `node` counts from 1, which may be of nodes that are not known yet. A uid that comes
    twice: the last row counts. label_set_id: (K,) uint64, 0 for no labels; leaving: (K,) bool, on their way out: they
    hold their resources but do not count for spreading. gang_id: (K,) uint64, 0 for none; role: (K,) int64, a number
    below MAX_ROLES. inputs_id: (K,) uint64, 0 for none. started_us: (K,) int64, when it began to run, 0: not yet;
    lasting: (K,) bool, it stays as long as its node. None: no labels, nobody is leaving, no gangs, role 0, no inputs,
    nobody began, nobody lasts.
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


@dataclass(frozen=True, slots=True)
class TasksEnded:
    """Completed or failed: they hold nothing any more but stay known."""

    uid: U64


@dataclass(frozen=True, slots=True)
class TasksRemoved:
    uid: U64


@dataclass(frozen=True, slots=True)
class PlacementRejected:
    """The placement of task `uid` on node `node_id` could not be carried out;
    ignored if it is not that one any more."""

    uid: int
    node_id: str
    not_before_us: int = 0


Event: TypeAlias = (
    LabelSetDefined
    | InputsDefined
    | GangObserved
    | GangRemoved
    | NamespaceObserved
    | ClassDefined
    | NodeObserved
    | NodeRemoved
    | TasksObserved
    | TasksEnded
    | TasksRemoved
    | PlacementRejected
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part of an event that made no sense and was left out; everything else of the event was done."""

    kind: str  # class, node, task, gang, inputs
    id: str
    field: str
    reason: str


@dataclass(slots=True)
class Outcome:
    """What became of an event.

    refused: parts that were left out. unknown_classes: classes that tasks named and nobody defined (those tasks
    were left out). unknown: uids or node ids that are not known (nothing was done for these).
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
