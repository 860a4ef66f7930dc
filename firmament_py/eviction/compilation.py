"""Compiles the search of this package."""

import numpy as np


def compile_all() -> None:
    """Searches in a small problem."""
    from firmament_py.eviction.evict import evict
    from firmament_py.eviction.problem import Arrivals, Residents

    one, two = np.ones(1, np.int64), np.array([[2]])
    zeros, everywhere = np.zeros(1, np.int64), np.ones((1, 1), np.bool_)
    evict(
        Arrivals(two, one, one, everywhere, everywhere[0], home=-one),
        Residents(zeros, zeros, one, two, zeros, one, one, np.ones((1, 0), np.bool_)),
        np.zeros((1, 1), np.int64),
        np.zeros(0, np.int64),
    )
