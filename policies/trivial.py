"""Trivial: every placement costs the same (Firmament's trivial cost model): a baseline for comparing policies.

The solver chooses among the nodes with capacity.
"""

import numpy as np

from firmament_py.policy import Costs, View, waiting_cost


class Trivial:
    """Any node with capacity: a baseline without preferences."""

    name = "trivial"

    def costs(self, view: View) -> Costs:
        flat = np.zeros((1, 1), np.int64)
        return Costs(place=flat, slot=flat, wait=waiting_cost(view))
