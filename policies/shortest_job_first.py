"""Shortest job first: if not all tasks fit, those with the shortest expected duration go first (Firmament's SJF model).

    wait[t] = 6,000,000 + 12,000,000 x rank + 50,000 x (50 + a - patience x e)

with rank: of the task's priority; e = log2 of (1 + expected seconds of the task); a = log2 of (1 + seconds that it has
waited). Priority comes before duration. Of tasks of the same age the shorter goes first; a task that takes x
times as long goes first after it has waited x times as long (x ** patience): Brinch Hansen's highest response ratio
next. So age finally outweighs duration, and no task starves. Tasks without an expected duration count as the mean of
waiting tasks that have one, or as the option `unknown-seconds`. Load is spread over nodes as by load-spreading.
Example: a task of 10 s and one of an hour have e = 3.5 and 11.8. If both are new, leaving the short one waiting costs
50,000 x 8.3 = 417,500 more; if the long one has waited six minutes (a = 8.5), it goes first.
"""

import numpy as np

from firmament_py.policy import F64, PRIORITY_STEP, WAIT_MIN, Costs, View
from policies.load_spreading import by_tasks

_STEP = 50_000
_EXPECTED_MAX = 2.0**25
"""Seconds, about a year; longer durations count as this."""

_DOUBLINGS_MAX = 50
"""Above patience x log2(_EXPECTED_MAX + 1), and above log2 of any age in seconds (2**63 microseconds)."""

_PATIENCE_MAX = 1.0


class ShortestJobFirst:
    """Shortest expected duration first if not all tasks fit; age finally outweighs duration."""

    name = "shortest-job-first"
    spreads_tasks = True

    def __init__(self, patience: float = 1.0, unknown_seconds: float = 0.0) -> None:
        if not 0.0 < patience <= _PATIENCE_MAX:
            raise ValueError(f"option patience is {patience}; give a number above 0, up to {_PATIENCE_MAX}")
        if not 0.0 <= unknown_seconds <= _EXPECTED_MAX:
            raise ValueError(
                f"option unknown-seconds is {unknown_seconds}; give 0 for the mean of the known durations, "
                f"or up to {_EXPECTED_MAX:.0f}"
            )
        self._patience = patience
        self._unknown = unknown_seconds

    def costs(self, view: View) -> Costs:
        ranks = np.unique(view.priority, return_inverse=True)[1]
        # steps of a quarter of a doubling: few distinct costs keep the network small
        short = np.rint(4.0 * self._patience * np.log2(self._expected(view) + 1.0)) / 4.0
        of_class = 2.0 * PRIORITY_STEP * ranks + _STEP * (_DOUBLINGS_MAX - short)
        age = np.floor(np.log2(view.task_age_us // 1_000_000 + 1))
        return Costs(
            place=np.zeros((1, 1), np.int64),
            slot=by_tasks(view),
            wait=WAIT_MIN + (of_class[view.task_class] + _STEP * age).astype(np.int64),
        )

    def _expected(self, view: View) -> F64:
        """(C,) expected seconds of a task of each class, with a value for classes that state none."""
        seconds = view.expected_us / 1e6
        known = view.expected_us > 0
        unknown = self._unknown
        if not unknown and known.any():
            unknown = float(np.average(seconds[known], weights=np.maximum(view.waiting[known], 1)))
        return np.minimum(np.where(known, seconds, unknown), _EXPECTED_MAX)
