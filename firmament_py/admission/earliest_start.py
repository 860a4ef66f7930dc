"""The earliest time at which a gang could fit, by tasks' expected ends: a bound for all times in one pass.

Free capacity only grows as tasks end. So what each end adds to a node is summed up in the order of time, and the first
time at which there is enough follows without a trial.
"""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools, stable_order
from firmament_py.snapshot.expected_releases import Releases
from firmament_py.snapshot.solo_capacity import task_slots


@dataclass(frozen=True, slots=True)
class Need:
    """`lacking` tasks of C classes: requests (C, R), suitable (C, N) where they may go, waiting (C,) how many of each
    class there are."""

    requests: I64
    suitable: Bools
    waiting: I64
    lacking: int


def first_ends(need: Need, free: I64, choice: I64, choices: int, releases: Releases) -> I64:
    """(D,) for each choice the position in `releases.ends` of the first end at which the need could be met there;
    len(ends): none.

    free (N, R): what is left now. choice (N,): which of the `choices` a node is in, -1: none. Each class counts as if
    it was alone, and so does each resource: tasks of one class without intertask constraints fit then, others not
    before.
    """
    suitable: Bools = need.suitable & (choice >= 0)
    node, rank, given = releases.steps(np.logical_or.reduce(suitable))
    now = _useful(need, free, suitable)  # (M, N)
    then = _useful(need, free.take(node, axis=0) + given, suitable.take(node, axis=1))  # (M, K), after each end
    before = np.concatenate([np.zeros((len(now), 1), np.int64), then[:, :-1]], axis=1)
    first = np.diff(node, prepend=-1) != 0
    before[:, first] = now[:, node[first]]
    gain = then - before
    some = np.flatnonzero(gain.any(axis=0))
    # by choice, then time
    some = some[stable_order(rank[some], len(releases.ends))]
    some = some[stable_order(choice[node[some]], choices)]
    where, rank = choice[node[some]], rank[some]
    inside = np.flatnonzero(choice >= 0)
    base = np.zeros((len(now), choices), np.int64)
    for measure, amounts in zip(base, now, strict=True):
        np.add.at(measure, choice[inside], amounts[inside])
    total = np.zeros((len(now), len(some) + 1), np.int64)
    np.cumsum(gain.take(some, axis=1), axis=1, out=total[:, 1:])
    begins = np.searchsorted(where, np.arange(choices))
    reached = total[:, 1:] + (base - total[:, begins]).take(where, axis=1)
    answer = np.full(choices, len(releases.ends), np.int64)
    met = np.flatnonzero(_suffices(need, reached))
    at, earliest = np.unique(where[met], return_index=True)
    answer[at] = rank[met[earliest]]
    answer[_suffices(need, base) & (answer > 0)] = 0
    return answer


def enough_there(need: Need, free: I64, choice: I64, choices: int) -> Bools:
    """(D,) which choices could meet the need with `free` (N, R), by the same bound."""
    useful = _useful(need, free, need.suitable & (choice >= 0))
    inside = np.flatnonzero(choice >= 0)
    total = np.zeros((len(useful), choices), np.int64)
    for measure, amounts in zip(total, useful, strict=True):
        np.add.at(measure, choice[inside], amounts[inside])
    return _suffices(need, total)


def _useful(need: Need, free: I64, suitable: Bools) -> I64:
    """(M, K) what K places with `free` (K, R) can contribute: how many tasks of each class, and with several classes
    how much of each resource, too."""
    slots = task_slots(free, need.requests, suitable, need.waiting)
    if len(slots) == 1:
        return slots
    unit = np.maximum(np.gcd.reduce(need.requests, axis=0), 1)
    # of a link without a limit, so much less that all nodes together have an amount
    ceiling = np.iinfo(np.int64).max // max(need.suitable.shape[1], 1)
    amounts = np.clip(free, 0, ceiling) // unit * unit
    return np.concatenate([slots, np.where(slots.any(axis=0), amounts.T, 0)])


def _suffices(need: Need, useful: I64) -> Bools:
    """(K,): whether the sums `useful` (M, K) meet the need."""
    classes = len(need.requests)
    suffices: Bools = np.minimum(useful[:classes], need.waiting[:, None]).sum(axis=0) >= need.lacking
    if classes > 1:
        # of each resource at least what the smallest requests add up to
        order = np.argsort(need.requests, axis=0)
        sizes, counts = np.take_along_axis(need.requests, order, axis=0), need.waiting[order]
        taken = np.diff(np.minimum(np.cumsum(counts, axis=0), need.lacking), axis=0, prepend=0)
        suffices &= (useful[classes:] >= (sizes * taken).sum(axis=0)[:, None]).all(axis=0)
    return suffices
