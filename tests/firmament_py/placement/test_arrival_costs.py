"""What running tasks would cost where they cost least, compared with trying all nodes."""

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import Taint
from firmament_py.placement import arrival_costs
from firmament_py.placement.arrival_costs import ArrivalCosts
from firmament_py.rebalance.what_if import WhatIf
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks, needs, selecting
from tests.effort import examples

NOWHERE = 2**61
TAINT = Taint("a", "b", "NoSchedule")


class World:
    """A task of each class waits. nodes: free amounts, whether it has an SSD, taints. classes: requests, kind, whether
    it needs an SSD. cost: of each kind on each node."""

    def __init__(self, nodes, classes, cost):
        self.nodes, self.classes, self.cost = nodes, classes, cost
        self.kind = [kind for _, kind, _ in classes]
        ssd = selecting(needs("disk"))
        cluster = make_cluster(
            *(
                make_node(str(n), **free, labels={"disk": ""} if has else {}, taints=taints)
                for n, (free, has, taints) in enumerate(nodes)
            ),
            *(
                make_class(c, **requests, demand=ssd if picky else None)
                for c, (requests, _, picky) in enumerate(classes, 1)
            ),
            *(make_tasks([c], c) for c in range(1, len(classes) + 1)),
        )
        state = cluster.state
        snapshot = WhatIf.of(cluster.scheduler, NOW_US).round().placer().snapshot
        names = [int(state.nodes.observed[row].name) for row in snapshot.nodes.tolist()]
        self.rows = np.array([state.task_row(uid) for uid in range(1, len(classes) + 1)])
        some = np.array([self.kind.index(kind) for kind in range(len(cost))])  # a task of each kind
        matrix = np.ascontiguousarray(np.array(cost, np.int64)[:, names])
        self.arrival = ArrivalCosts(state, snapshot, matrix, state.tasks.cls[self.rows[some]])

    def bounds(self):
        return self.arrival.least(self.rows, np.array(self.kind)).tolist()

    def of_tasks(self, below):
        return self.arrival.of_tasks(self.rows, np.array(self.kind), np.array(below, np.int64)).tolist()

    def by_trying(self):
        """(bound, cost) of each task, NOWHERE if there is no node for it."""
        smallest = {
            kind: {name: min(r.get(name, 0) for r, k, _ in self.classes if k == kind) for name in ("cpu", "memory")}
            for kind in self.kind
        }
        return [
            (
                self._least(smallest[kind], kind, range(len(self.nodes))),
                self._least(requests, kind, self._open_to(picky)),
            )
            for requests, kind, picky in self.classes
        ]

    def _open_to(self, picky):
        return [n for n, (_, has, taints) in enumerate(self.nodes) if not taints and (has or not picky)]

    def _least(self, requests, kind, nodes):
        fits = (
            self.cost[kind][n]
            for n in nodes
            if all(self.nodes[n][0].get(name, 0) >= asked for name, asked in requests.items() if asked)
        )
        return min(fits, default=NOWHERE)


@st.composite
def worlds(draw):
    """A world, and a limit for each task."""
    amounts = st.fixed_dictionaries({"cpu": st.integers(0, 3), "memory": st.integers(0, 3)})
    nodes = draw(
        st.lists(st.tuples(amounts, st.booleans(), st.sampled_from([(), (), (TAINT,)])), min_size=2, max_size=7)
    )
    nodes.append(({"cpu": 1, "memory": 1}, False, (TAINT,)))  # both resources are known
    kinds = draw(st.integers(1, 2))
    classes = draw(st.lists(st.tuples(amounts, st.integers(0, kinds - 1), st.booleans()), min_size=1, max_size=5))
    classes += [({"cpu": 2, "memory": 2}, kind, False) for kind in range(kinds)]
    one = st.lists(st.integers(0, 9), min_size=len(nodes), max_size=len(nodes))
    cost = draw(st.lists(one, min_size=kinds, max_size=kinds))
    below = draw(st.lists(st.integers(0, 12), min_size=len(classes), max_size=len(classes)))
    return World(nodes, classes, cost), below


seen: Counter[str] = Counter()


@given(worlds(), st.integers(1, 4))
@examples(100)
def test_costs_below_the_limits_are_those_of_the_best_nodes(drawn, first):
    world, below = drawn
    with patch.object(arrival_costs, "_FIRST", first):  # then all others that cost little
        found = world.of_tasks(below)
    expected = world.by_trying()
    assert world.bounds() == [bound for bound, _ in expected]
    for limit, cost, (bound, best) in zip(below, found, expected, strict=True):
        assert bound <= best <= cost or cost >= limit
        assert cost == best or (best >= limit and cost >= limit)
        seen["found"] += best < limit
        seen["not within the first"] += best < limit and best > bound


def test_many_costs_are_below_the_limits():
    """Of the random worlds above."""
    test_costs_below_the_limits_are_those_of_the_best_nodes()
    assert seen["found"] > 50
    assert seen["not within the first"] > 10


def test_only_the_classes_with_the_highest_limits_are_considered():
    sizes = [({"cpu": size}, 0, False) for size in (1, 2, 3)]
    world = World([({"cpu": 4}, False, ())], sizes, [[5]])
    with patch.object(arrival_costs, "CLASSES", 2):
        assert world.of_tasks([8, 6, 7]) == [5, NOWHERE, 5]


def test_a_class_that_requests_what_no_node_has_costs_more_than_any_limit():
    world = World([({"cpu": 4}, False, ())], [({"cpu": 1}, 0, False), ({"cpu": 1, "fpga": 1}, 0, False)], [[5]])
    assert world.of_tasks([9, 9]) == [5, NOWHERE]
