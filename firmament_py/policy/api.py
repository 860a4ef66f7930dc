"""What a policy is: it says what placements cost; the engine does everything else.

A policy never sees which placements are feasible, how the network is laid out, or what gangs and quotas demand:
it looks at a View and answers with Costs. Costs are integers on one scale for all policies:

    0 .. COST_MAX      a placement: `place`, `slot` and `data` each
    WAIT_MIN .. WAIT_MAX   leaving a task waiting for a round

WAIT_MIN exceeds the cost of any placement, with all that preferences and limits add to it, so no task waits for a
better place (a round conserves work) unless Costs.delay says so, and of two tasks the one that costs more to leave
waiting is placed first. The solver's range is kept with a wide margin: unit costs times vertices stay far below 2**63.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from firmament_py.model.arrays import F64, I64, distinct
from firmament_py.policy.locality import DataCosts, Inputs

API_VERSION = 2
"""Of View, Costs and Policy. A new field with a default does not change it; it is raised when something that policies
rely on changes its name or meaning; policies of an older one are refused."""

COST_MAX = 1_000_000
WAIT_MIN = 6 * COST_MAX
WAIT_MAX = 2**40

NODE_LIMIT_MAX = 2**31

DELAY_MAX = 3 * COST_MAX
"""Cost of a delay at which a task does not wait for any node."""

DELAY_LONGEST_US = 120_000_000
"""The age at which tasks do not wait for a better node any more, microseconds."""

MOVING_MAX = 3 * COST_MAX
"""Largest cost of moving a task: that of any placement."""

PRIORITY_STEP = 6 * COST_MAX
"""By how much, at least, leaving a task of the next higher priority waiting costs more; no two placements differ by as
much."""

_AGE_STEP = 50_000
_LONG_AGE_STEP = 300_000
_LONG_AGES = (9, 19)
"""Doublings of a second, 8.5 minutes to six days, over which waiting costs rise by the larger step. A task whose
placement costs COST_MAX more than that of newer tasks goes before them after two hours; at three times as much, within
a week. All steps together stay below PRIORITY_STEP."""

_NOT_GIVEN: I64 = np.zeros(0, np.int64)


class Surroundings(Protocol):
    """What is computed only if a policy asks for it: see View.census, View.domains and View.cpu_of."""

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]: ...

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]: ...

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]: ...


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What nodes really use, as last measured: decayed means of all that runs there, the system included. Each (N,);
    NaN: not measured, or too long ago to count."""

    cpu: F64  # millicores
    memory: F64  # bytes
    rx: F64  # bytes received a second
    tx: F64  # bytes sent a second
    age_seconds: F64  # of the newest sample, however old; NaN: there has been none

    @classmethod
    def unknown(cls, nodes: int) -> "NodeUsage":
        """Of `nodes` nodes that have no measurements."""
        return cls(*(np.full(nodes, np.nan) for _ in range(5)))


