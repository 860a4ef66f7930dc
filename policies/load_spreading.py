"""Load-spreading: the next task goes to the node with the fewest running tasks (Firmament's simplest policy, OSDI'16
section 3.3), or, with by=requested, to the node with the smallest used share (kube-scheduler's LeastAllocated).

    by=tasks:      slot[n, k] = 100 x (tasks running on n + k) + share
    by=requested:  slot[n, k] = 10,000 x max over resources of (load + k x m) / allocatable
    place[c, n]  = 100 x spare-devices, if n has devices and tasks of class c request none; else 0

share = 0 .. 99 is the used share of n's scarcest resource (View.load: requested, or measured): it breaks ties, and
prefers the larger of two machines with the same number of tasks. m is the mean request of waiting tasks. Devices are
resources that some nodes lack, such as GPUs: for tasks that request none, a node with devices costs as if
`spare-devices` more tasks ran there (or as many hundredths more of it were used). Nodes of one kind have the same
devices, so the balance among them is unaffected. Example: the next tasks on a node with 3 tasks that is half used cost
349, 449, 549, ...; on a node with 4 tasks that is otherwise empty 400, 500, ...: one task goes to the first node, then
they alternate. With by=requested and m = 1/10 of either node: 5000, 6000, ... against 0, 1000, ...: five tasks go to
the second node first.

With spread-label=L the values of node label L, such as racks, are aggregators: of the tasks of a class that wait, each
value takes as many as it has of the nodes that can take tasks, and each further one costs `spread-cost` more.

A running task that may be moved is, if that saves more than `move-cost`, and more the more work it loses: by default
ten tasks' difference between two nodes, or a tenth of a node with by=requested.
"""

from typing import Literal

import numpy as np

from firmament_py.policy import (
    COST_MAX,
    I64,
    MOVING_MAX,
    Aggregators,
    Costs,
    Victims,
    View,
    moving_cost,
    waiting_cost,
)
from policies.scarcity import requested_devices, used, wasted

_PER_TASK = 100
_WHOLE_NODE = 10_000
_SPARE_MAX = 1000


class LoadSpreading:
    """Fewest running tasks first; of nodes with equally many, the least used one."""

    name = "load-spreading"

    def __init__(
        self,
        by: Literal["tasks", "requested"] = "tasks",
        spare_devices: int = 10,
        move_cost: int = 1000,
        spread_label: str = "",
        spread_cost: int = 1000,
    ) -> None:
        if not 0 <= spare_devices <= _SPARE_MAX:
            raise ValueError(
                f"option spare-devices is {spare_devices}; give a number of tasks from 0 (ignore devices) "
                f"to {_SPARE_MAX}"
            )
        if not 1 <= move_cost <= MOVING_MAX:
            raise ValueError(f"option move-cost is {move_cost}; give 1 .. {MOVING_MAX}")
        if not 1 <= spread_cost <= COST_MAX:
            raise ValueError(f"option spread-cost is {spread_cost}; give 1 .. {COST_MAX}")
        self._by = by
        self._spread_label, self._spread_cost = spread_label, spread_cost
        self._move_cost = move_cost
        self._surcharge = _PER_TASK * spare_devices
        self.spreads_tasks = not spread_label  # a class has one limit that nodes share: that of the label

    def costs(self, view: View) -> Costs:
        unneeded = wasted(view) if self._surcharge else None
        place = np.zeros((1, 1), np.int64) if unneeded is None else self._surcharge * unneeded.astype(np.int64)
        slot = by_tasks(view) if self._by == "tasks" else _by_requested(view)
        aggregators = self._aggregators(view) if self._spread_label else None
        return Costs(place=place, slot=slot, wait=waiting_cost(view), aggregators=aggregators)

    def _aggregators(self, view: View) -> Aggregators | None:
        """The values of the label, each with its share of the tasks of each class: by nodes that can take tasks."""
        names, of_node = view.domains(self._spread_label)
        nodes = np.bincount(of_node[(of_node >= 0) & (view.depth > 0)], minlength=len(names))
        if not nodes.any():
            return None
        share = -(-view.waiting[:, None] * nodes[None, :] // nodes.sum())
        return Aggregators(of_node, share.astype(np.int64), np.full(len(view.waiting), self._spread_cost))

    def moving_costs(self, victims: Victims) -> I64:
        return moving_cost(victims, self._move_cost)

    def place_kinds(self, victims: Victims) -> I64:
        return requested_devices(victims)


def by_tasks(view: View) -> I64:
    """(N, K) slot costs: 100 for each running task, and the used share in hundredths."""
    share = (used(view) * (_PER_TASK - 1)).astype(np.int64)
    first = _PER_TASK * view.running + share
    slot: I64 = first[:, None] + _PER_TASK * view.slot_offsets[None, :]
    return np.minimum(slot, COST_MAX, out=slot)


def _by_requested(view: View) -> I64:
    """(N, K) used share of the scarcest resource with that many more tasks of the mean request."""
    mean = view.waiting @ view.requests.astype(np.float64) / max(int(view.waiting.sum()), 1)
    # one resource at a time, to avoid an array of N x K x R
    slot = np.zeros((len(view.allocatable), len(view.slot_offsets)))
    for r in range(len(view.resources)):
        there = np.flatnonzero(view.allocatable[:, r])
        whole = view.allocatable[there, r].astype(np.float64)
        taken = np.maximum(view.load[there, r], 0)
        share = (taken[:, None] + mean[r] * view.slot_offsets[None, :]) / whole[:, None]
        slot[there] = np.maximum(slot[there], share)
    levels: I64 = np.rint(_WHOLE_NODE * np.minimum(slot, 1.0)).astype(np.int64)
    return levels
