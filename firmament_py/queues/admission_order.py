"""The search for an order of admission: a tournament of the heads of queues, renewed after each admission. Compiled.

Each queue has a *champion*: its own head, or the best champion of its children by their keys. Only the keys on the path
of the queue whose job was admitted change. Other champions are checked when they win: quota that others used since may
have made them worse, never better. A head that quota is kept for takes part, too, and it is kept at its turn.

Hierarchical DRF (Volcano): the dominant share of amounts is their largest part of the cluster's total. A queue's
amounts are the sum of its children's. Children with a champion are first rescaled to the least of their dominant
shares: so one that uses a resource no other needs does not count against its siblings.
"""

from typing import NamedTuple

from firmament_py.model.arrays import F64, I64
from firmament_py.model.queues import UNLIMITED
from firmament_py.numba_cache import compiled_in_place, inlined
from firmament_py.queues.admission_state import (
    BEHIND,
    FITS,
    LACKING,
    Forest,
    Progress,
    Waiting,
    choose_flavors,
    is_entitled,
    items_that_fit,
    level_of,
    try_to_use,
    use,
)

KEYS = 7
CLASSICAL, FAIR, PROPORTIONAL, HIERARCHICAL_DRF = range(4)
WITHIN_GUARANTEE, WITHIN_SHARE, ABOVE_SHARE, NO_CAPACITY = range(4)
"""What an admitted portion uses: see admission.admit."""

_WITHOUT_WEIGHT = 2.0**512  # as in dominant.py
_WITHOUT_SHARE = 1000.0  # what usage without any share counts for KAI


class Tournament(NamedTuple):
    champion: I64
    """(Q,) the queue whose head stands for this queue and all below it, -1 if none is left."""
    key: F64
    """(Q, KEYS) of the champion among the children of the queue's parent; the lowest wins."""
    winner: I64
    """(2 Q,) for the children of each parent a tree of the winners, from twice the start of the children."""
    amounts: F64
    """(Q, R) HDRF's rescaled amounts."""
    dominant: F64
    """(Q,) HDRF's dominant shares, without weights."""
    before: I64
    """(R,) flavors of a champion before it is checked."""


@compiled_in_place
def admit_in_order(t: Forest, w: Waiting, p: Progress, m: Tournament, ranked: bool, log: I64, flavors: I64) -> int:
    """Admits what fits; into log (P, 3) the job, items and class of each portion, and into flavors (P, R) its flavors.

    Unless all are ranked, jobs of queues that do not compete come first. Returns the number of portions; -1 if there is
    no space for all.
    """
    queues, resources = len(t.parent), w.request.shape[1]
    portions = 0
    for q in range(queues - 1, -1, -1):
        _next_head(t, w, p, q)
        while p.job[q] >= 0 and p.reason[p.job[q]] == FITS and not ranked and not w.contested[q]:
            if portions == len(log):
                return -1
            _admit(t, w, p, q, p.left[p.job[q]], WITHIN_SHARE, log[portions], flavors[portions])
            portions += 1
        _renew(t, w, p, m, q)
    while queues > 0 and m.winner[_root(t, -1)] >= 0:
        q = m.champion[m.winner[_root(t, -1)]]
        j, level = p.job[q], p.level[q]
        for r in range(resources):
            m.before[r] = p.flavor[j, r]
        _renew_head(t, w, p, q)
        same = p.job[q] == j and p.level[q] == level
        for r in range(resources):
            same &= m.before[r] == p.flavor[j, r]
        if not same:
            _renew_path(t, w, p, m, q)
            continue
        if p.reason[j] != FITS:
            _keep_for_head(t, w, p, q)
            _renew_path(t, w, p, m, q)
            continue
        if portions == len(log):
            return -1
        kind = _kind(t, w, p, q, j)
        items = p.left[j] if kind == NO_CAPACITY else min(w.portion[j], p.left[j])
        if w.contested[q] or t.sharing == CLASSICAL:
            items = items_that_fit(t, w, p, q, j, items)
        _admit(t, w, p, q, items, kind, log[portions], flavors[portions])
        portions += 1
        _renew_path(t, w, p, m, q)
    return portions


