"""The node that costs a single task least: the flow of one unit of a network that need not be built."""

import numpy as np

from firmament_py.network.capacities import Capacities, built_in
from firmament_py.policy import Costs

_NOWHERE = 2**61


def cheapest(capacities: Capacities, costs: Costs, c: int) -> tuple[int, int]:
    """The node on which the next task of class c costs least, the first of several, and what it costs there, more than
    any other cost if there is no such node. With the limits that a network would have, without costs of data."""
    cost = np.where(capacities.slots[c] > 0, costs.place[c % len(costs.place)] + costs.slot[:, 0], _NOWHERE)
    for limit in built_in(capacities.limits.get(c, ())):
        extra = np.where(limit.soft_limit > 0, 0, np.where(limit.maximum > 0, limit.soft_limit_cost, _NOWHERE))
        cost = np.minimum(cost + np.append(extra, 0)[limit.domain], _NOWHERE)
    node = int(np.argmin(cost))
    return node, int(cost[node])
