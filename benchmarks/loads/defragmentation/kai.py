"""A model of the rules of KAI 0.17's consolidation.

For one waiting pod after the other, running pods become candidates, the youngest first, at most 16. After each of
them, the candidates on its node are removed, and the waiting pod and then they are placed, each on the fullest node
that can take it; those placed on their own node stay. If all have a node, this is carried out. Disruption budgets are
ignored.
"""

from __future__ import annotations

import numpy as np

from benchmarks.loads.defragmentation.pods import NOWHERE, Pods, Run
from firmament_py.model.arrays import I64

PREEMPTEES = 16


def consolidate(load: Pods, preemptees: int = PREEMPTEES) -> Run:
    """Each waiting pod is tried once, in order."""
    node, placed = load.node.copy(), load.unserved()
    evictions: list[tuple[int, int, int]] = []
    for pod in range(len(load.waiting)):
        for victims in _scenarios(node, preemptees):
            found = _simulate(load, node, placed, pod, victims)
            if found is not None:
                placed[pod], places = found
                evictions += [(pod, v, to) for v, to in zip(victims, places, strict=True) if to != node[v]]
                node[victims] = places
                break
    return Run(np.array(evictions, np.int64).reshape(-1, 3), placed)


def _scenarios(node: I64, preemptees: int) -> list[list[int]]:
    """No victims; then, for each candidate, the candidates so far that are on its node (P,)."""
    youngest = np.arange(len(node))[::-1][:preemptees]
    same = [youngest[: count + 1][node[youngest[: count + 1]] == node[v]] for count, v in enumerate(youngest.tolist())]
    return [[], *(victims.tolist() for victims in same)]


def _simulate(load: Pods, node: I64, placed: I64, pod: int, victims: list[int]) -> tuple[int, list[int]] | None:
    """The nodes of a waiting pod and of the victims; None: one of them fits nowhere."""
    tried = node.copy()
    tried[victims] = NOWHERE
    free = load.free(tried, placed)
    places = []
    for requests in (load.waiting[pod], *load.requests[victims]):
        fits = np.flatnonzero((free >= requests).all(axis=1))
        if not len(fits):
            return None
        to = int(fits[free[fits].sum(axis=1).argmin()])
        free[to] -= requests
        places.append(to)
    return places[0], places[1:]