@inlined
def _admit(t: Forest, w: Waiting, p: Progress, q: int, items: int, kind: int, log: I64, flavors: I64) -> None:
    """Admits items of the head of a queue; log (3,), flavors (R,): of the portion."""
    j, resources = p.job[q], w.request.shape[1]
    log[0], log[1], log[2] = j, items, kind
    p.left[j] -= items
    p.score[w.lane[j]] += items * w.charge[j]
    for r in range(resources):
        flavors[r] = p.flavor[j, r]
        if w.request[j, r] > 0 and p.flavor[j, r] >= 0:
            v, amount = p.flavor[j, r] * resources + r, items * w.request[j, r]
            if kind == NO_CAPACITY:
                try_to_use(t, p, q, v, amount, w.firm[j])
            else:
                use(t, p, q, v, amount, w.firm[j])
    _renew_head(t, w, p, q)


@inlined
def _renew_head(t: Forest, w: Waiting, p: Progress, q: int) -> None:
    """The head of a queue now that more is used: in a queue that does not compete all fits where it did, and unless
    its lanes alternate, its head stays."""
    j = p.job[q]
    if w.contested[q] or p.left[j] == 0 or w.lanes[q + 1] - w.lanes[q] > 1:
        _next_head(t, w, p, q)
    elif t.by_quota:
        p.level[q] = level_of(t, w, p, q, j, 1)


@inlined
def _next_head(t: Forest, w: Waiting, p: Progress, q: int) -> None:
    """Makes the first job of the queue that fits its head, or one for which quota is kept; those before it get their
    reasons."""
    p.job[q] = -1
    while True:
        lane = _next_lane(w, p, q)
        if lane < 0:
            return
        j = p.lane_job[lane]
        p.reason[j] = choose_flavors(t, w, p, q, j)
        if p.reason[j] == FITS:
            p.level[q] = level_of(t, w, p, q, j, 1) if t.by_quota else 0
            p.job[q] = j
            return
        if t.keeps_for_head[q] and p.reason[j] == LACKING and is_entitled(t, w, p, q, j):
            p.level[q] = level_of(t, w, p, q, j, 1)
            p.job[q] = j
            return
        p.lane_job[lane] += 1
        if t.strict_fifo[q]:
            _stop(w, p, q)
            return


@inlined
def _stop(w: Waiting, p: Progress, q: int) -> None:
    """The jobs of the queue that are left wait behind its head."""
    for lane in range(w.lanes[q], w.lanes[q + 1]):
        for behind in range(p.lane_job[lane], w.lane_starts[lane + 1]):
            if p.left[behind] > 0:
                p.reason[behind] = BEHIND
        p.lane_job[lane] = w.lane_starts[lane + 1]


@inlined
def _keep_for_head(t: Forest, w: Waiting, p: Progress, q: int) -> None:
    """Counts as used what the queue keeps for its head, which lacks quota: up to its nominal amounts, or, if the head
    borrows, up to its borrowing limits (Kueue's quotaResourcesToReserve). The other jobs of the queue wait behind."""
    j, resources = p.job[q], w.request.shape[1]
    for r in range(resources):
        if w.request[j, r] > 0:
            v = p.flavor[j, r] * resources + r
            amount = w.request[j, r]
            bound = t.nominal[q, v] - p.usage[q, v] + (t.borrowing_limit[q, v] if p.level[q] > 0 else 0)
            use(t, p, q, v, max(0, min(amount, bound)), w.firm[j])
    p.job[q] = -1
    p.lane_job[w.lane[j]] += 1
    _stop(w, p, q)


@inlined
def _next_lane(w: Waiting, p: Progress, q: int) -> int:
    """The lane of the queue that is served next, -1: none has a job. Ties: by priority and age of their heads."""
    best = -1
    for lane in range(w.lanes[q], w.lanes[q + 1]):
        stop = w.lane_starts[lane + 1]
        while p.lane_job[lane] < stop and p.left[p.lane_job[lane]] == 0:
            p.lane_job[lane] += 1
        j = p.lane_job[lane]
        if j == stop:
            continue
        if best < 0:
            best = lane
            continue
        other = p.lane_job[best]
        if p.score[lane] != p.score[best]:
            better = p.score[lane] < p.score[best]
        elif w.priority[j] != w.priority[other]:
            better = w.priority[j] > w.priority[other]
        else:
            better = w.created[j] < w.created[other]
        if better:
            best = lane
    return best


