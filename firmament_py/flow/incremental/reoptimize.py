"""Makes the flow of a TaskNetwork optimal again after changes, and proves it."""

import logging
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from firmament_py.flow.incremental import adjacency, augment_all, certificate, layout, potentials, totals
from firmament_py.flow.incremental.network import TaskNetwork
from firmament_py.flow.network import Status
from firmament_py.flow.solver import Solver

log = logging.getLogger(__name__)

_SHORTCUT_LENGTH = 8
"""Longest shortcut, in arcs; shortcuts only speed up searches."""

_FAR = 2**59
"""Potential of a vertex without a residual path to the sink."""

_POTENTIAL_MAX = 2**60
"""Without a path to the sink, each round can raise all potentials; above this value they are computed again."""


@dataclass(frozen=True, slots=True)
class Reoptimized:
    """cost is that of an optimum if the status is OPTIMAL; times in seconds."""

    status: Status
    cost: int = 0
    from_scratch: bool = False
    searches: int = 0
    settled: int = 0
    repair_seconds: float = 0.0
    certificate_seconds: float = 0.0


class Reoptimizer:
    """Makes a network optimal: repair, certificate, and a full solve if the certificate fails.

    repair_share: share of displaced tasks above which a full solve is expected to be cheaper.
    """

    def __init__(self, network: TaskNetwork, solver: Solver, repair_share: float = 0.25) -> None:
        self.network = network
        self.full_solves = 0
        self.rejected = 0
        """Number of repairs whose certificate failed: a defect if above 0."""
        self._solver = solver
        self._share = repair_share
        self._solved = False

    def run(self) -> Reoptimized:
        """Finds an optimum of the current network."""
        if self._solved:
            result = self._repair()
            if result is not None:
                return result
        return self.solve_from_scratch()

    def solve_from_scratch(self) -> Reoptimized:
        """Solves the whole network and finds potentials for the next repair."""
        began = perf_counter()
        self.full_solves += 1
        flow_network, arcs = self.network.flow_network()
        solution = self._solver.solve(flow_network)
        self._solved = solution.status is Status.OPTIMAL
        if not self._solved:
            return Reoptimized(solution.status, from_scratch=True)
        self.network.load(solution.flow, arcs)
        g = self.network.graph
        potentials.find_potentials(g, self.network.sink, _FAR)
        ended = perf_counter()
        found = certificate.faults(self.network)
        if found:
            self._solved = False
            log.error("a full solve with %s has no certificate: %s", self._solver.name, "; ".join(found))
            return Reoptimized(Status.FAILED, from_scratch=True)
        return Reoptimized(
            Status.OPTIMAL,
            self.network.cost(),
            from_scratch=True,
            repair_seconds=ended - began,
            certificate_seconds=perf_counter() - ended,
        )

    def _repair(self) -> Reoptimized | None:
        began = perf_counter()
        net, g, w = self.network, self.network.graph, self.network.work
        if np.abs(g.potential).max() > _POTENTIAL_MAX:
            return None
        unrouted = totals.unrouted(g, net.live)
        balance = totals.obey_potentials(g)
        balance[net.sink] = 0
        searches = len(unrouted) + int(np.abs(balance).sum())
        if searches > self._share * max(net.size, 100):
            return None
        excess = np.repeat(np.flatnonzero(balance > 0), balance[balance > 0])
        g.deficit[:] = np.maximum(-balance, 0)
        w.tally[layout.SETTLED] = 0
        adjacency.find_shortcuts(g, net.sink, net.size, _SHORTCUT_LENGTH)
        g.deficit[net.sink] = searches + 1  # takes all units
        if not (
            augment_all.route_excess(g, w, net.degree, unrouted, excess)
            and augment_all.fill_deficits(g, w, net.degree, net.sink, np.flatnonzero(balance < 0))
        ):
            return None
        ended = perf_counter()
        found = certificate.faults(net)
        if found:
            self.rejected += 1
            log.error("a repaired flow has no certificate, solving from scratch: %s", "; ".join(found))
            return None
        return Reoptimized(
            Status.OPTIMAL,
            net.cost(),
            searches=searches,
            settled=int(w.tally[layout.SETTLED]),
            repair_seconds=ended - began,
            certificate_seconds=perf_counter() - ended,
        )
