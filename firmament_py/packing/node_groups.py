"""Groups of nodes that are alike enough to be one node of a linear relaxation."""

import heapq

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.packing.problem import Problem


def node_groups(problem: Problem, limit: int) -> I64:
    """(N,) the group of each node, 0 .. G-1, G <= limit.

    A group's nodes suit the same classes; if there are more such groups than allowed, the smallest ones are merged. If
    there may be more groups, the one whose nodes differ most in the proportions of what is free is divided in two at
    the mean of the proportion that varies most, and so on.
    """
    numbers: dict[bytes, int] = {}
    takes = np.ascontiguousarray(np.packbits(problem.suitable, axis=0).T)
    group = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in takes], np.int64)
    if group.max(initial=-1) + 1 > limit:
        return _merged(group, limit)
    requested = problem.requests.max(axis=0, initial=0) > 0
    amounts = problem.free[:, requested] / np.maximum(problem.free[:, requested].max(axis=0, initial=1), 1)
    size = np.maximum(amounts.sum(axis=1), 1e-9)
    proportions = amounts / size[:, None]
    heap = [_entry(proportions, size, members) for members in _members(group)]
    heapq.heapify(heap)
    done: list[I64] = []
    while heap and len(heap) + len(done) < limit:
        variation, _, members, column, mean = heapq.heappop(heap)
        if -variation < 1e-9:
            done.append(members)
            continue
        low = proportions[members, column] <= mean
        if low.all() or not low.any():
            done.append(members)
            continue
        for part in (members[low], members[~low]):
            heapq.heappush(heap, _entry(proportions, size, part))
    group = np.empty(len(group), np.int64)
    for number, members in enumerate([*done, *(entry[2] for entry in heap)]):
        group[members] = number
    return group


def _entry(proportions: F64, size: F64, members: I64) -> tuple[float, int, I64, int, float]:
    """Minus the variation of a group, its first node (which no other has), its nodes, and where to divide it."""
    weight, of = size[members], proportions[members]
    if not of.shape[1]:
        return 0.0, int(members[0]), members, 0, 0.0
    mean = weight @ of / weight.sum()
    variation = weight @ (of - mean) ** 2
    column = int(variation.argmax())
    return -float(variation[column]), int(members[0]), members, column, float(mean[column])


def _members(group: I64) -> list[I64]:
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])


def _merged(group: I64, limit: int) -> I64:
    """The smallest groups as one, so that there are no more than `limit`: a coarser relaxation, but still one."""
    sizes = np.bincount(group)
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return np.minimum(rank, limit - 1)[group]