@inlined
def _root(t: Forest, parent: int) -> int:
    """Where the winner among the children of a queue stands; of the roots, if it is -1."""
    return int(2 * t.child_starts[parent + 1] + 1)


@inlined
def _renew_path(t: Forest, w: Waiting, p: Progress, m: Tournament, q: int) -> None:
    n = q
    while n >= 0:
        _renew(t, w, p, m, n)
        n = t.parent[n]


@inlined
def _renew(t: Forest, w: Waiting, p: Progress, m: Tournament, n: int) -> None:
    """The champion of a queue whose children's are right, its key, and the winners of its parent."""
    start, stop = t.child_starts[n + 1], t.child_starts[n + 2]
    if start == stop:
        m.champion[n] = n if p.job[n] >= 0 else -1
    else:
        best = m.winner[_root(t, n)]
        m.champion[n] = m.champion[best] if best >= 0 else -1
    only_root = t.parent[n] < 0 and t.child_starts[1] == 1  # whose share is compared with no other
    if t.sharing == HIERARCHICAL_DRF and not only_root:
        _rescale(t, w, p, m, n)
    if m.champion[n] >= 0:
        _set_key(t, w, p, m, n)
    start, stop = t.child_starts[t.parent[n] + 1], t.child_starts[t.parent[n] + 2]
    at = stop - start + t.place[n]
    m.winner[2 * start + at] = n if m.champion[n] >= 0 else -1
    at //= 2
    while at >= 1:
        m.winner[2 * start + at] = _better(t, m, m.winner[2 * start + 2 * at], m.winner[2 * start + 2 * at + 1])
        at //= 2


@inlined
def _better(t: Forest, m: Tournament, one: int, other: int) -> int:
    if one < 0 or other < 0:
        return max(one, other)
    for i in range(KEYS):
        if m.key[one, i] != m.key[other, i]:
            return one if m.key[one, i] < m.key[other, i] else other
    return one if t.place[one] < t.place[other] else other


@inlined
def _set_key(t: Forest, w: Waiting, p: Progress, m: Tournament, n: int) -> None:
    q = m.champion[n]
    j = p.job[q]
    key = m.key[n]
    key[:] = 0.0
    if t.sharing == CLASSICAL:
        key[0], key[1], key[2] = p.level[q], -w.priority[j], w.created[j]
    elif t.sharing == FAIR:
        _fair_key(t, w, p, n, q, j, key)
        key[2], key[3] = -w.priority[j], w.created[j]
    elif t.sharing == PROPORTIONAL:
        if t.priority_first:
            key[0] = -_seen(t, q, n, w.priority[j])
        _proportional_key(t, w, p, n, j, p.flavor[j], key[1:])
    else:
        key[0] = m.dominant[n] / t.weight[n] if t.weight[n] > 0.0 else m.dominant[n] * _WITHOUT_WEIGHT


@inlined
def _seen(t: Forest, q: int, n: int, priority: float) -> float:
    """The priority of a job of queue q as seen from outside of queue n, q itself or one above it."""
    seen, below = priority, q
    while below != n:
        seen = (0.0 if t.priority_fence[below] else seen) + t.priority_offset[below]
        below = t.parent[below]
    return float((0.0 if t.priority_fence[n] else seen) + t.priority_offset[n])


