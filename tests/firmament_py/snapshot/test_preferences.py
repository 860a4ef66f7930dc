"""Soft preferences: the arithmetic of each score, and their effect on whole rounds.

A node costs 100 for each point, of 100, of a score times its weight below the best.
"""

import numpy as np
import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm, PreferenceSet, Spread, Taint, Term, Toleration
from firmament_py.model.events import NodeObserved
from firmament_py.snapshot.preferences import Preferences
from firmament_py.snapshot.running_tasks import RunningTasks
from tests.builders import (
    NOW_US,
    Cluster,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    per_node,
    tasks_like,
)

MIB = 2**20
A, B = tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b"))
SOFT, SOFTER = Taint("soft", "", "PreferNoSchedule"), Taint("softer", "", "PreferNoSchedule")


def zoned(name: str, zone: str, *taints: Taint, images=None, avoids=()) -> NodeObserved:
    return NodeObserved(f"id-{name}", name, {"pods": 9}, {"zone": zone}, taints, images or {}, frozenset(avoids))


def costs(cluster: Cluster, feasible=None) -> list[int]:
    """The costs of task 1's preferences on each node."""
    state, nodes = cluster.state, cluster.state.present_nodes()
    row = state.task_row(1)
    assert row is not None
    cls, label_set = state.tasks.cls[row : row + 1], state.tasks.label_set[row : row + 1]
    found = Preferences(state, nodes, cls, label_set, RunningTasks(state, nodes)).costs(
        0, np.ones(len(nodes), np.bool_) if feasible is None else np.array(feasible)
    )
    return [0] * len(nodes) if found is None else found.tolist()


def liking(preferences: PreferenceSet, *events, **fields) -> Cluster:
    return make_cluster(
        *(make_class(1, preferences=preferences, **fields), make_class(2), make_label_set(1, app="a")),
        *(make_label_set(2, app="b"), make_tasks([1], 1, label_set=1), *events),
    )


THREE = [zoned("a", "a"), zoned("b", "b"), zoned("c", "c")]


def node_wish(weight: int, *zones: str):
    return weight, Term((needs("zone", "In", *zones),))


@pytest.mark.parametrize(
    ("preferences", "events", "expected"),
    [
        pytest.param(PreferenceSet(), THREE, [0, 0, 0], id="nothing-preferred"),
        # two taints are the most: 100 - 100 * 2 / 2 = 0 points, 100 - 100 / 2 = 50, 100; weight 3
        pytest.param(
            PreferenceSet(),
            [zoned("a", "a", SOFT, SOFTER), zoned("b", "b", SOFT), zoned("c", "c")],
            [30_000, 15_000, 0],
            id="taints",
        ),
        # 60 + 20 = 80 is the best: 100 points; 20 is 100 * 20 // 80 = 25; 0; weight 2: 100 * 2 * (100 - points)
        pytest.param(
            PreferenceSet(nodes=(node_wish(60, "a"), node_wish(20, "a", "b"))), THREE, [0, 15_000, 20_000], id="nodes"
        ),
        pytest.param(PreferenceSet(nodes=(node_wish(60, "x"),)), THREE, [0, 0, 0], id="nodes-none-has-it"),
        # a: 1000 MiB on one node of three counts 333.3; (333.3 - 23) / (1000 - 23) = 31 points; weight 1
        # b: 20 MiB count 6.7, below 23: 0 points
        pytest.param(
            PreferenceSet(images=("big",)),
            [zoned("a", "a", images={"big": 1000 * MIB}), zoned("b", "b", images={"small": MIB}), zoned("c", "c")],
            [6_900, 10_000, 10_000],
            id="images",
        ),
        # all have it: 1000 of 1000 MiB each; another image counts for one: 2000 is then the most
        pytest.param(
            PreferenceSet(images=("big", "more")),
            [
                zoned("a", "a", images={"big": 1000 * MIB, "more": 3000 * MIB}),
                zoned("b", "b", images={"big": 1000 * MIB}),
            ],
            # a: 1000 + 3000 / 2 = 2500, at most 2000: 100 points. b: (1000 - 23) / (2000 - 23) = 49 points
            [0, 5_100],
            id="several-images",
        ),
        # 100 * 100 points * (3 + 2 + 2 + 2 + 1)
        pytest.param(
            PreferenceSet(avoided_as="rs"),
            [zoned("a", "a", avoids=["rs"]), zoned("b", "b")],
            [100_000, 0],
            id="avoided",
        ),
        pytest.param(
            PreferenceSet(avoided_as="other"), [zoned("a", "a", avoids=["rs"]), zoned("b", "b")], [0, 0], id="another"
        ),
        # 10 * 2 tasks = 20 near a, 10 near b, 0: 100, 50, 0 points; weight 2
        pytest.param(
            PreferenceSet(peers=((10, PeerTerm(B, "zone")),)),
            [*THREE, make_tasks([2, 3], 2, on="a", label_set=2), make_tasks([4], 2, on="b", label_set=2)],
            [0, 10_000, 20_000],
            id="near-others",
        ),
        # -20, -10, 0: the worst is 0 points, half way 50
        pytest.param(
            PreferenceSet(peers=((-10, PeerTerm(B, "zone")),)),
            [*THREE, make_tasks([2, 3], 2, on="a", label_set=2), make_tasks([4], 2, on="b", label_set=2)],
            [20_000, 10_000, 0],
            id="away-from-others",
        ),
        # a spread that counts others: 2, 1, 0: 0 points, 50, 100
        pytest.param(
            PreferenceSet(spread=(Spread(B, "zone"),)),
            [*THREE, make_tasks([2, 3], 2, on="a", label_set=2), make_tasks([4], 2, on="b", label_set=2)],
            [20_000, 10_000, 0],
            id="spread-over-others",
        ),
    ],
)
def test_scores(preferences, events, expected):
    assert costs(liking(preferences, *events)) == expected


