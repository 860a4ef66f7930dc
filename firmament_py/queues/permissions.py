"""Permissions to preempt: which tasks of each queue may be victims of one preemptor, before a set of them is chosen.

The rules of a set as a whole are in `judgement.py`; here is what can be said of each queue alone, so that a search need
not consider the others. For all rules: queues that are not reclaimable, and those outside of a fence of the preemptor's
queue, have no victims for it.

| rules | victims in the own queue | in another queue, if |
| --- | --- | --- |
| QUOTA, classical | by `within` | it and all between it and the common ancestor exceed their quota; by `reclaim` |
| QUOTA, fair | by `within` | it exceeds its quota; by `reclaim` |
| FAIR_SHARE | lower priority | its side of the common ancestor exceeds its share; or its nominal amount, for (*) |
| DESERVED | lower priority | it exceeds its nominal amount and the preemptor is below its own in one resource |
| GUARANTEE | lower priority | it exceeds its nominal amount, the preemptor is within its own; priority not higher (+) |

(*) a preemptor whose side stays within its own nominal amounts. The side is the child of the common ancestor.
(+) as seen from there (`priorities.py`).
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.model.queues import Division, Reclaim, ReclaimRules, Sharing, Within
from firmament_py.queues.dominant import weighted_parts
from firmament_py.queues.priorities import seen_at_each_depth, seen_outside
from firmament_py.queues.quota import Capacity, counted_usage, left_to, total_usage
from firmament_py.queues.shares import guarantees
from firmament_py.queues.tree import Queues

NO_PRIORITY = -(2**62)
ANY_PRIORITY = 2**62


class Why(IntEnum):
    """Why a task may be a victim, in the words of Kueue's reasons of preemption."""

    NOT = 0
    IN_QUEUE = 1
    RECLAIM = 2
    """Reclaim of quota by a preemptor that stays within its own."""
    HIERARCHICAL_RECLAIM = 3
    """Reclaim of quota that an ancestor of the preemptor has, which the victim's queue is not below."""
    RECLAIM_WHILE_BORROWING = 4
    """Reclaim by a preemptor that borrows."""
    FAIR_SHARING = 5


@dataclass(frozen=True, eq=False)
class Situation:
    """The amounts on which permissions depend, and the preemptor."""

    queues: Queues
    capacity: Capacity
    own: I64
    """(Q, V) usage of the tasks of each queue itself."""
    queue: int
    """The row of the preemptor's queue."""
    priority: int
    created_us: int
    request: I64
    """(V,) in the columns of its flavors."""
    preemptible: bool = True
    share: I64 | None = None
    """(Q, V) of shares.fair_shares, for FAIR_SHARE and DESERVED."""
    firm: I64 | None = None
    """(Q, V) usage of tasks that cannot be preempted, for FAIR_SHARE."""
    total: I64 | None = None
    """(V,) what nodes offer, for DOMINANT_SHARE."""

    @cached_property
    def usage(self) -> I64:
        """(Q, V) the usage that the tree's rules compare."""
        if self.queues.tree.reclaim_rules is ReclaimRules.QUOTA:
            return counted_usage(self.queues, self.capacity, self.own)
        return total_usage(self.queues, self.own)

    def left(self, own: I64) -> I64:
        """(V,) what quota leaves to the preemptor's queue if the tasks of queues use `own` (Q, V)."""
        queues, tree = self.queues, self.queues.tree
        left: I64 = np.maximum(0, left_to(queues, self.capacity, own)[self.queue])
        by_weight = tree.sharing is Sharing.PROPORTIONAL and tree.division is Division.TOTAL_BY_WEIGHT
        if by_weight and self.share is not None:
            path = queues.paths[self.queue, : queues.depth[self.queue] + 1]  # shares are limits (queues/admission.py)
            left = np.minimum(left, np.maximum(0, self.share - total_usage(queues, own))[path].min(axis=0))
        return left

    @cached_property
    def needed(self) -> Bools:
        """(V,) columns of which more is requested than is available; all requested ones if quota suffices."""
        free = self.left(self.own)
        requested = self.request > 0
        lacking = requested & (self.request > free)
        return lacking if lacking.any() else requested

    @cached_property
    def common(self) -> I64:
        """(Q,) the depth of each queue's lowest common ancestor with the preemptor's, -1 without one."""
        paths = _from_root(self.queues)
        same = (paths == paths[self.queue]) & (paths >= 0)
        depth: I64 = np.cumprod(same, axis=1, dtype=np.int64).sum(axis=1) - 1
        return depth


