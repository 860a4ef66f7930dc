"""The arrays of the search for an order of admission, and what jobs may use at a moment. Compiled."""

from typing import NamedTuple

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.queues import UNLIMITED
from firmament_py.numba_cache import inlined

FITS, CLOSED, NO_QUOTA, NO_FLAVOR, TOO_LARGE, LACKING, BEHIND = range(7)
"""Why a job is not admitted: see admission.Reason."""
IMPOSSIBLE, WITHOUT_VICTIMS, BY_PREEMPTION, BY_RECLAIM, FREE = range(5)
"""How a job gets what it requests on a flavor; later ones are better."""


class Forest(NamedTuple):
    """What does not change: queues as in tree.Queues, capacity as in quota.Capacity."""

    sharing: int
    by_quota: bool
    """Whether nominal quota bounds usage, and not only limits."""
    firm_within_nominal: bool
    """Whether jobs that cannot be preempted are confined to nominal amounts."""
    priority_first: bool
    """Whether priorities of jobs come before shares."""
    parent: I64
    depth: I64
    paths: I64
    children: I64
    child_starts: I64
    place: I64
    """(Q,) where each queue is among the children of its parent."""
    height: I64
    """(Q,) the distance to the furthest queue below."""
    open: Bools
    leaf: Bools
    strict_fifo: Bools
    keeps_for_head: Bools
    """(Q,) of these, those that keep what their head is entitled to while it lacks quota, since they could not be sure
    to reclaim it from who borrows it meanwhile."""
    avoid_borrowing: Bools
    """(Q,) whether the next flavor is tried if this one means to borrow."""
    avoid_preemption: Bools
    """(Q,) whether the next flavor is tried if this one means to preempt."""
    preemption_first: Bools
    """(Q,) whether preemption is preferred to borrowing, if no flavor needs neither."""
    preempts_borrowing: Bools
    """(Q,) whether a job that is above the nominal quota of its queue may preempt."""
    weight: F64
    priority: I64
    priority_offset: I64
    priority_fence: Bools
    group: I64
    flavor_order: I64
    covered: Bools
    known: Bools
    nominal: I64
    subtree: I64
    local: I64
    potential: I64
    borrowing_limit: I64
    limit: I64
    share: I64
    """(Q, V) shares that were divided, if sharing is PROPORTIONAL."""
    allocatable: I64
    """(Q, V) of these, or of the nominal amount, the larger, within the limit."""
    lendable: F64
    total: I64
    """(V,) of the cluster."""


class Waiting(NamedTuple):
    """Jobs, sorted by queue and lane, then as their lane serves them. Lanes of queue q: lanes[q] .. lanes[q + 1]; jobs
    of lane n: lane_starts[n] .. lane_starts[n + 1]."""

    lanes: I64
    lane_starts: I64
    lane: I64
    """(J,) of each job."""
    charge: F64
    """(J,) by how much one item raises the score of its lane."""
    queue: I64
    request: I64
    """(J, R) of one item."""
    portion: I64
    """(J,) so many items are admitted at once."""
    priority: F64
    created: F64
    suitable: Bools
    firm: Bools
    """(J,) jobs that cannot be preempted."""
    contested: Bools
    """(Q,) queues whose jobs compete for quota; those of others are admitted whatever their order."""
    own_victims: I64
    other_victims: I64
    """(J, V) or (1, V): amounts that tasks use that jobs may preempt, in their own queue and in others."""


class Progress(NamedTuple):
    """What changes."""

    usage: I64
    """(Q, V) that counts against quota."""
    used: I64
    """(Q, V) of the queue and all below it."""
    firm_used: I64
    """(Q, V) of that, by jobs that cannot be preempted."""
    tried: I64
    """(Q, V) beside that, by jobs that exceed the capacity of the cluster: counts against limits alone."""
    cluster_used: I64
    """(V,)"""
    job: I64
    """(Q,) the job at the head of each queue, -1 if none is left."""
    lane_job: I64
    """(L,) the job at the head of each lane; the end of the lane if none is left."""
    score: F64
    """(L,) by which the lanes of a queue are served, the lowest first."""
    left: I64
    """(J,) items that are not admitted."""
    flavor: I64
    """(J, R) the flavor of each resource, -1 if the job does not request it."""
    level: I64
    """(Q,) the height of the lowest ancestor within whose quota the head fits; 0: the queue's own."""
    reason: I64
    """(J,) why what is left is not admitted."""
    column: I64
    """(J,) the column that lacks an amount, -1 if none does."""
    amount: I64
    """(J,) the amount that it lacks."""
    bottleneck: I64
    """(J,) the queue whose quota or limit lacks it."""


