"""A certificate of why a task fits nowhere now: constraints that block by themselves, and which would have to go.

Each node fails some of the constraints of a task. A set of constraints *blocks* if every node fails one of them; a
smallest such set is named: without any one of its members, the others alone would let the task onto some node. What a
node fails is what would have to go for the task to fit there; the smallest such sets are named, too.

Constraints between tasks count as one for each kind, as in reasons (explain/node_reasons.py), and so do further
affinities by their names. The limits of one node suffice for one task: nothing here is about a gang as a whole.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from operator import or_

import numpy as np

from firmament_py.explain.nearest_nodes import free_for, intertask_of, lacks
from firmament_py.explain.node_reasons import INTERTASK_KINDS, further_reason
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.constraints import NodeDemand, Requirement
from firmament_py.model.resources import TASK_SLOTS, TOKEN
from firmament_py.snapshot.round_classes import demand_of
from firmament_py.state.cluster import ClusterState

REMEDIES = 3
"""Of these sets so many at most, the smallest first."""

_TRIED, _COMPARED = 20_000, 400
"""So many sets of constraints are tried before one that is only irreducible has to do; and so many patterns of failures
are compared with each other."""

_VALUES = 16
"""Taints of one key with more values than these, as where each node is dedicated to someone, are one constraint."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """kind, detail, value: as of a Reason; value of a selector: the requirement. nodes: that fail it. short: of a
    resource: how much a node has too little of it at least, that of a remedy where there is one."""

    kind: ReasonKind
    detail: str
    value: str
    nodes: int
    short: int


@dataclass(frozen=True, slots=True)
class Remedy:
    """On `nodes` nodes, one of which is named, nothing but these constraints is in the way."""

    without: tuple[Constraint, ...]
    nodes: int
    node: str


@dataclass(frozen=True, slots=True)
class Blocking:
    """constraints: of a set that blocks; is_smallest: no smaller one does, else no part of it does. Empty if some node
    takes the task."""

    constraints: tuple[Constraint, ...]
    is_smallest: bool
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True, slots=True)
class _Failing:
    """A constraint, and the nodes (N,) that fail it; of a resource, by how much (N,)."""

    constraint: Constraint
    fails: Bools
    short: I64 | None = None

    def on(self, node: int) -> Constraint:
        """The constraint, short by what it is on a node."""
        return self.constraint if self.short is None else replace(self.constraint, short=int(self.short[node]))


def blocking(state: ClusterState, row: int) -> Blocking:
    """What blocks waiting task row `row` on the nodes as they are, reservations for others left aside."""
    failing = [each for each in _failing(state, row) if each.fails.any()]
    nodes = state.present_nodes()
    if not failing or not len(nodes):
        return Blocking((), True, ())
    fails = np.array([each.fails for each in failing])  # (K, N)
    patterns, count = np.unique(fails.T, axis=0, return_counts=True)
    if not patterns.any(axis=1).all():
        return Blocking((), True, ())
    chosen, is_smallest = _smallest_cover(patterns)
    remedies, sets = list[Remedy](), list[Bools]()
    for k in np.lexsort((-count, patterns.sum(axis=1))).tolist():
        if any((patterns[k] >= less).all() for less in sets):
            continue  # fewer constraints do
        sets.append(patterns[k])
        (on,) = (patterns[k] == fails.T).all(axis=1).nonzero()
        some = [failing[i] for i in np.flatnonzero(patterns[k]).tolist()]
        best = int(on[_shortage(some, on).argmin()])
        without = tuple(each.on(best) for each in some)
        remedies.append(Remedy(without, len(on), state.nodes.observed[int(nodes[best])].name))
        if len(remedies) == REMEDIES:
            break
    return Blocking(tuple(failing[i].constraint for i in chosen), is_smallest, tuple(remedies))


def _shortage(failing: Sequence[_Failing], on: I64) -> F64:
    """(M,) by how much nodes `on` (M,) fail these constraints, as a sum of shares of the resources' requests."""
    total = np.zeros(len(on))
    for each in failing:
        if each.short is not None:
            total += each.short[on] / max(int(each.short.max()), 1)
    return total