@dataclass(frozen=True, slots=True, eq=False)
class Permissions:
    """(Q,) each; `floor` and `excess` (Q, V)."""

    why: I64
    """`Why` of the strongest claim; NOT if no task of the queue may be a victim."""
    highest: I64
    """Tasks up to this priority may be victims, NO_PRIORITY if none."""
    highest_borrowing: I64
    """The same if the preemptor borrows in the end."""
    equal_if_newer: Bools
    """Of the own queue also tasks of the same priority that are newer than the preemptor."""
    floor: I64
    """Tasks are victims only while their queue uses more than this in a column that the preemptor needs."""
    by_threshold: bool
    """Whether priorities decide who may be a victim of a preemptor that borrows."""
    below_floor: Bools
    """Whether the last victim may take the queue below its floor."""
    excess: I64
    """(Q, V) what queues use above their floor, below 0: less than that."""
    within_floor: Bools
    """Queues that use no more than their floor themselves: what exceeds one is that of an ancestor."""

    def reasons(self, queue: I64, priority: I64) -> I64:
        """(K,) `Why` each task (K,) may be a victim, by its queue and priority; NOT if it may not.

        Tasks of the own queue of the same priority depend on their age: see `equal_if_newer`.
        """
        why = self.why[queue]
        while_borrowing = (why == Why.RECLAIM) & (priority <= self.highest_borrowing[queue]) & self.by_threshold
        why = np.where(while_borrowing, Why.RECLAIM_WHILE_BORROWING, why)
        result: I64 = np.where(priority <= self.highest[queue], why, Why.NOT)
        return result


def permissions(s: Situation) -> Permissions:
    """What a preemptor may claim from each queue; O(Q (V + depth))."""
    queues, tree = s.queues, s.queues.tree
    why = np.full(queues.count, Why.NOT)
    others = reachable(s)
    highest = np.full(queues.count, NO_PRIORITY, np.int64)
    borrowing = highest.copy()
    below_floor = np.ones(queues.count, np.bool_)
    by_threshold = False
    within_floor = np.zeros(queues.count, np.bool_)
    definition = queues.definitions[s.queue]
    if tree.reclaim_rules is ReclaimRules.QUOTA:
        floor = capacity_floor = s.capacity.subtree
        within, policy = definition.within, definition.reclaim
        others &= exceeding(s, capacity_floor) & (policy is not Reclaim.NEVER)
        limit = ANY_PRIORITY if policy is Reclaim.ANY else s.priority - 1
        highest[others] = limit
        if tree.sharing is Sharing.FAIR:
            why[others] = Why.RECLAIM if _borrows_nothing(s) else Why.FAIR_SHARING
            borrowing = highest.copy()
        else:
            advantage = others & has_advantage(s)
            why[others] = Why.RECLAIM
            borrow = definition.borrow_within
            by_threshold = borrow.lower_priority
            if by_threshold:
                threshold = ANY_PRIORITY if borrow.max_priority is None else borrow.max_priority
                borrowing[others] = min(s.priority - 1, threshold)
            why[advantage] = Why.HIERARCHICAL_RECLAIM
            borrowing[advantage] = limit
    else:
        within = Within.LOWER_PRIORITY
        floor, claim, below = _floors(s)
        below_floor &= below
        if tree.reclaim_rules is ReclaimRules.FAIR_SHARE:
            over: Bools = np.any(s.usage > floor, axis=1)
            within_floor = _below_meeting(s, ~over[:, None])[:, 0]
            others &= over[sides(s)] & claim
        elif tree.reclaim_rules is ReclaimRules.DOMINANT_SHARE:
            others &= claim
        else:
            others &= exceeding(s, floor) & claim
        why[others] = Why.RECLAIM
        highest[others] = ANY_PRIORITY
        if tree.reclaim_rules is ReclaimRules.GUARANTEE:
            highest[others] = _up_to_equal(s)[others]
        borrowing = highest.copy()
    if within is not Within.NEVER:
        why[s.queue] = Why.IN_QUEUE
        highest[s.queue] = borrowing[s.queue] = s.priority - 1
    excess = s.usage - floor
    floor = floor.copy()
    floor[s.queue] = 0
    newer = np.zeros(queues.count, np.bool_)
    newer[s.queue] = within is Within.LOWER_OR_NEWER_EQUAL_PRIORITY
    return Permissions(why, highest, borrowing, newer, floor, by_threshold, below_floor, excess, within_floor)


