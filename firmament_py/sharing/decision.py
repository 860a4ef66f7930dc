"""Which waiting tasks the quotas of their queues admit in a round, in which order, and on which nodes."""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, run_positions
from firmament_py.model.queues import QueueDefinition, Reclaim, ReclaimRules, Sharing, Stop, Within
from firmament_py.model.resources import has_quota
from firmament_py.queues import admission
from firmament_py.queues.admission import TIERS, Admission, Reason, admit
from firmament_py.queues.quota import capacity
from firmament_py.queues.ranking import Ranking
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import Queues
from firmament_py.sharing.claims import Claims, Standing
from firmament_py.sharing.flavors import add_amounts
from firmament_py.sharing.jobs import Jobs, waiting_jobs
from firmament_py.sharing.lanes import Lanes
from firmament_py.sharing.past_use import parts_of_capacity, past_of
from firmament_py.sharing.shortage import NO_SHORTAGES, Cause, Shortages, of_cause
from firmament_py.sharing.use import QueueUse
from firmament_py.sharing.victim_amounts import VictimAmounts
from firmament_py.state.cluster import ClusterState

_CLAIMS_OF_QUEUE, _CLAIMS = 4, 256
"""Limits on the jobs of a queue, and of all queues, that may preempt in a round although their quota does not suffice:
the first of each in its order."""

_CAUSES = {Reason.NO_FLAVOR: Cause.NO_FLAVOR, Reason.BEHIND: Cause.BEHIND}
"""All other reasons are OVER_QUOTA."""


@dataclass(frozen=True, slots=True)
class QueueDecision:
    """ranking: of the tasks that the round considers. excluded (K,): rows of waiting tasks that it does not. shortages:
    why these, and those that are withheld, wait. admitted (A,): rows of the others that have a queue. choosing (C,):
    rows of those that wait for victims on one flavor, although another one may be free. claims: jobs that may preempt
    others if they are not placed. standing: what all depends on."""

    ranking: Ranking
    excluded: I64
    shortages: Shortages
    admitted: I64
    choosing: I64
    claims: Claims
    standing: Standing


def decide(state: ClusterState, rows: I64) -> QueueDecision | None:
    """For waiting task rows (K,); None: none of them has a queue.

    Nominated tasks come first: what they take is reserved for them, whether or not what leaves for them has left. Those
    that the last round did not place although their quotas admitted them come last, unless something has changed since:
    so they do not keep quota from tasks that fit.
    """
    tasks = state.tasks
    queued = rows[tasks.queue[rows] != 0]
    if not len(queued):
        return None
    round_ = _QueueRound(state)
    queued = round_.exclude_closed(queued)
    nominated = _with_gangs(state, queued, tasks.nominated[queued] >= 0)
    late = _with_gangs(state, queued, tasks.passed_over[queued] == state.opportunities) & ~nominated
    round_.admit(queued[nominated], reserved=True)
    round_.admit(queued[~nominated & ~late])
    round_.admit(queued[late], tried=True)
    return round_.decision(rows)


def _with_gangs(state: ClusterState, rows: I64, some: Bools) -> Bools:
    """(K,) `some` of the task rows (K,), and all members of their gangs."""
    gangs = state.tasks.gang[rows]
    whole: Bools = some | ((gangs >= 0) & np.isin(gangs, gangs[some & (gangs >= 0)]))
    return whole


