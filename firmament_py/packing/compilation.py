"""Compiles the searches of this package."""

import numpy as np


def compile_all() -> None:
    """Runs every search on a small problem."""
    from firmament_py.packing.pack import pack
    from firmament_py.packing.patterns import pack_patterns
    from firmament_py.packing.problem import Packing, Problem
    from firmament_py.packing.relaxation import Relaxation
    from firmament_py.packing.rounding import rounded

    count = np.array([2, 3])
    problem = Problem(
        requests=np.array([[2], [3]]),
        free=np.full((2, 1), 5),
        suitable=np.ones((2, 2), np.bool_),
        slots=np.array([[2, 2], [1, 1]]),
        count=count,
        value=np.ones(2),
        level=np.zeros(2, np.int64),
    )
    pack(problem, Packing.empty(problem))
    # what so small a problem does not need
    pack_patterns(problem, np.ones(2, np.int64), 1_000_000)
    relaxation = Relaxation(problem)
    if (relaxed := relaxation.solve(problem.value)) is not None:
        rounded(problem, relaxation.shares(relaxed))
