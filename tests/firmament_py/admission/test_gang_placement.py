"""Placement of gangs, and the capacity reserved for a gang that has waited long."""

import pytest

from firmament_py.admission import gang_feasibility, gang_placement
from firmament_py.admission.gang_feasibility import Feasibility
from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
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
    removed,
    tasks_like,
)
from tests.firmament_py.gang_builders import GPU1, OVERDUE_US, RACKS, WITH_LEAD, gpu_nodes, host_nodes, placed_gangs

# -- topology ---------------------------------------------------------------------------------------------------------


def rack_cluster(minimum: int, *, required: bool, sizes=(3, 3, 2, 2)) -> Cluster:
    return make_cluster(
        *(*gpu_nodes(*sizes, **RACKS), GPU1, make_gang(1, minimum, topology="rack", required=required)),
        make_tasks(range(101, 101 + minimum), 1, gang=1),
    )


@pytest.mark.parametrize(
    ("minimum", "required", "racks"),
    [
        # rack a has 6 GPUs, rack b 4
        pytest.param(4, True, {"b"}, id="the-tightest"),
        pytest.param(5, True, {"a"}, id="the-only-one"),
        pytest.param(7, True, set(), id="none-is-large-enough"),
        pytest.param(4, False, {"b"}, id="preferred-tightest"),
        pytest.param(7, False, {"a", "b"}, id="preferred-elsewhere-too"),
        pytest.param(11, False, set(), id="preferred-too-large"),
    ],
)
def test_one_domain(minimum, required, racks):
    cluster = rack_cluster(minimum, required=required)
    placed = cluster.round()
    assert {RACKS[name] for name in placed.values()} == racks
    assert len(placed) == (minimum if racks else 0)


def test_nodes_without_the_label_are_in_no_domain():
    # n2 could take it, but has no rack
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 4, n0="a", n1="a"), GPU1, make_gang(1, 3, topology="rack", required=True)),
        make_tasks([101, 102, 103], 1, gang=1),
    )
    assert cluster.round() == {}


@pytest.mark.parametrize(("required", "expected"), [(True, {}), (False, {103: "n2"})])
def test_later_members_join_the_domain_of_placed_members(required, expected):
    """Two members run in rack a, which is full: the third has to wait, or may go elsewhere."""
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 2, n0="a", n1="a", n2="b"), GPU1, make_gang(1, 3, topology="rack", required=required)),
        *(make_tasks([101], 1, gang=1, on="n0"), make_tasks([102], 1, gang=1, on="n1"), make_tasks([103], 1, gang=1)),
    )
    assert cluster.round() == expected
    cluster.tell(make_node("n1", gpu=2, labels={"rack": "a"}))
    if required:
        assert cluster.round() == {103: "n1"}


def test_members_on_nodes_without_the_label_do_not_fix_the_domain():
    """One member is on n2, which has no rack: the two that are lacked may go to any one rack."""
    cluster = make_cluster(
        *(*gpu_nodes(1, 2, 4, n0="a", n1="b"), GPU1, make_gang(1, 3, topology="rack", required=True)),
        *(make_tasks([101], 1, gang=1, on="n2"), make_tasks([102, 103], 1, gang=1)),
    )
    assert cluster.round() == {102: "n1", 103: "n1"}


# -- reservation ------------------------------------------------------------------------------------------------------


def starving(*, created_us: int = OVERDUE_US, others: int = 2) -> Cluster:
    """4 GPUs of which one task holds one for long; a gang of four; singles that would fit."""
    return make_cluster(
        *(*gpu_nodes(2, 2), GPU1, make_tasks([1], 1, on="n0")),
        *(make_gang(1, 4, created_us=created_us), make_tasks(range(101, 105), 1, gang=1)),
        make_tasks(range(901, 901 + others), 1),
    )


@pytest.mark.parametrize(
    ("created_us", "singles"),
    [pytest.param(OVERDUE_US, 0, id="waited"), pytest.param(OVERDUE_US + 1, 2, id="waited-too-little")],
)
def test_capacity_is_reserved_for_a_gang_that_has_waited(created_us, singles):
    cluster = starving(created_us=created_us)
    assert len(cluster.round()) == singles


def test_the_reservation_grows_until_the_gang_fits():
    # 4 GPUs, all held; each task that goes leaves one to the gang, and none to the singles
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), GPU1, make_tasks([1, 2], 1, on="n0"), make_tasks([3, 4], 1, on="n1")),
        *(make_gang(1, 4, created_us=OVERDUE_US), make_tasks(range(101, 105), 1, gang=1)),
        make_tasks([901, 902], 1),
    )
    for uid in (1, 2, 3):
        assert cluster.round() == {}
        cluster.tell(removed(uid))
    assert cluster.round() == {}
    cluster.tell(removed(4))
    assert placed_gangs(cluster) == {1}


