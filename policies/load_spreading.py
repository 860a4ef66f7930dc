"""Load-spreading: the next task goes where least is running (Firmament's simplest policy, OSDI'16 section 3.3).

    slot[n, k] = 100 x (tasks running on n + k) + share

with share = 0 .. 99, how much of n's scarcest resource is in use already (View.load: requested, or measured): it
breaks ties, and it prefers the larger machine among equally busy ones. Example: a node with 3 tasks that is half used
prices its next tasks 349, 449, 549, ...; a node with 4 tasks that is empty otherwise 400, 500, ...: one task goes to
the first node, then they take turns.
"""

import numpy as np

from firmament_py.policy import COST_MAX, Prices, View, waiting_cost

_PER_TASK = 100


class LoadSpreading:
    """Fewest running tasks first; ties by the least used node."""

    name = "load-spreading"

    def price(self, view: View) -> Prices:
        used = view.load / np.maximum(view.allocatable, 1)
        used[view.allocatable == 0] = 0.0
        share = np.clip(used.max(axis=1, initial=0.0), 0.0, 1.0) * (_PER_TASK - 1)
        tasks = view.running[:, None] + view.slot_offsets[None, :]
        slot = np.minimum(_PER_TASK * tasks + share.astype(np.int64)[:, None], COST_MAX)
        return Prices(place=np.zeros((1, 1), np.int64), slot=slot, wait=waiting_cost(view))
