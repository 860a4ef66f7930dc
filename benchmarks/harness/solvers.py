"""Solvers of other packages: every class that an installed distribution registers under the entry point group
`firmament.solvers`, as policies are under `firmament.policies`. It is called without arguments and is a
firmament_py.flow.solver.Solver."""

from __future__ import annotations

from importlib.metadata import entry_points

from firmament_py.flow.solver import SOLVERS, Solver

GROUP = "firmament.solvers"


class SolverError(Exception):
    """A solver cannot be loaded; the message states the reason."""


def further() -> list[str]:
    """Names of the installed solvers of other packages."""
    return sorted({entry.name for entry in entry_points(group=GROUP)} - set(SOLVERS))


def load(name: str) -> Solver:
    """The solver of that name, ours or one of another package. Raises SolverError."""
    if name in SOLVERS:
        return SOLVERS[name]()
    found = {entry.value: entry for entry in entry_points(group=GROUP) if entry.name == name}
    if len(found) != 1:
        raise SolverError(f"it is registered {len(found)} times: {', '.join(sorted(found)) or 'nowhere'}")
    try:
        solver: Solver = found.popitem()[1].load()()
    except Exception as error:
        raise SolverError(f"it cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(solver, "solve", None)):
        raise SolverError("it is not a solver: it lacks a method solve(network)")
    return solver
