"""Which waiting jobs are admitted, in which order, and on which flavors; why others are not.

The order is that of a tournament of the heads of queues, renewed after each admission (`admission_order.py`):

- CLASSICAL: jobs within nominal quota, then those that borrow from the nearest ancestor; priority; age (Kueue).
- FAIR: at each level the child that does not borrow what the job requests, then that of the lowest weighted dominant
  share with the job; priority; age (Kueue's fair sharing).
- PROPORTIONAL: at each level children below their share, then those within their nominal amount with the job, then by
  queue priority, then by the dominant part of the share that is in use with the job (KAI). With `priority_first` the
  highest priority comes before all that, as seen from outside of each child (YuniKorn; `priorities.py`).
- HIERARCHICAL_DRF: at each level the lowest weighted, rescaled dominant share (Volcano).

Inside a queue jobs are served by priority, then by age. If it has several lanes, first comes the head of the lane with
the lowest score, which each admission raises (Kueue's admission fair sharing, whose lanes are LocalQueues). Shares that
are compared are those of the moment; a group of identical tasks is admitted in portions of at most 1/256 of it, or at
once where the order does not depend on usage.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.queues import Division, Reclaim, ReclaimRules, Sharing
from firmament_py.queues import admission_order as order
from firmament_py.queues import admission_state as state
from firmament_py.queues.contention import contested
from firmament_py.queues.dominant import lendable
from firmament_py.queues.quota import Capacity, counted_usage, least_limits, total_usage
from firmament_py.queues.tree import Queues

TIERS = 16
"""Ranks are 0 .. TIERS - 1, higher first."""

_PORTIONS = 256


class Reason(IntEnum):
    ADMITTED = state.FITS
    CLOSED = state.CLOSED
    """The queue is stopped, described wrongly, or not a leaf."""
    NO_QUOTA = state.NO_QUOTA
    """The queue has no quota of a resource that the job requests."""
    NO_FLAVOR = state.NO_FLAVOR
    """No flavor of the queue suits the job."""
    TOO_LARGE = state.TOO_LARGE
    """The job exceeds what the queue could use if no other task ran."""
    LACKING = state.LACKING
    """Quota is in use, or a limit is reached."""
    BEHIND = state.BEHIND
    """A job before it in a queue that is strictly first in, first out, is not admitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """J waiting jobs. One with a count of more than 1 is a group of identical single tasks, admitted in part."""

    queue: I64
    """(J,) rows of queues."""
    request: I64
    """(J, R) what one item needs at least: a gang's lacking members, or a task; 0 of what queues do not count."""
    count: I64
    """(J,) > 0."""
    priority: I64
    created_us: I64
    suitable: Bools
    """(J, F) flavors on which the job can run."""
    preemptible: Bools
    """(J,)"""
    lane: I64 | None = None
    """(J,) numbers of lanes, each of jobs of one queue; None: all jobs of a queue are in one."""
    victims: tuple[I64, I64] | None = None
    """(J, V) each: amounts that tasks use which a job may preempt, in its own queue and in others; None: none."""
    charge: F64 | None = None
    """(J,) by how much the admission of one item raises the score of its lane."""


@dataclass(frozen=True, slots=True, eq=False)
class Portions:
    """P portions in the order of their admission."""

    job: I64
    items: I64
    rank: I64
    flavor: I64
    """(P, R)"""


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    admitted: I64
    """(J,) items: 0 .. count."""
    rank: I64
    """(J,) of the first item; of a job that is not admitted, whether it is within its guarantee: TIERS - 1, or 0."""
    flavor: I64
    """(J, R) of the first item; -1 of what is not requested or has no flavor."""
    claimed: I64
    """(J, R) of an item that is LACKING: the flavors on which it would best preempt, likewise."""
    reason: I64
    """(J,) ADMITTED if all items are; why the others are not."""
    column: I64
    """(J,) the column that lacks most of the request, -1 if no amount is lacking; for NO_QUOTA, of the first flavor."""
    amount: I64
    """(J,) the amount that it lacks for one item."""
    bottleneck: I64
    """(J,) the queue whose quota or limit that is, -1 if none."""
    portions: Portions
    ranked: bool
    """Whether portions are in the order of admission, and have ranks."""


