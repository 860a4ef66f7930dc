"""Bids of tasks for the nodes that hold their data: what a round resorts to where it gives up on flows."""

import numpy as np

from firmament_py.model.arrays import I64, run_positions
from firmament_py.policy.locality import DataCosts, of_groups


class Bids:
    """Tasks (K,) of one class, which read sets `of_task` (K,), -1 for none, bid for the nodes their arcs lead to."""

    def __init__(self, data: DataCosts, of_task: I64) -> None:
        arc, self._bidder = of_groups(of_task, data.near_set, len(data.anywhere))
        self._node = data.near_node[arc]
        self._saving = (data.anywhere[data.near_set] - data.near_cost)[arc]
        self._open = np.ones(len(arc), np.bool_)

    def best(self, room: I64) -> tuple[I64, I64]:
        """Each task's best bid for a node with room (N,): bidders and nodes, node after node, on each those first who
        save most, then the oldest."""
        bids = np.flatnonzero(self._open & (room[self._node] > 0))
        bids = bids[np.lexsort((-self._saving[bids], self._bidder[bids]))]
        bids = bids[np.diff(self._bidder[bids], prepend=-1) != 0]
        bids = bids[np.lexsort((self._bidder[bids], -self._saving[bids], self._node[bids]))]
        return self._bidder[bids], self._node[bids]

    def close(self, bidders: I64) -> None:
        """These have a place."""
        self._open &= ~np.isin(self._bidder, bidders)


def winners(count: I64, most: I64) -> I64:
    """Positions in runs of count[i] > 0 of the first most[i] of each."""
    return np.flatnonzero(run_positions(count) < np.repeat(most, count))
