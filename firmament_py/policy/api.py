"""What a policy is: it prices placements; the engine does everything else.

A policy never sees which placements are feasible, how the network is laid out, or what gangs and quotas demand:
it looks at a View and answers with Prices. Costs are integers on one scale for all policies:

    0 .. COST_MAX      a placement: `place`, `slot` and `data` each
    WAIT_MIN .. WAIT_MAX   leaving a task waiting for a round

WAIT_MIN is more than the dearest placement costs, with all that preferences and limits add to it, so no task waits
for a better place (a round conserves work), and the difference between two tasks' waiting costs says whose placement
is worth more. The solver's range is kept with a wide margin: unit costs times vertices stay far below 2**63.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.policy.locality import DataPrices, Inputs

API_VERSION = 1
"""Of View, Prices and Policy. What is added to View or Prices has a default and leaves it as it is; it is raised when
something that policies rely on changes its meaning."""

COST_MAX = 1_000_000
WAIT_MIN = 6 * COST_MAX
WAIT_MAX = 2**40

MOST_MAX = 2**31

PRIORITY_STEP = 6 * COST_MAX
"""What leaving a task of the next higher priority waiting costs more, at least: more than placements differ."""

_AGE_STEP = 50_000
_LONG_AGE_STEP = 300_000
_LONG_AGES = (9, 19)
"""Doublings of a second, 8.5 minutes to six days, over which waiting costs more by the larger step. So who costs
COST_MAX more to place than those that keep coming goes before them after two hours, and who costs three times as much
within a week. All steps together stay below PRIORITY_STEP."""

_UNTOLD: I64 = np.zeros(0, np.int64)


class Surroundings(Protocol):
    """What is only computed when a policy asks for it; see View.census, View.domains and View.cpu_of."""

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]: ...

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]: ...

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]: ...


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What nodes really use, as last measured: decayed means of all that runs there, the system's part too. Each (N,),
    NaN: not measured, or not for so long that it does not count any more."""

    cpu: F64  # millicores
    memory: F64  # bytes
    rx: F64  # bytes received a second
    tx: F64  # bytes sent a second
    age_seconds: F64  # of the newest sample, however old; NaN: there never was one

    @classmethod
    def unknown(cls, nodes: int) -> "NodeUsage":
        """Of so many nodes of which nothing is known."""
        return cls(*(np.full(nodes, np.nan) for _ in range(5)))


@dataclass(frozen=True, slots=True)
class View:
    """What a policy sees: C classes with T waiting tasks, N nodes, R resources. Read-only.

    Amounts are in the unit that the sender has for a resource: millicores of cpu, bytes of memory, else pieces.
    """

    resources: tuple[str, ...]  # R names
    requests: I64  # (C, R) amounts of one task of each class
    priority: I64  # (C,) descending
    waiting: I64  # (C,) tasks
    allocatable: I64  # (N, R)
    free: I64  # (N, R) after what this round has placed so far; may be below 0
    running: I64  # (N,) tasks, incl. what this round has placed so far
    slot_offsets: I64  # (K,) ascending from 0: see Prices.slot
    task_class: I64  # (T,) ascending
    task_age_us: I64  # (T,) microseconds since the task came to be, >= 0
    depth: I64 = field(default_factory=lambda: _UNTOLD)  # (N,) waiting tasks that a node takes at most; 0: none
    expected_us: I64 = field(default_factory=lambda: _UNTOLD)  # (C,) microseconds a task expects to run; 0: unknown
    traits: tuple[Mapping[str, str], ...] = ()  # (C,) what is said of the tasks' nature; (): nothing of any
    surroundings: Surroundings | None = None  # answers census, domains and cpu_of
    inputs: Inputs | None = None  # where tasks' data is; only if the policy has rack_labels and a task has any
    measured_load: I64 | None = None  # see load
    measured_usage: NodeUsage | None = None  # see usage
    at_once: bool = False
    """Whether the round asks again because placing in portions (Prices.most) has left tasks waiting: what the policy
    does on the assumption that all of them find room does not hold."""

    def __post_init__(self) -> None:
        if self.expected_us is _UNTOLD:
            object.__setattr__(self, "expected_us", np.zeros(len(self.requests), np.int64))
        if self.depth is _UNTOLD:
            object.__setattr__(self, "depth", np.full(len(self.allocatable), MOST_MAX))

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
        """What tasks use, by trait and place: (V, D) mean millicores of a task, NaN where nobody was measured, and
        (V, D) how many were. V and D as of census(trait) and domains(key). See Policy.wants_usage."""
        if self.surroundings is None:
            return np.zeros((0, 0)), np.zeros((0, 0), np.int64)
        return self.surroundings.cpu(trait, key)

    @property
    def load(self) -> I64:
        """(N, R) how much of each node counts as used, in the unit of `allocatable`; may exceed it.

        What is requested (allocatable - free), or what is measured, by the option --usage: docs/usage.md. What this
        round has placed so far counts by its requests. Price by this; what fits is judged by requests alone.
        """
        return self.allocatable - self.free if self.measured_load is None else self.measured_load

    @property
    def usage(self) -> NodeUsage:
        """What the nodes really use. A policy that looks at it sets `wants_usage`: see Policy."""
        return NodeUsage.unknown(len(self.allocatable)) if self.measured_usage is None else self.measured_usage