def admit(
    queues: Queues,
    capacity: Capacity,
    usage: I64,
    jobs: Jobs,
    total: I64,
    share: I64 | None = None,
    firm_usage: I64 | None = None,
    score: F64 | None = None,
    *,
    ranked: bool = True,
) -> Admission:
    """Admits jobs within quota and limits; a rank says how much each is entitled to.

    `score` (L,) is of the lanes that jobs name.

    `usage` (Q, V) is of the running tasks of each queue itself, `firm_usage` that of those that cannot be preempted;
    `total` (V,) is the cluster's capacity, `share` (Q, V) comes from shares.fair_shares if sharing is PROPORTIONAL.

    The highest rank is that of what is within guarantees (nominal amounts). Ranks below it are steps of the order of
    admission, in equal volumes: what borrows, or is within the share; then what is above the share (PROPORTIONAL). The
    lowest rank is left for what exceeds the cluster's capacity in an order that does not go by quota: it may be tried.

    The order takes most of the time. ranked: False: only jobs that compete for quota are put in order, which admits the
    same; if there are others, the outcome has no ranks.
    """
    if not len(jobs.queue):
        return _nothing(jobs)
    by_quota = queues.tree.sharing in (Sharing.CLASSICAL, Sharing.FAIR)
    # copies, as read-only arrays would be compiled for anew
    share = np.zeros_like(queues.nominal) if share is None else np.array(share, np.int64)
    total, usage = np.array(total, np.int64), np.array(usage, np.int64)
    forest = _forest(queues, capacity, total, share, by_quota)
    lane = np.zeros(len(jobs.queue), np.int64) if jobs.lane is None else jobs.lane
    score = np.zeros(int(lane.max()) + 1) if score is None else score
    by_queue = np.lexsort((jobs.created_us, -jobs.priority, lane, jobs.queue))
    firm = np.zeros_like(usage) if firm_usage is None else np.array(firm_usage, np.int64)
    waiting = _waiting(queues, jobs, by_queue, lane[by_queue])
    first = waiting.lane_starts[:-1]
    lanes = first, score[lane[by_queue[first]]]
    progress = _progress(queues, capacity, usage, firm, jobs, by_queue, *lanes)
    compete = _contested(queues, forest, waiting, progress, jobs)
    waiting = waiting._replace(contested=compete)
    ranked = ranked or bool(compete[jobs.queue].all())
    in_portions = np.minimum(jobs.count, _PORTIONS)[compete[jobs.queue] | ranked]
    portions = int(in_portions.sum()) + 8 * len(jobs.queue)
    while True:
        log, flavors = np.zeros((portions, 3), np.int64), np.zeros((portions, jobs.request.shape[1]), np.int64)
        found = order.admit_in_order(forest, waiting, progress, _tournament(queues), ranked, log, flavors)
        if found >= 0:
            break
        portions *= 2
        progress = _progress(queues, capacity, usage, firm, jobs, by_queue, *lanes)
    job, items, kind = log[:found].T
    rank = _ranks(jobs, by_queue[job], items, kind) if ranked else np.zeros(found, np.int64)
    return _summary(queues, progress, jobs, by_queue, Portions(by_queue[job], items, rank, flavors[:found]), ranked)