@inlined
def _fair_key(t: Forest, w: Waiting, p: Progress, n: int, q: int, j: int, key: F64) -> None:
    """Whether the queue borrows what the job requests, and its weighted dominant share with the job."""
    if t.parent[n] < 0:
        return
    resources = w.request.shape[1]
    ratio = 0.0
    for r in range(resources):
        borrowed = 0.0
        for f in range(w.suitable.shape[1]):
            v = f * resources + r
            amount = w.request[j, r] if p.flavor[j, r] == f else 0
            below = q
            while below != n and amount > 0:
                amount -= max(0, t.local[below, v] - p.usage[below, v])
                below = t.parent[below]
            excess = p.usage[n, v] + max(0, amount) - t.subtree[n, v]
            if excess > 0 and t.known[n, v]:
                borrowed += excess
                if p.flavor[j, r] == f and w.request[j, r] > 0:
                    key[0] = 1.0
        lendable = t.lendable[t.parent[n], r]
        if lendable > 0.0:
            ratio = max(ratio, 1000.0 * borrowed / lendable)
    key[1] = ratio / t.weight[n] if t.weight[n] > 0.0 else ratio * _WITHOUT_WEIGHT


@inlined
def _proportional_key(t: Forest, w: Waiting, p: Progress, n: int, j: int, flavor: I64, key: F64) -> None:
    """KAI's order: not above the share, within nominal with the job, priority, a share at all, dominant part of it."""
    resources = w.request.shape[1]
    above, within = True, True
    for v in range(len(t.total)):
        if t.total[v] == 0:
            continue
        r = v % resources
        used, request = p.used[n, v], w.request[j, r] if flavor[r] == v // resources else 0
        above &= t.share[n, v] < used
        within &= used + request <= t.nominal[n, v]
        amount = t.allocatable[n, v] if t.allocatable[n, v] < UNLIMITED else t.total[v]
        if amount == 0:
            key[3] = max(key[3], 1.0 if used + request > 0 else 0.0)
        scale = 1.0 / amount if amount > 0 else _WITHOUT_SHARE
        key[4] = max(key[4], (used + request) * scale)
        key[5] = max(key[5], used * scale)
    key[0], key[1], key[2] = 1.0 if above else 0.0, 0.0 if within else 1.0, -float(t.priority[n])


@inlined
def _rescale(t: Forest, w: Waiting, p: Progress, m: Tournament, n: int) -> None:
    """HDRF's amounts and dominant share of a queue: children with a head are rescaled to the least share."""
    resources = w.request.shape[1]
    start, stop = t.child_starts[n + 1], t.child_starts[n + 2]
    for r in range(resources):
        m.amounts[n, r] = 0.0
    if start == stop:
        for v in range(len(t.total)):
            m.amounts[n, v % resources] += p.used[n, v]
    else:
        least = 1.0
        for i in range(start, stop):
            child = t.children[i]
            if m.champion[child] >= 0 and m.dominant[child] > 0.0:
                least = min(least, m.dominant[child])
        for i in range(start, stop):
            child = t.children[i]
            if m.dominant[child] > 0.0:
                scale = least / m.dominant[child] if m.champion[child] >= 0 else 1.0
                for r in range(resources):
                    m.amounts[n, r] += scale * m.amounts[child, r]
    m.dominant[n] = 0.0
    for r in range(resources):
        total = 0
        for v in range(r, len(t.total), resources):
            total += t.total[v]
        if m.amounts[n, r] > 0.0:
            m.dominant[n] = max(m.dominant[n], m.amounts[n, r] / total if total > 0 else 1.0)


@inlined
def _kind(t: Forest, w: Waiting, p: Progress, q: int, j: int) -> int:
    """What one more item of the head uses."""
    if t.by_quota:
        return WITHIN_GUARANTEE if p.level[q] == 0 else WITHIN_SHARE
    resources = w.request.shape[1]
    by_share = t.sharing == PROPORTIONAL and not t.priority_first
    within, above, lacking = by_share, False, False
    for r in range(resources):
        request, f = w.request[j, r], p.flavor[j, r]
        if request > 0 and f >= 0:
            v = f * resources + r
            lacking |= p.cluster_used[v] + request > t.total[v]
            within &= p.used[q, v] + request <= t.nominal[q, v]
            n = q
            while n >= 0 and by_share:
                above |= p.used[n, v] + request > t.share[n, v]
                n = t.parent[n]
    if lacking:
        return NO_CAPACITY
    if within:
        return WITHIN_GUARANTEE
    return ABOVE_SHARE if above else WITHIN_SHARE