def test_an_image_that_no_node_has_distinguishes_none():
    wish = node_wish(60, "a")
    assert costs(liking(PreferenceSet(images=("new",)), *THREE)) == [0, 0, 0]
    assert costs(liking(PreferenceSet(images=("new",), nodes=(wish,)), *THREE)) == [0, 20_000, 20_000]
    avoiding = [zoned("a", "a", avoids=("owner",)), zoned("b", "b")]
    assert costs(liking(PreferenceSet(images=("new",), avoided_as="owner"), *avoiding)) == [100 * 100 * 10, 0]


def test_a_required_affinity_of_waiting_tasks_attracts_those_that_it_matches():
    required = PeerDemand(affinity=(PeerTerm(A, "zone"),))
    cluster = liking(PreferenceSet(), make_class(3, peers=required), *THREE, make_tasks([2], 3, label_set=2))
    state, nodes = cluster.state, cluster.state.present_nodes()
    rows = state.task_rows(np.array([1, 2], np.uint64))
    of = state, nodes, state.tasks.cls[rows], state.tasks.label_set[rows], RunningTasks(state, nodes)
    preferences = Preferences(*of)
    assert preferences.has_costs.tolist() == [True, True]
    assert preferences.costs(1, np.ones(len(nodes), np.bool_)) is None  # all zones have room for as many
    preferences.add(np.array([1]), np.array([1]), np.array([1]))  # it is placed on b
    attracted = preferences.costs(0, np.ones(3, np.bool_))
    assert attracted is not None
    assert attracted.tolist() == [20_000, 0, 20_000]


def test_a_tolerated_taint_does_not_discourage():
    cluster = make_cluster(make_class(1), zoned("a", "a", SOFT), zoned("b", "b"), make_tasks([1], 1))
    assert costs(cluster) == [30_000, 0]
    demand = make_class(2).demand.__class__(tolerations=(Toleration("soft", "Exists"),))
    cluster = make_cluster(make_class(1, demand=demand), zoned("a", "a", SOFT), zoned("b", "b"), make_tasks([1], 1))
    assert costs(cluster) == [0, 0]


def test_scores_are_relative_to_feasible_nodes():
    # without b the best is c with 20: 100 points
    wish = PreferenceSet(nodes=(node_wish(60, "b"), node_wish(20, "c")))
    assert costs(liking(wish, *THREE), [True, False, True]) == [20_000, 0, 0]


