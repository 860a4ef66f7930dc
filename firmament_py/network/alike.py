"""Classes that are alike share a row of a network, and its flow is distributed to them.

Classes are alike if nodes can take the same number of each, at the same costs: the pods of most Services differ in
labels alone. A row has arcs to the nodes once, whatever the number of its classes. If their tasks should be spread over
domains that nodes share, each class reaches the vertices of these domains through arcs with its own limits. All of this
is exact.

Limits per node of such classes are left out: the tasks of a class are few beside the nodes, and tasks that meet on a
node can change places with others of their row in the same domain, at no cost. So the network is a relaxation, and a
flow of least cost is an optimum if it can be distributed within the limits. Classes for which it cannot get rows of
their own, with their limits.
"""

from dataclasses import replace

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools, run_positions
from firmament_py.network.capacities import Capacities, SharedLimits
from firmament_py.network.decode import NodeCounts
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import Costs
from firmament_py.snapshot.domain_limits import UNLIMITED, DomainLimit

FEWEST = 8
"""A row is shared by no fewer classes than this: it would save little."""

RANDOM_EXCHANGES = 32
"""So often all tasks on nodes with too many of their class try to change places with random ones, ..."""

MOST_EXCHANGES = 512
"""... and then, if there are no more of them than this, with any."""


def merged(whole: Capacities, costs: Costs, waiting: I64, apart: Bools) -> tuple[Capacities, Costs]:
    """The capacities and costs with a row for all classes that are alike and have `waiting` (C,) tasks; those `apart`
    (C,) keep rows of their own. The same ones if no classes are alike, or if that is not known of them."""
    if whole.alone is None or costs.soft_limit is not None or costs.aggregators is not None:
        return whole, costs
    of_place = _row_hashes(costs.place)
    rows: dict[tuple[int, ...], list[int]] = {}
    for c in np.flatnonzero(waiting).tolist():
        spanning = _spanning(whole, c)
        domains = 0 if spanning is None else id(spanning.domain)
        key = (int(whole.alone.of_class[c]), int(of_place[c % len(of_place)]), domains, c if apart[c] else -1)
        rows.setdefault(key, []).append(c)
    members = [row for of in rows.values() for row in ([of] if len(of) >= FEWEST else [[c] for c in of])]
    if all(len(classes) == 1 for classes in members):
        return whole, costs
    row_of = np.full(len(waiting), -1, np.int64)
    slots = np.empty((len(members), whole.slots.shape[1]), np.int64)
    limits, shared = {}, {}
    for k, classes in enumerate(members):
        row_of[classes] = k
        if len(classes) == 1:
            slots[k] = whole.slots[classes[0]]
            if classes[0] in whole.limits:
                limits[k] = whole.limits[classes[0]]
            continue
        np.minimum(whole.alone.slots[whole.alone.of_class[classes[0]]], waiting[classes].sum(), out=slots[k])
        of_classes = [limit for c in classes if (limit := _spanning(whole, c)) is not None]
        if of_classes:
            shared[k] = SharedLimits(
                of_classes[0].domain,
                np.array(classes),
                np.array([limit.maximum for limit in of_classes]),
                np.array([limit.soft_limit for limit in of_classes]),
                np.array([limit.soft_limit_cost for limit in of_classes]),
            )
    first = [classes[0] for classes in members]
    place = costs.place if len(costs.place) == 1 else costs.place[first]
    depth = np.minimum(whole.depth, slots.sum(axis=0))
    return Capacities(slots, depth, limits, row_of=row_of, shared=shared), replace(costs, place=place)


def limited_per_node(whole: Capacities) -> Bools:
    """(C,) the classes with a limit per node."""
    limited = np.zeros(len(whole.slots), np.bool_)
    limited[[c for c in whole.limits if _per_node(whole, c) is not None]] = True
    return limited


def distribute(
    whole: Capacities, part: Capacities, network: PlacementNetwork, flow: I64, sent: NodeCounts
) -> tuple[NodeCounts, Bools]:
    """The tasks that a flow (A,) in the network of the merged capacities `part` sends to nodes, by class, given `sent`,
    which has them by row; and the classes (C,) whose limits per node they exceed. whole: before classes were merged."""
    conflicts = np.zeros(len(whole.slots), np.bool_)
    if part.row_of is None:
        return sent, conflicts
    pool, cls, amount = _amounts(part, network, flow)
    domains = 2 + max((int(shared.domain.max(initial=-1)) for shared in part.shared.values()), default=-1)
    pool_of_entry = sent.cls * domains
    for k, shared in part.shared.items():
        mine = sent.cls == k
        pool_of_entry[mine] += 1 + shared.domain[sent.node[mine]]
    # one task on each node of a pool after the other, so that those of a class meet as little as possible
    entry = np.repeat(np.arange(len(sent.count)), sent.count)
    entry = entry[np.lexsort((sent.node[entry], run_positions(sent.count), pool_of_entry[entry]))]
    by_pool = np.lexsort((cls, pool[0] * domains + 1 + pool[1]))
    of_task = np.repeat(cls[by_pool], amount[by_pool])
    distributed = _Distributed(of_task, sent.node[entry], pool_of_entry[entry])
    conflicts[distributed.exchange(whole, part)] = True
    return distributed.counts(whole.slots.shape[1]), conflicts