def _forest(queues: Queues, capacity: Capacity, total: I64, share: I64, by_quota: bool) -> state.Forest:
    tree = queues.tree
    limit = queues.limit
    if tree.sharing is Sharing.PROPORTIONAL and tree.division is Division.TOTAL_BY_WEIGHT:
        limit = np.minimum(limit, share)
    place = np.empty(queues.count, np.int64)
    place[queues.children] = np.arange(queues.count)
    place -= queues.child_starts[queues.parent + 1]
    height = np.zeros(queues.count, np.int64)
    for level in reversed(queues.levels):
        np.maximum.at(height, level.parents, height[level.rows] + 1)
    definitions = queues.definitions
    return state.Forest(
        sharing=int(tree.sharing),
        by_quota=by_quota,
        firm_within_nominal=not by_quota and tree.reclaim_rules is ReclaimRules.FAIR_SHARE,
        priority_first=tree.priority_first,
        parent=queues.parent,
        depth=queues.depth,
        paths=queues.paths,
        children=queues.children,
        child_starts=queues.child_starts,
        place=place,
        height=height,
        open=queues.open,
        leaf=queues.leaf,
        strict_fifo=np.array([queue.strict_fifo for queue in definitions], np.bool_),
        keeps_for_head=np.array(
            [by_quota and queue.strict_fifo and queue.reclaim is not Reclaim.ANY for queue in definitions], np.bool_
        ),
        avoid_borrowing=np.array([q.fungibility.try_next_to_avoid_borrowing for q in definitions], np.bool_),
        avoid_preemption=np.array([q.fungibility.try_next_to_avoid_preemption for q in definitions], np.bool_),
        preemption_first=np.array([q.fungibility.prefer_preemption_to_borrowing for q in definitions], np.bool_),
        preempts_borrowing=np.array(
            [
                q.borrow_within.lower_priority or (tree.sharing is Sharing.FAIR and q.reclaim is not Reclaim.NEVER)
                for q in definitions
            ],
            np.bool_,
        ),
        weight=queues.weight,
        priority=queues.priority,
        priority_offset=queues.priority_offset,
        priority_fence=queues.priority_fence,
        group=queues.group,
        flavor_order=queues.flavor_order,
        covered=queues.covered,
        known=queues.known,
        nominal=queues.nominal,
        subtree=capacity.subtree,
        local=capacity.local,
        potential=capacity.potential if by_quota else least_limits(queues),
        borrowing_limit=queues.borrowing_limit,
        limit=limit,
        share=share,
        allocatable=np.minimum(np.maximum(share, queues.nominal), queues.limit),
        lendable=lendable(queues, capacity),
        total=total,
    )


def _contested(
    queues: Queues, forest: state.Forest, waiting: state.Waiting, progress: state.Progress, jobs: Jobs
) -> Bools:
    request = jobs.request.astype(np.float64) * jobs.count[:, None]
    demand = (jobs.suitable[:, :, None] * request[:, None, :]).reshape(len(request), -1)
    return contested(queues, forest, progress, jobs.queue, demand, ~jobs.preemptible, np.diff(waiting.lanes) > 1)


def _waiting(queues: Queues, jobs: Jobs, by_queue: I64, lane: I64) -> state.Waiting:
    """lane (J,): of the jobs in the order `by_queue` (J,). As if all competed."""
    queue = jobs.queue[by_queue].astype(np.int64)
    begins = np.flatnonzero(np.r_[True, (np.diff(queue) != 0) | (np.diff(lane) != 0)])
    lanes = np.bincount(queue[begins], minlength=queues.count)
    at_once = (queues.tree.sharing is Sharing.CLASSICAL) & (lanes[jobs.queue] == 1)
    portion = np.where(at_once, jobs.count, np.maximum(jobs.count // _PORTIONS, 1))
    own, others = jobs.victims or (np.zeros((1, queues.nominal.shape[1]), np.int64),) * 2
    charge = np.zeros(len(queue)) if jobs.charge is None else jobs.charge[by_queue].astype(np.float64)
    return state.Waiting(
        lanes=np.r_[0, np.cumsum(lanes)].astype(np.int64),
        lane_starts=np.r_[begins, len(queue)].astype(np.int64),
        lane=np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(queue)])),
        charge=charge,
        queue=queue,
        request=np.ascontiguousarray(jobs.request[by_queue], np.int64),
        portion=portion[by_queue].astype(np.int64),
        priority=jobs.priority[by_queue].astype(np.float64),
        created=jobs.created_us[by_queue].astype(np.float64),
        suitable=np.ascontiguousarray(jobs.suitable[by_queue]),
        firm=~jobs.preemptible[by_queue],
        contested=np.ones(queues.count, np.bool_),
        own_victims=own[by_queue] if len(own) > 1 else own,
        other_victims=others[by_queue] if len(others) > 1 else others,
    )


def _progress(
    queues: Queues, capacity: Capacity, usage: I64, firm: I64, jobs: Jobs, by_queue: I64, starts: I64, score: F64
) -> state.Progress:
    """starts, score (L,): the first job of each lane, and its score."""
    count = len(by_queue)
    return state.Progress(
        usage=counted_usage(queues, capacity, usage),
        used=total_usage(queues, usage),
        firm_used=total_usage(queues, firm),
        tried=np.zeros(usage.shape, np.int64),
        cluster_used=usage.sum(axis=0),
        job=np.full(queues.count, -1, np.int64),
        lane_job=starts.copy(),
        score=score.astype(np.float64),
        left=jobs.count[by_queue].astype(np.int64),
        flavor=np.full((count, jobs.request.shape[1]), -1, np.int64),
        level=np.zeros(queues.count, np.int64),
        reason=np.full(count, state.FITS, np.int64),
        column=np.full(count, -1, np.int64),
        amount=np.zeros(count, np.int64),
        bottleneck=np.full(count, -1, np.int64),
    )