def test_gangs_of_a_class_have_scores_relative_to_the_nodes_of_their_own_domain():
    def racked(name: str, rack: str, disk: str, cpu: int) -> NodeObserved:
        return make_node(name, cpu=cpu, labels={"rack": rack, "disk": disk})

    cluster = make_cluster(
        racked("a", "a", "hdd", 2),
        racked("b", "b", "hdd", 4),
        racked("c", "b", "ssd", 4),
        make_class(1, cpu=1, preferences=PreferenceSet(nodes=((100, Term((needs("disk", "In", "ssd"),))),))),
        make_gang(1, 2, topology="rack", required=True, created_us=NOW_US - 5_000_000),
        make_tasks([11, 12], 1, gang=1, created_us=NOW_US - 5_000_000),
        make_gang(2, 3, topology="rack", required=True),
        make_tasks([21, 22, 23], 1, gang=2),
    )
    assert cluster.round() == {11: "a", 12: "a", 21: "c", 22: "c", 23: "c"}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        # running tasks prefer app a near: weight 50 against 0
        pytest.param(PreferenceSet(peers=((50, PeerTerm(A, "zone")),)), [0, 20_000, 20_000], id="wanted"),
        pytest.param(PreferenceSet(peers=((-50, PeerTerm(A, "zone")),)), [20_000, 0, 0], id="unwanted"),
        pytest.param(PreferenceSet(peers=((50, PeerTerm(B, "zone")),)), [0, 0, 0], id="somebody-else"),
    ],
)
def test_preferences_of_running_tasks_count_for_new_ones(there, expected):
    events = [make_class(3, preferences=there), *THREE, make_tasks([2], 3, on="a", label_set=2)]
    assert costs(liking(PreferenceSet(), *events)) == expected


def test_a_required_affinity_of_running_tasks_attracts_with_weight_1():
    required = PeerDemand(affinity=(PeerTerm(A, "zone"),))
    wished = PreferenceSet(peers=((-1, PeerTerm(A, "zone")),))
    events = [make_class(3, peers=required), *THREE, make_tasks([2, 3], 3, on="a", label_set=2)]
    # 2 tasks * 1 in zone a, 0 elsewhere
    assert costs(liking(PreferenceSet(), *events)) == [0, 20_000, 20_000]
    # and one that repels with weight -1 in zone b: 2, -1, 0 are 100, 0, 100 * 1 // 3 = 33 points
    extra = [make_class(4, preferences=wished), make_tasks([4], 4, on="b", label_set=2)]
    assert costs(liking(PreferenceSet(), *events, *extra)) == [0, 20_000, 100 * 2 * 67]


# -- whole rounds --------------------------------------------------------------------------------------------------


def batch(preferences: PreferenceSet, count: int, *nodes, cls=None) -> tuple[dict[str, int], int]:
    """Number of the `count` tasks of app a on each node, and the number of solves."""
    cluster = make_cluster(
        cls or make_class(1, preferences=preferences),
        make_label_set(1, app="a"),
        *nodes,
        make_tasks(range(count), 1, label_set=1),
    )
    result = cluster.run()
    return per_node(cluster.names(result)), result.stats.solves


def test_a_soft_spread_levels_a_batch_within_one_solve():
    # two nodes in zone a, one in b: without it each node would take 4
    nodes = [zoned("a1", "a"), zoned("a2", "a"), zoned("b", "b")]
    assert batch(PreferenceSet(), 12, *nodes) == ({"a1": 4, "a2": 4, "b": 4}, 0)
    assert batch(PreferenceSet(spread=(Spread(A, "zone"),)), 12, *nodes) == ({"a1": 3, "a2": 3, "b": 6}, 1)


@pytest.mark.parametrize("max_skew", [1, 5])
def test_a_soft_spread_never_tolerates_a_skew_without_need(max_skew):
    # without it a2, a3 and b get one or two tasks each
    cluster = make_cluster(
        make_class(1, preferences=PreferenceSet(spread=(Spread(A, "zone", max_skew),))),
        make_label_set(1, app="a"),
        *(zoned(name, name[0]) for name in ("a1", "a2", "a3", "b")),
        make_tasks([1, 2], 1, on="a1", label_set=1),
        make_tasks(range(3, 8), 1, label_set=1),
    )
    placed = per_node(cluster.names(cluster.run()))
    # 2 + 5 tasks: zone b gets 3 or 4 of the 5
    assert placed["b"] in (3, 4)


def test_the_last_task_of_a_soft_spread_goes_to_the_emptiest_zone():
    cluster = make_cluster(
        make_class(1, preferences=PreferenceSet(spread=(Spread(A, "zone"),))),
        make_class(2),
        make_label_set(1, app="a"),
        *THREE,
        make_tasks(range(10, 13), 1, on="a", label_set=1),
        make_tasks(range(20, 25), 2, on="b"),
        make_tasks(range(30, 35), 2, on="c"),
        make_tasks([1], 1, label_set=1),
    )
    # a runs the fewest tasks but all of the app; b and c have none of it
    assert cluster.round()[1] in ("b", "c")


