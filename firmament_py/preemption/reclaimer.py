"""Preemption by the rules of queues: within a queue, and reclaim of what other queues use beyond what is theirs.

One job of a queue after the other, in their order: first for what their queues are entitled to, so that nothing is
evicted for a queue that borrows and then for one that does not. Candidates are the running tasks that its queue's rules
permit (queues/permissions.py). The search of evictions finds nodes for the job and the victims there; if its quota does
not suffice then, further victims follow, on any node: of other queues first, the least important, then the newest. The
set is judged as a whole (queues/judgement.py): a victim that the rules do not permit in the end is no candidate any
more, and the search begins anew. So no task is evicted for quota that no node has a place for, and fairness holds for
what is left in the end.

The tasks of the job are nominated, and hold their quota and their nodes from then on.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, add_rows, distinct_rows
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.repacking import may_move
from firmament_py.placement.running import EvictionCosts
from firmament_py.preemption.constrained import ConstrainedSearch
from firmament_py.preemption.decision import Decision, EvictionSearch, Question
from firmament_py.preemption.eviction_rates import EvictionRates, evictions
from firmament_py.preemption.outcome import Outcome
from firmament_py.preemption.precedence import PROTECTED, Precedence
from firmament_py.preemption.quota_victims import QuotaVictims
from firmament_py.preemption.reclaim_candidates import Candidates, CandidateSearch
from firmament_py.preemption.servable import KnownBounds, Servable
from firmament_py.preemption.topology import preferred_domain
from firmament_py.preemption.whole_gangs import decide
from firmament_py.queues.judgement import Victims, judge
from firmament_py.queues.permissions import NO_PRIORITY
from firmament_py.queues.ranking import by_rank
from firmament_py.sharing.claims import Claim, Standing
from firmament_py.sharing.decision import QueueDecision
from firmament_py.state.gangs import NO_GANG

_PREEMPTOR = PROTECTED - 1
"""Precedence of the tasks of a claim: above all candidates, whatever their priorities."""

_LEAVING = -1
"""Precedence of what leaves in any case: below all candidates."""

_ATTEMPTS = 8
"""Number of searches for one job: each for fewer of its tasks, or without the victim that the last set should not have
had; the last one for victims of its own queue."""

_SEARCHES = 64
"""Limit on the searches of a round; the next one, which is due at once, begins with the other jobs."""

_EFFORT = 0.25


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


@dataclass(frozen=True, slots=True)
class _Constrained:
    """For one task (1,) with constraints on others: its node, and victims (V,) there."""

    tasks: I64
    node: int
    victims: I64


class ReclaimHistory:
    """What is known of the last rounds: tried, the jobs that they tried, by uid and for what, if they did not come to
    all."""

    def __init__(self) -> None:
        self.tried = set[tuple[int, bool]]()
        self.rates = EvictionRates()


class Reclaimer:
    """For the jobs of one ledger. beyond_budgets: disruption budgets may be exceeded. history: from round to round the
    same object."""

    def __init__(
        self,
        ledger: Ledger,
        queues: QueueDecision,
        eviction_costs: EvictionCosts,
        outcome: Outcome,
        history: ReclaimHistory,
        *,
        beyond_budgets: bool,
    ) -> None:
        self._ledger = ledger
        self._tried = history.tried
        self._snapshot = ledger.snapshot
        self._state = ledger.snapshot.releases.state
        self._queues = queues
        self._standing: Standing = queues.standing
        self._eviction_costs = eviction_costs
        self._outcome = outcome
        self._beyond_budgets = beyond_budgets
        self._position = np.full(self._state.tasks.capacity, -1, np.int64)
        self._position[self._snapshot.tasks] = np.arange(len(self._snapshot.tasks))
        self._lacking = {demand.row: demand for demand in ledger.snapshot.gang_demands}
        self._searches = 0
        self._candidates = CandidateSearch(ledger, queues.standing, outcome)
        self._quota_victims = QuotaVictims(self._state, queues.standing, outcome, beyond_budgets=beyond_budgets)
        self._constrained = ConstrainedSearch(ledger, outcome, eviction_costs, beyond_budgets=beyond_budgets)
        self._rates = history.rates
        self._evictions_left = history.rates.left(self._standing.use.queues, ledger.snapshot.now_us)
        self._unfinished = False

    @property
    def due_us(self) -> int:
        """When a job has waited, or a candidate has run, for long enough; now, if some jobs were not tried; 0: no time
        changes anything."""
        return self._snapshot.now_us if self._unfinished else self._candidates.due_us

    def run(self) -> None:
        """Preempts for the claims, the most important first: by rank, then priority, then age; first for what their
        queues are entitled to, then for the rest. Those that a round of too many searches did not come to are the first
        of the next one."""
        ledger, snapshot = self._ledger, self._snapshot
        if self._candidates.is_empty:
            return
        placed = np.flatnonzero(ledger.node_of >= 0)
        self._standing.arrive(snapshot.tasks[placed], snapshot.nodes[ledger.node_of[placed]])
        before = np.flatnonzero(snapshot.nominated >= 0)  # some are placed by now, or nominated no more
        self._standing.leave(snapshot.tasks[before], snapshot.nodes[snapshot.nominated[before]])
        nominated = np.flatnonzero((ledger.node_of < 0) & (ledger.nominated >= 0))
        self._standing.arrive(snapshot.tasks[nominated], snapshot.nodes[ledger.nominated[nominated]])
        gone = self._outcome.victims
        self._standing.evict(gone)
        unserved = np.zeros(self._state.tasks.capacity, np.bool_)
        unserved[snapshot.tasks[ledger.node_of < 0]] = True
        claims = self._queues.claims.of(unserved)
        hopeless: dict[int, list[_Demand]] = {}  # by queue: what no victims were found for
        for claim, entitled in self._in_order(claims):
            if self._searches >= _SEARCHES:
                self._unfinished = True
                return
            demand, of_queue = self._demand(claim), hopeless.setdefault(claim.queue, [])
            if not any(demand.includes(other) for other in of_queue) and not self._serve(claim, entitled=entitled):
                of_queue.append(demand)
            self._tried.add((self._uid(claim), entitled))
        self._tried.clear()

    def _in_order(self, claims: list[Claim]) -> list[tuple[Claim, bool]]:
        """Each claim twice: for what its queue is entitled to, and for the rest."""
        if len(claims) > 1:
            ranking = self._queues.ranking
            claims.sort(
                key=lambda claim: (
                    -by_rank(ranking, claim.rows, np.full(len(claim.rows), claim.priority)).max(),
                    claim.created_us,
                )
            )
        steps = [(claim, entitled) for entitled in (True, False) for claim in claims]
        steps.sort(key=lambda step: (self._uid(step[0]), step[1]) in self._tried)
        return steps

    def _uid(self, claim: Claim) -> int:
        return int(self._state.tasks.uid[claim.rows].min())

    def _demand(self, claim: Claim) -> "_Demand":
        rows = claim.rows if claim.whole else claim.rows[:1]
        classes = Counter(self._state.tasks.cls[rows].tolist())
        return _Demand(classes, tuple(claim.flavor.tolist()), claim.priority, claim.created_us, claim.preemptible)

    def _serve(self, claim: Claim, *, entitled: bool) -> bool:
        """Preempts for a job, if it needs that; False: no victims were found for it. entitled: only for tasks of it
        that are within the nominal amounts of its queue."""
        ledger, snapshot = self._ledger, self._snapshot
        tasks = np.sort(self._position[claim.rows])
        tasks = tasks[tasks >= 0]
        tasks = tasks[(ledger.node_of[tasks] < 0) & (ledger.nominated[tasks] < 0) & ~ledger.delayed[tasks]]
        tasks = self._of_ready_gangs(claim, tasks)
        classes = np.unique(snapshot.task_class[tasks])
        if not len(tasks) or (claim.whole and len(tasks) < len(claim.rows)) or snapshot.never_preempts[classes].any():
            return True
        if not may_move(snapshot)[classes].all():
            if claim.whole and len(tasks) > 1:
                return True  # gangs with constraints on other tasks do not preempt
            tasks = tasks[:1]
        if self._too_early(claim):
            return True
        if entitled:
            tasks = tasks[: self._standing.within_nominal(claim, len(tasks))]
            if not len(tasks):
                return True
        refused = np.zeros(self._state.tasks.capacity, np.bool_)
        attempts, borrowing = _ATTEMPTS, False
        while attempts and len(tasks) and self._searches < _SEARCHES:
            fewer = tasks[: 0 if claim.whole else len(tasks) // 2]  # of a gang, all or none
            situation = self._standing.situation(claim, len(tasks))
            candidates = self._candidates.of(situation, refused, borrowing=borrowing, own_alone=attempts == 1)
            if not len(candidates.rows):
                tasks, borrowing = fewer, False
                continue
            count = self._quota_for(claim, len(tasks), candidates.rows)
            if count < len(tasks):  # whatever a search would find, quota suffices for no more
                tasks = tasks[:count]
                continue
            attempts, self._searches = attempts - 1, self._searches + 1
            precedence = self._precedence(candidates)
            found = self._search(tasks, precedence)
            served = np.sort(found.tasks) if found is not None else tasks[:0]
            if found is None or len(served) < len(tasks):
                tasks = fewer if claim.whole else served
                continue
            victims = self._quota_victims.with_further(found.victims, candidates.rows, situation)
            if victims is None:
                tasks = fewer
                continue
            if self._too_many(claim, victims):
                tasks = fewer
                continue
            described, row_of = self._described(victims)
            verdict = judge(situation, described)
            if verdict:
                self._carry_out(claim, found, precedence, tasks, victims)
                return claim.whole or self._serve(claim, entitled=entitled)  # the others of it, if any
            if verdict.borrows and not borrowing:
                borrowing = True
            elif len(fewer):
                tasks, borrowing = fewer, False
            elif verdict.victim >= 0:
                refused[self._unit(int(row_of[verdict.victim]), victims)] = True
            else:
                return False
        return False

    def _of_ready_gangs(self, claim: Claim, tasks: I64) -> I64:
        """Those of the claim's tasks (K,) that no gang holds back: one that lacks members, unless the claim is a whole
        job and completes it, or one that has its maximum."""
        snapshot, node_of = self._snapshot, self._ledger.node_of
        gangs = self._lacking.keys() & set(snapshot.task_gang[tasks].tolist())
        if gangs and claim.whole:
            node_of = node_of.copy()
            node_of[tasks] = 0
        short = [gang for gang in gangs if not self._lacking[gang].satisfied(node_of)]
        tasks = tasks[~np.isin(snapshot.task_gang[tasks], short)]
        return tasks[self._ledger.within_maximum(tasks, nominated=True)]

    def _too_many(self, claim: Claim, victims: I64) -> bool:
        """Whether a queue limits how many of its tasks may be evicted in an hour, and would lose more."""
        queues = self._standing.use.queues
        counts = evictions(queues, self._standing.use.queue_of(victims), claim.queue)
        exceeded = [row for row, left in self._evictions_left.items() if counts[row] > max(left, 0)]
        for row in exceeded:
            self._candidates.later(self._rates.next_us(queues.definitions[row].id))
        return bool(exceeded)

    def _too_early(self, claim: Claim) -> bool:
        delay_s = self._standing.use.queues.definitions[claim.queue].preemption_delay_s
        # the place of a job within the second of its creation may be later than now
        return delay_s > 0 and self._candidates.later(claim.created_us + round(delay_s * 1e6))

    def _precedence(self, candidates: Candidates) -> Precedence:
        classes = len(self._snapshot.classes)
        running = np.where(self._state.tasks.leaving, _LEAVING, PROTECTED)  # what leaves is free for all
        running[self._outcome.victims] = _LEAVING
        running[candidates.rows] = candidates.precedence
        return Precedence(np.full(classes, _PREEMPTOR), np.full(classes, PROTECTED), running, running)

    def _search(self, tasks: I64, precedence: Precedence) -> Decision | _Constrained | None:
        """Nodes for the tasks (K,), and victims there."""
        ledger, snapshot = self._ledger, self._snapshot
        if not may_move(snapshot)[snapshot.task_class[tasks[0]]]:
            found = self._constrained.find(int(tasks[0]), precedence, without_victims=True)
            return _Constrained(tasks, found.node, found.victims) if found is not None else None
        evicts = np.ones(len(self._snapshot.classes), np.bool_)
        search = EvictionSearch(
            ledger, precedence, evicts, self._eviction_costs, None, beyond_budgets=self._beyond_budgets
        )
        within = self._within(search, tasks)
        if within is None:
            return None
        none = np.zeros(len(ledger.node_of), np.bool_)
        question = Question(
            tasks, none, self._outcome.victims, np.arange(len(ledger.node_of)), within, lacks_quota=True
        )
        return decide(search, ledger, question, _PREEMPTOR, _EFFORT)

    def _within(self, search: EvictionSearch, tasks: I64) -> list[tuple[I64, Bools]] | None:
        """As Question.within, for the tasks (K,) of a claim: the domain of its gang's topology; None: the gang requires
        one, and none may serve it."""
        ledger, snapshot = self._ledger, self._snapshot
        demand = self._lacking.get(int(snapshot.task_gang[tasks[0]]))
        if demand is None or not demand.topology_key:
            return []
        demand, none = demand.only(np.isin(demand.members, tasks)), np.zeros(len(ledger.node_of), np.bool_)
        of = ledger, search.precedence, np.ones(len(snapshot.classes), np.bool_), none, search.surplus, None
        servable = Servable(*of, KnownBounds(), beyond_budgets=self._beyond_budgets)
        if not servable.of(NO_ROWS, [demand])[1]:
            return None
        found = preferred_domain(search, ledger, demand, servable.within[demand.key], none, _PREEMPTOR)
        if found is None:
            return None if demand.topology_required else []
        return [(tasks, found)]

    def _quota_for(self, claim: Claim, tasks: int, candidates: I64) -> int:
        """For how many of so many tasks quota suffices if all candidates, rows (K,), leave; of a gang, all or none."""
        standing, leave = self._standing, self._standing.use.left_by(candidates)
        low, high = 0, tasks
        while low < high:
            middle = tasks if claim.whole else (low + high + 1) // 2
            if standing.fits(standing.situation(claim, middle), leave):
                low = middle
            else:
                high = 0 if claim.whole else middle - 1
        return low

    def _described(self, rows: I64) -> tuple[Victims, I64]:
        """Victims (V,), rows of the task table, and one of these rows for each. A gang that leaves as a whole is one,
        as a workload is for Kueue: it may leave although its queue needs only a part of it to exceed its quota."""
        state, tasks, use = self._state, self._state.tasks, self._standing.use
        gang, queue = tasks.gang[rows], use.queue_of(rows)
        running = tasks.gang[(tasks.node >= 0) & (tasks.gang != NO_GANG) & ~tasks.leaving]
        members = np.bincount(running, minlength=int(gang.max(initial=0)) + 1)
        leaving = np.bincount(gang[gang != NO_GANG], minlength=len(members))
        whole = (gang != NO_GANG) & (leaving == members)[np.maximum(gang, 0)]
        alone = np.where(whole, -1, np.arange(len(rows)))
        first, victim = distinct_rows(np.column_stack([np.where(whole, gang, -1), np.where(whole, queue, -1), alone]))
        amounts = self._standing.amounts(state, rows)
        total = np.zeros((len(first), amounts.shape[1]), np.int64)
        add_rows(total, victim, amounts)
        total += use.retained_by_gangs(np.where(whole, gang, NO_GANG)[first])
        priority, created_us = np.full(len(first), NO_PRIORITY), tasks.created_us[rows[first]]
        np.maximum.at(priority, victim, state.classes.priority[tasks.cls[rows]])
        np.minimum.at(created_us, victim, tasks.created_us[rows])
        preemptible = np.ones(len(first), np.bool_)
        preemptible[victim[tasks.unevictable[rows]]] = False
        return Victims(queue[first], priority, created_us, total, preemptible), rows[first]

    def _unit(self, row: int, victims: I64) -> I64:
        """The victim, with its gang."""
        gang = self._state.tasks.gang[row]
        return np.array([row]) if gang == NO_GANG else victims[self._state.tasks.gang[victims] == gang]

    def _carry_out(
        self, claim: Claim, found: Decision | _Constrained, precedence: Precedence, tasks: I64, victims: I64
    ) -> None:
        snapshot, ledger = self._snapshot, self._ledger
        if isinstance(found, _Constrained):
            ledger.nominate(int(tasks[0]), found.node)
            self._outcome.evict(found.victims, np.full(len(found.victims), snapshot.tasks[tasks[0]]))
        else:
            self._outcome.carry_out(found, precedence, tasks, [tasks] if claim.whole else [])
        further = np.setdiff1d(victims, found.victims)
        counts = evictions(self._standing.use.queues, self._standing.use.queue_of(victims), claim.queue)
        self._evictions_left = {row: left - int(counts[row]) for row, left in self._evictions_left.items()}
        waits = tasks[ledger.node_of[tasks] < 0]
        self._outcome.evict(further, np.full(len(further), snapshot.tasks[waits[:1]]))
        self._standing.evict(victims)
        at = np.where(ledger.node_of[tasks] >= 0, ledger.node_of[tasks], ledger.nominated[tasks])
        self._standing.arrive(snapshot.tasks[tasks], snapshot.nodes[at])