class _QueueRound:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._use = use = QueueUse(state)
        self._queues = queues = use.queues
        self._capacity = capacity(queues)
        self._claims = Claims()
        self._total = use.offered
        self._usage = use.running(leaving=True)
        size = state.tasks.capacity
        self._rank = np.full(size, TIERS - 1)  # that of tasks without a queue, too
        self._flavor = np.full(size, -1)
        self._withheld = np.zeros(size, np.bool_)
        self._combinations: dict[tuple[int, ...], int] = {}  # flavors of resources -> row of the next
        self._nodes: list[Bools] = []
        self._excluded = [NO_ROWS]
        self._admitted = [NO_ROWS]
        self._choosing = [NO_ROWS]
        self._names = tuple(dict.fromkeys((*queues.resources, *state.resources.names)))
        self._shortages = replace(NO_SHORTAGES, names=self._names)
        self._share: I64 | None = None
        past = past_of(state, queues)
        if queues.tree.sharing is Sharing.PROPORTIONAL:
            parts = parts_of_capacity(queues, past)
            self._share = fair_shares(queues, self._total, self._usage + use.demand(), parts)
        self._lanes = Lanes(state, use, past)
        self._victims = VictimAmounts(state, use)

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
        without = np.array([has_quota(name) and name not in quota for name in state.resources.names], np.bool_)
        limited = np.array([not definition.unlimited for definition in self._queues.definitions], np.bool_)
        amounts = np.where(without, state.classes.requests[state.tasks.cls[rows]], 0)
        bad = limited[queue] & amounts.any(axis=1)
        resource = amounts[bad].argmax(axis=1)
        names = np.array([self._names.index(name) for name in state.resources.names], np.int64)
        lacking = np.take_along_axis(amounts[bad], resource[:, None], axis=1).reshape(-1)
        uncovered = of_cause(rows[bad], Cause.OVER_QUOTA, queue[bad])
        self._exclude(replace(uncovered, resource=names[resource], lacking=lacking))
        return rows[~bad]

    def admit(self, rows: I64, *, reserved: bool = False, tried: bool = False) -> None:
        """Admits what may be admitted of task rows (K,), beside what was before. reserved: the others are considered in
        the round, but not placed, and what they request counts as used. tried: no victims were found for them."""
        if not len(rows):
            return
        jobs = waiting_jobs(self._state, self._use, rows)
        found = self._admission(jobs, tried=tried)
        items = np.diff(jobs.start) // jobs.count  # tasks of one item
        portions = found.portions
        order = np.argsort(portions.job, kind="stable")
        job, number = portions.job[order], portions.items[order] * items[portions.job[order]]
        taken = np.bincount(job, number, minlength=len(jobs.queue)).astype(np.int64)
        at = np.repeat(jobs.start[:-1], taken) + run_positions(taken)
        admitted, portion = jobs.rows[at], np.repeat(order, number)
        self._rank[admitted] = portions.rank[portion]
        self._flavor[admitted] = self._combined(portions.flavor)[portion]
        self._admitted.append(admitted)
        self._count(jobs.queue[job], portions.flavor[order], portions.items[order, None] * jobs.request[job])
        left = np.ones(len(jobs.rows), np.bool_)
        left[at] = False
        waits, of_job = jobs.rows[left], jobs.of_tasks(np.arange(len(jobs.queue)))[left]
        shortages = self._why(found, jobs, waits, of_job)
        self._claim(jobs, found, left)
        if reserved:
            self._withheld[waits] = True
            self._shortages = self._shortages.and_also(shortages)
            nominated = waits[self._state.tasks.nominated[waits] >= 0]
            self._usage += self._use.of(nominated, self._state.tasks.nominated[nominated])
        else:
            claimed = self._withheld[waits]
            self._shortages = self._shortages.and_also(shortages.only(claimed))
            self._exclude(shortages.only(~claimed))

    def _claim(self, jobs: Jobs, found: Admission, left: Bools) -> None:
        """Notes jobs that may preempt: all that are admitted, since perhaps no node takes them, and of the others, of
        which tasks (K,) are `left`, the first of each queue, which are withheld."""
        may_claim = np.array([_may_claim(self._queues, row) for row in range(self._queues.count)], np.bool_)[jobs.queue]
        waits = np.logical_or.reduceat(left, jobs.start[:-1])
        over = np.flatnonzero(may_claim & waits & (found.reason == Reason.LACKING))
        begins = np.flatnonzero(np.r_[True, np.diff(jobs.queue[over]) != 0][: len(over)])
        over = over[run_positions(np.diff(np.r_[begins, len(over)])) < _CLAIMS_OF_QUEUE][:_CLAIMS]
        flavor = found.flavor.copy()
        for j in over.tolist():
            tasks = slice(int(jobs.start[j]), int(jobs.start[j + 1]))
            rows = jobs.rows[tasks][left[tasks]]
            flavor[j] = np.where(found.claimed[j] >= 0, found.claimed[j], self._first_flavor(jobs, j))
            self._withheld[rows], self._rank[rows] = True, found.rank[j]
            if _prefers_victims(self._queues.definitions[int(jobs.queue[j])]):
                self._choosing.append(rows)
            self._flavor[rows] = self._combined(flavor[j][None])[0]
        self._claims.add(jobs, np.union1d(np.flatnonzero(may_claim & ~waits), over), flavor)

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
        return QueueDecision(
            Ranking(self._rank, self._flavor, self._withheld, nodes),
            np.concatenate(self._excluded),
            self._shortages,
            np.concatenate(self._admitted),
            np.concatenate(self._choosing),
            self._claims,
            Standing(self._use, self._capacity, self._share),
        )

    def _admission(self, jobs: Jobs, *, tried: bool) -> Admission:
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
        found = admit(self._queues, self._capacity, self._usage, one, self._total, self._share, self._use.firm(), score)
        self._lanes.charge(lane, charge, found.admitted)
        return found

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

    def _combined(self, flavors: I64) -> I64:
        """(P,) rows of `nodes` for the flavors of each resource (P, R), -1: all nodes."""
        if self._use.flavors.nodes.all():
            return np.full(len(flavors), -1)
        distinct, of_portion = np.unique(flavors, axis=0, return_inverse=True)
        found = np.empty(len(distinct), np.int64)
        for i, flavor in enumerate(distinct.tolist()):
            named = tuple(sorted({f for f in flavor if f >= 0}))
            if named not in self._combinations:
                nodes = np.logical_and.reduce(self._use.flavors.nodes[list(named)], axis=0)
                self._combinations[named] = -1 if nodes.all() else len(self._nodes)
                if not nodes.all():
                    self._nodes.append(nodes)
            found[i] = self._combinations[named]
        rows: I64 = found[of_portion.reshape(-1)]
        return rows


def _may_claim(queues: Queues, row: int) -> bool:
    """Whether tasks of a queue may preempt at all."""
    definition = queues.definitions[row]
    by_policy = queues.tree.reclaim_rules is ReclaimRules.QUOTA
    return not by_policy or definition.within is not Within.NEVER or definition.reclaim is not Reclaim.NEVER


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
