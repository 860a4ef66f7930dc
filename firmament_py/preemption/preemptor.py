"""Priority preemption: which running tasks are evicted, so that waiting tasks of higher priority fit.

The victims are those of least cost for all preemptors of the round together (eviction/evict.py): none of a higher
priority where lower ones do, and of these the set that the policy says costs least. A preemptor is
*nominated*: its node keeps what it requests until its victims are gone, and counts as full for others meanwhile. It
waits, and a later round places it: there, or sooner elsewhere. A nominated task does not preempt again unless its
nomination has failed.

So nothing loops: each victim is evicted for a task of strictly higher priority that fits once its victims are gone.
The semantics are those of kube-scheduler's DefaultPreemption, except that disruption budgets hold unless they may be
exceeded.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.model.options import EngineOptions, Preempting
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.repacking import may_move
from firmament_py.placement.running import EvictionCosts
from firmament_py.preemption.constrained import ConstrainedSearch
from firmament_py.preemption.decision import EvictionSearch, Question
from firmament_py.preemption.failed_nominations import end_failed_nominations
from firmament_py.preemption.movable_tasks import MovableNearby
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import PROTECTED, Precedence, by_priority
from firmament_py.preemption.reclaimer import Reclaimer, ReclaimHistory
from firmament_py.preemption.servable import KnownBounds, Servable
from firmament_py.preemption.topology import preferred_domain
from firmament_py.preemption.whole_gangs import decide
from firmament_py.sharing.decision import QueueDecision
from firmament_py.snapshot.job_demand import JobDemand

TOGETHER = 2_000
"""If no more tasks than this are to be served, those that the round has placed compete with preemptors for places."""

_LEVELS = 8
"""At so many priorities, the highest, tasks with constraints on others preempt before all others of a lower one."""

_ATTEMPTS = 8
"""Number of decisions of a round, each without the gangs that the last one did not serve entirely."""

_FURTHER_EFFORT = 0.25
"""Effort of the second and later decisions, so that gangs that cannot be served do not delay a round."""


class Preemptor:
    """Preempts for the tasks of a ledger, and moves running tasks for them. nearby: finds those that may move, None:
    none may. movable: the same, but also if none may in this round. known: bounds of the last round. history: of
    reclaims. preempts: False: no task is evicted, whatever the options say."""

    def __init__(
        self,
        ledger: Ledger,
        options: EngineOptions,
        eviction_costs: EvictionCosts,
        nearby: MovableNearby | None = None,
        movable: MovableNearby | None = None,
        known: KnownBounds | None = None,
        queues: QueueDecision | None = None,
        history: ReclaimHistory | None = None,
        *,
        preempts: bool = True,
    ) -> None:
        self._ledger = ledger
        self._snapshot = ledger.snapshot
        self._preempting = options.preempting if preempts else Preempting.OFF
        self._eviction_costs = eviction_costs
        self._movable = nearby if movable is None else movable
        self._known = KnownBounds() if known is None else known
        self._beyond_budgets = self._preempting is Preempting.BEYOND_BUDGETS
        self._nearby = nearby
        self._effort = options.improve
        self.outcome = Outcome(ledger)
        self._queues = queues
        self._history = ReclaimHistory() if history is None else history
        self.due_us = 0
        """When tasks of queues may preempt that may not yet, 0: never, unless something changes."""
        self.at_best: dict[int, int] = {}
        """Rows of gangs for which evictions and moves are proved not to suffice -> how many of the members that they
        lack would fit at best."""

    @cached_property
    def _precedence(self) -> Precedence:
        return by_priority(self._snapshot)

    @cached_property
    def _evicts(self) -> Bools:
        """(C,) classes for whose tasks others are evicted."""
        if self._preempting is Preempting.OFF:
            return np.zeros(len(self._snapshot.classes), np.bool_)
        evicts: Bools = self._precedence.waiting > self._precedence.least(self._snapshot)
        return evicts & ~self._snapshot.never_preempts

    @cached_property
    def _unqueued(self) -> Bools:
        """(T,) tasks without a queue: those of queues preempt by other rules, and may only lose their places here."""
        unqueued: Bools = self._snapshot.releases.state.tasks.queue[self._snapshot.tasks] == 0
        return unqueued

    @cached_property
    def _search(self) -> EvictionSearch:
        return self._search_with(self._nearby)

    def _search_with(self, nearby: MovableNearby | None) -> EvictionSearch:
        of = self._ledger, self._precedence, self._evicts, self._eviction_costs, nearby
        return EvictionSearch(*of, beyond_budgets=self._beyond_budgets, effort=self._effort)

    def run(self, single: Bools, demands: Sequence[JobDemand] = ()) -> I64:
        """Preempts for those of the tasks `single` (T,) that wait, and for gangs that do. Returns tasks (K,),
        ascending, that were placed before, but wait again."""
        self._known.next_round()
        end_failed_nominations(self._ledger, self._snapshot.gang_demands)
        removed = self._by_priority(single, demands)
        if self._queues is not None and self._preempting is not Preempting.OFF:
            of = self._ledger, self._queues, self._eviction_costs, self.outcome, self._history
            reclaimer = Reclaimer(*of, beyond_budgets=self._beyond_budgets)
            reclaimer.run()
            self.due_us = reclaimer.due_us
        return removed[self._ledger.node_of[removed] < 0]

    def _by_priority(self, single: Bools, demands: Sequence[JobDemand]) -> I64:
        """Preempts for tasks that have no queue; returns tasks (K,) that have lost their places to them."""
        ledger, snapshot = self._ledger, self._snapshot
        able = (ledger.node_of < 0) & (ledger.nominated < 0)
        able &= self._unqueued
        if able.any() and (self._movable is None or not self._movable.later):
            able &= self._evicts[snapshot.task_class]
        if not able.any():
            return NO_ROWS
        independent = may_move(snapshot)[snapshot.task_class]
        able_gangs = [demand for demand in demands if (able & independent)[demand.core()].all()]
        # a task that is never preempted keeps the node that it is nominated on, too
        holds = (ledger.nominated >= 0) & snapshot.releases.state.tasks.unevictable[snapshot.tasks]
        movable = single & ~holds & (independent | ((ledger.nominated >= 0) & (ledger.node_of < 0)))
        servable = Servable(
            ledger,
            self._precedence,
            self._evicts,
            movable,
            self._search.surplus,
            self._movable,
            self._known,
            beyond_budgets=self._beyond_budgets,
        )
        singles, servable_gangs = servable.of(np.flatnonzero(movable & able), able_gangs)
        self.at_best = servable.at_best
        within: dict[int, Bools] = {}  # by row of the gang
        for demand in servable_gangs:
            priority = self._highest(demand.core())
            found = preferred_domain(
                self._search, ledger, demand, servable.within.get(demand.key, []), movable, priority
            )
            if found is not None:
                within[demand.key] = found
        constrained = np.flatnonzero(single & able & ~independent & self._evicts[snapshot.task_class])
        return self._in_order(singles, servable_gangs, constrained, movable, within)

    def _in_order(
        self, singles: I64, gangs: list[JobDemand], constrained: I64, movable: Bools, within: Mapping[int, Bools]
    ) -> I64:
        """Preempts for single tasks (K,) and gangs together, and for tasks (L,) that have constraints on others one by
        one: these after all others of their priority or a higher one, and before those of a lower one. Returns the
        tasks that lose the places that the round gave them."""
        priority = self._precedence.waiting[self._snapshot.task_class]
        of = self._ledger, self.outcome, self._eviction_costs, movable, self._search.surplus
        search = ConstrainedSearch(*of, beyond_budgets=self._beyond_budgets)
        lost, above = [NO_ROWS], PROTECTED
        for level in np.unique(priority[constrained])[::-1][:_LEVELS].tolist():
            now = singles[(level <= priority[singles]) & (priority[singles] < above)]
            gangs_now = [demand for demand in gangs if level <= demand.priority < above]
            lost.append(self._serve(now, gangs_now, movable, within))
            lost.append(self._preempt_constrained(search, constrained[priority[constrained] == level]))
            above = level
        left = [demand for demand in gangs if demand.priority < above]
        lost.append(self._serve(singles[priority[singles] < above], left, movable, within))
        lost.append(self._preempt_constrained(search, constrained[priority[constrained] < above]))
        return np.unique(np.concatenate(lost))

    def _preempt_constrained(self, search: ConstrainedSearch, preemptors: I64) -> I64:
        """Preempts for tasks (K,), ascending, one after the other. Returns the tasks that lose the places that the
        round gave them."""
        lost = [NO_ROWS]
        in_vain = -1  # the class of the last task without a place: for the others of it, which follow, nothing changes
        for task, c in zip(preemptors.tolist(), self._snapshot.task_class[preemptors].tolist(), strict=True):
            if c == in_vain:
                continue
            found = search.find(task, self._precedence)
            if found is None:
                in_vain = c
                continue
            lost.append(found.displaced[self._ledger.node_of[found.displaced] >= 0])
            self._ledger.remove(lost[-1])
            for other in found.displaced.tolist():
                self._ledger.nominate(other, -1)
            self._ledger.nominate(task, found.node)
            self.outcome.evict(found.victims, np.full(len(found.victims), self._snapshot.tasks[task]))
        return np.concatenate(lost)

    def _serve(self, singles: I64, demands: list[JobDemand], movable: Bools, within: Mapping[int, Bools]) -> I64:
        """Preempts for tasks (K,), ascending, and for gangs, each of which is served entirely or not at all. Those that
        the round has placed compete with them, and may get other nodes, since no placement is committed yet. within:
        rows of gangs -> the only nodes (N,) that they may get. Returns the tasks that lose the places that the round
        gave them."""
        ledger, snapshot = self._ledger, self._snapshot
        placed = movable & self._unqueued & (ledger.node_of >= 0) & ~snapshot.never_preempts[snapshot.task_class]
        if len(singles) + sum(demand.lacking for demand in demands) + placed.sum() > TOGETHER:
            placed[:] = False
        # the limit on moves holds for the round
        search = self._search_with(None) if self.outcome.moves else self._search
        by_rank = sorted(demands, key=lambda demand: (-demand.priority, demand.created_us))
        waiting = by_rank
        for attempt in range(_ATTEMPTS):
            if attempt == _ATTEMPTS - 1:
                waiting = []  # single tasks are served in any case
            cores = [demand.core() for demand in waiting]
            tasks = np.unique(np.concatenate([singles, np.flatnonzero(placed), *cores]))
            if not len(tasks) or (ledger.node_of[tasks] >= 0).all():
                return NO_ROWS
            seniority = len(waiting) + np.arange(len(ledger.node_of))
            for i, core in enumerate(cores):
                seniority[core] = i
            limited = [
                (core, within[demand.key]) for demand, core in zip(waiting, cores, strict=True) if demand.key in within
            ]
            question = Question(tasks, movable & ~placed, self.outcome.victims, seniority, limited)
            effort = 1.0 if attempt == 0 else _FURTHER_EFFORT
            decision = decide(search, ledger, question, self._highest(tasks), effort)
            if decision is None:
                return NO_ROWS
            served = np.zeros(len(ledger.node_of), np.bool_)
            served[decision.tasks] = True
            short = [i for i, core in enumerate(cores) if not served[core].all()]
            if not short:
                return self.outcome.carry_out(decision, self._precedence, tasks, cores)
            # without the gangs that get nothing and the last of the others, more may be left for the first ones
            partly = [i for i in short if served[cores[i]].any()]
            dropped = {*short} - {*partly[:-1]}
            left = [demand for i, demand in enumerate(waiting) if i not in dropped]
            if (
                not left
            ):  # without those that are short even alone, gangs that were dropped because of them may be served
                hopeless = [waiting[i] for i in partly or short]
                left = by_rank = [demand for demand in by_rank if not self._asks_for_all_of(demand, hopeless)]
            waiting = left
        return NO_ROWS

    def _asks_for_all_of(self, demand: JobDemand, others: list[JobDemand]) -> bool:
        """Whether a gang lacks at least what one of the others lacks."""
        classes = len(self._snapshot.classes)
        lacks, *less = (np.bincount(self._snapshot.task_class[d.core()], minlength=classes) for d in (demand, *others))
        return any((lacks >= counts).all() for counts in less)

    def _highest(self, tasks: I64) -> int:
        """The highest priority of tasks (K,) that wait and may preempt."""
        classes = self._snapshot.task_class[tasks[self._ledger.node_of[tasks] < 0]]
        lowest = np.iinfo(np.int64).min
        return int(self._precedence.waiting[classes[self._evicts[classes]]].max(initial=lowest))