@dataclass(frozen=True, slots=True)
class Prices:
    """A policy's answer. All int64."""

    place: I64
    """(C, N), or (1, N), (C, 1), (1, 1) to be repeated: a task of class c on node n, 0 .. COST_MAX."""

    slot: I64
    """(N, K), or (N, 1), (1, K), (1, 1) to be repeated: what the further tasks that a node takes this round cost
    each, from the (slot_offsets[k] + 1)-th on; must not fall along K, since a flow fills the cheapest slots
    first; 0 .. COST_MAX."""

    wait: I64
    """(T,): leaving task t waiting for a round, WAIT_MIN .. WAIT_MAX. The fewer different values, the smaller the
    network. Tasks of a higher priority cost at least PRIORITY_STEP more than any of a lower one."""

    fill: bool = False
    """Nodes that look the same and cost the same: are they filled one after the other, instead of evenly? For policies
    whose slot prices are flat; with rising ones it would cost more than the flow says."""

    enough: I64 | None = None
    """(C, N), or with 1 for either size to be repeated; 0 or more: how many tasks of class c node n should be sent by
    one solve before it is too many of a kind; each further costs `beyond` more. Slots know only how many tasks of all
    classes together a node takes. The round's next solve is priced anew. None: as many as may be."""

    beyond: I64 | None = None
    """(C,): what each task of class c beyond `enough` costs more, 0 .. COST_MAX."""

    turn: I64 | None = None
    """(C,): of classes of one priority those with the lowest turn are placed first, alone, and the next are priced with
    them in place: for prices that depend on who else comes. None: all at once, which is the better optimum else."""
    most: I64 | None = None
    """(N,), 1 .. MOST_MAX: how many tasks node n is sent at most before prices are asked for again, with what they
    request counted. For prices that depend on which tasks come, while slots only know how many. It is raised, for all
    nodes alike, if it would not let a fiftieth of the tasks be placed at a time. If tasks are left that had room at
    first, the round is run again with View.at_once, and what places more counts. None: as many as may be."""

    data: DataPrices | None = None
    """What the data of tasks costs on top, None: nothing."""


class Policy(Protocol):
    """Prices placements. Pure: the same view gives the same prices; no I/O, no clock, no memory.

    A class may say `api_version`, the API_VERSION that it was written for (policy/registry.py refuses newer ones), and
    `waives`, which rules it breaks on purpose (policy/conformance.py). With `wants_usage = True` usage is collected for
    View.usage, whatever --usage says. With `counts_links = True` senders are asked to tell of the bandwidth that tasks
    request and nodes have, which then limits like any resource.

    A policy that cares where tasks' data is says so with an attribute `rack_labels`, a tuple of node labels: the first
    that any node has makes the racks of View.inputs.
    """

    @property
    def name(self) -> str:
        """As the flag takes it."""
        ...

    def price(self, view: View) -> Prices: ...


def counts_links(policy: Policy) -> bool:
    """Whether bandwidth is to be told of and counted."""
    return bool(getattr(policy, "counts_links", False))


def rack_labels(policy: Policy) -> tuple[str, ...] | None:
    """The node labels that may make racks; None: the policy does not look at inputs.

    Raises TypeError if the policy says something else, such as one label instead of a tuple of them.
    """
    labels: tuple[str, ...] | None = getattr(policy, "rack_labels", None)
    if labels is not None and not (isinstance(labels, tuple) and all(isinstance(label, str) for label in labels)):
        raise TypeError(f"rack_labels is {labels!r}; give a tuple of node labels")
    return labels


def waiting_cost(view: View) -> I64:
    """The usual Prices.wait: a step for each distinct priority, and within it one for each doubling of the age, larger
    from some minutes on, so that nobody whose place costs much waits for as long as cheaper ones keep coming.

    (T,). Priorities count by rank, so that any difference outweighs every age; age in whole seconds, so that
    tasks of one burst share a price.
    """
    ranks = np.unique(view.priority, return_inverse=True)[1]
    age_seconds = view.task_age_us // 1_000_000
    doublings = np.floor(np.log2(age_seconds + 1)).astype(np.int64)
    long = np.clip(doublings, *_LONG_AGES) - _LONG_AGES[0]
    by_age = doublings * _AGE_STEP + long * (_LONG_AGE_STEP - _AGE_STEP)
    return WAIT_MIN + ranks[view.task_class] * PRIORITY_STEP * 2 + by_age


class AnywherePolicy:
    """Every placement costs the same. What a round falls back to when the chosen policy fails."""

    name = "anywhere"

    def price(self, view: View) -> Prices:
        flat = np.zeros((1, 1), np.int64)
        return Prices(place=flat, slot=flat, wait=waiting_cost(view))
