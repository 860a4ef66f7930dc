"""Octopus: the next task goes to the machine with the fewest running tasks at the start of the round, one task per core
(Firmament's Octopus cost model).

    slot[n, k] = 100 x running[n] + 100 x q + min(i, 99)        q, i: quotient and remainder of (running[n] + k) / P

P is the number of n's cores (processing units): the first task on a machine takes core 0, and so on, cyclically; the
core runs q tasks already, and its number i breaks ties. The load of a machine is the number of tasks that ran there at
the start of the round, so a batch goes to the least loaded machine until each of its cores has one more task, while
load-spreading counts every task that it adds: Octopus balances from round to round, and fills the cores of one machine
before the next.
Example: two machines of 4 cores, one idle, the other with one task: 0, 1, 2, 3, then 100 for a second task on core 0,
against 101, 102, 103, 200 on the other. Of 4 tasks all go to the idle machine; load-spreading sends 2 or 3 there.
"""

import numpy as np

from firmament_py.policy import COST_MAX, Costs, View, waiting_cost

_PER_TASK = 100
_MILLI = 1000


class Octopus:
    """Fewest running tasks at the start of the round first; one task per core before any core runs two."""

    name = "octopus"
    spreads_tasks = True

    def costs(self, view: View) -> Costs:
        cores = np.ones(len(view.allocatable), np.int64)
        if "cpu" in view.resources:
            cores = np.maximum(view.allocatable[:, view.resources.index("cpu")] // _MILLI, 1)
        rounds, core = np.divmod(view.running[:, None] + view.slot_offsets[None, :], cores[:, None])
        slot = _PER_TASK * (view.running[:, None] + rounds) + np.minimum(core, _PER_TASK - 1)
        return Costs(place=np.zeros((1, 1), np.int64), slot=np.minimum(slot, COST_MAX), wait=waiting_cost(view))
