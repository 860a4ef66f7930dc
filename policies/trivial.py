"""Trivial: every placement costs the same (Firmament's trivial cost model): a baseline for comparing policies.

Which of the nodes with capacity takes a task is up to the solver.
"""

import numpy as np

from firmament_py.policy import Costs, View, waiting_cost


class Trivial:
    """Any node with capacity: a baseline that prefers nothing."""

    name = "trivial"

    def costs(self, view: View) -> Costs:
        flat = np.zeros((1, 1), np.int64)
        return Costs(place=flat, slot=flat, wait=waiting_cost(view))
