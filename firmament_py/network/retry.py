"""What is solved instead of a network that a solver finds no flow for because its costs are too large."""

from dataclasses import replace

import numpy as np

from firmament_py.flow.network import Status
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import WAIT_MIN

WORTH_A_RETRY = frozenset({Status.BAD_COST_RANGE, Status.FAILED})
"""Other failures do not depend on costs."""


def with_smaller_waits(network: PlacementNetwork) -> PlacementNetwork | None:
    """The network with waiting costs in the same order, no two neighbours of which differ by more than WAIT_MIN, which
    outweighs the costs of any placement; so its flow leaves the same priorities waiting first. None: they are so small
    already."""
    waits, rank = np.unique(network.group_wait, return_inverse=True)
    smaller = np.cumsum(np.minimum(np.diff(waits, prepend=0), WAIT_MIN))
    if (smaller == waits).all():
        return None
    group_wait, flow, groups = smaller[rank], network.flow, len(network.group_wait)
    unit_cost = flow.unit_cost.copy()
    unit_cost[groups : 2 * groups] = group_wait
    return replace(network, group_wait=group_wait, flow=replace(flow, unit_cost=unit_cost))