@inlined
def free(t: Forest, p: Progress, q: int, v: int, firm: bool) -> tuple[int, int]:
    """What queue q may use of column v beside what is used, and the queue that bounds it."""
    amount, bound = UNLIMITED, q
    cap, cap_bound = UNLIMITED, q
    for step in range(t.depth[q], -1, -1):
        n = t.paths[q, step]
        if t.by_quota:
            subtree, local, usage = t.subtree[n, v], t.local[n, v], p.usage[n, v]
            if t.parent[n] < 0:
                amount, bound = subtree - usage, n
            else:
                at_most = subtree - local - max(0, usage - local) + t.borrowing_limit[n, v]
                if at_most < amount:
                    amount, bound = at_most, n
                amount += max(0, local - usage)
        below_limit = t.limit[n, v] - p.used[n, v] - p.tried[n, v]
        if below_limit < cap:
            cap, cap_bound = below_limit, n
        if firm and t.firm_within_nominal and t.nominal[n, v] - p.firm_used[n, v] < cap:
            cap, cap_bound = t.nominal[n, v] - p.firm_used[n, v], n
    if cap < amount:
        return cap, cap_bound
    return amount, bound


@inlined
def use(t: Forest, p: Progress, q: int, v: int, amount: int, firm: bool) -> None:
    """Adds usage of a queue; what exceeds the quota that a queue does not lend counts in its parent, too."""
    counted = amount
    n = q
    while n >= 0:
        p.used[n, v] += amount
        if firm:
            p.firm_used[n, v] += amount
        local_free = max(0, t.local[n, v] - p.usage[n, v])
        p.usage[n, v] += counted
        counted = max(0, counted - local_free)
        n = t.parent[n]
    p.cluster_used[v] += amount


@inlined
def try_to_use(t: Forest, p: Progress, q: int, v: int, amount: int, firm: bool) -> None:
    """Adds what a queue may use although the cluster lacks it."""
    n = q
    while n >= 0:
        p.tried[n, v] += amount
        if firm:
            p.firm_used[n, v] += amount
        n = t.parent[n]


@inlined
def borrowing_level(t: Forest, p: Progress, q: int, v: int, amount: int) -> int:
    """The height of the lowest ancestor whose quota holds the amount, too; that of the root if none does."""
    n = q
    while True:
        if p.usage[n, v] + amount <= t.subtree[n, v]:
            return t.height[n] if n != q else 0
        if t.parent[n] < 0:
            return t.height[n] if n != q else 1
        amount -= max(0, t.local[n, v] - p.usage[n, v])
        n = t.parent[n]


