"""Packs tasks on many nodes of which most are equal: a pattern for each (packing/patterns.py)."""

from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, Bools, run_positions
from firmament_py.packing.patterns import Patterns, pack_patterns
from firmament_py.packing.problem import Problem, higher, values_of

_LEAST = 4
"""Groups with fewer nodes stay as they are: what rounding loses grows with the number of groups."""

_COVERED = 0.5
"""Share of the nodes that must be in the other groups, else patterns are not tried."""

_COLUMNS = 20_000
"""Largest number of classes times groups: more, the smaller groups, stay as they are."""

_CHUNK = 512
"""So many classes are looked at together: their rows are copied."""

Entries = tuple[I64, I64, I64]
"""(P,) class, node and number of tasks of each class on each node where there are any, by class and node."""


def equal_nodes(free: I64, suitable: Bools, classes: I64) -> I64:
    """(N,) the group of each node, 0 .. G-1 in the order of their first nodes: the nodes of a group have the same
    free (N, R), and suit the same of `classes` (K,), rows of suitable (C, N)."""
    keys = [np.ascontiguousarray(free).view(np.uint8)]
    for first in range(0, len(classes), _CHUNK):
        keys.append(np.packbits(suitable[classes[first : first + _CHUNK]], axis=0).T)
    numbers: dict[bytes, int] = {}
    key = np.concatenate(keys, axis=1)
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in key], np.int64)


def on_nodes(problem: Problem, nodes: I64) -> Problem:
    """The problem of some nodes alone."""
    suitable, slots = problem.suitable.take(nodes, axis=1), problem.slots.take(nodes, axis=1)  # in order of rows
    return replace(problem, free=problem.free[nodes], suitable=suitable, slots=slots)


def repacked_by_patterns(problem: Problem, group: I64, placed: Entries, effort: int) -> Entries | None:
    """A better packing of nodes (N,), where a node of `problem` stands for those of its group (N,), by patterns; None:
    most nodes have few equals, or none is found. Groups with few nodes stay as they are in `placed`.
    effort: see pack_patterns."""
    size = np.bincount(group, minlength=len(problem.free))
    chosen = np.argsort(-size, kind="stable")[: _COLUMNS // max(len(problem.count), 1)]
    chosen = np.sort(chosen[size[chosen] >= _LEAST])
    if not len(chosen) or size[chosen].sum() < _COVERED * len(group):
        return None
    is_chosen = np.zeros(len(size), np.bool_)
    is_chosen[chosen] = True
    cls, node, number = placed
    stays = ~is_chosen[group[node]]
    classes = len(problem.count)
    count = problem.count - np.bincount(cls[stays], number[stays], minlength=classes).astype(np.int64)
    some = on_nodes(problem, chosen)
    some = replace(some, count=count, slots=np.minimum(some.slots, count[:, None]))
    patterns = pack_patterns(some, size[chosen], effort)
    before = problem.count - np.bincount(cls, number, minlength=classes).astype(np.int64)
    if not higher(values_of(problem, patterns.left), values_of(problem, before)):
        return None
    found = _on_nodes(patterns, chosen, group)
    return _sorted(*(np.concatenate([one[stays], other]) for one, other in zip(placed, found, strict=True)))


def _on_nodes(patterns: Patterns, chosen: I64, group: I64) -> Entries:
    """The patterns of the groups `chosen` (K,), ascending, on the nodes of these, which are in groups (N,)."""
    nodes = np.flatnonzero(np.isin(group, chosen))
    nodes = nodes[np.argsort(group[nodes], kind="stable")]
    order = np.argsort(patterns.group, kind="stable")
    hosts, tasks = patterns.hosts[order], patterns.tasks[order]
    first = np.cumsum(hosts) - hosts  # of the nodes of each pattern
    pattern, cls = np.nonzero(tasks)
    times = hosts[pattern]
    node = nodes[np.repeat(first[pattern], times) + run_positions(times)]
    return np.repeat(cls, times), node, np.repeat(tasks[pattern, cls], times)


def _sorted(cls: I64, node: I64, number: I64) -> Entries:
    order = np.lexsort((node, cls))
    return cls[order], node[order], number[order]
