"""Large batches with inter-task constraints: all placed in one round, and valid by the oracle's rules at the end."""

from collections import Counter

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

NODES, TASKS, GROUPS, ZONES = 200, 3_600, 36, 5


def group(number: int):
    return tasks_like(needs("group", "In", str(number)))


def nodes(count: int = NODES):
    """Hosts in five zones of 40; each takes 20 tasks."""
    for n in range(count):
        yield make_node(f"n{n}", pods=20, cpu=32, labels={"host": f"n{n}", "zone": f"z{n % ZONES}"})


def placed_by_group(demand_of) -> tuple[Cluster, dict[int, list[str]]]:
    """36 groups of 100 tasks, each with the demand that `demand_of` makes of its number: the nodes of each group."""
    cluster = make_cluster(
        *nodes(),
        *(make_class(g, cpu=1, peers=demand_of(g)) for g in range(1, GROUPS + 1)),
        *(make_label_set(g, group=str(g)) for g in range(1, GROUPS + 1)),
    )
    each = TASKS // GROUPS
    for g in range(1, GROUPS + 1):
        cluster.state.apply(make_tasks(range(g * each, (g + 1) * each), g, label_set=g))
    placed = cluster.round()
    assert len(placed) == TASKS
    of: dict[int, list[str]] = {g: [] for g in range(1, GROUPS + 1)}
    for uid, node in placed.items():
        of[uid // each].append(node)
    assert max(per_node(placed).values()) <= 20
    return cluster, of


def zone_of(cluster: Cluster, name: str) -> str:
    return cluster.state.nodes.observed[cluster.state.nodes.row[f"id-{name}"]].labels["zone"]


def test_groups_with_affinity_to_one_zone_each():
    cluster, of = placed_by_group(lambda g: PeerDemand(affinity=(PeerTerm(group(g), "zone"),)))
    for names in of.values():
        assert len({zone_of(cluster, name) for name in names}) == 1


def test_groups_with_at_most_one_task_per_host():
    # 100 of each group on 200 hosts, 18 of 36 groups on each
    _, of = placed_by_group(lambda g: PeerDemand(anti_affinity=(PeerTerm(group(g), "host"),)))
    for names in of.values():
        assert len(set(names)) == len(names) == 100


def test_groups_spread_over_zones():
    # 100 over five zones: 20 each
    cluster, of = placed_by_group(lambda g: PeerDemand(spread=(Spread(group(g), "zone"),)))
    for names in of.values():
        assert set(Counter(zone_of(cluster, name) for name in names).values()) == {20}


def test_one_group_spread_over_zones_of_different_size():
    # 70 nodes in zone a, 30 in b, 20 tasks each: b takes 600, so a takes 601
    cluster = make_cluster(
        *(make_node(f"{z}{n}", pods=20, labels={"zone": z}) for z, size in (("a", 70), ("b", 30)) for n in range(size)),
        *(make_class(1, peers=PeerDemand(spread=(Spread(group(1), "zone"),))), make_label_set(1, group="1")),
    )
    cluster.state.apply(make_tasks(range(1, 3_001), 1, label_set=1))
    placed = cluster.round()
    assert per_node({u: name[0] for u, name in placed.items()}) == {"a": 601, "b": 600}


@pytest.mark.slow
def test_a_few_tasks_with_exclusive_hosts():
    """100 tasks that repel others on 2,000 hosts, then 1,900 others: one host each is left."""
    cluster = make_cluster(
        *(make_node(f"n{n}", pods=20, labels={"host": f"n{n}"}) for n in range(2_000)),
        make_class(1, peers=PeerDemand(anti_affinity=(PeerTerm(group(1), "host"), PeerTerm(group(2), "host")))),
        *(make_class(2), make_label_set(1, group="1"), make_label_set(2, group="2")),
    )
    cluster.state.apply(make_tasks(range(1, 101), 1, label_set=1))
    alone = set(cluster.round().values())
    assert len(alone) == 100
    cluster.state.apply(make_tasks(range(101, 2_001), 2, label_set=2))
    others = cluster.round()
    assert len(others) == 1_900
    assert not alone & set(others.values())
    # load is spread: a host each
    assert set(per_node(others).values()) == {1}


def test_running_tasks_repel_tasks_that_say_nothing_of_others():
    cluster = make_cluster(
        *(make_node(name, cpu=9, labels={"host": name}) for name in "ab"),
        make_class(1, cpu=1),
        make_class(2, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(group(1), "host"),))),
        make_label_set(1, group="1"),
        make_tasks([1], 2, on="a"),
        make_tasks([2, 3, 4, 5], 1, label_set=1),
    )
    result = cluster.run()
    assert per_node(cluster.names(result)) == {"b": 4}
    assert result.stats.dropped == 0, "it is known before the check"


@pytest.mark.parametrize("at_once", [1, 2, 6])
@pytest.mark.parametrize("by_zone", [False, True])
def test_the_first_tasks_of_an_affinity_leave_room_for_those_that_come_later(at_once, by_zone):
    """As the pods of a Deployment do, which are created one by one. The domain in which two fit is the older one, and
    has the node that the policy prefers."""
    near = PeerDemand(affinity=(PeerTerm(group(1), "zone" if by_zone else "host"),))
    small, big = (1, 4) if by_zone else (2, 8)
    cluster = make_cluster(
        *(make_node(f"s{n}", cpu=small, labels={"host": f"s{n}", "zone": "small"}) for n in range(2 if by_zone else 1)),
        *(make_node(f"b{n}", cpu=big, labels={"host": f"b{n}", "zone": "big"}) for n in range(2 if by_zone else 1)),
        *(make_class(1, cpu=1, peers=near), make_class(2, cpu=1), make_label_set(1, group="1")),
        *(make_tasks([100 + n], 2, on=f"b{n}") for n in range(2 if by_zone else 1)),
    )
    zones = []
    for first in range(1, 7, at_once):
        cluster.tell(make_tasks(range(first, first + at_once), 1, label_set=1))
        zones += [zone_of(cluster, node) for node in cluster.round().values()]
    assert zones == ["big"] * 6


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_first_tasks_of_an_affinity_count_what_else_limits_them_in_a_domain(at_once):
    """All in one zone, one on each host: the zone of most capacity has too few hosts."""
    peers = PeerDemand(affinity=(PeerTerm(group(1), "zone"),), anti_affinity=(PeerTerm(group(1), "host"),))
    cluster = make_cluster(
        *(make_node(f"a{n}", cpu=64, labels={"zone": "a", "host": f"a{n}"}) for n in range(2)),
        *(make_node(f"b{n}", cpu=16, labels={"zone": "b", "host": f"b{n}"}) for n in range(3)),
        *(make_class(1, cpu=4, peers=peers), make_label_set(1, group="1")),
    )
    placed: dict[int, str] = {}
    for first in range(1, 4, at_once):
        cluster.tell(make_tasks(range(first, first + at_once), 1, label_set=1))
        placed |= cluster.round()
    assert sorted(placed.values()) == ["b0", "b1", "b2"]
