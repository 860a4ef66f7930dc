"""Judges a set of victims as a whole: the conditions hold for what is left in the end, whatever found the set.

Conditions on a victim ("its queue still exceeds its quota") depend on what was evicted before it. A set is permitted if
there is an order in which each victim may be evicted. It is found backwards: from the final usage, any victim that may
be the last one is put back, then any that may be the one before. Usage of victims' queues only grows in that, and the
preemptor's share is always the final one, so no choice is ever wrong.
"""

from dataclasses import dataclass, replace

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.queues import FairStrategy, ReclaimRules, Sharing
from firmament_py.queues.dominant import dominant_shares
from firmament_py.queues.permissions import (
    Permissions,
    Situation,
    Why,
    firm_within_nominal,
    permissions,
    weighted_parts_with,
    what_queues_deserve,
)
from firmament_py.queues.quota import counted_usage, total_usage
from firmament_py.queues.shares import guarantees


@dataclass(frozen=True, slots=True, eq=False)
class Victims:
    """K tasks or jobs that are to be evicted."""

    queue: I64
    """(K,) rows."""
    priority: I64
    created_us: I64
    amounts: I64
    """(K, V) what each uses."""
    preemptible: Bools


@dataclass(frozen=True, slots=True)
class Verdict:
    """`victim` is the first one that the reason is about, -1 if it is about none; `reason` is empty if permitted.
    `borrows`: the victim could leave if the preemptor did not borrow in the end."""

    reason: str = ""
    victim: int = -1
    borrows: bool = False

    def __bool__(self) -> bool:
        return not self.reason


def judge(s: Situation, victims: Victims) -> Verdict:
    """Whether a preemptor may evict these victims, and fits into its quota then."""
    tree = s.queues.tree
    final = replace(s, own=_without(s.own, victims))
    free = s.left(final.own)
    if (s.request > free)[s.request > 0].any():
        return Verdict("the preemptor does not fit into its quota without the victims")
    if tree.reclaim_rules is ReclaimRules.FAIR_SHARE and not firm_within_nominal(s):
        return Verdict("tasks that cannot be preempted would exceed the nominal amounts of the preemptor's queue")
    granted = permissions(s)
    own = victims.queue == s.queue
    verdict = _each(s, granted, victims, own)
    if not verdict:
        return verdict
    if own.all():
        return verdict
    if tree.reclaim_rules is ReclaimRules.FAIR_SHARE:
        verdict = _ratios(s, victims, final)
        if not verdict:
            return verdict
    return _ordered(s, granted, victims, final)


def _each(s: Situation, granted: Permissions, victims: Victims, own: Bools) -> Verdict:
    """What holds of each victim alone."""
    uses = (victims.amounts[:, s.needed] > 0).any(axis=1)
    exceeds_quota = counted_usage(s.queues, s.capacity, _without(s.own, victims, own))[s.queue] + s.request
    borrows = bool((exceeds_quota > s.queues.nominal[s.queue])[s.request > 0].any())
    highest = (granted.highest_borrowing if borrows else granted.highest)[victims.queue]
    equal = granted.equal_if_newer[victims.queue] & (victims.priority == s.priority)
    may = (victims.priority <= highest) | (equal & (victims.created_us > s.created_us))
    if s.queues.tree.reclaim_rules is not ReclaimRules.QUOTA:
        may &= victims.preemptible
    for refused, reason in (
        (~uses, "the victim uses nothing that the preemptor needs"),
        (granted.why[victims.queue] == Why.NOT, "the victim's queue owes the preemptor nothing"),
    ):
        if refused.any():
            return Verdict(reason, int(np.argmax(refused)))
    if may.all():
        return Verdict()
    victim = int(np.argmin(may))
    otherwise = victims.priority[victim] <= granted.highest[victims.queue[victim]]
    return Verdict("the victim's priority is too high for this preemptor", victim, borrows and bool(otherwise))


def _ordered(s: Situation, granted: Permissions, victims: Victims, final: Situation) -> Verdict:
    """Whether there is an order in which each victim of another queue may be evicted."""
    shares = _shares(final, final.own)
    left = [k for k in range(len(victims.queue)) if victims.queue[k] != s.queue]
    own = final.own.copy()
    strict = not granted.below_floor.all()
    while left:
        refused = []
        for k in left:
            with_last = own.copy()
            with_last[victims.queue[k]] += victims.amounts[k]
            if _may_be_last(s, granted, victims, k, own if strict else with_last, own, shares):
                own = with_last
            else:
                refused.append(k)
        if len(refused) == len(left):
            return Verdict("the victim's queue does not exceed what it is entitled to any more", refused[0])
        left = refused
    return Verdict()


