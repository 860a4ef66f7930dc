"""Which waiting tasks the quotas of their queues admit in a round, in which order, and on which nodes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, distinct_rows, run_positions, stable_order
from firmament_py.model.queues import QueueDefinition, Reclaim, ReclaimRules, Sharing, Stop, Within
from firmament_py.queues import admission
from firmament_py.queues.admission import TIERS, Admission, Portions, Reason, admit
from firmament_py.queues.priorities import changes_priorities, seen_outside
from firmament_py.queues.quota import capacity
from firmament_py.queues.ranking import Ranking
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import Queues
from firmament_py.sharing.claims import Claims, Standing
from firmament_py.sharing.flavors import add_amounts
from firmament_py.sharing.job_kinds import first_of_kinds
from firmament_py.sharing.jobs import Jobs, beyond_start, waiting_jobs
from firmament_py.sharing.lanes import Lanes
from firmament_py.sharing.past_use import parts_of_capacity, past_of
from firmament_py.sharing.shortage import NO_SHORTAGES, Cause, Shortages, of_cause
from firmament_py.sharing.use import QueueUse
from firmament_py.sharing.victim_amounts import VictimAmounts
from firmament_py.state.cluster import ClusterState

_CLAIMS = 256
"""Limit on all jobs that may preempt in a round although their quota does not suffice (sharing/job_kinds.py)."""

_CAUSES = {Reason.NO_FLAVOR: Cause.NO_FLAVOR, Reason.BEHIND: Cause.BEHIND}
"""All other reasons are OVER_QUOTA."""


@dataclass(frozen=True)
class QueueDecision:
    """unranked: of the tasks that the round considers, as if all had one rank. ranks: finds the rank of each row of the
    task table. excluded (K,): rows of waiting tasks that the round does not consider. shortages: why these, and those
    that are withheld, wait. admitted (A,): rows of the others that have a queue. yielding (C,): rows of those that come
    after others in the next round if no victims are found for them: another flavor may be free, or there are more
    claims than a round considers. claims: jobs that may preempt others if they are not placed. standing: what all
    depends on."""

    unranked: Ranking
    ranks: Callable[[], I64]
    excluded: I64
    shortages: Shortages
    admitted: I64
    yielding: I64
    claims: Claims
    standing: Standing

    @cached_property
    def ranking(self) -> Ranking:
        """With their ranks, which take as much time as all other decisions; they depend on the state as it was."""
        return replace(self.unranked, rank=self.ranks())


def decide(state: ClusterState, rows: I64, now_us: int) -> QueueDecision | None:
    """For waiting task rows (K,) at `now_us`; None: none of them has a queue. Notes in the task table which flavors
    tasks take.

    Tasks whose gangs keep quota for them need no other. Of the others, nominated tasks and successors of migrating ones
    come first: what they take is reserved for them, whether or not what leaves for them has left. Those for which no
    victims were found, and then those that no node took although their quotas admitted them, come last, unless
    something has changed since: so they do not keep quota from tasks that fit, and each of them is admitted once before
    one is a second time.
    """
    tasks = state.tasks
    queued = rows[tasks.queue[rows] != 0]
    if not len(queued):
        return None
    round_ = _QueueRound(state, now_us)
    queued = round_.exclude_closed(round_.admit_retained(queued))
    nominated = _with_gangs(state, queued, (tasks.nominated[queued] >= 0) | (state.successors.nodes_for(queued) >= 0))
    last = _with_gangs(state, queued, tasks.passed_over[queued]) & ~nominated
    late = _with_gangs(state, queued, tasks.without_victims[queued]) & ~nominated & ~last
    round_.forget_flavors(queued[tasks.nominated[queued] < 0])
    round_.admit(queued[nominated], reserved=True)
    round_.admit(queued[~nominated & ~late & ~last])
    round_.admit(queued[late], tried=True)
    round_.admit(queued[last], tried=True)
    return round_.decision(rows)


def _with_gangs(state: ClusterState, rows: I64, some: Bools) -> Bools:
    """(K,) `some` of the task rows (K,), and all members of their gangs."""
    gangs = state.tasks.gang[rows]
    whole: Bools = some | ((gangs >= 0) & np.isin(gangs, gangs[some & (gangs >= 0)]))
    return whole


class _QueueRound:
    def __init__(self, state: ClusterState, now_us: int) -> None:
        self._state = state
        self._use = use = QueueUse(state)
        self._queues = queues = use.queues
        self._capacity = capacity(queues)
        self._claims = Claims()
        self._total = use.offered
        self._usage, self._firm = use.running(leaving=True), use.firm()
        size = state.tasks.capacity
        self._rank = np.full(size, TIERS - 1)  # that of tasks without a queue, too
        self._unranked: list[tuple[Jobs, partial[Admission], Bools]] = []  # the last: tasks that are withheld
        self._flavor = np.full(size, -1)
        self._withheld = np.zeros(size, np.bool_)
        self._combinations: dict[tuple[int, ...], int] = {}  # flavors of resources -> row of the next
        self._nodes: list[Bools] = []
        self._excluded = [NO_ROWS]
        self._admitted = [NO_ROWS]
        self._yielding = [NO_ROWS]
        self._names = tuple(dict.fromkeys((*queues.resources, *state.resources.names)))
        self._shortages = replace(NO_SHORTAGES, names=self._names)
        self._share: I64 | None = None
        past = past_of(state, queues)
        if queues.tree.sharing is Sharing.PROPORTIONAL:
            parts = parts_of_capacity(queues, past)
            self._share = fair_shares(queues, self._total, self._usage + use.demand(), parts)
        self._lanes = Lanes(state, use, past)
        self._victims = VictimAmounts(state, use, now_us)

    def forget_flavors(self, rows: I64) -> None:
        """Of waiting task rows (K,), for which nothing is kept."""
        self._use.choices.of_task[rows] = -1

    def admit_retained(self, rows: I64) -> I64:
        """Admits those of task rows (K,) for which their gangs keep quota, on the flavors of that; returns the others.
        These cannot preempt, as in Kueue: their workload holds its quota already and waits for nodes only."""
        retained, flavor = self._use.retained_places(rows)
        self._take(rows[retained], flavor, np.ones(len(flavor), np.int64))
        self._rank[rows[retained]] = 0
        self._exclude_uncovered(rows[retained], self._use.queue_of(rows[retained]))
        return rows[~retained]

    def exclude_closed(self, rows: I64) -> I64:
        """Those of task rows (K,) whose queue takes tasks."""
        queues, queue = self._queues, self._use.queue_of(rows)
        takes = np.append(queues.open & queues.leaf, False)[queue]  # the last one for unknown queues
        stopped = np.append(_stopped_by(self._use), -1)[queue]
        unknown = ~takes & (stopped < 0)
        self._exclude(of_cause(rows[unknown], Cause.UNKNOWN))
        halted = ~takes & (stopped >= 0)
        self._exclude(of_cause(rows[halted], Cause.STOPPED, stopped[halted]))
        return self._exclude_uncovered(rows[takes], queue[takes])

    def _exclude_uncovered(self, rows: I64, queue: I64) -> I64:
        """Those of task rows (K,) of queues (K,) that request nothing that no queue has a quota of, unless their own
        has no limit on that."""
        state = self._state
        quota = set(self._queues.resources)
        needed = [self._queues.tree.needs_quota(name) and name not in quota for name in state.resources.names]
        without = np.array(needed, np.bool_)
        limited = np.array([not definition.unlimited for definition in self._queues.definitions], np.bool_)
        amounts = np.where(without, state.classes.requests, 0)  # by class
        uncovered_class: Bools = np.logical_or.reduce(amounts > 0, axis=1)
        bad = limited[queue] & uncovered_class[state.tasks.cls[rows]]
        amounts = amounts[state.tasks.cls[rows[bad]]]
        resource = amounts.argmax(axis=1)
        names = np.array([self._names.index(name) for name in state.resources.names], np.int64)
        lacking = np.take_along_axis(amounts, resource[:, None], axis=1).reshape(-1)
        uncovered = of_cause(rows[bad], Cause.OVER_QUOTA, queue[bad])
        self._exclude(replace(uncovered, resource=names[resource], lacking=lacking))
        return rows[~bad]

    def admit(self, rows: I64, *, reserved: bool = False, tried: bool = False) -> None:
        """Admits what may be admitted of task rows (K,), beside what was before. reserved: the others are considered in
        the round, but not placed, and what they request counts as used. tried: no victims were found for them."""
        later = beyond_start(self._state, self._use, rows)
        self._admit(rows[~later], reserved=reserved, tried=tried)
        if later.any():
            rows, gang = rows[later], self._state.tasks.gang
            starts = np.isin(gang[rows], gang[np.concatenate(self._admitted)])
            self._admit(rows[starts], reserved=reserved, tried=tried, single=True)
            waits = rows[~starts]
            self._exclude(of_cause(waits, Cause.OVER_QUOTA, self._use.queue_of(waits)))

    def _admit(self, rows: I64, *, reserved: bool, tried: bool, single: bool = False) -> None:
        """Of task rows (K,). single: their gangs do not need them."""
        if not len(rows):
            return
        jobs = waiting_jobs(self._state, self._use, rows, single=single)
        admission_of = self._admission(jobs, tried=tried)
        found = admission_of(ranked=False)
        self._lanes.charge(jobs, found.admitted)
        at, order, number = _admitted(jobs, found.portions)
        admitted, job = jobs.rows[at], found.portions.job[order]
        self._admitted.append(admitted)
        flavor = found.portions.flavor[order]
        begins = np.flatnonzero(np.r_[True, (np.diff(job) != 0) | np.diff(flavor, axis=0).any(axis=1)][: len(job)])
        if len(begins):  # runs of portions of one job on the same flavors
            job, flavor = job[begins], flavor[begins]
            self._take(admitted, flavor, np.add.reduceat(number, begins))
            items = np.add.reduceat(found.portions.items[order], begins)
            self._count(jobs.queue[job], flavor, items[:, None] * jobs.request[job])
        left = np.ones(len(jobs.rows), np.bool_)
        left[at] = False
        waits, of_job = jobs.rows[left], jobs.of_tasks(np.arange(len(jobs.queue)))[left]
        shortages = self._why(found, jobs, waits, of_job)
        claiming = self._claim(jobs, found, left)
        if found.ranked:
            self._set_ranks(jobs, found, claiming)
        else:
            self._unranked.append((jobs, admission_of, claiming))
        if reserved:
            self._withheld[waits] = True
            self._shortages = self._shortages.and_also(shortages)
            nominated = waits[self._state.tasks.nominated[waits] >= 0]
            self._usage += self._use.of(nominated, self._state.tasks.nominated[nominated])
        else:
            claimed = self._withheld[waits]
            self._shortages = self._shortages.and_also(shortages.only(claimed))
            self._exclude(shortages.only(~claimed))

    def _ranks(self) -> I64:
        """(T,) of rows of the task table."""
        for jobs, admission_of, claiming in self._unranked:
            self._set_ranks(jobs, admission_of(ranked=True), claiming)
        self._unranked.clear()
        return self._rank

    def _set_ranks(self, jobs: Jobs, found: Admission, claiming: Bools) -> None:
        """Of the tasks (K,) of jobs that are admitted, and of those that are `claiming` (K,)."""
        at, order, number = _admitted(jobs, found.portions)
        self._rank[jobs.rows[at]] = np.repeat(found.portions.rank[order], number)
        self._rank[jobs.rows[claiming]] = jobs.of_tasks(found.rank)[claiming]

    def _claim(self, jobs: Jobs, found: Admission, left: Bools) -> Bools:
        """Notes jobs that may preempt: all that are admitted, since perhaps no node takes them, and of the others, of
        which tasks (K,) are `left`, the first of each queue, which are withheld. (K,) which these are."""
        claim = may_claim(self._queues)[jobs.queue] & jobs.complete
        waits = np.logical_or.reduceat(left, jobs.start[:-1])
        over = np.flatnonzero(claim & waits & (found.reason == Reason.LACKING))
        candidates = len(over)
        over = first_of_kinds(jobs, over)[:_CLAIMS]
        flavor, claiming = found.flavor.copy(), np.zeros(len(left), np.bool_)
        for j in over.tolist():
            tasks = slice(int(jobs.start[j]), int(jobs.start[j + 1]))
            rows = jobs.rows[tasks][left[tasks]]
            claiming[tasks] = left[tasks]
            flavor[j] = np.where(found.claimed[j] >= 0, found.claimed[j], self._first_flavor(jobs, j))
            if len(over) < candidates or _prefers_victims(self._queues.definitions[int(jobs.queue[j])]):
                self._yielding.append(rows)
            self._take(rows, flavor[j][None], np.array([len(rows)]))
        self._withheld[jobs.rows[claiming]] = True
        claims = claim & ~waits
        claims[over] = True
        self._claims.add(jobs, np.flatnonzero(claims), flavor)
        return claiming

    def _first_flavor(self, jobs: Jobs, j: int) -> I64:
        """(R,) the first flavor that suits a job, of each resource that it requests, -1: none."""
        queues, queue = self._queues, int(jobs.queue[j])
        flavor = np.full(len(queues.resources), -1)
        for r in np.flatnonzero(jobs.request[j]).tolist():
            group = queues.group[queue, r]
            order = queues.flavor_order[queue, group] if group >= 0 else NO_ROWS
            suits = [int(f) for f in order if f >= 0 and jobs.suitable[j, f]]
            flavor[r] = suits[0] if suits else -1
        return flavor

    def decision(self, rows: I64) -> QueueDecision:
        """The outcome for all waiting task rows (K,)."""
        nodes = np.array(self._nodes, np.bool_).reshape(len(self._nodes), len(self._use.nodes))
        self._state.tasks.note(slice(None), flavors=self._use.choices.of_task)
        return QueueDecision(
            Ranking(np.zeros_like(self._rank), self._flavor, self._withheld, nodes, self._priorities(rows)),
            self._ranks,
            np.concatenate(self._excluded),
            self._shortages,
            np.concatenate(self._admitted),
            np.concatenate(self._yielding),
            self._claims,
            Standing(self._use, self._capacity, self._share, self._total),
        )

    def _priorities(self, rows: I64) -> I64 | None:
        """See Ranking, for all waiting task rows (K,)."""
        if not changes_priorities(self._queues):
            return None
        found = self._state.classes.priority[self._state.tasks.cls]
        queue = self._use.queue_of(rows)
        rows, queue = rows[queue >= 0], queue[queue >= 0]
        found[rows] = seen_outside(self._queues, self._queues.roots()).priority(queue, found[rows])
        return found

    def _admission(self, jobs: Jobs, *, tried: bool) -> partial[Admission]:
        """Admits jobs beside what is used now, whenever it is called."""
        lane, charge, score = self._lanes.of(jobs)
        one = admission.Jobs(
            lane=lane,
            charge=charge,
            victims=None if tried else self._victims.of(jobs),
            queue=jobs.queue,
            request=jobs.request,
            count=jobs.count,
            priority=jobs.priority,
            created_us=jobs.created_us,
            suitable=jobs.suitable,
            preemptible=jobs.preemptible,
        )
        of = self._queues, self._capacity, self._usage.copy(), one, self._total, self._share, self._firm, score.copy()
        return partial(admit, *of)

    def _exclude(self, shortages: Shortages) -> None:
        self._excluded.append(shortages.rows)
        self._shortages = self._shortages.and_also(shortages)

    def _why(self, found: Admission, jobs: Jobs, rows: I64, job: I64) -> Shortages:
        """Why task rows (K,) of these jobs (K,) are not admitted."""
        cause = np.full(int(max(Reason)) + 1, int(Cause.OVER_QUOTA))
        for reason, why in _CAUSES.items():
            cause[reason] = why
        resources = max(len(self._queues.resources), 1)
        column, queue = found.column[job], found.bottleneck[job]
        return Shortages(
            rows,
            cause[found.reason[job]],
            np.where(queue >= 0, queue, jobs.queue[job]),
            np.where(column >= 0, column % resources, -1),
            found.amount[job],
        )

    def _count(self, queue: I64, flavor: I64, amounts: I64) -> None:
        """Counts amounts (P, R) on flavors (P, R) as used by queues (P,)."""
        resources = flavor.shape[1]
        columns = np.where(flavor >= 0, flavor * resources + np.arange(resources), -1)
        add_amounts(self._usage, queue, columns, amounts)

    def _take(self, rows: I64, flavors: I64, number: I64) -> None:
        """Of task rows (K,), in their order, so many (P,) take flavors (P, R)."""
        self._flavor[rows] = np.repeat(self._combined(flavors), number)
        self._use.choices.of_task[rows] = np.repeat(self._use.choices.choose(flavors), number)

    def _combined(self, flavors: I64) -> I64:
        """(P,) rows of `nodes` for the flavors of each resource (P, R), -1: all nodes."""
        if self._use.flavors.nodes.all():
            return np.full(len(flavors), -1)
        first, of_portion = distinct_rows(flavors)
        found = np.empty(len(first), np.int64)
        for i, flavor in enumerate(flavors[first].tolist()):
            named = tuple(sorted({f for f in flavor if f >= 0}))
            if named not in self._combinations:
                nodes = np.logical_and.reduce(self._use.flavors.nodes[list(named)], axis=0)
                self._combinations[named] = -1 if nodes.all() else len(self._nodes)
                if not nodes.all():
                    self._nodes.append(nodes)
            found[i] = self._combinations[named]
        rows: I64 = found[of_portion]
        return rows


def _admitted(jobs: Jobs, portions: Portions) -> tuple[I64, I64, I64]:
    """Positions (A,) of the tasks of jobs that are admitted; the order (P,) of portions by job, and how many of these
    tasks are of each (P,), in this order."""
    order = stable_order(portions.job, len(jobs.queue))
    job, tasks = portions.job[order], np.diff(jobs.start) // jobs.count  # tasks of one item
    number = portions.items[order] * tasks[job]
    taken = np.bincount(job, number, minlength=len(jobs.queue)).astype(np.int64)
    return np.repeat(jobs.start[:-1], taken) + run_positions(taken), order, number


def may_claim(queues: Queues) -> Bools:
    """(Q,) whether tasks of each queue may preempt at all."""
    if queues.tree.reclaim_rules is not ReclaimRules.QUOTA:
        return np.ones(queues.count, np.bool_)
    may = [d.within is not Within.NEVER or d.reclaim is not Reclaim.NEVER for d in queues.definitions]
    return np.array(may, np.bool_)


def _prefers_victims(queue: QueueDefinition) -> bool:
    """Whether tasks of a queue may wait for victims on one flavor, although another one is free."""
    choice = queue.fungibility
    return not choice.try_next_to_avoid_preemption or choice.prefer_preemption_to_borrowing


def _stopped_by(use: QueueUse) -> I64:
    """(Q,) the queue that stops each: itself or an ancestor, -1: none."""
    queues = use.queues
    stopped = np.array([q if d.stop is not Stop.NONE else -1 for q, d in enumerate(queues.definitions)], np.int64)
    for level in queues.levels:
        above = stopped[level.parents]
        stopped[level.rows] = np.where(above >= 0, above, stopped[level.rows])
    return stopped
