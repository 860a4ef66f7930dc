"""Headroom: spreads tasks, and keeps a part of every node free for as long as others have room.

slot[n, k] = 100 x k + 10,000 x max(0, keep - f)     f: free share of n's scarcest resource after k more tasks
"""

import numpy as np

from firmament_py.policy import Prices, View, waiting_cost


class Headroom:
    """Keeps a part of every node free while it can."""

    name = "headroom"
    api_version = 1

    def __init__(self, keep: float = 0.2) -> None:
        if not 0.0 <= keep <= 1.0:
            raise ValueError(f"option keep is {keep}; give a share from 0 to 1")
        self._keep = keep

    def price(self, view: View) -> Prices:
        # what a task of the mean kind requests: (R,)
        mean = view.waiting @ view.requests / max(int(view.waiting.sum()), 1)
        # what is left on each node after so many more of them, as shares of what the node offers: (N, K, R)
        offered = view.allocatable[:, None, :]
        left = offered - view.load[:, None, :] - view.slot_offsets[None, :, None] * mean
        share = np.where(offered > 0, left / np.maximum(offered, 1), 1.0)  # what is not there cannot run out
        lacking = np.clip(self._keep - share.min(axis=2, initial=1.0), 0.0, 1.0)
        slot = np.minimum(100 * view.slot_offsets[None, :], 100_000) + np.rint(10_000 * lacking)
        return Prices(
            place=np.zeros((1, 1), np.int64),
            slot=slot.astype(np.int64),
            wait=waiting_cost(view),
        )