def _may_be_last(
    s: Situation, granted: Permissions, victims: Victims, k: int, before: I64, after: I64, final: F64
) -> bool:
    """Whether victim k may be evicted when usage is `before` and then `after`; if floors are strict, both are equal."""
    queues, rules = s.queues, s.queues.tree.reclaim_rules
    row = int(victims.queue[k])
    involved = s.needed & (victims.amounts[k] > 0)
    between = _between(s, row)
    if rules is ReclaimRules.QUOTA:
        usage = counted_usage(queues, s.capacity, before)[between]
        over = (usage > s.capacity.subtree[between])[:, s.needed].any(axis=1).all()
        return bool(over) and (queues.tree.sharing is not Sharing.FAIR or _shares_permit(s, row, before, after, final))
    usage = total_usage(queues, before)
    floor = granted.floor[row]
    if rules is ReclaimRules.GUARANTEE:
        return bool((usage[between] >= queues.nominal[between])[:, victims.amounts[k] > 0].all())
    if rules in (ReclaimRules.DESERVED, ReclaimRules.DOMINANT_SHARE):
        if not (total_usage(queues, after) >= guarantees(queues))[row, victims.amounts[k] > 0].all():
            return False  # it would take what is not lent
        if rules is ReclaimRules.DESERVED:
            return bool((usage[row] > floor)[involved].any()) and _uses_less(s, victims, k, usage)
        mine, theirs = _sides(s, row)
        return bool(final[mine] < weighted_parts_with(s, after)[theirs])
    return bool((usage[between[-1]] > granted.floor[between[-1]]).any())


def _uses_less(s: Situation, victims: Victims, k: int, usage: I64) -> bool:
    """Whether the preemptor's queue would use a lower part of what it deserves than the queue of victim k when usage
    is (Q, V): else that one could claim it back. Of the resources that their tasks request the one counts of which a
    queue uses the highest part; if these are equal, the next."""
    row, deserved = int(victims.queue[k]), what_queues_deserve(s)
    mine = _part(usage[s.queue] + s.request, deserved[s.queue])[s.request > 0]
    theirs = _part(usage[row], deserved[row])[victims.amounts[k] > 0]
    return sorted(mine.tolist(), reverse=True) < sorted(theirs.tolist(), reverse=True)


def _part(used: I64, share: I64) -> F64:
    """(V,) the part of a share (V,) that is used."""
    part: F64 = np.divide(used, share, out=np.where(used > 0, np.inf, 0.0), where=share > 0)
    return part


def _shares_permit(s: Situation, row: int, before: I64, after: I64, final: F64) -> bool:
    """Kueue's strategies at the two children of the common ancestor, with the preemptor's request."""
    queues = s.queues
    initial = counted_usage(queues, s.capacity, s.own)[s.queue] + s.request
    if (initial <= queues.nominal[s.queue])[s.needed].all():
        return True
    mine, theirs = _sides(s, row)
    strategies = queues.tree.strategies
    if FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE in strategies and final[mine] <= _shares(s, after)[theirs]:
        return True
    return FairStrategy.LESS_THAN_INITIAL_SHARE in strategies and bool(final[mine] < _shares(s, before)[theirs])


def _shares(s: Situation, own: I64) -> F64:
    """(Q,) dominant shares with the preemptor's request; of no meaning if these do not count."""
    if s.queues.tree.reclaim_rules is ReclaimRules.DOMINANT_SHARE:
        return weighted_parts_with(s, own)
    if s.queues.tree.sharing is not Sharing.FAIR:
        return np.zeros(s.queues.count)
    with_request = own.copy()
    with_request[s.queue] += s.request
    return dominant_shares(s.queues, s.capacity, counted_usage(s.queues, s.capacity, with_request)).share


def _ratios(s: Situation, victims: Victims, final: Situation) -> Verdict:
    """KAI: at each level, no sibling that loses something is left with a lower part of its share than the preemptor's
    side has then, if that is above its share."""
    queues = s.queues
    share = np.zeros_like(s.own) if s.share is None else s.share
    used = total_usage(queues, final.own)
    for row in _path(s):
        mine = used[row] + s.request
        for k, queue in enumerate(victims.queue):
            sibling = _sides(s, int(queue))[1]
            if queue == s.queue or queues.parent[sibling] != queues.parent[row] or sibling == row:
                continue
            involved = (victims.amounts[k] > 0) | (s.request > 0)
            part, theirs = _part(mine, share[row]), _part(used[sibling], share[sibling])
            worse = (part > 1) & (share[sibling] > 0) & (part * queues.tree.reclaim_ratio >= theirs)
            if worse[involved].any():
                return Verdict("the preemptor's queue would use a larger part of its share than the victim's", k)
    return Verdict()


def _without(own: I64, victims: Victims, chosen: Bools | None = None) -> I64:
    left = own.copy()
    rows = slice(None) if chosen is None else chosen
    np.subtract.at(left, victims.queue[rows], victims.amounts[rows])
    return left


def _path(s: Situation) -> I64:
    return s.queues.paths[s.queue, : s.queues.depth[s.queue] + 1]


def _between(s: Situation, row: int) -> I64:
    """The rows from a queue up to the child of its common ancestor with the preemptor's queue."""
    common = int(s.common[row])
    return s.queues.paths[row, : int(s.queues.depth[row]) - common]


def _sides(s: Situation, row: int) -> tuple[int, int]:
    """The children of the common ancestor, on the preemptor's side and on that of another queue."""
    common = int(s.common[row])
    queues = s.queues
    mine = queues.paths[s.queue, max(0, int(queues.depth[s.queue]) - common - 1)]
    theirs = queues.paths[row, max(0, int(queues.depth[row]) - common - 1)]
    return int(mine), int(theirs)
