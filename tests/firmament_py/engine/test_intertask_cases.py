"""Whole rounds with inter-task constraints, case by case."""

import os
import subprocess
import sys

import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
from tests.builders import (
    Cluster,
    make_class,
    make_cluster,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    per_node,
    tasks_like,
)
from tests.firmament_py.snapshot.test_intertask import EVEN, NEAR_B, NOT_NEAR_A, A, three_zones


def zones(cluster: Cluster, placed: dict[int, str]) -> dict[str, int]:
    """Tasks by the first letter of their node's name."""
    return per_node({uid: name[0] for uid, name in placed.items()})


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        pytest.param(9, {"a": 3, "b": 3, "c": 3}, id="9"),
        pytest.param(2, {"a": 1, "b": 1}, id="2"),
        # c is full with 4: others may have 5
        pytest.param(20, {"a": 5, "b": 5, "c": 4}, id="until-the-smallest-is-full"),
    ],
)
def test_one_solve_levels_zones_exactly(waiting, expected):
    cluster = three_zones(EVEN, make_node("c", pods=4, labels={"zone": "c"}))
    cluster.tell(make_tasks(range(1, waiting + 1), 1, label_set=1))
    result = cluster.run()
    found = zones(cluster, cluster.names(result))
    assert result.stats.solves == 1
    if waiting == 2:
        assert sorted(found.values()) == [1, 1]
    else:
        assert found == expected


def test_a_lower_priority_does_not_take_capacity_that_a_spread_needs_later():
    """Zone a is ahead by one, so it takes no task before the others have caught up: its capacity is needed later."""
    cluster = make_cluster(
        *(make_node(zone, pods=3, labels={"zone": zone}) for zone in "abc"),
        *(make_class(1, peers=EVEN, priority=2), make_class(2), make_label_set(1, app="a")),
        *(
            make_tasks([99], 1, on="a", label_set=1),
            make_tasks(range(1, 8), 1, label_set=1),
            make_tasks(range(20, 30), 2),
        ),
    )
    placed = cluster.round()
    # 9 places, one taken; 7 tasks: 3 + 3 + 2 with the one that was there, and one place for the others
    assert (sum(uid < 20 for uid in placed), len(placed)) == (7, 8)


def test_several_spreads_at_once():
    """Zones and hosts: 12 tasks on 2 + 1 hosts of two zones. 6 in each zone; hosts of zone a 3, 3 and of b 6?

    No: hosts may differ by 2 at most, so b1 takes 5 with 3 + 3 in zone a; then zone a has 6 to 5.
    """
    both = PeerDemand(spread=(Spread(A, "zone", 1), Spread(A, "host", 2)))
    cluster = make_cluster(
        *(make_node(name, labels={"zone": name[0], "host": name}) for name in ("a1", "a2", "b1")),
        *(make_class(1, peers=both), make_label_set(1, app="a"), make_tasks(range(1, 13), 1, label_set=1)),
    )
    placed = cluster.round()
    hosts = per_node(placed)
    assert abs(hosts["a1"] + hosts["a2"] - hosts["b1"]) <= 1
    assert max(hosts.values()) - min(hosts.values()) <= 2
    # x + y = z or z +- 1 with z <= min(x, y) + 2: (3, 3, 5) is the largest, the twelfth would have to wait
    assert len(placed) <= 11


def test_the_first_domain_is_one_that_is_allowed():
    """Zone a has more capacity, but is ahead by one: tasks that also have affinity to each other start in zone b."""
    both = PeerDemand(affinity=(PeerTerm(tasks_like(needs("new")), "zone"),), spread=(Spread(A, "zone"),))
    cluster = make_cluster(
        *(make_node("a", pods=9, labels={"zone": "a"}), make_node("b", pods=4, labels={"zone": "b"})),
        *(make_class(1, peers=both), make_class(8), make_label_set(1, app="a", new=""), make_label_set(2, app="a")),
        *(make_tasks([9], 8, on="a", label_set=2), make_tasks(range(1, 6), 1, label_set=1)),
    )
    # a 1, b 0: b takes 2, and zone a is not near them
    assert list(cluster.round().values()) == ["b", "b"]


def test_two_groups_that_must_be_near_each_other():
    # the first must be near b: it waits for the stage in which b is placed, in the same round
    cluster = make_cluster(
        *(make_node(zone, pods=5, labels={"zone": zone}) for zone in "ab"),
        *(
            make_class(1, peers=NEAR_B, priority=5),
            make_class(2),
            make_label_set(1, app="a"),
            make_label_set(2, app="b"),
        ),
        *(make_tasks([1, 2], 1, label_set=1), make_tasks([3], 2, label_set=2)),
    )
    placed = cluster.round()
    assert len(placed) == 3
    assert placed[1] == placed[2] == placed[3]


def test_repelling_tasks_are_placed_first_or_alone():
    # one zone each: the repelling class keeps app a out of its zone, in whichever order they are placed
    cluster = make_cluster(
        *(make_node(zone, labels={"zone": zone}) for zone in "ab"),
        *(make_class(1), make_class(2, peers=NOT_NEAR_A), make_label_set(1, app="a"), make_label_set(2, app="b")),
        *(make_tasks(range(1, 6), 1, label_set=1), make_tasks(range(6, 9), 2, label_set=2)),
    )
    placed = cluster.round()
    mine, others = {placed[u] for u in range(1, 6) if u in placed}, {placed[u] for u in range(6, 9) if u in placed}
    assert not mine & others


SCRIPT = """
import random
from tests.firmament_py.mixtures import Mixture
print([Mixture(random.Random(seed).choice, preferences=True).round()[0] for seed in range(12)])
"""


@pytest.mark.slow
def test_placements_do_not_depend_on_the_hashes_of_a_process():
    reported = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        reported.add(run.stdout)
    assert len(reported) == 1
