"""The network of one solve and an optimal flow of the whole network, by column generation.

If few arcs are likely to matter, only these are built, and arcs of negative reduced cost are added until there are none
(network/candidate_arcs.py, network/arc_pricing.py). If preference arcs that bypass the class put pairs over capacity,
these pairs get a bound first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firmament_py.flow.network import Solution, Status
from firmament_py.model.arrays import I64
from firmament_py.network.alike import distribute, limited_per_node, merged
from firmament_py.network.arc_pricing import negative_reduced_costs
from firmament_py.network.build import build
from firmament_py.network.candidate_arcs import candidate_part
from firmament_py.network.capacities import Capacities, with_policy_limits
from firmament_py.network.cheapest_slots import Selection, cheapest_slots
from firmament_py.network.decode import NodeCounts, spread_over_members
from firmament_py.network.part import Part, extended
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.network.retry import WORTH_A_RETRY, with_smaller_waits
from firmament_py.network.telemetry import Telemetry
from firmament_py.policy import Costs

PRICING_ROUNDS = 6
"""After this many pricing rounds the full network is solved."""

PAIRS_PER_TASK, PAIRS_GROW = 8, 4
"""In a pricing round so many pairs of each class are added for each of its tasks at most, and in the next one this
many times as many."""

REBUILD_LIMIT = 4
"""Largest number of networks built until no pair is over capacity; after that, fitting trims the excess."""

SMALL_NETWORK, FEW = 20_000, 20
"""A network with more than SMALL_NETWORK arcs is not built again if less than one in FEW of its tasks is in excess."""


_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """A network and a flow of least cost. sent: number of tasks of each class that it sends to each node, None if no
    optimum was found."""

    network: PlacementNetwork
    solution: Solution
    sent: NodeCounts | None


@dataclass(frozen=True, slots=True)
class _Problem:
    """What `ColumnGeneration.run` is asked for, with a row of capacities for classes that are alike."""

    whole: Capacities
    costs: Costs
    offsets: I64
    task_class: I64
    trial: bool


@dataclass(frozen=True, slots=True)
class First:
    """The size of the first network whose flow was accepted, 0 if it needed none, and the cost of the flow."""

    vertices: int
    arcs: int
    cost: int


class ColumnGeneration:
    """solve: finds a flow of least cost in a network."""

    def __init__(self, solve: Callable[[PlacementNetwork], Solution], telemetry: Telemetry) -> None:
        self._solve = solve
        self._telemetry = telemetry
        self.first: First | None = None

    def run(self, capacities: Capacities, costs: Costs, offsets: I64, task_class: I64, *, trial: bool = False) -> Found:
        """A network for the waiting tasks' classes (T,), ascending, and slots that begin at offsets (K,), and a flow of
        least cost that keeps every class within its slots. trial: count the solves as trials."""
        capacities = with_policy_limits(capacities, costs, len(task_class))
        if costs.data is not None or costs.delay is not None:
            problem = _Problem(capacities, costs, offsets, task_class, trial)
            found = self._found(*self._in_part(problem), costs)
        else:
            found = self._of_rows(capacities, costs, offsets, task_class, trial)
        if not trial and found.sent is not None:
            flow = found.network.flow
            self.first = self.first or First(len(flow.supply), len(flow.tail), found.solution.cost)
        return found

    def without_network(
        self, capacities: Capacities, costs: Costs, offsets: I64, task_class: I64, *, trial: bool = False
    ) -> Selection | None:
        """Likewise, where a few tasks of one class go whose optimal flow needs no network; None: it needs one."""
        if costs.data is not None or costs.delay is not None or task_class[0] != task_class[-1]:
            return None
        capacities = with_policy_limits(capacities, costs, len(task_class))
        found = cheapest_slots(capacities, costs, offsets, int(task_class[0]))
        if found is not None:
            self._telemetry.lap("solve")
            if not trial:
                self.first = self.first or First(0, 0, found.cost)
        return found

    def _of_rows(self, whole: Capacities, costs: Costs, offsets: I64, task_class: I64, trial: bool) -> Found:
        """With a row for classes that are alike. Those whose limits per node are exceeded get rows of their own, at the
        third attempt all that have such limits."""
        waiting = np.bincount(task_class, minlength=len(whole.slots))
        apart = np.zeros(len(waiting), np.bool_)
        for attempt in range(_ATTEMPTS):
            rows, of_rows = merged(whole, costs, waiting, apart)
            network, solution = self._in_part(_Problem(rows, of_rows, offsets, task_class, trial))
            found = self._found(network, solution, costs)
            if found.sent is None:
                return found
            sent, conflicts = distribute(whole, rows, network, solution.flow, found.sent)
            if not conflicts.any():
                break
            apart |= conflicts if attempt + 2 < _ATTEMPTS else limited_per_node(whole)
        return replace(found, sent=sent)

    def _found(self, network: PlacementNetwork, solution: Solution, costs: Costs) -> Found:
        if solution.status is not Status.OPTIMAL:
            return Found(network, solution, None)
        return Found(network, solution, spread_over_members(network, solution.flow, fill=costs.fill))

    def _in_part(self, problem: _Problem) -> tuple[PlacementNetwork, Solution]:
        whole, costs, offsets, task_class = problem.whole, problem.costs, problem.offsets, problem.task_class
        part = candidate_part(whole, costs, offsets, task_class)
        for number in range(PRICING_ROUNDS + 1):
            network, solution, part = self._within_slots(problem, part)
            if part.is_all_of(whole) or solution.status is not Status.OPTIMAL:
                break
            per_task = PAIRS_PER_TASK * PAIRS_GROW**number
            omitted = negative_reduced_costs(whole, part, network, solution.flow, costs, offsets, per_task)
            self._telemetry.lap("prove")
            if not omitted:
                break
            if number + 1 < PRICING_ROUNDS:
                part = extended(part, whole, omitted, costs, task_class)
            else:
                part = Part(whole, bounded=part.bounded)
            self._telemetry.pricing_rounds += 1
        return network, solution

    def _within_slots(self, problem: _Problem, part: Part) -> tuple[PlacementNetwork, Solution, Part]:
        """A flow in which no pair has more tasks than slots, and the part with the bounds that this takes."""
        costs = problem.costs
        for _ in range(REBUILD_LIMIT):
            network, solution = self._solved(problem, part)
            if costs.data is None or solution.status is not Status.OPTIMAL:
                break
            excess = network.excess(solution.flow)
            few = len(network.flow.tail) > SMALL_NETWORK and excess.sum() * FEW < len(problem.task_class)
            if few or not excess.any():
                break  # fitting rejects these few tasks, and the next solve finds nodes for them
            found = network.of_members(excess > 0, (len(part.capacities.slots), len(costs.data.rack)))
            part = replace(part, bounded=found if part.bounded is None else part.bounded | found)
        return network, solution, part

    def _solved(self, problem: _Problem, part: Part) -> tuple[PlacementNetwork, Solution]:
        costs, offsets, task_class = part.costs(problem.costs), problem.offsets, problem.task_class
        network = build(part.capacities, costs, offsets, task_class, part.bounded)
        self._telemetry.lap("build")
        solution = self._solve(network)
        if solution.status in WORTH_A_RETRY and (other := with_smaller_waits(network)) is not None:
            network, solution = other, self._solve(other)
            self._telemetry.compressed += solution.status is Status.OPTIMAL
        if solution.status is not Status.OPTIMAL:
            self._telemetry.unsolved[solution.status] += 1
        if problem.trial:
            self._telemetry.trials += 1
        else:
            self._telemetry.solves += 1
        self._telemetry.lap("solve")
        return network, solution