def _smallest_cover(patterns: Bools) -> tuple[list[int], bool]:
    """The smallest set of constraints of which each pattern (P, K) of failures has one, and whether it is known to be
    the smallest; each member is needed in any case."""
    rows: Bools = patterns
    if len(patterns) <= _COMPARED:  # what hits a part of a pattern hits the pattern
        contains: Bools = np.asarray((patterns[:, None] >= patterns[None]).all(axis=2))
        larger: Bools = contains & ~contains.T
        rows = patterns[~larger.any(axis=1)]
    alone: Bools = rows[rows.sum(axis=1) == 1].any(axis=0)  # these are in every set
    needed, rows = np.flatnonzero(alone).tolist(), rows[~rows[:, alone].any(axis=1)]
    useful = np.flatnonzero(rows.any(axis=0)).tolist()
    useful.sort(key=lambda i: (-int(rows[:, i].sum()), i))
    hits = {i: int.from_bytes(np.packbits(rows[:, i]).tobytes()) for i in useful}  # a bit for each row
    every, tried = reduce(or_, hits.values(), 0), 0
    for size in range(len(useful) + 1):
        for some in combinations(useful, size):
            if reduce(or_, (hits[i] for i in some), 0) == every:
                return sorted((*needed, *some)), True
            tried += 1
            if tried >= _TRIED:
                return sorted((*needed, *_irreducible(rows, useful))), False
    raise AssertionError("all constraints together block")


def _irreducible(rows: Bools, useful: Sequence[int]) -> list[int]:
    """Some set that hits all rows (P, K), and no part of which does: constraints are left out one by one, those first
    that are failed by few."""
    chosen, hit = set(useful), rows.sum(axis=1)
    for i in reversed(useful):
        if (hit[rows[:, i]] > 1).all():
            chosen.remove(i)
            hit -= rows[:, i]
    return sorted(chosen)


def _failing(state: ClusterState, row: int) -> Iterator[_Failing]:
    """All constraints of a task."""
    nodes, cls = state.present_nodes(), int(state.tasks.cls[row])
    demand = demand_of(state, row)
    by_taint: dict[tuple[str, str], list[int]] = {}
    for at in np.flatnonzero(state.node_index.evaluate(demand, nodes)[1] >= 0).tolist():
        for taint in state.nodes.observed[int(nodes[at])].taints:
            if taint.repels and not demand.is_tolerated(taint):
                by_taint.setdefault((taint.key, taint.value), []).append(at)
    values = Counter(key for key, _ in by_taint)
    tainted: dict[tuple[str, str], Bools] = {}
    for (key, value), on in by_taint.items():
        named = key, value if values[key] <= _VALUES else ""
        tainted.setdefault(named, np.zeros(len(nodes), np.bool_))[on] = True
    for (key, value), fails in sorted(tainted.items()):
        yield _named(ReasonKind.UNTOLERATED_TAINT, fails, key, value)
    for requirement in demand.selector:
        yield _unselected(state, nodes, NodeDemand(selector=(requirement,)), _written(requirement))
    for terms in demand.affinity:
        yield _unselected(state, nodes, NodeDemand(affinity=(terms,)), "node affinity")
    free = free_for(state, row)[nodes]
    short = lacks(state, cls, free)
    for r in np.flatnonzero((short > 0).any(axis=0)).tolist():
        name = state.resources.names[r]
        if name.startswith(TOKEN):
            yield _named(ReasonKind.TOKEN_TAKEN, short[:, r] > 0, name.removeprefix(TOKEN))
        elif name == TASK_SLOTS:
            yield _named(ReasonKind.TOO_MANY_TASKS, short[:, r] > 0)
        else:
            yield _lacking(name, short[:, r])
    for name, amount in state.classes.lacking(cls).items():
        yield _lacking(name, np.full(len(nodes), amount))
    for name, terms in demand.further:
        unmet = ~state.node_index.evaluate(NodeDemand(affinity=(terms,)), nodes)[0]
        reason, *details = further_reason(state, row, name)
        yield _named(reason, unmet, *details)
    intertask = intertask_of(state, np.array([row], np.int64))
    if intertask.concerned[0]:
        for kind, fails in intertask.failures(0).items():
            yield _named(INTERTASK_KINDS[kind], fails)


def _unselected(state: ClusterState, nodes: I64, demand: NodeDemand, what: str) -> _Failing:
    return _named(ReasonKind.SELECTOR_MISMATCH, ~state.node_index.evaluate(demand, nodes)[0], value=what)


def _lacking(resource: str, short: I64) -> _Failing:
    """short (N,): <= 0 where there is enough."""
    fails = short > 0
    least = int(short[fails].min(initial=np.iinfo(np.int64).max)) if fails.any() else 0
    constraint = Constraint(ReasonKind.INSUFFICIENT_RESOURCE, resource, "", int(fails.sum()), least)
    return _Failing(constraint, fails, np.maximum(short, 0))


def _named(kind: ReasonKind, fails: Bools, detail: str = "", value: str = "") -> _Failing:
    return _Failing(Constraint(kind, detail, value, int(fails.sum()), 0), fails)


def _written(requirement: Requirement) -> str:
    """As users write node selectors."""
    values = ",".join(requirement.values)
    match requirement.operator.value:
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}={values}"
        case "Exists":
            return requirement.key
        case "DoesNotExist":
            return f"!{requirement.key}"
        case operator:
            return f"{requirement.key} {operator} {values}"
