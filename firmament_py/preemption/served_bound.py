"""Upper bounds on how many arrivals any evictions and moves can serve: a bound below what is needed proves that a
search would find nothing.

Two relaxations. For each class alone, a node takes as many tasks as fit once all that may leave it is gone, and limits
on evictions and moves are knapsacks. For all classes together, a linear program in which movers have to fit somewhere,
too (packing/relaxation.py).
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.eviction.clearing import clearing_costs
from firmament_py.model.arrays import F64, I64, Bools, add_rows, distinct_rows
from firmament_py.packing.problem import Problem
from firmament_py.packing.relaxation import Relaxation
from firmament_py.snapshot.solo_capacity import task_slots

_GROUPS, _KINDS, _ROUNDS = 40, 40, 4
"""Limits on the groups of nodes, on the kinds of movers, and on how often the linear program is tightened."""

_TOGETHER = 8
"""For so many arrivals on a node what they cost together is found, for further ones what they cost at least."""

_ROUNDING = 1e-6
"""Bounds that are this little below an integer count as that integer."""


@dataclass(frozen=True, slots=True)
class Removable:
    """What may leave N nodes: P residents, which end, and M movers, which need another node. L limits.

    node (P + M,), requests (P + M, R): residents first. limit (P + M,): the limit that counts each, -1: none; allowed
    (L,): how many of these may leave. moves: limit on all movers together. kind (M,): of movers; suitable (K, N): where
    each kind of them may go, wherever they are now. Movers of a kind have equal requests.
    """

    node: I64
    requests: I64
    limit: I64
    allowed: I64
    moves: int
    kind: I64
    suitable: Bools

    @property
    def residents(self) -> int:
        """Number of residents, P."""
        return len(self.node) - len(self.kind)


class ServedBound:
    """Bounds for one cluster. free (N, R): with everything in place; may be below 0."""

    def __init__(self, free: I64, removable: Removable) -> None:
        self._removable = removable
        residents, moves = removable.residents, np.arange(len(removable.node)) >= removable.residents
        self._everything = free.copy()
        add_rows(self._everything, removable.node, removable.requests)
        self._freed = _most_freed(free, removable, len(removable.node))
        self._shared = self._freed
        if len(removable.kind):  # what arrivals and movers share
            self._shared = _most_freed(free, removable, residents)
            add_rows(self._shared, removable.node[residents:], removable.requests[residents:])
        limited = removable.limit >= 0
        counted = np.bincount(removable.limit[limited], minlength=len(removable.allowed))
        self._knapsacks = [
            (cost.astype(np.float64), int(allowed))
            for cost, allowed in ((limited, np.minimum(counted, removable.allowed).sum()), (moves, removable.moves))
            if allowed < cost.sum()
        ]

    def each(self, requests: I64, count: I64, suitable: Bools) -> I64:
        """(C,) how many of the `count` (C,) arrivals of each class fit at most without those of the others. requests
        (C, R); suitable (C, N)."""
        slots = task_slots(self._freed, requests, suitable, count)
        found: I64 = np.minimum(count, slots.sum(axis=1))
        for cost, allowed in self._knapsacks:
            for c in np.flatnonzero(found).tolist():
                least = self._least_costs(requests[c], suitable[c], slots[c], cost)
                found[c] = min(found[c], _within(least, slots[c], allowed))
        return found

    def _least_costs(self, requests: I64, suitable: Bools, slots: I64, cost: F64) -> F64:
        """(N,) lower bounds on the cost per arrival of a class on each node, infinite: none fits; slots (N,). cost
        (P + M,): integers, of what leaves."""
        number = np.arange(1, min(int(slots.max()), _TOGETHER) + 1)
        of = self._removable.node, self._removable.requests, cost, self._everything
        of_nodes = clearing_costs(number[:, None] * requests, np.tile(suitable, (len(number), 1)), *of)
        costs = np.ceil(of_nodes - _ROUNDING)
        per_arrival: F64 = (costs / number[:, None]).min(axis=0)
        several = slots > len(number)
        per_arrival[several] = np.minimum(per_arrival, costs[-1] / np.maximum(slots, 1))[several]
        return per_arrival

    def of_domains(self, requests: I64, count: I64, suitable: Bools, domain: I64) -> tuple[I64, F64]:
        """Of D domains of nodes, domain (N,), -1: none: (D,) how many arrivals fit at most in each, and (D,) an
        estimate of how many tasks leave for them; each class is counted alone."""
        slots = task_slots(self._freed, requests, suitable, count)
        slots[:, domain < 0] = 0
        number = int(domain.max(initial=-1)) + 1
        fitting, leaving = np.zeros(number, np.int64), np.zeros(number)
        one = np.ones(len(self._removable.node))
        for c in np.flatnonzero(slots.any(axis=1)).tolist():
            of_domain = np.bincount(domain[slots[c] > 0], slots[c][slots[c] > 0], minlength=number).astype(np.int64)
            fitting += np.minimum(of_domain, count[c])
            least = self._least_costs(requests[c], suitable[c], slots[c], one)
            some = np.flatnonzero((slots[c] > 0) & np.isfinite(least))
            some = some[np.lexsort((least[some], domain[some]))]
            before = np.cumsum(slots[c, some]) - slots[c, some]
            first = np.searchsorted(domain[some], domain[some])  # of the same domain
            taken = np.clip(count[c] - (before - before[first]), 0, slots[c, some])
            leaving += np.bincount(domain[some], taken * least[some], minlength=number)
        return fitting, leaving

    def together(self, requests: I64, count: I64, suitable: Bools, needed: int) -> int:
        """How many arrivals of all classes fit at most together; see `each`, which `count` must not exceed. needed: a
        bound below is as good as a lower one."""
        bound = int(count.sum())
        if not len(self._removable.kind) or bound < needed:
            return bound
        relaxation, objective, floor = _relaxation(
            self._shared, self._freed, self._removable, requests, count, suitable
        )
        for _ in range(_ROUNDS):
            relaxed = relaxation.solve(objective, floor)
            if relaxed is None:
                break
            bound = min(bound, int(np.floor(relaxed.bound + _ROUNDING)))
            if bound < needed or not relaxation.tighten(relaxed):
                break
        return bound


def _most_freed(free: I64, removable: Removable, first: int) -> I64:
    """(N, R) at most what each node has free after the first so many may have left it, each resource on its own: of
    those that one limit counts, the largest that it permits."""
    found = free.copy()
    node, requests, limit = removable.node[:first], removable.requests[:first], removable.limit[:first]
    add_rows(found, node[limit < 0], requests[limit < 0])
    some = np.flatnonzero(limit >= 0)
    for r in range(free.shape[1]):
        order = some[np.lexsort((-requests[some, r], limit[some], node[some]))]
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(node[order]) != 0) | (np.diff(limit[order]) != 0)
        start = np.flatnonzero(new)
        rank = np.arange(len(order)) - np.repeat(start, np.diff(np.append(start, len(order))))
        chosen = order[rank < removable.allowed[limit[order]]]
        np.add.at(found[:, r], node[chosen], requests[chosen, r])
    return found


def _within(cost: F64, slots: I64, allowed: int) -> int:
    """How many arrivals of a class fit at most at a cost of `allowed`: slots (N,) of them on each node, for cost (N,)
    each. A relaxed knapsack."""
    some = np.flatnonzero(np.isfinite(cost))
    some = some[np.argsort(cost[some], kind="stable")]
    total = np.cumsum(cost[some] * slots[some])
    whole = int(np.searchsorted(total, allowed + _ROUNDING, side="right"))
    found = float(slots[some[:whole]].sum())
    if whole < len(some):
        found += (allowed - (total[whole - 1] if whole else 0.0)) / cost[some[whole]]
    return int(np.floor(found + _ROUNDING))


def _relaxation(
    shared: I64, freed: I64, removable: Removable, requests: I64, count: I64, suitable: Bools
) -> tuple[Relaxation, F64, F64]:
    """Arrivals and movers on groups of nodes, the objective that counts the former, and the floor that all of the
    latter are placed. shared (N, R): capacity for both; freed (N, R): for arrivals alone."""
    sizes, number, allowed = _kinds(removable)
    arriving = np.arange(len(requests) + len(sizes)) < len(requests)
    of_arrivals = task_slots(np.minimum(shared, freed), requests, suitable, count)
    problem = Problem(
        requests=np.vstack([requests, sizes]),
        free=np.maximum(shared, 0),
        suitable=np.vstack([suitable, allowed]),
        slots=np.vstack([of_arrivals, task_slots(shared, sizes, allowed, number)]),
        count=np.append(count, number),
        value=np.ones(len(arriving)),
        level=arriving.astype(np.int64),
    )
    return Relaxation(problem, _GROUPS), arriving.astype(np.float64), np.array([float(number.sum()), 0.0])


def _kinds(removable: Removable) -> tuple[I64, I64, Bools]:
    """Of the kinds of movers: requests (K, R), number (K,), suitable (K, N). If there are too many, those of equal
    requests are one, and the smallest are left out."""
    first, kind = removable.residents, removable.kind
    node, requests = removable.node[first:], removable.requests[first:]
    suitable = removable.suitable.copy()
    suitable[kind, node] = True
    found, example, number = np.unique(kind, return_index=True, return_counts=True)
    sizes, suitable = requests[example], suitable[found]
    if len(found) <= _KINDS:
        return sizes, number, suitable
    one_of_each, of = distinct_rows(sizes)
    distinct = sizes[one_of_each]
    merged = np.zeros((len(distinct), suitable.shape[1]), np.bool_)
    np.logical_or.at(merged, of, suitable)
    count = np.bincount(of, number).astype(np.int64)
    usage = (distinct / np.maximum(distinct.max(axis=0), 1)).max(axis=1) * count
    chosen = np.sort(np.argsort(-usage, kind="stable")[:_KINDS])
    return distinct[chosen], count[chosen], merged[chosen]
