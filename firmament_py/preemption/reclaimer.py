"""Preemption by the rules of queues: within a queue, and reclaim of what other queues use beyond what is theirs.

One job of a queue after the other, in their order. Candidates are the running tasks that its queue's rules permit
(queues/permissions.py). The search of evictions finds nodes for the job and the victims there; if its quota does not
suffice then, further victims follow, on any node: of other queues first, the least important, then the newest. The set
is judged as a whole (queues/judgement.py): a victim that the rules do not permit in the end is no candidate any more,
and the search begins anew. So no task is evicted for quota that no node has a place for, and fairness holds for what is
left in the end.

The tasks of the job are nominated, and hold their quota and their nodes from then on.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import F64, I64, NO_ROWS, Bools
from firmament_py.model.lifecycle import TaskState
from firmament_py.model.queues import Within
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.repacking import may_move
from firmament_py.placement.running import EvictionCosts
from firmament_py.preemption.decision import Decision, EvictionSearch, Question
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import PROTECTED, Precedence
from firmament_py.preemption.whole_gangs import decide
from firmament_py.queues.judgement import Victims, judge
from firmament_py.queues.permissions import Situation, Why, permissions, sides
from firmament_py.sharing.claims import Claim, Standing
from firmament_py.sharing.decision import QueueDecision
from firmament_py.state.gangs import NO_GANG

_PREEMPTOR = PROTECTED - 1
"""Precedence of the tasks of a claim: above all candidates, whatever their priorities."""

_LEAVING = -1
"""Precedence of what leaves in any case: below all candidates."""

_ATTEMPTS = 8
"""Number of searches for one job: each for fewer of its tasks, or without the victim that the last set should not have
had."""

_SEARCHES = 64
"""Limit on the searches of a round; the next one, which is due at once, begins with the other jobs."""

_EFFORT = 0.25

_FOREVER_US = 2**60


@dataclass(frozen=True, slots=True)
class _Candidates:
    """rows (K,) of the task table that may leave; precedence (K,), ascending: which of them first."""

    rows: I64
    precedence: I64


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a job asks for: so many tasks of each class, on flavors."""

    classes: Counter[int]
    flavor: tuple[int, ...]
    priority: int
    created_us: int
    preemptible: bool

    def includes(self, other: "_Demand") -> bool:
        """Whether it asks for all of another job of its queue, and may not evict more than that one."""
        weaker = self.priority <= other.priority and self.created_us >= other.created_us
        weaker = weaker and self.preemptible <= other.preemptible
        return weaker and self.flavor == other.flavor and self.classes >= other.classes