def _tournament(queues: Queues) -> order.Tournament:
    return order.Tournament(
        champion=np.full(queues.count, -1, np.int64),
        key=np.zeros((queues.count, order.KEYS)),
        winner=np.full(2 * queues.count + 2, -1, np.int64),
        amounts=np.zeros((queues.count, len(queues.resources))),
        dominant=np.zeros(queues.count),
        before=np.zeros(len(queues.resources), np.int64),
    )


def _ranks(jobs: Jobs, job: I64, items: I64, kind: I64) -> I64:
    """(P,) ranks of portions in the order of their admission."""
    demand = (jobs.request * jobs.count[:, None]).sum(axis=0, dtype=np.float64)
    size: F64 = np.divide(jobs.request, demand, out=np.zeros(jobs.request.shape), where=demand > 0).max(
        axis=1, initial=0
    )
    volume = size[job] * items
    rank = np.zeros(len(job), np.int64)
    rank[kind == order.WITHIN_GUARANTEE] = TIERS - 1
    low = (TIERS - 2) // 2 if (kind == order.ABOVE_SHARE).any() else 0
    for wanted_kind, top, steps in (
        (order.WITHIN_SHARE, TIERS - 2, TIERS - 2 - low),
        (order.ABOVE_SHARE, low, low),
    ):
        chosen = kind == wanted_kind
        if chosen.any():
            before = np.cumsum(volume[chosen]) - volume[chosen]
            whole = before[-1] + volume[chosen][-1]
            step = np.floor(steps * before / whole) if whole > 0 else np.zeros(len(before))
            rank[chosen] = top - np.minimum(step.astype(np.int64), steps - 1)
    return rank


def _summary(
    queues: Queues, p: state.Progress, jobs: Jobs, by_queue: I64, portions: Portions, ranked: bool
) -> Admission:
    count = len(by_queue)
    admitted = np.zeros(count, np.int64)
    np.add.at(admitted, portions.job, portions.items)
    rank, flavor = np.zeros(count, np.int64), np.full(jobs.request.shape, -1, np.int64)
    first = np.full(count, -1)
    first[portions.job[::-1]] = np.arange(len(portions.job))[::-1]  # the first portion is written last
    some = np.flatnonzero(first >= 0)
    rank[some], flavor[some] = portions.rank[first[some]], portions.flavor[first[some]]
    claimed = np.full(jobs.request.shape, -1, np.int64)
    claimed[by_queue] = np.where((p.reason == state.LACKING)[:, None], p.flavor, -1)
    columns = {}
    for name in ("reason", "column", "amount", "bottleneck"):
        columns[name] = np.empty(count, np.int64)
        columns[name][by_queue] = getattr(p, name)
    refused = np.nonzero(admitted == 0)[0]
    rank[refused[_within_nominal(queues, p.used, jobs, refused)]] = TIERS - 1
    found = {"admitted": admitted, "rank": rank, "flavor": flavor, "claimed": claimed} | columns
    return Admission(**found, portions=portions, ranked=ranked)


def _within_nominal(queues: Queues, used: I64, jobs: Jobs, rows: I64) -> Bools:
    """(K,) whether jobs are within the nominal amounts of their queues, on a flavor that suits them."""
    shape = (len(rows), len(queues.flavors), len(queues.resources))
    free = (queues.nominal - used)[jobs.queue[rows]].reshape(shape)
    request = jobs.request[rows][:, None, :]
    within: Bools = (((request == 0) | (request <= free)).all(axis=2) & jobs.suitable[rows]).any(axis=1)
    return within


def _nothing(jobs: Jobs) -> Admission:
    none = np.zeros(0, np.int64)
    flavors = np.zeros(jobs.request.shape, np.int64)
    of_none = none, none, flavors, flavors, none, none, none, none
    return Admission(*of_none, Portions(none, none, none, flavors), ranked=True)