def test_a_full_node_does_not_end_a_soft_spread_over_the_others():
    full = make_node("full", pods=0, labels={"zone": "full"})
    spread = PreferenceSet(spread=(Spread(A, "zone"),))
    nodes = [zoned("a1", "a"), zoned("a2", "a"), zoned("b", "b"), full]
    assert batch(spread, 12, *nodes)[0] == {"a1": 3, "a2": 3, "b": 6}


@pytest.mark.parametrize("order", [1, -1])
def test_zones_come_before_nodes(order):
    spreads = (Spread(A, "node", 3), Spread(A, "zone", 5))[::order]
    nodes = [make_node(name, labels={"node": name, "zone": name[0]}) for name in ("a1", "a2", "b")]
    cluster = make_cluster(
        make_class(1, preferences=PreferenceSet(spread=spreads)),
        make_label_set(1, app="a"),
        *nodes,
        *(make_tasks([uid], 1, on=name, label_set=1) for uid, name in enumerate(("a1", "a1", "a2", "b", "b"), 2)),
        make_tasks([1], 1, label_set=1),
    )
    # zone a has 3 tasks and b 2, although a2 is the emptiest node
    assert cluster.round() == {1: "b"}


def test_a_larger_max_skew_of_a_soft_spread_weighs_less():
    # b is to take 1 of 2 tasks although it costs 50 tasks' worth more: 5000, against 20,000 or 20,000 / 5
    wish = (node_wish(100, "a"), node_wish(75, "b"))

    def placed(max_skew: int) -> dict[str, int]:
        return batch(PreferenceSet(nodes=wish, spread=(Spread(A, "zone", max_skew),)), 2, *THREE[:2])[0]

    assert placed(1) == {"a": 1, "b": 1}
    assert placed(5) == {"a": 2}


def test_a_soft_spread_gives_way():
    nodes = [zoned("a1", "a"), zoned("a2", "a"), make_node("b", pods=1, labels={"zone": "b"})]
    placed, _ = batch(PreferenceSet(spread=(Spread(A, "zone"),)), 12, *nodes)
    assert (placed["b"], sum(placed.values())) == (1, 12)


def test_a_batch_with_preferred_anti_affinity_takes_one_zone_each_first():
    apart = PreferenceSet(peers=((-100, PeerTerm(A, "zone")),))
    nodes = [*(zoned(f"a{i}", "a") for i in range(5)), zoned("b", "b"), zoned("c", "c")]
    placed, solves = batch(apart, 3, *nodes)
    assert ({name[0] for name in placed}, solves) == ({"a", "b", "c"}, 1)
    assert sum(batch(apart, 9, *nodes)[0].values()) == 9


def test_a_batch_with_preferred_affinity_starts_in_one_zone():
    placed, _ = batch(PreferenceSet(peers=((100, PeerTerm(A, "zone")),)), 6, *THREE)
    assert list(placed.values()) == [6]


def test_a_preference_never_leaves_a_task_waiting():
    preferences = PreferenceSet(avoided_as="rs", nodes=(node_wish(100, "x"),), spread=(Spread(A, "zone"),))
    placed, _ = batch(preferences, 9, zoned("a", "a", SOFT, avoids=["rs"]))
    assert placed == {"a": 9}


def test_one_point_is_worth_one_task():
    # 20 of 80 are 25 points: b is dearer by 100 * 2 * 75 = 15,000, that is 150 tasks on a, which takes only 9
    wish = PreferenceSet(nodes=(node_wish(60, "a"), node_wish(20, "a", "b")))
    assert batch(wish, 12, *THREE[:2])[0] == {"a": 9, "b": 3}


def test_a_node_preference_of_high_weight_outweighs_load():
    cluster = make_cluster(
        *(make_class(1, preferences=PreferenceSet(nodes=(node_wish(1, "a"),))), make_class(2)),
        *THREE,
        *(make_tasks(range(10, 18), 2, on="a"), make_tasks([1], 1)),
    )
    # 8 tasks there already cost 800; any preferred node beats the others by 20,000
    assert cluster.round() == {1: "a"}
