"""Which jobs may preempt in a round although their quota does not suffice: the first of each kind of each queue. Those
that are left out come in the next round, if no victims are found for one of these."""

import numpy as np

from firmament_py.model.arrays import I64, distinct_rows, run_positions
from firmament_py.sharing.jobs import Jobs

_KINDS_OF_QUEUE, _JOBS_OF_KIND = 4, 4


def first_of_kinds(jobs: Jobs, some: I64) -> I64:
    """Those of the jobs `some` (K,), ascending, that are the first of a kind, of the first kinds of their queue."""
    if len(some) <= _KINDS_OF_QUEUE:
        return some
    of = jobs.queue[some], jobs.priority[some], jobs.preemptible[some]
    columns = np.column_stack([*of, jobs.request[some], jobs.suitable[some]])
    first, kind = distinct_rows(columns)
    in_order = np.argsort(first)
    number_of_kind = np.empty(len(first), np.int64)
    number_of_kind[in_order] = run_positions(_run_lengths(jobs.queue[some[first[in_order]]]))
    by_kind = np.argsort(kind, kind="stable")
    number = np.empty(len(some), np.int64)
    number[by_kind] = run_positions(np.bincount(kind))
    return some[(number_of_kind[kind] < _KINDS_OF_QUEUE) & (number < _JOBS_OF_KIND)]


def _run_lengths(values: I64) -> I64:
    """(R,) the lengths of the runs of equal values (K,)."""
    begins = np.flatnonzero(np.r_[True, values[1:] != values[:-1]][: len(values)])
    lengths: I64 = np.diff(np.r_[begins, len(values)])
    return lengths