def _amounts(part: Capacities, network: PlacementNetwork, flow: I64) -> tuple[tuple[I64, I64], I64, I64]:
    """Rows and domains (-1: none), classes, and the number of tasks of each class that the flow sends there, (E,)."""
    assert part.row_of is not None
    placed = np.zeros(len(part.row_of), np.int64)
    np.add.at(placed, network.group_class, network.placed_from_groups(flow))
    direct = placed > 0
    through = network.through
    direct[through.cls] = False
    classes = np.flatnonzero(direct)
    some = np.flatnonzero(flow[through.arc])
    cls = np.concatenate([classes, through.cls[some]])
    domain = np.concatenate([np.full(len(classes), -1), through.domain[some]])
    return (part.row_of[cls], domain), cls, np.concatenate([placed[classes], flow[through.arc[some]]])


class _Distributed:
    """Tasks (T,) of classes on nodes, sorted by pools: tasks of a pool may change places."""

    def __init__(self, cls: I64, node: I64, pool: I64) -> None:
        self.cls, self.node, self._pool = cls, node, pool

    def exchange(self, whole: Capacities, part: Capacities) -> I64:
        """Lets tasks change places until no more of them meet than limits per node allow; the classes for which some
        still do."""
        classes, i = np.unique(self.cls, return_inverse=True)
        limits = {c: _per_node(whole, c) for c in classes.tolist()}
        if all(limit is None for limit in limits.values()):
            return NO_ROWS
        assert part.row_of is not None
        # the limits of classes with a row of their own are in the network
        single = np.bincount(part.row_of[part.row_of >= 0])[part.row_of[classes]] == 1
        nodes, j = np.unique(self.node, return_inverse=True)
        spare = np.full((len(classes), len(nodes)), UNLIMITED)
        for k, limit in enumerate(limits.values()):
            if limit is not None and not single[k]:
                spare[k] = limit.soft_limit_on(nodes)
        np.subtract.at(spare, (i, j), 1)
        start, end = np.searchsorted(self._pool, [self._pool, self._pool + 1])
        _exchange_at_random(i, j, spare, start, end)
        _exchange_one_by_one(i, j, spare, start, end)
        self.node = nodes[j]
        return classes[np.logical_or.reduce(spare < 0, axis=1)]

    def counts(self, nodes: int) -> NodeCounts:
        """The number of tasks of each class on each of `nodes` nodes."""
        key, count = np.unique(self.cls * nodes + self.node, return_counts=True)
        return NodeCounts(key // nodes, key % nodes, count)


def _exchange_at_random(cls: I64, node: I64, spare: I64, start: I64, end: I64) -> None:
    """Lets tasks (T,) of nodes that have too many of their class change places with others, if that helps and makes
    nothing worse. cls, node (T,): rows and columns of `spare` (C, N), how many more tasks of a class a node may have,
    below 0: too many; updated in place. start, end (T,): the tasks with which each can change places."""
    random = np.random.default_rng(3)
    for _ in range(RANDOM_EXCHANGES):
        one = np.flatnonzero(spare[cls, node] < 0)
        if not len(one):
            break
        other = random.integers(start[one], end[one])
        helps = (spare[cls[one], node[other]] > 0) & (spare[cls[other], node[one]] > 0)
        one, other = one[helps], other[helps]
        arrivals = np.concatenate([cls[one] * spare.shape[1] + node[other], cls[other] * spare.shape[1] + node[one]])
        first = _is_first(arrivals) & _is_first(np.concatenate([one, other]))
        both = np.logical_and(*np.split(first, 2))  # the exchanges of one pass are independent
        _exchange(cls, node, spare, one[both], other[both])


def _exchange_one_by_one(cls: I64, node: I64, spare: I64, start: I64, end: I64) -> None:
    """The same for each of the tasks that are left, with the first other task that suits, unless they are many."""
    left = np.flatnonzero(spare[cls, node] < 0)
    if len(left) > MOST_EXCHANGES:
        return
    for one in left.tolist():
        if spare[cls[one], node[one]] >= 0:
            continue
        others = slice(start[one], end[one])
        helps = np.flatnonzero((spare[cls[one], node[others]] > 0) & (spare[cls[others], node[one]] > 0))
        if len(helps):
            _exchange(cls, node, spare, np.array([one]), start[one] + helps[:1])


def _exchange(cls: I64, node: I64, spare: I64, one: I64, other: I64) -> None:
    """Tasks one[k] and other[k] change places, (K,) each, no task twice."""
    for tasks in (one, other):
        np.add.at(spare, (cls[tasks], node[tasks]), 1)
    node[one], node[other] = node[other], node[one]
    for tasks in (one, other):
        np.subtract.at(spare, (cls[tasks], node[tasks]), 1)


def _is_first(values: I64) -> Bools:
    """(K,) whether each value is the first of its kind."""
    first = np.zeros(len(values), np.bool_)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def _spanning(whole: Capacities, c: int) -> DomainLimit | None:
    return next((limit for limit in whole.limits.get(c, ()) if not limit.is_per_node), None)


def _per_node(whole: Capacities, c: int) -> DomainLimit | None:
    return next((limit for limit in whole.limits.get(c, ()) if limit.is_per_node), None)


def _row_hashes(place: I64) -> I64:
    """(C,) equal for classes with equal placement costs (C, N)."""
    if len(place) == 1:
        return np.zeros(1, np.int64)
    weights = 2 * np.random.default_rng(7).integers(0, 2**62, place.shape[1]) + 1
    hashes: I64 = place @ weights  # modulo 2**64
    return hashes
