"""Networks and their flows as files in DIMACS' format for minimum-cost flow problems, which other solvers read.

p min VERTICES ARCS             a problem; vertices count from 1
n VERTEX SUPPLY                 for each whose supply is not 0
a TAIL HEAD LOWER UPPER COST
s COST                          its solution
f TAIL HEAD FLOW                for each arc that carries some
"""

import logging
from collections.abc import Iterator
from pathlib import Path

from firmament_py.flow.network import FlowNetwork, Solution, Status

log = logging.getLogger(__name__)


class Export:
    """Writes networks to the files 000001.min, 000002.min, ... of a folder, and their optimal flows to 000001.sol, ...;
    the last `count` of them stay."""

    def __init__(self, folder: Path, count: int = 100) -> None:
        self._folder = folder
        self._count = count
        self._number = 0

    def __call__(self, network: FlowNetwork, solution: Solution) -> None:
        """An error is logged: it stops no round."""
        self._number += 1
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path(self._number, "min").write_text("\n".join(problem(network)) + "\n")
            if solution.status is Status.OPTIMAL:
                self._path(self._number, "sol").write_text("\n".join(flow(network, solution)) + "\n")
            for suffix in ("min", "sol"):
                self._path(self._number - self._count, suffix).unlink(missing_ok=True)
        except OSError as error:
            log.warning("cannot export a network: %s", error)

    def _path(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number:06d}.{suffix}"


def problem(network: FlowNetwork) -> Iterator[str]:
    """The lines of a network."""
    yield f"p min {len(network.supply)} {len(network.tail)}"
    for vertex in network.supply.nonzero()[0].tolist():
        yield f"n {vertex + 1} {network.supply[vertex]}"
    arcs = network.tail + 1, network.head + 1, network.capacity, network.unit_cost
    for tail, head, capacity, cost in zip(*(column.tolist() for column in arcs), strict=True):
        yield f"a {tail} {head} 0 {capacity} {cost}"


def flow(network: FlowNetwork, solution: Solution) -> Iterator[str]:
    """The lines of a flow."""
    yield f"s {solution.cost}"
    carrying = solution.flow.nonzero()[0]
    arcs = network.tail[carrying] + 1, network.head[carrying] + 1, solution.flow[carrying]
    for tail, head, amount in zip(*(column.tolist() for column in arcs), strict=True):
        yield f"f {tail} {head} {amount}"
