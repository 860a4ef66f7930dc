"""The network of one step of placing, solved to an optimum of all that there is, whether or not all of it was built.

Where little of the room is likely to matter, a part is built, and what might be missed is added until nothing is
(network/candidate_arcs.py, network/arc_pricing.py). Where data leads tasks to nodes past their classes, pairs that were
sent too much are bounded.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from firmament_py.flow.network import Solution, Status
from firmament_py.model.arrays import I64, Bools
from firmament_py.network.arc_pricing import negative_reduced_costs
from firmament_py.network.build import PlacementNetwork, build
from firmament_py.network.candidate_arcs import widened, within_reach
from firmament_py.network.capacities import Capacities, shallower
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit

PRICING_ROUNDS = 6
"""The last network that is built again, because what it left out was not proved not to matter, leaves nothing out."""

REBUILD_LIMIT = 4
"""So often a network is built again because a class was sent to nodes beyond its slots; then fitting trims it."""

SMALL_NETWORK, FEW = 50_000, 20
"""A network of more arcs than this is not built again for less than one in so many of its tasks."""


class Solving:
    """solve is called for each network; lap(stage) is called after each stage of work."""

    def __init__(self, solve: Callable[[PlacementNetwork], Solution], lap: Callable[[str], None]) -> None:
        self.solve = solve
        self._lap = lap
        self.pricing_rounds = 0
        """How many networks had to be built again, because what they left out was not proved not to matter."""
        self.first: tuple[PlacementNetwork, Solution] | None = None
        """The first network that was good enough, and its flow."""

    def run(self, room: Capacities, costs: Costs, offsets: I64, task_class: I64) -> tuple[PlacementNetwork, Solution]:
        """A network for the waiting tasks' classes (T,), ascending, and slots that begin at offsets (K,), and a flow of
        least cost that keeps every class within its slots."""
        if costs.node_limit is not None:
            room = shallower(room, costs.node_limit, len(task_class))
        room = _with_enough(room, costs)
        found = (self._in_part if costs.data is None else self._within_capacity)(room, costs, offsets, task_class)
        self.first = self.first or found
        return found

    def _in_part(
        self, room: Capacities, costs: Costs, offsets: I64, task_class: I64
    ) -> tuple[PlacementNetwork, Solution]:
        part = within_reach(room, costs, offsets, np.bincount(task_class, minlength=len(room.slots)))
        for attempt in range(PRICING_ROUNDS + 1):
            network, solution = self._solved(part, costs, offsets, task_class)
            if part is room or solution.status is not Status.OPTIMAL:
                break
            pairs, deeper = negative_reduced_costs(room, part, network, solution.flow, costs, offsets)
            self._lap("prove")
            if not pairs.any() and not deeper.any():
                break
            part = widened(part, room, pairs, deeper) if attempt + 1 < PRICING_ROUNDS else room
            self.pricing_rounds += 1
        return network, solution

    def _within_capacity(
        self, room: Capacities, costs: Costs, offsets: I64, task_class: I64
    ) -> tuple[PlacementNetwork, Solution]:
        over_capacity: Bools | None = None
        for _ in range(REBUILD_LIMIT):
            network, solution = self._solved(room, costs, offsets, task_class, over_capacity)
            if solution.status is not Status.OPTIMAL:
                break
            excess = network.excess(solution.flow)
            few = len(network.flow.tail) > SMALL_NETWORK and excess.sum() * FEW < len(task_class)
            if few or not excess.any():
                break  # fitting turns those few away, and the next solve finds them a place
            over_capacity = excess > 0 if over_capacity is None else over_capacity | (excess > 0)
        return network, solution

    def _solved(
        self, room: Capacities, costs: Costs, offsets: I64, task_class: I64, over_capacity: Bools | None = None
    ) -> tuple[PlacementNetwork, Solution]:
        network = build(room, costs, offsets, task_class, over_capacity)
        self._lap("build")
        solution = self.solve(network)
        self._lap("solve")
        return network, solution


def _with_enough(room: Capacities, costs: Costs) -> Capacities:
    """What the policy thinks enough of a class for a node, after what tasks themselves demand and wish."""
    if costs.soft_limit is None or costs.soft_limit_cost is None:
        return room
    classes, nodes = room.slots.shape
    enough = np.broadcast_to(costs.soft_limit, (classes, nodes))
    domain, most = np.arange(nodes), np.full(nodes, UNLIMITED)
    limits = dict(room.limits)
    for c in np.flatnonzero(costs.soft_limit_cost).tolist():
        limits[c] = [*limits.get(c, ()), DomainLimit(domain, most, enough[c], int(costs.soft_limit_cost[c]))]
    return replace(room, limits=limits)