@dataclass(frozen=True, slots=True)
class View:
    """What a policy sees: C classes with T waiting tasks, N nodes, R resources. Read-only.

    Amounts are millicores of cpu, bytes of memory, bits a second of bandwidth, otherwise a count.
    """

    resources: tuple[str, ...]  # R names
    requests: I64  # (C, R) amounts of one task of each class
    priority: I64  # (C,) descending
    waiting: I64  # (C,) tasks
    allocatable: I64  # (N, R)
    free: I64  # (N, R) after what this round has placed so far; may be below 0
    running: I64  # (N,) tasks, incl. what this round has placed so far
    slot_offsets: I64  # (K,) ascending from 0: see Costs.slot
    task_class: I64  # (T,) ascending
    task_age_us: I64  # (T,) microseconds since the task was created, >= 0
    depth: I64 = field(default_factory=lambda: _NOT_GIVEN)  # (N,) how many waiting tasks fit on a node; 0: none
    expected_us: I64 = field(default_factory=lambda: _NOT_GIVEN)  # (C,) microseconds a task expects to run; 0: unknown
    traits: tuple[Mapping[str, str], ...] = ()  # (C,) name -> value of each class's traits; (): no class has any
    surroundings: Surroundings | None = None  # answers census, domains and cpu_of
    inputs: Inputs | None = None  # where tasks' data is; only if the policy has rack_labels and a task reads any
    measured_load: I64 | None = None  # see load
    measured_usage: NodeUsage | None = None  # see usage

    def __post_init__(self) -> None:
        if self.expected_us is _NOT_GIVEN:
            object.__setattr__(self, "expected_us", np.zeros(len(self.requests), np.int64))
        if self.depth is _NOT_GIVEN:
            object.__setattr__(self, "depth", np.full(len(self.allocatable), NODE_LIMIT_MAX))

    def trait(self, name: str) -> tuple[str, ...]:
        """(C,) the value of a trait of each class, "" where it has none."""
        return tuple(of_class.get(name, "") for of_class in self.traits) or ("",) * len(self.requests)

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]:
        """V values of a trait, ascending, and (N, V) int64: how many tasks that have each are on each node, with what
        this round has placed so far. Tasks without the trait are in none."""
        if self.surroundings is None:
            return (), np.zeros((len(self.allocatable), 0), np.int64)
        return self.surroundings.census(trait)

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]:
        """D values of node label `key`, ascending, and (N,) int64: which of them each node has, -1 without it."""
        if self.surroundings is None:
            return (), np.full(len(self.allocatable), -1, np.int64)
        return self.surroundings.domains(key)

    def cpu_of(self, trait: str, key: str) -> tuple[F64, I64]:
        """Cpu that tasks use, by trait and domain: (V, D) mean millicores of a task, NaN where none was measured, and
        (V, D) how many were. V and D as in census(trait) and domains(key). See Policy.wants_usage."""
        if self.surroundings is None:
            return np.zeros((0, 0)), np.zeros((0, 0), np.int64)
        return self.surroundings.cpu(trait, key)

    @property
    def load(self) -> I64:
        """(N, R) how much of each node counts as used, in the unit of `allocatable`; may exceed it.

        What is requested (allocatable - free) or what is measured, as the option --usage says: docs/usage.md. What
        this round has placed so far counts by its requests. Base costs on this; what fits depends on requests alone.
        """
        return self.allocatable - self.free if self.measured_load is None else self.measured_load

    @property
    def usage(self) -> NodeUsage:
        """What the nodes really use. A policy that reads it sets `wants_usage`: see Policy."""
        return NodeUsage.unknown(len(self.allocatable)) if self.measured_usage is None else self.measured_usage


@dataclass(frozen=True, slots=True)
class Aggregators:
    """Vertices between classes and groups of nodes, which a policy defines: A groups, such as racks, through which the
    tasks of a class cost more beyond a number. All int64."""

    of_node: I64
    """(N,): the group of each node, -1: none."""

    soft_limit: I64
    """(C, A), >= 0: from how many tasks of class c in a solve through group a on each further one costs more."""

    cost: I64
    """(C,): what each of these costs more, 0 .. COST_MAX; 0: the class is not limited."""


@dataclass(frozen=True, slots=True)
class Costs:
    """A policy's answer. All arrays are int64."""

    place: I64
    """(C, N), or (1, N), (C, 1), (1, 1) to be repeated: a task of class c on node n, 0 .. COST_MAX."""

    slot: I64
    """(N, K), or (N, 1), (1, K), (1, 1) to be repeated: the cost of each further task that a node takes this round,
    from number slot_offsets[k] + 1 on; must not fall along K, since a flow fills the least costly slots first;
    0 .. COST_MAX."""

    wait: I64
    """(T,): leaving task t waiting for a round, WAIT_MIN .. WAIT_MAX. The fewer different values, the smaller the
    network. Tasks of a higher priority cost at least PRIORITY_STEP more than any of a lower one."""

    fill: bool = False
    """Whether nodes that are alike in everything, costs included, are filled one after the other instead of evenly.
    Only with slot costs that do not rise along K: otherwise it would cost more than the flow says."""

    soft_limit: I64 | None = None
    """(C, N), or with 1 for either size to be repeated, >= 0: from how many tasks of class c that one solve sends to
    node n on each further one costs `soft_limit_cost` more. Slots count the tasks of all classes together; this counts
    those of one class. For the round's next solve the policy is asked again. None: no limit."""

    soft_limit_cost: I64 | None = None
    """(C,): what each task of class c beyond `soft_limit` costs more, 0 .. COST_MAX."""

    aggregators: Aggregators | None = None
    """Groups of nodes through which the tasks of a class cost more beyond a number. A class whose own constraints limit
    it in topology domains is limited by these alone. None: no groups."""

    stage: I64 | None = None
    """(C,): of the classes of one priority those with the lowest stage are placed first, alone; for the next stage the
    policy is asked again, with these in place. For costs that depend on which other tasks come. None: all classes in
    one solve, which is the better optimum otherwise."""

    node_limit: I64 | None = None
    """(N,), 0 .. NODE_LIMIT_MAX: how many tasks node n is sent before the policy is asked again, with what they request
    counted. For costs that depend on which tasks come, while slots only know how many. It is raised, for all nodes
    alike, if less than a fiftieth of the tasks could be placed at a time. None: no limit."""

    data: DataCosts | None = None
    """What the data of tasks costs in addition; None: nothing."""

    delay: I64 | None = None
    """(T,): what it costs that task t waits for a better node, 0 .. DELAY_MAX. Until it is DELAY_LONGEST_US old it
    waits, although it fits, if its node would cost more; so this should rise with its age. Members of gangs never wait
    for a better node. None: no task does."""


