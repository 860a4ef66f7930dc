"""Preemption for a task with constraints on other tasks: affinity, anti-affinity, spread.

Which residents must be evicted depends on all others, so each node is considered alone, as in kube-scheduler: all its
residents of lower precedence are removed; if the node then satisfies the task's constraints, they are put back one
after the other, where it still does: first those beyond a disruption budget, which the ones that can in no case stay
use up first, then the others, the most important first. The node with the fewest evictions beyond budgets is taken, of
several the one whose victims cost least. As in kube-scheduler, victims are on the preemptor's own node: constraints
that residents of other nodes break are not resolved.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, add_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import EvictionCosts
from firmament_py.policy import COST_MAX
from firmament_py.preemption.gang_victims import Surplus
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.residents import Kind, Resident, budgets_of, residents_below
from firmament_py.snapshot.domains import Condition
from firmament_py.snapshot.intertask import IntertaskConstraints
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.snapshot import Snapshot

SEARCHES = 60
"""How many tasks a round searches victims for: a search is some 25 ms with 40,000 running tasks on 2,000 nodes."""
NODES = 100
"""How many nodes a search compares, those first whose residents cost least; further ones only until one is found."""
FURTHER_NODES = 2_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task may go. victims (V,): rows of the task table; displaced (K,): tasks that lose their nominations, or
    the places that the round gave them."""

    node: int
    victims: I64
    displaced: I64