def reachable(s: Situation) -> Bools:
    """(Q,) leaves other than the preemptor's, of its tree, reclaimable, and not outside of a fence around it."""
    queues = s.queues
    common = s.common
    mine = queues.paths[s.queue, : queues.depth[s.queue] + 1][::-1]  # from the root
    fenced = [depth for depth, row in enumerate(mine) if queues.definitions[row].fence]
    reachable: Bools = queues.leaf & (common >= (max(fenced) if fenced else _forest_depth(queues)))
    reachable[s.queue] = False
    reachable[_below_meeting(s, ~queues.reclaimable[:, None])[:, 0]] = False
    return reachable


def exceeding(s: Situation, floor: I64) -> Bools:
    """(Q,) queues that, like all between them and the common ancestor, use more than (Q, V) in a needed column."""
    over: Bools = np.any((s.usage > floor) & s.needed, axis=1)
    within = _below_meeting(s, ~over[:, None])[:, 0]
    return ~within


def _up_to_equal(s: Situation) -> I64:
    """(Q,) the highest own priority of tasks of each queue that is no higher than the preemptor's where they meet."""
    at = np.minimum(s.common + 1, s.queues.depth[s.queue])
    limit = seen_at_each_depth(s.queues, s.queue, s.priority)[at]
    return seen_outside(s.queues, sides(s)).highest(limit, NO_PRIORITY, ANY_PRIORITY)


def sides(s: Situation) -> I64:
    """(Q,) the child of each queue's common ancestor with the preemptor's that is on the queue's side."""
    at = np.minimum(s.common + 1, s.queues.depth)
    rows: I64 = np.take_along_axis(_from_root(s.queues), at[:, None], axis=1)[:, 0]
    return rows


def own_sides(s: Situation) -> I64:
    """(Q,) the child of each queue's common ancestor with the preemptor's that is on the preemptor's side."""
    rows: I64 = _from_root(s.queues)[s.queue][np.minimum(s.common + 1, s.queues.depth[s.queue])]
    return rows


def weighted_parts_with(s: Situation, own: I64) -> F64:
    """(Q,) weighted dominant shares of what is used if the tasks of queues use `own` (Q, V), with the preemptor. Queues
    that use nothing of what it needs do not count against their siblings."""
    with_request = own.copy()
    with_request[s.queue] += s.request
    with_request[~(with_request[:, s.needed] > 0).any(axis=1)] = 0
    total = np.zeros_like(s.request) if s.total is None else s.total
    return weighted_parts(s.queues, total, total_usage(s.queues, with_request))


def has_advantage(s: Situation) -> Bools:
    """(Q,) queues that an ancestor of the preemptor need not share its quota with: their common ancestor is above one
    in whose quota the preemptor fits."""
    queues, usage = s.queues, s.usage
    request, fits_at = s.request.copy(), None
    for row in queues.paths[s.queue]:
        if row >= 0 and fits_at is None:
            if (usage[row] + request <= s.capacity.subtree[row])[s.request > 0].all():
                fits_at = int(queues.depth[row])
            request = np.maximum(0, request - np.maximum(0, s.capacity.local[row] - usage[row]))
    return s.common < fits_at if fits_at is not None else np.zeros(queues.count, np.bool_)