def test_capacity_that_the_gang_cannot_use_is_not_reserved():
    # the gang of two lacks one GPU and can use nothing of n2, which has none
    cluster = make_cluster(
        *(*gpu_nodes(2), make_node("n2", cpu=4), GPU1, make_class(2, cpu=1), make_tasks([1], 1, on="n0")),
        *(make_gang(1, 2, created_us=OVERDUE_US), make_tasks([101, 102], 1, gang=1), make_tasks([901, 902], 2)),
    )
    assert set(cluster.round()) == {901, 902}


def test_lower_priorities_respect_a_reservation_and_higher_ones_do_not():
    cluster = starving(others=0)
    cluster.tell(make_class(2, gpu=1, priority=-1), make_class(3, gpu=1, priority=1))
    cluster.tell(make_tasks([801], 2), make_tasks([951], 3))
    assert set(cluster.round()) == {951}


def test_a_younger_gang_respects_a_reservation():
    cluster = starving(others=0)
    cluster.tell(make_gang(2, 2, created_us=NOW_US), make_tasks([201, 202], 1, gang=2))
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert placed_gangs(cluster) == {1}


def test_younger_gangs_that_fit_by_their_sums_do_not_overtake():
    """Sums say that all three fit: 9 GPUs, of which members of 3 can use one node only."""
    cluster = make_cluster(
        *(*gpu_nodes(3, 2, 2, 2), GPU1, make_class(3, gpu=3)),
        *(make_gang(1, 1, created_us=OVERDUE_US), make_tasks([101], 3, gang=1)),
        *(make_gang(2, 3), make_tasks([201, 202, 203], 1, gang=2), make_gang(3, 3)),
        make_tasks([301, 302, 303], 1, gang=3),
    )
    assert placed_gangs(cluster) == {1, 2, 3}


def test_two_starving_gangs_do_not_block_each_other():
    # 5 GPUs, one held: 3 would fit, 4 would fit, both never; only the older one has a reservation
    cluster = make_cluster(
        *(*gpu_nodes(5), GPU1, make_tasks([1, 2], 1, on="n0")),
        *(make_gang(1, 4, created_us=OVERDUE_US - 1), make_tasks(range(101, 105), 1, gang=1)),
        *(make_gang(2, 5, created_us=OVERDUE_US), make_tasks(range(201, 206), 1, gang=2)),
    )
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert placed_gangs(cluster) == {1}
    cluster.tell(removed(2, *range(101, 105)))
    assert placed_gangs(cluster) == {2}


def test_a_gang_that_does_not_fit_an_empty_cluster_gets_no_reservation():
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), GPU1, make_gang(1, 5, created_us=0), make_tasks(range(101, 106), 1, gang=1)),
        *(make_gang(2, 4, created_us=1), make_tasks(range(201, 205), 1, gang=2), make_tasks([901], 1)),
    )
    assert placed_gangs(cluster) == {2}


APART = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "apart")), "host"),))


@pytest.mark.parametrize(
    ("nodes", "members"),
    [
        # each class alone would fit: 2 x 2 and 2 x 1 GPUs on two nodes of 2
        pytest.param(gpu_nodes(2, 2), [3, 3, 1, 1], id="too-large-in-sum"),
        # 3 + 3 of 6 GPUs, but of two nodes of 4 and 2 only one takes members of 3, and one of these
        pytest.param(gpu_nodes(4, 2), [5, 6], id="two-kinds-that-compete-for-a-node"),
        pytest.param(host_nodes(2, 2), [7, 7, 7], id="more-that-keep-apart-than-hosts"),
        pytest.param(host_nodes(2, 2), [8, 8], id="near-somebody-who-is-not-there"),
    ],
)
def test_a_gang_with_incompatible_members_gets_no_reservation(nodes, members):
    cluster = make_cluster(
        *(*nodes, GPU1, make_class(3, gpu=2), make_class(5, gpu=3)),
        *(make_class(6, gpu=3, traits={"kind": "other"}), make_label_set(1, app="apart")),
        *(make_class(7, gpu=1, peers=APART), make_class(8, gpu=1, peers=WITH_LEAD)),
        *(make_gang(1, len(members), created_us=OVERDUE_US), make_tasks(range(901, 909), 1)),
        *(make_tasks([101 + i], cls, gang=1, label_set=1) for i, cls in enumerate(members)),
    )
    left = sum(node.allocatable["gpu"] for node in nodes)
    assert len(cluster.round()) == left, "all that there is goes to the others"
    assert cluster.scheduler.gang_starts_us == {}