class ConstrainedSearch:
    """For the tasks of one ledger, one after the other."""

    def __init__(
        self,
        ledger: Ledger,
        outcome: Outcome,
        eviction_costs: EvictionCosts,
        movable: Bools | None = None,
        spare: Surplus | None = None,
        *,
        beyond_budgets: bool,
    ) -> None:
        """outcome: its victims leave in any case, and free what they use. movable (T,): tasks that may lose their
        nominations, or the places that the round gave them; None: none may. spare: members of gangs that may be
        evicted; None: none may. beyond_budgets: disruption budgets are exceeded for tasks that nothing else serves."""
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._outcome = outcome
        self._eviction_costs = eviction_costs
        self._movable = np.zeros(len(ledger.node_of), np.bool_) if movable is None else movable
        self._beyond_budgets = beyond_budgets
        self._searches_left = SEARCHES
        rows = self._snapshot.releases.state.tasks.capacity
        self._spare = spare or Surplus(NO_ROWS, np.full((rows, 2), -1), np.zeros(rows, np.bool_))

    def find(self, task: int, precedence: Precedence, *, without_victims: bool = False) -> Place | None:
        """The place of a task that has none; None: there is none. without_victims: a node that suits it as it is will
        do, since the task may lack nothing but quota."""
        snapshot = self._snapshot
        c = int(snapshot.task_class[task])
        if self._searches_left < 1:
            return None
        self._searches_left -= 1
        conditions = self._conditions(c)
        if without_victims and (node := self._suiting(task, precedence, conditions)) is not None:
            return Place(node, NO_ROWS, NO_ROWS)
        found = self._find(task, precedence, conditions, beyond_budgets=False)
        if found is None and self._beyond_budgets:
            found = self._find(task, precedence, conditions, beyond_budgets=True)
        return found

    def _suiting(self, task: int, precedence: Precedence, conditions: list[Condition]) -> int | None:
        """A node that satisfies all constraints of the task as it is."""
        c = self._snapshot.task_class[task]
        requests = self._snapshot.requests[c]
        free = self._ledger.unreserved_for(np.array([task]), int(precedence.waiting[c]))
        suits = self._snapshot.suitable[c] & ((free >= requests) | (requests == 0)).all(axis=1)
        nodes = np.flatnonzero(suits)
        for condition in conditions:
            nodes = nodes[condition.met(nodes, np.zeros(len(nodes), np.int64))]
        return int(nodes[0]) if len(nodes) else None

    def _find(
        self, task: int, precedence: Precedence, conditions: list[Condition], *, beyond_budgets: bool
    ) -> Place | None:
        ledger, snapshot, victims = self._ledger, self._snapshot, self._outcome.victims
        state = snapshot.releases.state
        c = int(snapshot.task_class[task])
        priority, requests = int(precedence.waiting[c]), snapshot.requests[c]
        low = residents_below(ledger, precedence, priority, self._movable, victims, self._spare.evictable)
        limits = _Limits.of(self._snapshot, low, victims, self._spare)
        if not beyond_budgets:
            limits = limits.all_hard()
        evictable = ~limits.exhausted()
        low, limits = low.only(evictable), limits.only(evictable)
        if not len(low.id):
            return None
        leaving = state.tasks.leaving[np.where(low.kind == Kind.RUNNING, low.id, 0)] | (low.kind == Kind.LEAVING)
        counted = np.array([each.counted(low.cls, low.label_set, leaving) for each in conditions], np.bool_)
        counted = counted.reshape(len(conditions), len(low.id))
        # conditions do not count what leaves by a decision of this round
        counted[:, (low.kind == Kind.LEAVING) & np.isin(low.id, victims)] = False
        released = np.zeros_like(ledger.free)
        asked = state.classes.requests[low.cls]
        add_rows(released, low.node, asked)
        free = ledger.unreserved_for(np.array([task]), priority)
        able = snapshot.suitable[c] & ((free + released >= requests) | (requests == 0)).all(axis=1)
        able &= np.bincount(low.node, minlength=len(free)) > 0
        nodes = np.flatnonzero(able)
        for condition, of in zip(conditions, counted, strict=True):
            less = np.bincount(low.node[of], minlength=len(free))
            nodes = nodes[condition.met(nodes, less[nodes])]
        weight = low.costs(state, self._eviction_costs) / COST_MAX * 64.0 ** np.minimum(low.rank(), 40)
        cost_of_all = np.bincount(low.node, weight, minlength=len(free))
        scarce = np.flatnonzero(requests)
        taken = asked[:, scarce]
        by_node = np.argsort(low.node, kind="stable")
        starts = np.searchsorted(low.node[by_node], np.arange(len(free) + 1))
        best: tuple[int, float, int, I64] | None = None
        for tried, node in enumerate(nodes[np.argsort(cost_of_all[nodes], kind="stable")].tolist()):
            if tried >= (NODES if best is not None else FURTHER_NODES):
                break
            on_node = by_node[starts[node] : starts[node + 1]]
            left = (free[node] + released[node] - requests)[scarce]
            must_leave = _must_leave(left, taken[on_node], node, conditions, counted[:, on_node])
            on_node = on_node[np.lexsort((-weight[on_node], ~must_leave))]
            over = limits.over(on_node)
            order = np.concatenate([on_node[over], on_node[~over]])
            gone = _still_gone(order, left.tolist(), taken[order].tolist(), node, conditions, counted[:, order])
            exceeded = limits.exceeded(gone)
            if exceeded is None:
                continue
            cost = float(weight[gone].sum())
            if best is None or (exceeded, cost) < best[:2]:
                best = exceeded, cost, node, gone
        if best is None:
            return None
        _, _, node, gone = best
        kind, ident = low.kind[gone], low.id[gone]
        return Place(node, ident[kind == Kind.RUNNING], ident[(kind == Kind.NOMINATED) | (kind == Kind.PLACED)])

    def _conditions(self, c: int) -> list[Condition]:
        """The constraints of class c, as the round's decisions leave the cluster."""
        ledger, snapshot = self._ledger, self._snapshot
        state = snapshot.releases.state
        stays = state.tasks.node >= 0
        stays[self._outcome.victims] = False
        node_of = np.where(ledger.node_of >= 0, ledger.node_of, ledger.nominated)
        there = np.flatnonzero(node_of >= 0)
        running = RunningTasks(state, snapshot.nodes, np.flatnonzero(stays), (snapshot.tasks[there], node_of[there]))
        constraints = IntertaskConstraints(
            state, snapshot.nodes, snapshot.classes[[c]], snapshot.label_sets[[c]], running
        )
        return constraints.conditions(0)