def _borrows_nothing(s: Situation) -> bool:
    """Whether the preemptor's queue stays within its quota in what it needs."""
    usage = s.usage[s.queue] + s.request
    return bool((usage <= s.capacity.subtree[s.queue])[s.needed].all())


def _floors(s: Situation) -> tuple[I64, Bools, bool]:
    """(Q, V) floors, (Q,) whether the preemptor may claim at all, and whether the last victim may cross a floor."""
    queues, rules = s.queues, s.queues.tree.reclaim_rules
    used = s.usage
    requested = s.request > 0
    after = used + s.request
    path = queues.paths[s.queue, : queues.depth[s.queue] + 1]
    anywhere = np.ones(queues.count, np.bool_)
    if rules is ReclaimRules.FAIR_SHARE:
        share = np.zeros_like(used) if s.share is None else s.share
        if not (after <= share)[s.queue, requested].all() or not firm_within_nominal(s):
            return share, ~anywhere, True
        allocatable = np.minimum(np.maximum(share, queues.nominal), queues.limit)
        starved = deserves(s, after)
        return np.where(starved[:, None], np.minimum(queues.nominal, allocatable), allocatable), anywhere, True
    if rules is ReclaimRules.DESERVED:
        deserved = what_queues_deserve(s)
        allowed = (after <= queues.limit)[s.queue, requested].all()  # victims may be below the same ancestors
        below = ((after <= deserved)[s.queue] & requested).any()
        return deserved, anywhere & bool(allowed and below), True
    if rules is ReclaimRules.DOMINANT_SHARE:
        parts = weighted_parts_with(s, s.own)
        allowed = (after <= queues.limit)[s.queue, requested].all()
        return guarantees(queues), (parts[own_sides(s)] < parts[sides(s)]) & bool(allowed), True
    entitled = (after <= queues.nominal)[path][:, requested].all(axis=1).any()
    return queues.nominal, anywhere & bool(entitled), False


def what_queues_deserve(s: Situation) -> I64:
    """(Q, V) of DESERVED: their shares, no less than their guarantees."""
    deserved: I64 = np.maximum(s.queues.nominal if s.share is None else s.share, guarantees(s.queues))
    return deserved


def deserves(s: Situation, after: I64) -> Bools:
    """(Q,) whether the preemptor's side of the meeting with each queue stays within nominal amounts in all columns."""
    queues = s.queues
    counted = queues.known.any(axis=0) | (s.request > 0)
    within: Bools = np.all(((after <= queues.nominal) | ~counted)[own_sides(s)], axis=1)
    return within


def firm_within_nominal(s: Situation) -> bool:
    """Whether a preemptor that cannot be preempted stays within nominal amounts, with others like it, at each level."""
    if s.preemptible:
        return True
    queues = s.queues
    firm = total_usage(queues, s.own if s.firm is None else s.firm) + s.request
    path = queues.paths[s.queue, : queues.depth[s.queue] + 1]
    return bool((firm <= queues.nominal)[path][:, s.request > 0].all())


def _from_root(queues: Queues) -> I64:
    """(Q, D) the path to each queue: its root, ..., the queue, then -1."""
    steps = queues.depth[:, None] - np.arange(queues.paths.shape[1])
    paths: I64 = np.where(steps >= 0, np.take_along_axis(queues.paths, np.maximum(steps, 0), axis=1), -1)
    return paths


def _below_meeting(s: Situation, marked: Bools) -> Bools:
    """(Q, ...) whether a queue, or one between it and its common ancestor with the preemptor's, is marked."""
    queues = s.queues
    result = marked.copy()
    for level in queues.levels:
        rows = level.rows
        inherits = (queues.depth[rows] - 1) > s.common[rows]  # the parent is below the common ancestor
        result[rows] |= result[level.parents] & inherits[:, None]
    return result


def _forest_depth(queues: Queues) -> int:
    """Roots are queues of one cluster, except for Kueue, where trees have nothing in common."""
    return 0 if queues.tree.reclaim_rules is ReclaimRules.QUOTA else -1