class Reclaimer:
    """For the jobs of one ledger. beyond_budgets: disruption budgets may be exceeded. tried: uids of the jobs that the
    last rounds tried, if they did not come to all; from round to round the same set."""

    def __init__(
        self,
        ledger: Ledger,
        queues: QueueDecision,
        eviction_costs: EvictionCosts,
        outcome: Outcome,
        tried: set[int],
        *,
        beyond_budgets: bool,
    ) -> None:
        self._ledger = ledger
        self._tried = tried
        self._snapshot = ledger.snapshot
        self._state = ledger.snapshot.releases.state
        self._queues = queues
        self._standing: Standing = queues.standing
        self._eviction_costs = eviction_costs
        self._outcome = outcome
        self._beyond_budgets = beyond_budgets
        self._position = np.full(self._state.tasks.capacity, -1, np.int64)
        self._position[self._snapshot.tasks] = np.arange(len(self._snapshot.tasks))
        self._searches = 0
        self.due_us = 0
        """When a job has waited, or a candidate has run, for long enough; 0: no time changes anything."""
        self._evictable = self._evictable_rows()

    def run(self) -> None:
        """Preempts for the claims, the most important first: by rank, then priority, then age. Those that a round of
        too many searches did not come to are the first of the next one."""
        ledger, snapshot = self._ledger, self._snapshot
        if not len(self._evictable):
            return
        placed = np.flatnonzero(ledger.node_of >= 0)
        self._standing.arrive(snapshot.tasks[placed], snapshot.nodes[ledger.node_of[placed]])
        before = np.flatnonzero(snapshot.nominated >= 0)  # some are placed by now, or nominated no more
        self._standing.leave(snapshot.tasks[before], snapshot.nodes[snapshot.nominated[before]])
        nominated = np.flatnonzero((ledger.node_of < 0) & (ledger.nominated >= 0))
        self._standing.arrive(snapshot.tasks[nominated], snapshot.nodes[ledger.nominated[nominated]])
        gone = self._outcome.victims
        self._standing.leave(gone, self._state.tasks.node[gone])
        unserved = np.zeros(self._state.tasks.capacity, np.bool_)
        unserved[snapshot.tasks[(ledger.node_of < 0) & (ledger.nominated < 0) & ~ledger.delayed]] = True
        claims = self._queues.claims.of(unserved)
        if len(claims) > 1:
            rank = self._queues.ranking.rank
            claims.sort(
                key=lambda claim: (
                    self._uid(claim) in self._tried,
                    -rank[claim.rows].max(),
                    -claim.priority,
                    claim.created_us,
                )
            )
        hopeless: dict[int, list[_Demand]] = {}  # by queue: what no victims were found for
        for claim in claims:
            if self._searches >= _SEARCHES:
                self.due_us = snapshot.now_us
                return
            demand, of_queue = self._demand(claim), hopeless.setdefault(claim.queue, [])
            if not any(demand.includes(other) for other in of_queue) and not self._serve(claim):
                of_queue.append(demand)
            self._tried.add(self._uid(claim))
        self._tried.clear()

    def _uid(self, claim: Claim) -> int:
        return int(self._state.tasks.uid[claim.rows].min())

    def _demand(self, claim: Claim) -> "_Demand":
        rows = claim.rows if claim.whole else claim.rows[:1]
        classes = Counter(self._state.tasks.cls[rows].tolist())
        return _Demand(classes, tuple(claim.flavor.tolist()), claim.priority, claim.created_us, claim.preemptible)

    def _serve(self, claim: Claim) -> bool:
        """Preempts for a job, if it needs that; False: no victims were found for it."""
        ledger, snapshot = self._ledger, self._snapshot
        tasks = np.sort(self._position[claim.rows])
        tasks = tasks[tasks >= 0]
        tasks = tasks[(ledger.node_of[tasks] < 0) & (ledger.nominated[tasks] < 0) & ~ledger.delayed[tasks]]
        classes = np.unique(snapshot.task_class[tasks])
        independent = may_move(snapshot)[classes].all() and not snapshot.never_preempts[classes].any()
        if not len(tasks) or (claim.whole and len(tasks) < len(claim.rows)) or not independent:
            return True
        if self._too_early(claim):
            return True
        refused = np.zeros(self._state.tasks.capacity, np.bool_)
        attempts = _ATTEMPTS
        while attempts and len(tasks) and self._searches < _SEARCHES:
            fewer = tasks[: 0 if claim.whole else len(tasks) // 2]  # of a gang, all or none
            situation = self._standing.situation(claim, len(tasks))
            candidates = self._candidates(situation, refused)
            if not len(candidates.rows):
                tasks = fewer
                continue
            if claim.whole and not self._standing.fits(situation, self._sum(candidates.rows)):
                return False  # whatever a search would find, quota does not suffice
            attempts, self._searches = attempts - 1, self._searches + 1
            precedence = self._precedence(candidates)
            decision = self._search(tasks, precedence)
            served = np.sort(decision.tasks) if decision is not None else tasks[:0]
            if decision is None or len(served) < len(tasks):
                tasks = fewer if claim.whole else served
                continue
            victims = self._for_quota(situation, candidates, decision.victims)
            if victims is None:
                tasks = fewer
                continue
            verdict = judge(situation, self._described(victims))
            if verdict:
                self._carry_out(claim, decision, precedence, tasks, victims)
                return claim.whole or self._serve(claim)  # the others of it, if any
            if len(fewer):
                tasks = fewer
            elif verdict.victim >= 0:
                refused[self._unit(victims[verdict.victim], victims)] = True
            else:
                return False
        return False

    def _too_early(self, claim: Claim) -> bool:
        delay_s = self._standing.use.queues.definitions[claim.queue].preemption_delay_s
        return self._later(claim.created_us + round(delay_s * 1e6))

    def _later(self, time_us: int) -> bool:
        """Whether this is yet to come; notes it then."""
        later = time_us > self._snapshot.now_us
        if later and time_us < _FOREVER_US:
            self.due_us = min(time_us, self.due_us or time_us)
        return later

    def _candidates(self, situation: Situation, refused: Bools) -> _Candidates:
        """Running tasks that may leave for the job, by the rules of their queues alone. refused (T,): not these.

        The first are those of other queues, of the least important queue, and of the lowest priority; among these, the
        ones that leave their queue what it is entitled to.
        """
        state, tasks, use = self._state, self._state.tasks, self._standing.use
        granted = permissions(situation)
        rows = self._evictable
        rows = rows[(granted.why != Why.NOT)[use.queue_of(rows)] & ~refused[rows]]
        leave = np.zeros(tasks.capacity, np.bool_)
        leave[self._outcome.victims] = True
        rows = rows[~leave[rows]]
        completed = np.unique(tasks.gang[self._snapshot.tasks[self._ledger.node_of >= 0]])
        rows = rows[~np.isin(tasks.gang[rows], completed[completed != NO_GANG])]  # else the new members would stay
        queue, priority = use.queue_of(rows), state.classes.priority[tasks.cls[rows]]
        may = granted.reasons(queue, priority) != Why.NOT
        newer = (priority == situation.priority) & (tasks.created_us[rows] > situation.created_us)
        may |= granted.equal_if_newer[queue] & newer
        own = queue == situation.queue
        if use.queues.definitions[situation.queue].within is Within.NEVER:
            may &= ~own
        began_us = np.maximum(tasks.started_us[rows], tasks.created_us[rows])
        least_us = np.minimum(self._least_s[queue, own.astype(np.int64)] * 1e6, _FOREVER_US).astype(np.int64)
        protected = may & (began_us + least_us > self._snapshot.now_us)
        self._later(int((began_us + least_us)[protected].min(initial=_FOREVER_US)))
        may &= ~protected
        rows, own, priority = rows[may], own[may], priority[may]
        amounts = self._standing.amounts(state, rows)[:, situation.needed]
        uses = (amounts > 0).any(axis=1)
        rows, own, priority, amounts = rows[uses], own[uses], priority[uses], amounts[uses]
        queue = use.queue_of(rows)
        too_large = ~own & (amounts > granted.excess[queue][:, situation.needed]).any(axis=1)
        of_queue = np.where(own, 0, use.queues.priority[sides(situation)[queue]])
        keys = np.array([own, granted.within_floor[queue], of_queue, priority, too_large], np.int64)
        precedence = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
        order = np.lexsort((-tasks.started_us[rows], precedence))
        return _Candidates(rows[order], precedence[order])

    @cached_property
    def _least_s(self) -> F64:
        """(Q, 2) seconds that tasks of each queue run before others evict them, and before those of their own do."""
        definitions = self._standing.use.queues.definitions
        return np.array([(d.reclaim_min_runtime_s, d.preempt_min_runtime_s) for d in definitions])

    def _evictable_rows(self) -> I64:
        """(K,) rows of tasks in queues that may leave at all, ascending."""
        tasks, use = self._state.tasks, self._standing.use
        rows = np.flatnonzero((tasks.state == TaskState.BOUND) & ~tasks.unevictable & ~tasks.leaving)
        return rows[(use.queue_of(rows) >= 0) & (use.position(tasks.node[rows]) >= 0)]

    def _precedence(self, candidates: _Candidates) -> Precedence:
        classes = len(self._snapshot.classes)
        running = np.where(self._state.tasks.leaving, _LEAVING, PROTECTED)  # what leaves is free for all
        running[self._outcome.victims] = _LEAVING
        running[candidates.rows] = candidates.precedence
        return Precedence(np.full(classes, _PREEMPTOR), np.full(classes, PROTECTED), running)

    def _search(self, tasks: I64, precedence: Precedence) -> Decision | None:
        """Nodes for the tasks (K,), and victims there."""
        ledger = self._ledger
        evicts = np.ones(len(self._snapshot.classes), np.bool_)
        search = EvictionSearch(
            ledger, precedence, evicts, self._eviction_costs, None, beyond_budgets=self._beyond_budgets
        )
        none = np.zeros(len(ledger.node_of), np.bool_)
        question = Question(tasks, none, self._outcome.victims, np.arange(len(ledger.node_of)))
        return decide(search, ledger, question, _PREEMPTOR, _EFFORT)

    def _for_quota(self, situation: Situation, candidates: _Candidates, victims: I64) -> I64 | None:
        """`victims` (V,), and the first further candidates with which the quota suffices; None: it never does."""
        standing, leave = self._standing, self._sum(victims)
        if standing.fits(situation, leave):
            return victims
        rows, start = self._units(candidates.rows[~np.isin(candidates.rows, victims)], victims)
        queue, amounts = standing.use.queue_of(rows), standing.amounts(self._state, rows)

        def without(units: int) -> I64:
            total = leave.copy()
            np.add.at(total, queue[: start[units]], amounts[: start[units]])
            return total

        low, high = 1, len(start) - 1  # the fewest units that suffice
        if not high or not standing.fits(situation, without(high)):
            return None
        while low < high:
            middle = (low + high) // 2
            if standing.fits(situation, without(middle)):
                high = middle
            else:
                low = middle + 1
        used, chosen = without(low), np.ones(start[low], np.bool_)
        needed = set[tuple[bytes, bytes]]()  # of units alike none is put back once one of them cannot be
        for i in reversed(range(low - 1)):  # put back what is not needed
            unit = slice(start[i], start[i + 1])
            kind = queue[unit].tobytes(), amounts[unit].tobytes()
            if kind in needed:
                continue
            less = used.copy()
            np.subtract.at(less, queue[unit], amounts[unit])
            if standing.fits(situation, less):
                used, chosen[unit] = less, False
            else:
                needed.add(kind)
        return np.concatenate([victims, rows[: start[low]][chosen]])

    def _units(self, rows: I64, victims: I64) -> tuple[I64, I64]:
        """What can leave on its own, of candidates (K,) in their order: single tasks, and whole gangs, unless one of
        their members is no candidate; within disruption budgets. Rows (L,), and where each of U units begins (U + 1,).
        """
        state, tasks = self._state, self._state.tasks
        before = np.concatenate([self._outcome.victims, victims])
        allowed, counted = state.evictions_allowed(tasks.label_set[before])
        left = allowed - counted.sum(axis=1)
        limited = len(left) > 0 and not self._beyond_budgets
        ganged = tasks.gang[rows] != NO_GANG
        if not limited and not ganged.any():
            return rows, np.arange(len(rows) + 1)
        running = np.flatnonzero((tasks.node >= 0) & (tasks.gang != NO_GANG) & ~tasks.leaving)
        units, seen = [NO_ROWS], set[int]()
        for row in rows.tolist():
            gang = int(tasks.gang[row])
            if gang in seen:
                continue
            unit = np.array([row])
            if gang != NO_GANG:
                seen.add(gang)
                unit = running[tasks.gang[running] == gang]
                if not np.isin(unit, rows).all():
                    continue
            if limited:
                counts = state.evictions_allowed(tasks.label_set[unit])[1].sum(axis=1)
                if (counts > np.maximum(left, 0))[counts > 0].any():
                    continue
                left = left - counts
            units.append(unit)
        return np.concatenate(units), np.cumsum([len(unit) for unit in units])

    def _sum(self, rows: I64) -> I64:
        """(Q, V) what task rows (K,) use."""
        return self._standing.use.of(rows, self._state.tasks.node[rows])

    def _described(self, rows: I64) -> Victims:
        state, tasks, use = self._state, self._state.tasks, self._standing.use
        return Victims(
            queue=use.queue_of(rows),
            priority=state.classes.priority[tasks.cls[rows]],
            created_us=tasks.created_us[rows],
            amounts=self._standing.amounts(state, rows),
            preemptible=~tasks.unevictable[rows],
        )

    def _unit(self, row: int, victims: I64) -> I64:
        """The victim, with its gang."""
        gang = self._state.tasks.gang[row]
        return np.array([row]) if gang == NO_GANG else victims[self._state.tasks.gang[victims] == gang]

    def _carry_out(self, claim: Claim, decision: Decision, precedence: Precedence, tasks: I64, victims: I64) -> None:
        state, snapshot, ledger = self._state, self._snapshot, self._ledger
        self._outcome.carry_out(decision, precedence, tasks, [tasks] if claim.whole else [])
        further = np.setdiff1d(victims, decision.victims)
        waits = tasks[ledger.node_of[tasks] < 0]
        self._outcome.evict(further, np.full(len(further), snapshot.tasks[waits[:1]]))
        self._standing.leave(victims, state.tasks.node[victims])
        at = np.where(ledger.node_of[tasks] >= 0, ledger.node_of[tasks], ledger.nominated[tasks])
        self._standing.arrive(snapshot.tasks[tasks], snapshot.nodes[at])
