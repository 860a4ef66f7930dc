"""Running tasks that move so that arrivals fit, compared with the best moves by trying everything."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.eviction.clearing import clearing_costs, least_cost
from firmament_py.eviction.evict import evict
from firmament_py.eviction.problem import Arrivals, Eviction, Movers, Residents
from tests.effort import examples


class Cluster:
    """Nodes with movers of several kinds, and arrivals of several classes, all of one priority; no residents."""

    def __init__(self, capacity, movers, kinds, arrivals, allowed=()):
        """movers: kind and node. kinds: requests, nodes that suit, cost, budgets. arrivals: requests, count, nodes."""
        self.capacity = np.array(capacity, np.int64)
        nodes, resources = self.capacity.shape
        self.allowed = np.array(allowed, np.int64)
        table = np.array(movers, np.int64).reshape(-1, 2)
        self.movers = Movers(
            kind=table[:, 0].copy(),
            home=table[:, 1].copy(),
            requests=np.array([k[0] for k in kinds], np.int64).reshape(-1, resources),
            suitable=np.array([[n in k[1] for n in range(nodes)] for k in kinds], np.bool_).reshape(-1, nodes),
            cost=np.array([k[2] for k in kinds], np.float64),
            budgets=np.array([[b in k[3] for b in range(len(allowed))] for k in kinds], np.bool_).reshape(
                len(kinds), len(allowed)
            ),
        )
        self.arrivals = Arrivals(
            np.array([a[0] for a in arrivals], np.int64).reshape(-1, resources),
            np.array([a[1] for a in arrivals], np.int64),
            np.zeros(len(arrivals), np.int64),
            np.array([[n in a[2] for n in range(nodes)] for a in arrivals], np.bool_).reshape(-1, nodes),
            np.ones(len(arrivals), np.bool_),
            np.full(sum(a[1] for a in arrivals), -1),
        )

    def solve(self, seed=0) -> Eviction:
        none, kinds = np.zeros(0, np.int64), (0, self.capacity.shape[1])
        budgets = np.zeros((0, len(self.allowed)), np.bool_)
        nothing = Residents(none, none, none, np.zeros(kinds, np.int64), none, none, none, budgets)
        return evict(self.arrivals, nothing, self.capacity, self.allowed, seed, movers=self.movers)

    def placed(self, eviction) -> np.ndarray:
        """(W, N)"""
        placed = np.zeros(self.arrivals.suitable.shape, np.int64)
        for c, n, count in eviction.placed.tolist():
            placed[c, n] += count
        return placed

    def is_sound(self, placed, node_of_mover) -> bool:
        movers = self.movers
        used = placed.T @ self.arrivals.requests
        np.add.at(used, node_of_mover, movers.requests[movers.kind])
        asked = (placed.T @ (self.arrivals.requests > 0)) > 0
        asked |= np.array(
            [(movers.requests[movers.kind[node_of_mover == n]] > 0).any(axis=0) for n in range(len(used))]
        ).reshape(asked.shape)
        away = node_of_mover != movers.home
        suits = movers.suitable[movers.kind, node_of_mover] | ~away
        within = movers.budgets[movers.kind[away]].sum(axis=0) <= self.allowed
        return bool(
            not (asked & (used > self.capacity)).any()
            and suits.all()
            and within.all()
            and not placed[~self.arrivals.suitable].any()
            and (placed.sum(axis=1) <= self.arrivals.count).all()
        )

    def worth(self, placed, node_of_mover) -> tuple[int, float]:
        """Greater is better."""
        away = node_of_mover != self.movers.home
        return int(placed.sum()), -float(self.movers.cost[self.movers.kind[away]].sum())

    def best(self) -> tuple[int, float]:
        nodes = len(self.capacity)
        ways = [
            [w for w in product(range(count + 1), repeat=nodes) if sum(w) <= count]
            for count in self.arrivals.count.tolist()
        ]
        found = (0, -np.inf)
        for to in product(range(nodes), repeat=len(self.movers.home)):
            node_of_mover = np.array(to, np.int64)
            for rows in product(*ways):
                placed = np.array(rows, np.int64).reshape(-1, nodes)
                if (worth := self.worth(placed, node_of_mover)) > found and self.is_sound(placed, node_of_mover):
                    found = worth
        return found


@st.composite
def clusters(draw, nodes=3, movers=4, arrivals=3):
    resources, n = draw(st.integers(1, 2)), draw(st.integers(1, nodes))
    budgets = draw(st.integers(0, 1))

    def amounts(greatest):
        return draw(st.lists(st.integers(0, greatest), min_size=resources, max_size=resources))

    def some_nodes():
        return draw(st.sets(st.integers(0, n - 1), min_size=1))

    kinds = [
        (amounts(3), some_nodes(), draw(st.integers(1, 3)), set(range(draw(st.integers(0, budgets)))))
        for _ in range(draw(st.integers(1, 3)))
    ]
    running = [
        (draw(st.integers(0, len(kinds) - 1)), draw(st.integers(0, n - 1))) for _ in range(draw(st.integers(0, movers)))
    ]
    used = np.zeros((n, resources), np.int64)
    for kind, node in running:
        used[node] += kinds[kind][0]
    waiting, left = [], draw(st.integers(1, arrivals))
    while left:
        count = draw(st.integers(1, left))
        waiting.append((amounts(5), count, some_nodes()))
        left -= count
    return Cluster(
        used + np.array([amounts(3) for _ in range(n)]).reshape(n, resources),
        running,
        kinds,
        waiting,
        [draw(st.integers(0, 3))] * budgets,
    )


@pytest.mark.slow
@examples(200)
@given(clusters())
def test_moves_are_sound_and_no_mover_is_lost(cluster):
    eviction = cluster.solve()
    assert (eviction.node_of_mover >= 0).all()
    assert cluster.is_sound(cluster.placed(eviction), eviction.node_of_mover)


@pytest.mark.slow
@examples(60)
@given(clusters())
def test_the_best_moves_are_found_in_small_clusters(cluster):
    eviction = cluster.solve()
    assert cluster.worth(cluster.placed(eviction), eviction.node_of_mover) == cluster.best()


@pytest.mark.slow
@examples(100)
@given(clusters())
def test_no_moves_cost_less_than_the_bound_if_all_arrivals_fit(cluster):
    free, movers, arrivals = cluster.capacity, cluster.movers, cluster.arrivals
    running = movers.home, movers.requests[movers.kind], movers.cost[movers.kind]
    least = least_cost(arrivals, free, clearing_costs(arrivals.requests, arrivals.suitable, *running, free))
    served, cost = cluster.best()
    if served == cluster.arrivals.count.sum():
        assert least <= -cost + 1e-9


def halves(nodes: int, *arrivals: int) -> Cluster:
    """Three of eight devices of each node are in use, and tasks that need six arrive: so many of each class."""
    everywhere = set(range(nodes))
    running = [(0, n) for n in range(nodes) for _ in range(3)]
    classes = [([6], count, everywhere) for count in arrivals]
    return Cluster([[8]] * nodes, running, [([1], everywhere, 1.0, ())], classes)


def test_as_few_tasks_move_as_must():
    """Each of 41 nodes loses one, and the other 9 have the 45 devices that these need: all but four."""
    cluster = halves(50, 41)
    eviction = cluster.solve()
    assert cluster.worth(cluster.placed(eviction), eviction.node_of_mover) == (41, -41.0)


def test_no_step_of_the_search_adds_moves():
    """Without a bound, which there is for a single class only, the search takes all its steps."""
    cluster = halves(50, 20, 21)
    eviction = cluster.solve()
    assert cluster.worth(cluster.placed(eviction), eviction.node_of_mover) == (41, -41.0)


def test_a_limit_of_moves_holds():
    cluster = halves(50, 41)
    cluster.allowed = np.array([10])
    cluster.movers = Movers(
        cluster.movers.kind,
        cluster.movers.home,
        cluster.movers.requests,
        cluster.movers.suitable,
        cluster.movers.cost,
        np.ones((1, 1), np.bool_),
    )
    eviction = cluster.solve()
    assert cluster.worth(cluster.placed(eviction), eviction.node_of_mover) == (10, -10.0)


def test_what_is_in_the_way_of_a_move_moves_first():
    """The large task fits on the first node if its task moves to the second, whose own one fits only on the third."""
    cluster = Cluster(
        [[4], [3], [2]],
        [(0, 0), (1, 1)],
        [([3], {0, 1}, 1.0, ()), ([2], {1, 2}, 1.0, ())],
        [([4], 1, {0})],
    )
    eviction = cluster.solve()
    assert eviction.node_of_mover.tolist() == [1, 2]
    assert eviction.placed.tolist() == [[0, 0, 1]]


def test_a_mover_takes_the_node_with_the_least_free_capacity():
    cluster = Cluster([[4], [6], [3], [5]], [(0, 0)], [([2], {0, 1, 2, 3}, 1.0, ())], [([4], 1, {0})])
    assert cluster.solve().node_of_mover.tolist() == [2]


def test_moves_that_are_undone_do_not_count_against_budgets():
    """Clearing the first node seems cheaper, but takes two moves, and the budget permits one."""
    everywhere = {0, 1, 2}
    cluster = Cluster(
        [[8], [8], [8]],
        [(0, 0), (0, 0), (1, 1)],
        [([4], everywhere, 0.4, {0}), ([4], everywhere, 1.0, {0})],
        [([8], 1, {0, 1})],
        allowed=[1],
    )
    eviction = cluster.solve()
    assert eviction.placed.tolist() == [[0, 1, 1]]
    assert eviction.node_of_mover[:2].tolist() == [0, 0]


def test_each_of_several_movers_on_a_node_counts():
    """Two moves of cost 1 to one node are worse than one of cost 1.5. With a second class the search has no bound."""
    cluster = Cluster(
        [[8], [8], [8], [8], [1]],
        [(0, 0), (0, 0), (1, 1)],
        [([4], {0, 2}, 1.0, ()), ([8], {1, 3}, 1.5, ())],
        [([8], 1, {0, 1}), ([1], 1, {4})],
    )
    eviction = cluster.solve()
    assert eviction.node_of_mover.tolist() == [0, 0, 3]
    assert len(eviction.placed) == 2


def test_a_mover_takes_another_node_at_its_limit_of_moves():
    """For the first arrival the mover takes the node that it fills best, which is the only one for the second."""
    cluster = Cluster(
        [[4], [4], [6]],
        [(0, 0)],
        [([2], {0, 1, 2}, 1.0, {0})],
        [([4], 1, {0}), ([4], 1, {1})],
        allowed=[1],
    )
    eviction = cluster.solve()
    assert eviction.node_of_mover.tolist() == [2]
    assert len(eviction.placed) == 2


def test_the_search_goes_on_above_the_bound():
    """The first solution costs 2.4. The bound is 1, but the node of that mover is in use: with its task it takes 2."""
    cluster = Cluster(
        [[4]] * 5,
        [(0, 0), (0, 0), (1, 1), (2, 2)],
        [([2], {0, 4}, 1.2, ()), ([4], {1, 2}, 1.0, ()), ([4], {2, 3}, 1.0, ())],
        [([4], 1, {0, 1})],
    )
    eviction = cluster.solve()
    assert eviction.node_of_mover.tolist() == [0, 0, 2, 3]
