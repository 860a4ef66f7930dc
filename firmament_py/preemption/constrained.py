"""Preemption for a task with constraints on other tasks: affinity, anti-affinity, spread.

Which residents must be evicted depends on all others, so nodes are tried one by one, as in kube-scheduler: on each,
all residents of lower priority are removed; if the node then satisfies the task's constraints, they are put back one
after the other, the most important first, where it still does. The node whose victims cost least is taken. As in
kube-scheduler, victims are on the preemptor's own node: constraints that residents of other nodes break are not
resolved.
"""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, add_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import EvictionCosts
from firmament_py.policy import COST_MAX
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import Precedence
from firmament_py.preemption.residents import Kind, Resident, budgets_of, residents_below
from firmament_py.snapshot.intertask import IntertaskConstraints
from firmament_py.snapshot.running_tasks import RunningTasks

TRIALS = 150
"""How often a round evaluates the constraints of such tasks: once is some 2 ms with 100,000 running tasks."""


class ConstrainedSearch:
    """For the tasks of one ledger, one after the other."""

    def __init__(
        self, ledger: Ledger, outcome: Outcome, eviction_costs: EvictionCosts, *, beyond_budgets: bool
    ) -> None:
        """outcome: its victims leave in any case, and free what they use. beyond_budgets: disruption budgets are
        exceeded for tasks that nothing else serves."""
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._outcome = outcome
        self._eviction_costs = eviction_costs
        self._beyond_budgets = beyond_budgets
        self._trials_left = TRIALS

    def find(self, task: int, precedence: Precedence, *, without_victims: bool = False) -> tuple[int, I64] | None:
        """The node for a task, which has none, and the rows of its victims (V,); None: there is none.
        without_victims: a node that suits it as it is will do, since the task may lack nothing but quota."""
        if without_victims and (node := self._suiting(task, precedence)) is not None:
            return node, NO_ROWS
        found = self._find(task, precedence, beyond_budgets=False)
        if found is None and self._beyond_budgets:
            found = self._find(task, precedence, beyond_budgets=True)
        return found

    def _suiting(self, task: int, precedence: Precedence) -> int | None:
        """A node that satisfies all constraints of the task as it is."""
        c = self._snapshot.task_class[task]
        requests = self._snapshot.requests[c]
        free = self._ledger.unreserved_for(np.array([task]), int(precedence.waiting[c]))
        suits = self._snapshot.suitable[c] & ((free >= requests) | (requests == 0)).all(axis=1)
        if not suits.any() or not self._trials_left:
            return None
        suits &= self._allowed(task, NO_ROWS)
        return int(suits.argmax()) if suits.any() else None

    def _find(self, task: int, precedence: Precedence, *, beyond_budgets: bool) -> tuple[int, I64] | None:
        ledger, snapshot, victims = self._ledger, self._snapshot, self._outcome.victims
        c = int(snapshot.task_class[task])
        priority, requests = int(precedence.waiting[c]), snapshot.requests[c]
        low = residents_below(ledger, precedence, priority, np.zeros(len(ledger.node_of), np.bool_), victims)
        allowed, counts = budgets_of(snapshot.releases.state, low)
        if beyond_budgets:
            allowed, counts = allowed[:0], counts[:, :0]
        allowed = allowed - counts[np.isin(low.id, victims)].sum(axis=0)
        exhausted = np.zeros(len(low.id), np.bool_) | counts[:, allowed <= 0].any(axis=1)
        low, counts = low.only(~exhausted), counts[~exhausted]
        if not len(low.id) or self._trials_left < 3:
            return None
        state = snapshot.releases.state
        released = np.zeros_like(ledger.free)
        add_rows(released, low.node, state.classes.requests[low.cls])
        free = ledger.unreserved_for(np.array([task]), priority)
        able = snapshot.suitable[c] & ((free + released >= requests) | (requests == 0)).all(axis=1)
        able &= np.bincount(low.node, minlength=len(free)) > 0
        able &= self._allowed(task, low.id) | self._allowed(task, self._leaving(low))
        if not able.any():
            return None
        best: tuple[float, int, I64] | None = None
        weight = low.costs(state, self._eviction_costs) / COST_MAX * 64.0 ** np.minimum(low.rank(), 40)
        cost_of_all = np.bincount(low.node, weight, minlength=len(free))
        for node in np.flatnonzero(able)[np.argsort(cost_of_all[able], kind="stable")].tolist():
            on_node = np.flatnonzero(low.node == node)
            if self._trials_left < 1:
                break
            found = self._victims_on(task, node, low, on_node[np.argsort(-weight[on_node], kind="stable")], free[node])
            if found is not None and (counts[found].sum(axis=0) <= allowed).all():
                cost = float(weight[found].sum())
                if best is None or cost < best[0]:
                    best = cost, node, low.id[found[low.kind[found] == Kind.RUNNING]]
        return best[1:] if best is not None else None

    def _victims_on(self, task: int, node: int, low: Resident, on_node: I64, free: I64) -> I64 | None:
        """Positions in `low` of those of `on_node` (K,), the most important first, that must be evicted; None: the node
        does not suit the task even without all of them."""
        snapshot = self._snapshot
        state, requests = snapshot.releases.state, snapshot.requests[snapshot.task_class[task]]
        if not self._allowed(task, low.id[on_node])[node]:
            return None
        gone = on_node
        left = free + state.classes.requests[low.cls[on_node]].sum(axis=0) - requests
        matters = self._matters(task, low)
        for at in on_node.tolist():
            after = left - state.classes.requests[low.cls[at]]
            if ((after < 0) & (requests > 0)).any():
                continue
            fewer = gone[gone != at]
            if matters[at] and (self._trials_left < 1 or not self._allowed(task, low.id[fewer])[node]):
                continue
            left, gone = after, fewer
        return gone

    def _matters(self, task: int, low: Resident) -> Bools:
        """(P,) residents that constraints of the task, or their own ones, refer to."""
        state = self._snapshot.releases.state
        peers = state.classes.definition(int(self._snapshot.classes[self._snapshot.task_class[task]])).peers
        selectors = [term.selector for term in (*peers.affinity, *peers.anti_affinity)]
        selectors += [spread.selector for spread in peers.spread]
        matched = state.classes.repels[low.cls]
        for selector in selectors:
            matched |= state.label_sets.matching(selector)[low.label_set]
        return matched

    def _leaving(self, low: Resident) -> I64:
        leaving: I64 = low.id[low.kind == Kind.LEAVING]
        return leaving

    def _allowed(self, task: int, without: I64) -> Bools:
        """(N,) nodes that satisfy the task's constraints without the task rows `without`."""
        self._trials_left -= 1
        ledger, snapshot = self._ledger, self._snapshot
        state, c = snapshot.releases.state, snapshot.task_class[task]
        stay = np.setdiff1d(np.flatnonzero(state.tasks.node >= 0), np.concatenate([without, self._outcome.victims]))
        node_of = np.where(ledger.node_of >= 0, ledger.node_of, ledger.nominated)
        there = np.flatnonzero(node_of >= 0)
        running = RunningTasks(state, snapshot.nodes, stay, (snapshot.tasks[there], node_of[there]))
        constraints = IntertaskConstraints(
            state, snapshot.nodes, snapshot.classes[[c]], snapshot.label_sets[[c]], running
        )
        return constraints.allowed(0)