def _must_leave(left: I64, asked: I64, node: int, conditions: list[Condition], counted: Bools) -> Bools:
    """(K,) which of the residents of a node may not stay, even alone; these use up budgets first. left (R'), asked
    (K, R') and counted (H, K): see _still_gone."""
    must_leave: Bools = np.any(asked > left, axis=1)
    here = np.array([node])
    for condition, of in zip(conditions, counted, strict=True):
        if not condition.met(here, of.sum(keepdims=True) - 1)[0]:
            must_leave |= of
    return must_leave


def _still_gone(
    order: I64, left: list[int], asked: list[list[int]], node: int, conditions: list[Condition], counted: Bools
) -> I64:
    """Those of the residents of a node, `order` (K,), that stay removed once the others are put back, in this order.
    left (R'): what is left beside the task without them; asked (K, R'): what they request, of the resources that the
    task requests; counted (H, K): by each condition. Lists, since there are few residents and many nodes."""
    stay_gone, here = np.ones(len(order), np.bool_), np.array([node])
    less = counted.sum(axis=1)
    concerned = np.any(counted, axis=0)
    for i, takes in enumerate(asked):
        after = [had - taken for had, taken in zip(left, takes, strict=True)]
        if min(after, default=0) < 0:
            continue
        if concerned[i]:
            of = np.flatnonzero(counted[:, i])
            if not all(conditions[h].met(here, less[h : h + 1] - 1)[0] for h in of.tolist()):
                continue
            less[of] -= 1
        left, stay_gone[i] = after, False
    return order[stay_gone]


@dataclass(frozen=True, slots=True)
class _Limits:
    """Of disruption budgets, and of members of gangs above their minimums. allowed (B,): how many evictions each
    permits; hard (B,): which may not be exceeded; counts (P, B): residents that each counts."""

    allowed: I64
    hard: Bools
    counts: Bools

    @classmethod
    def of(cls, snapshot: Snapshot, low: Resident, victims: I64, spare: Surplus) -> "_Limits":
        """victims (V,): rows of the task table that leave by decisions so far."""
        allowed, counts = budgets_of(snapshot.releases.state, low, victims)
        running = low.kind == Kind.RUNNING
        of = np.where(running[:, None], spare.of_row[np.where(running, low.id, 0)], -1)
        some = np.unique(of[of >= 0])
        left = spare.limit[some] - (spare.of_row[victims][:, :, None] == some).any(axis=1).sum(axis=0)
        members = (of[:, :, None] == some).any(axis=1)
        hard = np.arange(len(allowed) + len(some)) >= len(allowed)
        return cls(np.concatenate([allowed, left]), hard, np.concatenate([counts, members], axis=1))

    def all_hard(self) -> "_Limits":
        return _Limits(self.allowed, np.ones_like(self.hard), self.counts)

    def only(self, some: Bools) -> "_Limits":
        return _Limits(self.allowed, self.hard, self.counts[some])

    def exhausted(self) -> Bools:
        """(P,) residents that no eviction is permitted of."""
        exhausted: Bools = np.any(self.counts[:, self.hard & (self.allowed <= 0)], axis=1)
        return exhausted

    def over(self, residents: I64) -> Bools:
        """(K,) which of the residents (K,), evicted in this order, are beyond a limit."""
        if not len(self.allowed):
            return np.zeros(len(residents), np.bool_)
        counts = self.counts[residents]
        over: Bools = np.any(counts & (np.cumsum(counts, axis=0) > self.allowed), axis=1)
        return over

    def exceeded(self, residents: I64) -> int | None:
        """How many of the residents (K,), evicted together, are beyond limits; None: beyond a hard one."""
        if not len(self.allowed):
            return 0
        number = self.counts[residents].sum(axis=0)
        if np.any(number[self.hard] > self.allowed[self.hard]):
            return None
        return int(np.maximum(number - np.maximum(self.allowed, 0), 0).sum())
