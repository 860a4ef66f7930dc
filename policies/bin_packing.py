"""Bin-packing: the next task goes where most is used already, so that whole nodes stay free.

    place[n] = 1000 x (1 - s) + 1000 x (1 - g) x w        s: used share of n's scarcest resource
                                                          g: the same of its scarce devices only
                                                          w: 4 if n has devices, else 0

A node that is fuller is cheaper however many tasks it takes, so a flow fills it before it opens the next. Devices are
the resources that not every node has (GPUs): their fragments are filled first, and nodes that have them come last for
tasks that request none of them (+ 10,000). Example: of two nodes, half and a quarter used, without devices, the
first costs 500 and the second 750: the first takes all that it can.
"""

import numpy as np

from firmament_py.arrays import F64, Bools
from firmament_py.policy import Prices, View, waiting_cost

_SCALE = 1000
_DEVICE_WEIGHT = 4
_WASTED_DEVICES = 10_000


class BinPacking:
    """Fullest nodes first, device fragments before all: keeps whole nodes free."""

    name = "bin-packing"

    def price(self, view: View) -> Prices:
        has = view.allocatable > 0
        scarce: Bools = np.any(has, axis=0) & ~np.all(has, axis=0)  # (R,) not every node has it
        with_devices: Bools = np.any(has & scarce, axis=1)  # (N,)
        place = (_SCALE * (1.0 - _used(view, np.ones(len(scarce), np.bool_))))[None, :]
        place = place + np.where(with_devices, _DEVICE_WEIGHT * _SCALE * (1.0 - _used(view, scarce)), 0.0)
        wants_devices: Bools = np.any(view.requests[:, scarce] > 0, axis=1)  # (C,)
        place = place + np.where(~wants_devices[:, None] & with_devices[None, :], _WASTED_DEVICES, 0)
        return Prices(
            place=np.rint(place).astype(np.int64), slot=np.zeros((1, 1), np.int64), wait=waiting_cost(view), fill=True
        )


def _used(view: View, of: Bools) -> F64:
    """(N,) used share (View.load), 0 .. 1, of the scarcest of the resources that `of` (R,) marks."""
    share = view.load / np.maximum(view.allocatable, 1)
    share[view.allocatable == 0] = 0.0
    result: F64 = np.clip(share[:, of].max(axis=1, initial=0.0), 0.0, 1.0)
    return result
