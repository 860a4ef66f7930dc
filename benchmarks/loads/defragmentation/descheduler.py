"""A model of the descheduler's HighNodeUtilization with NodeFit (0.36), and of the scheduler that places successors.

In each cycle the nodes whose requests are at most a threshold of every resource are drained, the least used first,
while the other nodes together have some of every resource free. A pod is evicted if it fits on any other node, by
itself, and its budget permits it. Its successor is scheduled at once, by LeastAllocated or MostAllocated, possibly on
the node that its predecessor has left.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from benchmarks.loads.defragmentation.pods import UNGUARDED, Pods, Run
from firmament_py.model.arrays import I64

_CYCLES = 20


class Scoring(Enum):
    """How kube-scheduler's NodeResourcesFit scores nodes: its default, and what the descheduler's manual asks for."""

    LEAST_ALLOCATED = "least allocated"
    MOST_ALLOCATED = "most allocated"


def high_node_utilization(load: Pods, scoring: Scoring, threshold: float = 0.2) -> Run:
    """Cycles until one evicts nothing or empties no node, or _CYCLES."""
    node = load.node.copy()
    evictions: list[tuple[int, int, int]] = []
    for cycle in range(_CYCLES):
        empty = _empty(load, node)
        found = _cycle(load, node, scoring, threshold)
        evictions += [(cycle, pod, to) for pod, to in found]
        if not found or _empty(load, node) <= empty:
            break
    return Run(np.array(evictions, np.int64).reshape(-1, 3), load.unserved())


def _empty(load: Pods, node: I64) -> int:
    return len(load.allocatable) - len(np.unique(node))


def _cycle(load: Pods, node: I64, scoring: Scoring, threshold: float) -> list[tuple[int, int]]:
    """Evicted pods, and the nodes of their successors. Updates node (P,)."""
    free, allowed = load.free(node, load.unserved()), load.allowed.copy()
    used = (load.allocatable - free) / load.allocatable
    source = (used <= threshold).all(axis=1)
    if source.all():
        return []
    available = free[~source].sum(axis=0)
    found: list[tuple[int, int]] = []
    for n in np.flatnonzero(source)[np.argsort(used[source].sum(axis=1), kind="stable")].tolist():
        for pod in np.flatnonzero(node == n).tolist():
            if (available <= 0).any():
                return found
            requests, budget = load.requests[pod], load.budget[pod]
            fits = (free >= requests).all(axis=1)
            fits[n] = False
            if not fits.any() or (budget != UNGUARDED and not allowed[budget]):
                continue
            if budget != UNGUARDED:
                allowed[budget] -= 1
            available -= requests
            free[n] += requests
            to = _best(load.allocatable, free, requests, scoring)
            free[to] -= requests
            node[pod] = to
            found.append((pod, to))
    return found


def _best(allocatable: I64, free: I64, requests: I64, scoring: Scoring) -> int:
    """The node of the highest score; the first of equals."""
    score = ((free - requests) / allocatable).mean(axis=1)
    if scoring is Scoring.MOST_ALLOCATED:
        score = -score
    score[(free < requests).any(axis=1)] = -np.inf
    return int(score.argmax())