@pytest.mark.parametrize("trials", [1, 3])
def test_the_trials_of_a_round_are_limited(monkeypatch, trials):
    """Gangs that cannot be placed although their sums fit: they have affinity to a task that does not exist."""
    tried: list[int] = []
    really = Feasibility._try

    def count(self, claim, *extra):
        tried.append(claim.row)
        return really(self, claim, *extra)

    monkeypatch.setattr(gang_feasibility, "TRIALS_OF_A_ROUND", trials)
    monkeypatch.setattr(Feasibility, "_try", count)
    gangs = [make_gang(g, 2, created_us=OVERDUE_US) for g in range(1, 6)]
    members = [make_tasks([100 * g + 1, 100 * g + 2], 6, gang=g) for g in range(1, 6)]
    cluster = make_cluster(*host_nodes(4, 2), make_class(6, gpu=1, peers=WITH_LEAD), *gangs, *members)
    assert cluster.round() == {}
    assert len(tried) == trials
    assert cluster.scheduler.gang_starts_us == {}


def test_a_gang_blocked_by_its_own_members_gets_no_reservation():
    """Of 3 GPUs its first member holds 2, and does not go before the second has come, which needs 2 as well."""
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(3, gpu=2), make_gang(1, 2, created_us=OVERDUE_US)),
        *(make_tasks([101], 3, on="n0", gang=1), make_tasks([102], 3, gang=1), make_tasks([901], 1)),
    )
    assert cluster.round() == {901: "n0"}


def test_a_gang_repelled_by_a_task_that_can_end_gets_a_reservation():
    """Two that keep apart need both hosts; task 1, which keeps one of them out of n0, need not stay there."""
    cluster = make_cluster(
        *(*host_nodes(2, 2), GPU1, make_class(2, gpu=1, peers=APART), make_label_set(1, app="apart")),
        *(make_gang(1, 2, created_us=OVERDUE_US), make_tasks([101, 102], 2, gang=1, label_set=1)),
        *(make_tasks([1], 1, on="n0", label_set=1), make_tasks(range(901, 909), 1)),
    )
    assert per_node(cluster.round()) == {"n0": 1, "n1": 1}, "on each host one GPU is kept"
    cluster.tell(removed(1))
    assert placed_gangs(cluster) >= {1}


def test_a_gang_with_affinity_to_a_placed_task_gets_a_reservation():
    cluster = make_cluster(
        *(*host_nodes(3, 3), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_label_set(1, app="lead")),
        *(make_gang(1, 2, created_us=OVERDUE_US), make_tasks([101, 102], 2, gang=1)),
        *(make_tasks([1], 1, on="n0", label_set=1), make_tasks([2], 1, on="n0"), make_tasks(range(901, 909), 1)),
    )
    assert per_node(cluster.round()) == {"n1": 3}, "the last GPU of n0 is kept"
    cluster.tell(removed(2))
    assert placed_gangs(cluster) == {1}


def test_the_reservation_is_in_a_domain_that_can_become_large_enough():
    """Rack b has more free capacity now, but never enough; rack a has enough after task 1 ends."""
    cluster = make_cluster(
        *(*gpu_nodes(2, 2, 3, n0="a", n1="a", n2="b"), GPU1, make_tasks([1, 2], 1, on="n0")),
        *(make_gang(1, 4, created_us=OVERDUE_US, topology="rack", required=True), make_tasks(range(901, 909), 1)),
        make_tasks(range(101, 105), 1, gang=1),
    )
    assert per_node(cluster.round()) == {"n2": 3}, "rack a is kept"
    cluster.tell(removed(1))
    assert cluster.round() == {}
    cluster.tell(removed(2))
    assert placed_gangs(cluster) == {1}


# -- members that depend on each other -------------------------------------------------------------------------------

LEADER, WORKER = tasks_like(needs("app", "In", "leader")), tasks_like(needs("app", "In", "worker"))
WITH_LEADER = PeerDemand(affinity=(PeerTerm(LEADER, "rack"),))


def leader_and_workers(*racks: str, workers: int) -> Cluster:
    """Nodes of 2 cpu in these racks; task 101 leads, and its workers must be in its rack."""
    return make_cluster(
        *(make_class(1, cpu=1), make_class(2, cpu=1, peers=WITH_LEADER)),
        *(make_label_set(1, app="leader"), make_label_set(2, app="worker"), make_gang(1, 1 + workers)),
        *(make_node(f"n{i}", cpu=2, labels={"rack": rack}) for i, rack in enumerate(racks)),
        make_tasks([101], 1, gang=1, label_set=1),
        make_tasks(range(102, 102 + workers), 2, gang=1, label_set=2),
    )


