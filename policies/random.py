"""Random: every task goes to a random node (Firmament's random cost model): a baseline for comparison.

    slot[n, k] = sum of gaps g(n, 0) .. g(n, k)        g: exponential, mean 1000
    place[c, n] = 0 .. 999

Both are hashes of the seed, the node, the total number of running tasks, and (place) the content of the class: the
same view gives the same costs; another seed or number of tasks gives others. A node's slot costs are the arrival times
of a Poisson process. A flow takes the least costly slots of all nodes, which are the first arrivals; each belongs to
any of the nodes with equal probability, independently of the others: balls thrown into bins. The place cost randomises
which class takes which slot. Example: 1000 tasks on 1000 empty nodes leave about 368 = 1000/e nodes without a task, and
the fullest node has 5 or 6.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from firmament_py.policy import COST_MAX, I64, U64, Costs, View, waiting_cost

_MEAN_GAP = 1000
_SPREAD = 1000
_SEED_LIMIT = 2**63


class Random:
    """A random node for each task: a baseline for comparison."""

    name = "random"
    waives: ClassVar[Mapping[str, str]] = {"favourites": "it chooses at random among equal nodes"}

    def __init__(self, seed: int = 0) -> None:
        if not 0 <= seed < _SEED_LIMIT:
            raise ValueError(f"option seed is {seed}; give a whole number from 0 to 2**63 - 1")
        self._seed = np.uint64(seed)

    def costs(self, view: View) -> Costs:
        draw = _mixed(_mixed(self._seed) + np.uint64(view.running.sum()))
        nodes = _mixed(np.arange(len(view.allocatable), dtype=np.uint64) + draw)
        task = _mixed(view.slot_offsets.astype(np.uint64))
        uniform = (_mixed(nodes[:, None] ^ task[None, :]) >> np.uint64(11)) / 2.0**53
        # where several slots share one cost, the gaps between them count with their mean
        skipped = np.diff(view.slot_offsets, prepend=-1) - 1
        slot = np.cumsum(_MEAN_GAP * (skipped - np.log1p(-uniform)), axis=1)
        return Costs(
            place=(_mixed(self._classes(view)[:, None] ^ nodes[None, :]) % np.uint64(_SPREAD)).astype(np.int64),
            slot=np.minimum(slot, COST_MAX).astype(np.int64),
            wait=waiting_cost(view),
        )

    def _classes(self, view: View) -> U64:
        """(C,) a hash of the content of each class; its number would not do, as it changes from network to network."""
        content: I64 = np.column_stack([view.requests, view.priority, view.expected_us])
        result: U64 = np.zeros(len(content), np.uint64)
        for column in content.T:
            result = _mixed(result + column.astype(np.uint64))
        return result


def _mixed(value: U64 | np.uint64) -> U64:
    """The finaliser of splitmix64 (Steele et al., 2014): every bit of `value` affects all bits of the result."""
    mixed: U64 = np.atleast_1d(np.asarray(value, np.uint64))
    mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