class Policy(Protocol):
    """Says what placements cost. Pure: the same view gives the same costs; no I/O, no clock, no memory.

    A class may state `api_version`, the API_VERSION that it was written for (policy/registry.py refuses newer ones),
    and `waives`, the rules that it breaks on purpose (policy/conformance.py). With `wants_usage = True` usage is
    collected for View.usage, whatever --usage says. With `counts_links = True` the bandwidth that tasks request and
    nodes offer is a resource like any other. With `spreads_tasks = True` its purpose is to spread tasks over nodes,
    so that clients may prefer that for the tasks of one service, too.

    A policy that considers where tasks' data is has an attribute `rack_labels`, a tuple of node labels: the first that
    any node has defines the racks of View.inputs.

    A policy may have a method `eviction_costs(victims: Victims) -> I64`, (P,), 1 .. COST_MAX: what evicting each of the
    running tasks costs, for tasks of higher priority that fit in no other way. Of the victims of one priority, those
    are evicted whose costs add up to the least. Without it: policy/preemption.py.

    And a method `moving_costs(victims: Victims) -> I64`, (P,), 1 .. MOVING_MAX: what moving each of the running tasks
    to another node costs. One that users allow to be moved is, if that costs less than it saves by `costs`, where
    another node's `slot` counts as the first one there. Without it no task moves.

    And a method `place_kinds(victims: Victims) -> I64`, (C,), >= 0: classes of one number have the same `place` costs
    on every node, whatever the view. So rounds need not ask for the costs of each class of running tasks by itself.
    """

    @property
    def name(self) -> str:
        """As the flag takes it."""
        ...

    def costs(self, view: View) -> Costs: ...


def counts_links(policy: Policy) -> bool:
    """Whether bandwidth counts as a resource."""
    return bool(getattr(policy, "counts_links", False))


def spreads_tasks(policy: Policy) -> bool:
    """Whether the policy's purpose is to spread tasks over nodes."""
    return bool(getattr(policy, "spreads_tasks", False))


def rack_labels(policy: Policy) -> tuple[str, ...] | None:
    """The node labels that may define racks; None: the policy does not look at inputs.

    Raises TypeError if the attribute is anything else, such as one label instead of a tuple of them.
    """
    labels: tuple[str, ...] | None = getattr(policy, "rack_labels", None)
    if labels is not None and not (isinstance(labels, tuple) and all(isinstance(label, str) for label in labels)):
        raise TypeError(f"rack_labels is {labels!r}; give a tuple of node labels")
    return labels


def waiting_cost(view: View) -> I64:
    """The usual Costs.wait: a step for each distinct priority, and within it one for each doubling of the age, larger
    from 8.5 minutes on, so that a task whose placement costs more does not wait for as long as others keep coming.

    (T,). Priorities count by rank, so that any difference outweighs every age; age counts in whole seconds, so that
    tasks of one burst share a cost.
    """
    ranks = distinct(view.priority)[1]
    age_seconds = view.task_age_us // 1_000_000
    doublings = np.floor(np.log2(age_seconds + 1)).astype(np.int64)
    long = np.minimum(np.maximum(doublings, _LONG_AGES[0]), _LONG_AGES[1]) - _LONG_AGES[0]
    by_age = doublings * _AGE_STEP + long * (_LONG_AGE_STEP - _AGE_STEP)
    cost: I64 = WAIT_MIN + ranks[view.task_class] * PRIORITY_STEP * 2 + by_age
    return cost