def test_workers_with_affinity_to_their_leader_are_placed_with_it():
    placed = leader_and_workers("a", "a", "b", "b", workers=2).round()
    assert len({node in ("n0", "n1") for node in placed.values()}) == 1
    assert set(placed) == {101, 102, 103}


@pytest.mark.parametrize("racks", ["abbbb", "bbbba"])
def test_a_leader_is_placed_where_its_workers_fit_too(racks):
    placed = leader_and_workers(*racks, workers=5).round()
    assert set(placed) == set(range(101, 107))
    assert {racks[int(node[1:])] for node in placed.values()} == {"b"}


def test_a_partly_placed_gang_with_a_spread_is_completed():
    """One is in zone a: the next has to go to b, and only then there is a place in a again."""
    even = PeerDemand(spread=(Spread(WORKER, "zone", 1),))
    cluster = make_cluster(
        *(make_class(1, gpu=1, peers=even), make_label_set(1, app="worker"), make_gang(1, 4)),
        *(make_node(f"n{i}", gpu=1, labels={"zone": zone}) for i, zone in enumerate("aabb")),
        make_tasks([101], 1, gang=1, label_set=1, on="n0"),
        make_tasks([102, 103, 104], 1, gang=1, label_set=1),
    )
    assert set(cluster.round()) == {102, 103, 104}


def test_a_further_member_that_depends_on_a_lower_priority_is_placed():
    near_single = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "single")), "rack"),))
    cluster = make_cluster(
        *(make_class(1, cpu=1, priority=5), make_class(2, cpu=1, priority=5, peers=near_single), make_class(3, cpu=1)),
        *(make_label_set(1, app="member"), make_label_set(3, app="single"), make_gang(1, 1)),
        *(make_node(f"n{i}", cpu=4, labels={"rack": rack}) for i, rack in enumerate("aabb")),
        make_tasks([101], 1, gang=1, label_set=1),
        *(make_tasks([102], 2, gang=1, label_set=1), make_tasks([301], 3, label_set=3)),
    )
    assert set(cluster.round()) == {101, 102, 301}


@pytest.mark.parametrize(("there", "fits"), [(False, 0), (True, 3)])
def test_the_number_that_fits_does_not_assume_tasks_that_do_not_wait(there, fits):
    """Members have affinity to a service that does not exist, or is in a rack with capacity for three more."""
    service = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "service")), "rack"),))
    cluster = make_cluster(
        *(make_class(1, cpu=1), make_class(2, cpu=1, peers=service)),
        *(make_label_set(1, app="service"), make_label_set(2, app="member"), make_gang(1, 12)),
        make_node("n0", cpu=4, labels={"rack": "a"}),
        make_node("n1", cpu=40, labels={"rack": "b"}),
        *([make_tasks([1], 1, label_set=1, on="n0")] if there else []),
        make_tasks(range(101, 113), 2, gang=1, label_set=2),
    )
    assert cluster.round() == {}
    assert list(cluster.scheduler.gang_fits.values()) == [fits]


def test_the_domains_tried_for_gangs_in_a_round_are_limited(monkeypatch):
    """Three gangs; two racks have capacity for each gang's leader and two of its three workers."""
    monkeypatch.setattr(gang_placement, "AFFINITY_DOMAINS_OF_A_ROUND", 3)
    tried = []
    within = gang_placement.GangPlacer.within

    def counted(self, claim, nodes):
        tried.append(nodes is not None)
        return within(self, claim, nodes)

    monkeypatch.setattr(gang_placement.GangPlacer, "within", counted)
    racks = "aaaabbbb"
    cluster = make_cluster(
        *(make_class(1, cpu=1), make_class(2, cpu=1, tokens=["TCP:80"], peers=WITH_LEADER)),
        *(make_label_set(1, app="leader"), make_label_set(2, app="worker")),
        *(make_node(f"n{i}", cpu=9, labels={"rack": rack}) for i, rack in enumerate(racks)),
        *(make_gang(gang, 6) for gang in (1, 2, 3)),
        *(make_tasks([10 * gang], 1, gang=gang, label_set=1) for gang in (1, 2, 3)),
        *(make_tasks(range(10 * gang + 1, 10 * gang + 6), 2, gang=gang, label_set=2) for gang in (1, 2, 3)),
    )
    assert cluster.round() == {}
    assert sum(tried) == 3


def test_a_gang_that_has_lost_a_member_goes_before_an_older_one():
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_gang(1, 2, created_us=NOW_US), make_gang(2, 2, created_us=NOW_US - 1)),
        *(make_tasks([101], 1, gang=1, on="n0"), make_tasks([102], 1, gang=1), make_tasks([201, 202], 1, gang=2)),
    )
    assert set(cluster.round()) == {102}
