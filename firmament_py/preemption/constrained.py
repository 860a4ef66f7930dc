"""Preemption for a task with constraints on other tasks: affinity, anti-affinity, spread.

Which residents must be evicted depends on all others, so each node is considered alone, as in kube-scheduler: all its
residents of lower precedence are removed; if the node then satisfies the task's constraints, they are put back one
after the other, where it still does: first those whose eviction would exceed a disruption budget, then the others, the
most important first. Budgets count those first that cannot stay even alone. The node with the fewest evictions beyond
budgets is taken, of several the one whose victims cost least. As in kube-scheduler, victims are on the preemptor's own
node: constraints that residents of other nodes break are not resolved.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import F64, I64, NO_ROWS, Bools, add_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import EvictionCosts
from firmament_py.policy import COST_MAX
from firmament_py.preemption.gang_victims import Surplus
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.residents import Kind, Resident, budgets_of, residents_below
from firmament_py.snapshot.domains import Condition
from firmament_py.snapshot.intertask import RESPECTS_ALL, IntertaskConstraints
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
        snapshot, victims = self._snapshot, self._outcome.victims
        state = snapshot.releases.state
        c = int(snapshot.task_class[task])
        priority = int(precedence.waiting[c])
        low = residents_below(self._ledger, precedence, priority, self._movable, victims, self._spare.evictable)
        limits = _Limits.of(snapshot, low, victims, self._spare)
        if not beyond_budgets:
            limits = limits.all_hard()
        evictable = ~limits.exhausted()
        low, limits = low.only(evictable), limits.only(evictable)
        if not len(low.id):
            return None
        leaving = low.kind == Kind.LEAVING
        counted = np.array([each.counted(low.cls, low.label_set, leaving) for each in conditions], np.bool_)
        counted = counted.reshape(len(conditions), len(low.id))
        # the conditions count neither what this round evicts nor tasks that wait, which are less important
        counted[:, (leaving & np.isin(low.id, victims)) | (low.kind == Kind.NOMINATED)] = False
        released = np.zeros_like(self._ledger.free)
        add_rows(released, low.node, state.classes.requests[low.cls])
        scarce = np.flatnonzero(snapshot.requests[c])
        free = self._ledger.unreserved_for(np.array([task]), priority)
        emptied = _Emptied(
            node=low.node,
            weight=low.costs(state, self._eviction_costs) / COST_MAX * 64.0 ** np.minimum(low.rank(), 40),
            takes=state.classes.requests[low.cls][:, scarce],
            counted=counted,
            left=(free + released - snapshot.requests[c])[:, scarce],
            conditions=conditions,
            limits=limits,
        )
        best: tuple[int, float, int, I64] | None = None
        for tried, node in enumerate(emptied.nodes(snapshot.suitable[c])):
            if tried >= (NODES if best is not None else FURTHER_NODES):
                break
            gone = emptied.still_gone(node)
            exceeded = limits.exceeded(gone)
            if exceeded is None:
                continue
            cost = float(emptied.weight[gone].sum())
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
        there = np.flatnonzero(ledger.node_of >= 0)
        placed = snapshot.tasks[there], ledger.node_of[there]
        running = RunningTasks(state, snapshot.nodes, np.flatnonzero(stays), placed)
        of_class, respected = (snapshot.classes[[c]], snapshot.label_sets[[c]]), snapshot.intertask.respected(c)
        constraints = IntertaskConstraints(
            state, snapshot.nodes, *of_class, running, respected, np.array([RESPECTS_ALL])
        )
        return constraints.conditions(0)


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


@dataclass(frozen=True)
class _Emptied:
    """The nodes with the task and without P residents, H conditions of the task, and what each resident means to them.

    node, weight (P,): of a resident, the latter by rank, then by cost. takes (P, R'): of the resources that the task
    requests; left (N, R'): of these, beside the task. counted (H, P): by each condition."""

    node: I64
    weight: F64
    takes: I64
    counted: Bools
    left: I64
    conditions: list[Condition]
    limits: _Limits

    def nodes(self, suitable: Bools) -> list[int]:
        """Those of `suitable` (N,) with residents that satisfy the task, first those whose residents cost least."""
        number = len(self.left)
        nodes = np.flatnonzero(suitable & (self.left >= 0).all(axis=1) & (np.bincount(self.node, minlength=number) > 0))
        for condition, of in zip(self.conditions, self.counted, strict=True):
            less = np.bincount(self.node[of], minlength=number)
            nodes = nodes[condition.met(nodes, less[nodes])]
        cost = np.bincount(self.node, self.weight, minlength=number)
        in_order: list[int] = nodes[np.argsort(cost[nodes], kind="stable")].tolist()
        return in_order

    def still_gone(self, node: int) -> I64:
        """Residents of a node (K,), those that stay removed once the others are put back, one after the other."""
        order = self._order(node)
        gone, here, left = np.ones(len(order), np.bool_), np.array([node]), self.left[node].tolist()
        counted = self.counted[:, order]
        less, concerned = counted.sum(axis=1), np.any(counted, axis=0)
        for i, takes in enumerate(self.takes[order].tolist()):  # lists: there are few residents, and many nodes
            after = [had - taken for had, taken in zip(left, takes, strict=True)]
            if min(after, default=0) < 0:
                continue
            if concerned[i]:
                of = np.flatnonzero(counted[:, i])
                if not all(self.conditions[h].met(here, less[h : h + 1] - 1)[0] for h in of.tolist()):
                    continue
                less[of] -= 1
            left, gone[i] = after, False
        return order[gone]

    def _order(self, node: int) -> I64:
        """The residents of a node (K,) in the order in which they are put back: first those beyond a limit."""
        residents = self._by_node[self._start[node] : self._start[node + 1]]
        by_weight = residents[np.lexsort((-self.weight[residents], ~self._must_leave(node, residents)))]
        over = self.limits.over(by_weight)
        return np.concatenate([by_weight[over], by_weight[~over]])

    def _must_leave(self, node: int, residents: I64) -> Bools:
        """(K,) which of a node's residents (K,) cannot stay, even alone: these use up limits first."""
        must_leave: Bools = np.any(self.takes[residents] > self.left[node], axis=1)
        here = np.array([node])
        for condition, of in zip(self.conditions, self.counted[:, residents], strict=True):
            if not condition.met(here, of.sum(keepdims=True) - 1)[0]:
                must_leave |= of
        return must_leave

    @cached_property
    def _by_node(self) -> I64:
        """(P,)"""
        return np.argsort(self.node, kind="stable")

    @cached_property
    def _start(self) -> I64:
        """(N + 1,) where the residents of each node begin in `_by_node`."""
        return np.searchsorted(self.node[self._by_node], np.arange(len(self.left) + 1))