@inlined
def items_that_fit(t: Forest, w: Waiting, p: Progress, q: int, j: int, at_most: int) -> int:
    """How many items of job j fit with its flavors; if sharing is CLASSICAL, without a higher level of borrowing."""
    resources = w.request.shape[1]
    for r in range(resources):
        if w.request[j, r] > 0 and p.flavor[j, r] >= 0:
            amount, _ = free(t, p, q, p.flavor[j, r] * resources + r, w.firm[j])
            at_most = min(at_most, max(0, amount) // w.request[j, r])
    if t.sharing != 0 or at_most <= 1:
        return at_most
    low, high = 1, at_most
    while low < high:
        middle = (low + high + 1) // 2
        if level_of(t, w, p, q, j, middle) <= p.level[q]:
            low = middle
        else:
            high = middle - 1
    return low


@inlined
def level_of(t: Forest, w: Waiting, p: Progress, q: int, j: int, items: int) -> int:
    """The borrowing level of so many items of job j with its flavors."""
    resources = w.request.shape[1]
    level = 0
    for r in range(resources):
        if w.request[j, r] > 0 and p.flavor[j, r] >= 0:
            level = max(level, borrowing_level(t, p, q, p.flavor[j, r] * resources + r, items * w.request[j, r]))
    return level


@inlined
def choose_flavors(t: Forest, w: Waiting, p: Progress, q: int, j: int) -> int:
    """Sets the flavors of a job's resources, a group at a time, for one item; FITS or why it does not fit."""
    resources = w.request.shape[1]
    p.column[j], p.amount[j], p.bottleneck[j] = -1, 0, -1
    if not t.open[q] or not t.leaf[q]:
        p.bottleneck[j] = q
        return CLOSED
    groups = t.flavor_order.shape[1] if t.by_quota else 1
    if t.by_quota:
        for r in range(resources):
            if w.request[j, r] > 0 and t.group[q, r] < 0:
                p.column[j], p.amount[j], p.bottleneck[j] = r, w.request[j, r], q  # of any flavor: of the first
                return NO_QUOTA
    found, column, amount, bottleneck = FITS, -1, 0, -1
    for g in range(groups):
        reason = _choose_flavor(t, w, p, q, j, g)
        if reason == FITS:
            continue
        if found == FITS or reason != LACKING:
            found, column, amount, bottleneck = reason, p.column[j], p.amount[j], p.bottleneck[j]
        if reason != LACKING:
            break
    p.column[j], p.amount[j], p.bottleneck[j] = column, amount, bottleneck
    return found


@inlined
def _choose_flavor(t: Forest, w: Waiting, p: Progress, q: int, j: int, g: int) -> int:
    """The same for one group of resources. If LACKING, the flavor is that on which the job would best preempt."""
    resources = w.request.shape[1]
    flavors = w.suitable.shape[1]
    requested = False
    for r in range(resources):
        requested |= w.request[j, r] > 0 and (not t.by_quota or t.group[q, r] == g)
    if not requested or flavors == 0:
        return FITS
    best, best_mode, best_level, best_fits, reported, shortage = -1, IMPOSSIBLE, 0, False, NO_FLAVOR, np.inf
    for position in range(flavors):
        f = t.flavor_order[q, g, position] if t.by_quota else position
        if f < 0:
            break
        if not w.suitable[j, f]:
            continue
        mode, level, first, possible, foreign = FREE, 0, True, True, False
        worst, column, amount, bottleneck = 0.0, -1, 0, -1
        for r in range(resources):
            request = w.request[j, r]
            if request == 0 or (t.by_quota and t.group[q, r] != g):
                continue
            v = f * resources + r
            foreign |= not t.by_quota and t.group[q, r] >= 0 and not t.covered[q, v]
            here, bound = free(t, p, q, v, w.firm[j])
            if t.by_quota and not t.covered[q, v]:
                here, bound = 0, q
            mode_here, leaves = FREE, 0
            if request > here:
                mode_here = _mode_of_preemption(t, w, p, q, j, v, request - max(0, here))
                if mode_here == BY_PREEMPTION:  # tasks of other queues leave first
                    leaves = request - max(0, here) - w.other_victims[j % len(w.other_victims), v]
                lacking = (request - max(0, here)) / request
                confined = w.firm[j] and t.firm_within_nominal
                if request > t.potential[q, v] or (confined and request > t.nominal[q, v]):
                    possible = False
                    lacking += 1.0  # reported rather than what is only in use
                if lacking > worst:
                    worst, column, amount, bottleneck = lacking, v, request - max(0, here), bound
            level_here = borrowing_level(t, p, q, v, request - leaves) if t.by_quota else 0
            if first or _is_preferred(mode, level, mode_here, level_here, t.preemption_first[q]):
                mode, level, first = mode_here, level_here, False
        if foreign:  # the queue has quotas of these resources, on other flavors
            continue
        fits = worst == 0.0  # of one resource the worst mode may be free, where less borrowing counts for more
        if not fits and worst < shortage:
            shortage = worst
            reported = LACKING if possible else TOO_LARGE
            p.column[j], p.amount[j], p.bottleneck[j] = column, amount, bottleneck
        if mode == IMPOSSIBLE:
            continue
        if best < 0 or _is_preferred(mode, level, best_mode, best_level, t.preemption_first[q]):
            best, best_mode, best_level, best_fits = f, mode, level, fits
        helps = mode > WITHOUT_VICTIMS
        if helps and not (mode < FREE and t.avoid_preemption[q]) and not (level > 0 and t.avoid_borrowing[q]):
            best, best_fits = f, fits
            break
    for r in range(resources):
        if w.request[j, r] > 0 and (not t.by_quota or t.group[q, r] == g):
            p.flavor[j, r] = best
    if not best_fits:
        return reported
    p.column[j], p.amount[j], p.bottleneck[j] = -1, 0, -1
    return FITS


@inlined
def is_entitled(t: Forest, w: Waiting, p: Progress, q: int, j: int) -> bool:
    """Whether a job could get what it lacks by preemption if there were victims. Else Kueue assigns it no flavor."""
    resources = w.request.shape[1]
    root = t.paths[q, t.depth[q]]
    for r in range(resources):
        request = w.request[j, r]
        if request == 0:
            continue
        if p.flavor[j, r] < 0:
            return False
        v = p.flavor[j, r] * resources + r
        here, _ = free(t, p, q, v, w.firm[j])
        if request <= here or request <= t.nominal[q, v] or t.preempts_borrowing[q]:
            continue
        if borrowing_level(t, p, q, v, request) >= t.height[root]:
            return False
    return True


@inlined
def _mode_of_preemption(t: Forest, w: Waiting, p: Progress, q: int, j: int, v: int, lacking: int) -> int:
    """How a job gets an amount of column v that is in use."""
    request = w.request[j, v % w.request.shape[1]]
    if not t.by_quota or not t.covered[q, v] or request > t.potential[q, v]:
        return IMPOSSIBLE
    if request > t.nominal[q, v] and not t.preempts_borrowing[q]:
        root = t.paths[q, t.depth[q]]
        if borrowing_level(t, p, q, v, request) >= t.height[root]:  # no ancestor below it is entitled to all of it
            return WITHOUT_VICTIMS
    others, own = w.other_victims[j % len(w.other_victims), v], w.own_victims[j % len(w.own_victims), v]
    if lacking <= others:
        return BY_RECLAIM
    return BY_PREEMPTION if lacking <= others + own else WITHOUT_VICTIMS


@inlined
def _is_preferred(mode: int, level: int, other_mode: int, other_level: int, preemption_first: bool) -> bool:
    """Whether a mode with a level of borrowing is better than another one."""
    if min(mode, other_mode) <= WITHOUT_VICTIMS and mode != other_mode:
        return mode > other_mode
    if preemption_first and level != other_level:
        return level < other_level
    return mode > other_mode if mode != other_mode else level < other_level
