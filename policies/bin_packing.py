"""Bin-packing: the next task goes to the fullest node with capacity for it, so that whole nodes stay free.

    place[n] = 1000 x (1 - s) + 1000 x (1 - g) x w        s: used share of n's scarcest resource
                                                          g: used share of n's scarcest device
                                                          w: 4 if n has devices, else 0

A fuller node costs less, however many tasks it takes, so a flow fills it before it uses the next.
Devices are resources that some nodes lack (GPUs): nodes whose devices are partly used are filled first, and nodes with
devices come last for tasks that request none of them (+ 10,000). Example: of two nodes without devices, half and a
quarter used, the first costs 500 and the second 750: the first is filled first.

With `by=amount` 1 - s and 1 - g are what is left of these resources, relative to the largest node: of nodes of
different sizes the smallest that suffice are filled first, so that the large ones stay free for large tasks. Example:
4 cores, all free, cost less than 5 free ones of 8.

A running task that may be moved is, if that saves more than `move-cost`, and more the more work it loses: by default if
the other node is fuller by three tenths.
"""

from typing import Literal

import numpy as np

from firmament_py.policy import F64, I64, MOVING_MAX, Bools, Costs, Victims, View, moving_cost, waiting_cost
from policies.scarcity import devices, left, used, wasted

_SCALE = 1000
_DEVICE_WEIGHT = 4
_WASTED_DEVICES = 10_000


class BinPacking:
    """Fullest nodes first, above all those with partly used devices, so that whole nodes stay free."""

    name = "bin-packing"

    def __init__(self, by: Literal["share", "amount"] = "share", move_cost: int = 300) -> None:
        if not 1 <= move_cost <= MOVING_MAX:
            raise ValueError(f"option move-cost is {move_cost}; give 1 .. {MOVING_MAX}")
        self._empty = _unused if by == "share" else left
        self._move_cost = move_cost

    def costs(self, view: View) -> Costs:
        scarce = devices(view)
        with_devices: Bools = np.any(view.allocatable[:, scarce] > 0, axis=1)  # (N,)
        place = (_SCALE * self._empty(view))[None, :]
        place = place + np.where(with_devices, _DEVICE_WEIGHT * _SCALE * self._empty(view, scarce), 0.0)
        unneeded = wasted(view)
        if unneeded is not None:
            place = place + np.where(unneeded, _WASTED_DEVICES, 0)
        return Costs(
            place=np.rint(place).astype(np.int64), slot=np.zeros((1, 1), np.int64), wait=waiting_cost(view), fill=True
        )

    def moving_costs(self, victims: Victims) -> I64:
        return moving_cost(victims, self._move_cost)


def _unused(view: View, of: Bools | None = None) -> F64:
    """(N,) unused share of each node's scarcest resource."""
    return 1.0 - used(view, of)
