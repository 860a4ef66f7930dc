"""Inter-task constraints: the nodes for one task, limits of one solve, and trimming of solutions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NO_PEERS, NodeDemand, PeerDemand, PeerTerm, Spread, Taint, Term
from firmament_py.snapshot.intertask import IntertaskConstraints
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.water_level import fill_level, water_level
from tests.builders import (
    Cluster,
    make_class,
    make_cluster,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    selecting,
    tasks_like,
)
from tests.effort import examples

A, B = tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b"))
NEAR_A, NEAR_B = PeerDemand(affinity=(PeerTerm(A, "zone"),)), PeerDemand(affinity=(PeerTerm(B, "zone"),))
NOT_NEAR_A = PeerDemand(anti_affinity=(PeerTerm(A, "zone"),))
EVEN = PeerDemand(spread=(Spread(A, "zone"),))


def three_zones(peers: PeerDemand, *events, demand: NodeDemand | None = None) -> Cluster:
    """Nodes a1, a2 of zone a, b of zone b, c of zone c, none of no zone; task 1 of class 1, app a, waits.

    Classes 8 and 9 are for running tasks: 8 has no constraints, 9 has anti-affinity to app a in its zone.
    """
    return make_cluster(
        *(make_node(name, labels={"zone": zone}) for name, zone in [("a1", "a"), ("a2", "a"), ("b", "b"), ("c", "c")]),
        *(make_node("none"), make_class(1, peers=peers, demand=demand), make_class(8), make_class(9, peers=NOT_NEAR_A)),
        *(make_label_set(1, app="a"), make_label_set(2, app="b"), make_label_set(3, "other", app="a")),
        *(make_tasks([1], 1, label_set=1), *events),
    )


def running(uid: int, node: str, label_set: int = 1, cls: int = 8, leaving: bool = False):
    return make_tasks([uid], cls, on=node, label_set=label_set, leaving=leaving)


def intertask_of(cluster: Cluster, uid: int = 1) -> IntertaskConstraints:
    state, nodes = cluster.state, cluster.state.present_nodes()
    row = state.task_row(uid)
    assert row is not None
    classes, label_sets = state.tasks.cls[row : row + 1], state.tasks.label_set[row : row + 1]
    return IntertaskConstraints(state, nodes, classes, label_sets, RunningTasks(state, nodes))


def names(cluster: Cluster, chosen) -> list[str]:
    return [cluster.state.nodes.observed[row].name for row in cluster.state.present_nodes()[chosen].tolist()]


ANYWHERE = ["a1", "a2", "b", "c", "none"]
ZONED = ["a1", "a2", "b", "c"]


@pytest.mark.parametrize(
    ("peers", "events", "where"),
    [
        pytest.param(NO_PEERS, [running(2, "a1")], ANYWHERE, id="nothing-demanded"),
        pytest.param(NEAR_A, [], ZONED, id="first-of-its-own-affinity"),
        pytest.param(NEAR_B, [], [], id="affinity-to-no-task-there"),
        pytest.param(NEAR_A, [running(2, "a1")], ["a1", "a2"], id="affinity"),
        pytest.param(NEAR_A, [running(2, "a1", leaving=True)], ["a1", "a2"], id="affinity-to-one-that-leaves"),
        pytest.param(NEAR_A, [running(2, "a1", label_set=3)], ZONED, id="affinity-in-another-namespace"),
        pytest.param(NEAR_A, [running(2, "none")], ZONED, id="affinity-to-one-without-a-zone"),
        pytest.param(NEAR_A, [running(2, "gone")], ZONED, id="affinity-to-one-on-an-unknown-node"),
        # the other is near in the zone; no task is on a host that both match
        pytest.param(
            PeerDemand(affinity=(PeerTerm(A, "zone"), PeerTerm(B, "zone"))),
            [running(2, "a1"), running(3, "a1", label_set=2)],
            [],
            id="one-task-must-be-what-all-terms-speak-of",
        ),
        pytest.param(NOT_NEAR_A, [], ANYWHERE, id="anti-affinity-alone"),
        pytest.param(NOT_NEAR_A, [running(2, "a1")], ["b", "c", "none"], id="anti-affinity"),
        pytest.param(NOT_NEAR_A, [running(2, "a1", leaving=True)], ["b", "c", "none"], id="anti-affinity-leaving"),
        pytest.param(NOT_NEAR_A, [running(2, "a1", label_set=2)], ANYWHERE, id="anti-affinity-to-others"),
        pytest.param(NO_PEERS, [running(2, "b", label_set=2, cls=9)], ["a1", "a2", "c", "none"], id="symmetry"),
        pytest.param(NO_PEERS, [running(2, "none", label_set=2, cls=9)], ANYWHERE, id="symmetry-without-a-zone"),
        # no task anywhere: 0 + 1 - 0 <= 1 in each zone; never without the label
        pytest.param(EVEN, [], ZONED, id="spread"),
        pytest.param(EVEN, [running(2, "a1")], ["b", "c"], id="spread-1-0-0"),
        pytest.param(EVEN, [running(2, "a1", leaving=True)], ZONED, id="spread-does-not-count-tasks-that-leave"),
        pytest.param(EVEN, [running(2, "a1", label_set=3)], ZONED, id="spread-counts-one-namespace"),
        pytest.param(EVEN, [running(2, "a1"), running(3, "b"), running(4, "c")], ZONED, id="spread-1-1-1"),
        # 2 + 1 - 0 = 3 > 2
        pytest.param(
            PeerDemand(spread=(Spread(A, "zone", 2),)), [running(2, "a1"), running(3, "a2")], ["b", "c"], id="skew-2"
        ),
        # three domains of four: the emptiest counts as 0
        pytest.param(
            PeerDemand(spread=(Spread(A, "zone", 1, 4),)),
            [running(2, "a1"), running(3, "b"), running(4, "c")],
            [],
            id="min-domains",
        ),
        # counts b for the others, does not match itself: 1 + 0 - 0 <= 1
        pytest.param(PeerDemand(spread=(Spread(B, "zone"),)), [running(2, "a1", label_set=2)], ZONED, id="not-itself"),
        # an empty selector counts no task, but matches the task itself: 0 + 1 - 0
        pytest.param(
            PeerDemand(spread=(Spread(tasks_like(), "zone"),)), [running(2, "a1")], ZONED, id="empty-selector"
        ),
    ],
)
def test_nodes_for_one_more_task(peers, events, where):
    cluster = three_zones(peers, *events)
    assert names(cluster, intertask_of(cluster).allowed(0)) == where
    # one round places the task exactly if there is such a node
    assert bool(cluster.round()) == bool(where)


@pytest.mark.parametrize(
    ("honor_affinity", "honor_taints", "where"),
    [
        # zone c is excluded by the selector, b by its taint; each holds no task, zone a holds one
        pytest.param(True, True, ["a1", "a2"], id="only-zone-a-counts"),
        pytest.param(True, False, [], id="b-counts-and-is-empty"),
        pytest.param(False, True, [], id="c-counts-and-is-empty"),
        pytest.param(False, False, [], id="both-count"),
    ],
)
def test_which_nodes_count_for_a_spread(honor_affinity, honor_taints, where):
    peers = PeerDemand(spread=(Spread(A, "zone", 1, 1, honor_affinity, honor_taints),))
    b = make_node("b", labels={"zone": "b"}, taints=[Taint("t", "", "NoSchedule")])
    cluster = three_zones(peers, b, running(2, "a1"), demand=selecting(needs("zone", "NotIn", "c")))
    placed = cluster.round()
    assert (sorted(placed.values()) != []) == bool(where)
    assert set(placed.values()) <= set(where)


@pytest.mark.parametrize(
    ("demand", "placed"),
    [
        # a selector leaves zone a alone to count: 1 + 1 - 1; a volume in zone a does not: 1 + 1 - 0
        pytest.param(selecting(needs("zone", "In", "a")), True, id="selector"),
        pytest.param(NodeDemand(further=(("volume", (Term((needs("zone", "In", "a"),)),)),)), False, id="volume"),
    ],
)
def test_further_affinity_does_not_affect_which_zones_count(demand, placed):
    cluster = three_zones(EVEN, running(2, "a1"), demand=demand)
    assert bool(cluster.round()) == placed


def limits_of(cluster: Cluster, waiting: int, slots: int = 9):
    intertask = intertask_of(cluster)
    size = len(cluster.state.present_nodes())
    return intertask.limit(0, np.full(size, slots, np.int64), waiting)


@pytest.mark.parametrize(
    ("peers", "events", "waiting", "maximum", "expected"),
    [
        # zones a, b, c hold 0: 7 tasks raise the emptiest to 7 // 3 = 2; one more in each is within the skew
        pytest.param(EVEN, [], 7, [3, 3, 3], [2, 2, 2], id="level"),
        # 2, 0, 0: two tasks bring 1 everywhere; four 2
        pytest.param(EVEN, [running(2, "a1"), running(3, "a2")], 2, [0, 2, 2], [0, 1, 1], id="level-with-others"),
        pytest.param(EVEN, [running(2, "a1"), running(3, "a2")], 4, [1, 3, 3], [0, 2, 2], id="level-them-all"),
        # a fourth domain is missing: the emptiest counts as 0 for ever
        pytest.param(PeerDemand(spread=(Spread(A, "zone", 2, 4),)), [], 9, [2, 2, 2], [0, 0, 0], id="min-domains"),
        pytest.param(NOT_NEAR_A, [], 9, [1, 1, 1], [0, 0, 0], id="anti-affinity"),
    ],
)
def test_limits_of_domains_in_one_solve(peers, events, waiting, maximum, expected):
    (limit,) = limits_of(three_zones(peers, *events), waiting)[1]
    assert (limit.maximum.tolist(), limit.soft_limit.tolist()) == (maximum, expected)
    assert limit.domain.tolist() == [0, 0, 1, 2, -1]


def test_a_domain_that_is_too_full_for_one_takes_some_of_many():
    # 1, 0, 0: zone a takes no task yet, but three tasks make it 2, 1, 1
    cluster = three_zones(EVEN, running(2, "a1"))
    slots, _ = limits_of(cluster, 3)
    assert slots.tolist() == [1, 1, 2, 2, 0]
    assert names(cluster, intertask_of(cluster).allowed(0)) == ["b", "c"]


def test_the_capacity_of_a_small_domain_bounds_the_level():
    # zone c takes one task: level 1, so a and b take at most 2
    cluster = three_zones(EVEN)
    slots = np.array([9, 9, 9, 1, 9], np.int64)
    assert intertask_of(cluster).limit(0, slots, 20)[1][0].maximum.tolist() == [2, 2, 2]


def test_tasks_with_affinity_to_each_other_choose_the_largest_domain():
    cluster = three_zones(NEAR_A)
    # a holds 2 + 2, b 3, c 1
    slots, limits = intertask_of(cluster).limit(0, np.array([2, 2, 3, 1, 9], np.int64), 5)
    assert (slots.tolist(), limits) == ([2, 2, 0, 0, 0], [])


@pytest.mark.parametrize(
    ("peers", "events", "count", "remaining"),
    [
        pytest.param(NO_PEERS, [], [3, 3, 3, 3, 3], [3, 3, 3, 3, 3], id="nothing-demanded"),
        pytest.param(NOT_NEAR_A, [], [2, 1, 2, 0, 2], [1, 0, 1, 0, 2], id="one-in-a-zone-any-without-zone"),
        pytest.param(NOT_NEAR_A, [running(2, "b")], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0], id="not-where-one-is"),
        # the zone with the most of them is kept, the rest has to go
        pytest.param(NEAR_A, [], [1, 1, 3, 0, 0], [0, 0, 3, 0, 0], id="one-home"),
        pytest.param(NEAR_A, [running(2, "c")], [1, 1, 3, 2, 1], [0, 0, 0, 2, 0], id="only-near"),
        # zone c would stay at 0, so the others keep 1
        pytest.param(EVEN, [], [2, 2, 3, 0, 0], [1, 0, 1, 0, 0], id="the-emptiest-bounds"),
        pytest.param(EVEN, [], [2, 1, 3, 2, 0], [2, 1, 3, 2, 0], id="even-enough"),
        pytest.param(EVEN, [running(2, "a1")], [1, 0, 1, 1, 0], [1, 0, 1, 1, 0], id="level-rises-on-the-way"),
        pytest.param(EVEN, [running(2, "a1")], [1, 0, 1, 0, 0], [0, 0, 1, 0, 0], id="level-does-not-rise"),
    ],
)
def test_trimmed_counts(peers, events, count, remaining):
    cluster = three_zones(peers, *events)
    assert intertask_of(cluster).trim(0, np.arange(5), np.array(count, np.int64)).tolist() == remaining


def test_added_tasks_count_like_running_ones():
    cluster = three_zones(EVEN)
    intertask = intertask_of(cluster)
    intertask.add(np.array([0, 0]), np.array([0, 2]), np.array([1, 1]))
    # 1, 1, 0: only zone c
    assert names(cluster, intertask.allowed(0)) == ["c"]


@pytest.mark.parametrize("peers", [NEAR_A, NOT_NEAR_A, EVEN], ids=["affinity", "anti-affinity", "spread"])
def test_counts_beside_some_of_the_running_tasks(peers):
    """Within, as if the others and those that were placed were not there; afterwards as before."""
    of_both, of_a = (running(10, "a1"), running(11, "b", cls=9)), running(10, "a1")
    cluster, expected = three_zones(peers, *of_both), intertask_of(three_zones(peers, of_a))
    intertask, state, nodes = intertask_of(cluster), cluster.state, cluster.state.present_nodes()
    one = np.ones(1, np.int64)
    intertask.add(0 * one, 3 * one, one)
    before, row = intertask.allowed(0).tolist(), state.task_row(10)
    with intertask.beside(RunningTasks(state, nodes, only=np.array([row]))):
        assert intertask.allowed(0).tolist() == expected.allowed(0).tolist() != before
        intertask.add(0 * one, 2 * one, one)
    assert intertask.allowed(0).tolist() == before


@pytest.mark.parametrize(
    ("counts", "capacities", "waiting", "level"),
    [
        pytest.param([], [], 3, 0, id="no-domain"),
        pytest.param([0, 0, 0], [9, 9, 9], 7, 2, id="7-over-3"),
        pytest.param([5, 0, 0], [9, 9, 9], 7, 3, id="only-the-lower"),  # 3 + 3 of 7; 4 + 4 are too many
        pytest.param([5, 0, 0], [9, 1, 9], 7, 1, id="bounded-by-room"),
        pytest.param([1, 1], [0, 9], 7, 1, id="full"),
        pytest.param([4, 2], [9, 9], 0, 2, id="no-task-waits"),
    ],
)
def test_water_level(counts, capacities, waiting, level):
    assert water_level(np.array(counts, np.int64), np.array(capacities, np.int64), waiting) == level


DOMAINS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5)


@examples(200)
@given(DOMAINS, st.integers(1, 40))
def test_filling_the_emptiest_domain_that_has_capacity_one_task_at_a_time_ends_at_the_fill_level(domains, waiting):
    counts, capacities = (np.array(column, np.int64) for column in zip(*domains, strict=True))
    level = fill_level(counts, capacities, waiting)
    now, left = counts.copy(), capacities.copy()
    highest = 0
    for _ in range(min(waiting, int(capacities.sum()))):
        emptiest = min(np.flatnonzero(left), key=lambda d: now[d])
        now[emptiest] += 1
        left[emptiest] -= 1
        highest = max(highest, now[emptiest])
    assert level == highest
