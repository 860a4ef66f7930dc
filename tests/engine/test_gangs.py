"""What is known of gangs, and single decisions about them: tables with the arithmetic beside them."""

import numpy as np
import pytest

from firmament_py.check import Checker
from firmament_py.events import Event, GangObserved, GangRemoved, NodeRemoved, Outcome, PlacementRejected
from firmament_py.explain import Reason, ReasonKind
from firmament_py.gangs import MAX_ROLES, Claim
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    ended,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_profile,
    make_tasks,
    needs,
    per_node,
    removed,
    selecting,
)
from tests.engine.gang_builders import GPU1, OVERDUE_US, RACKS, WITH_LEAD, gpu_nodes, host_nodes, placed_gangs, why

# -- claims -----------------------------------------------------------------------------------------------------------


def claim(lacking: int, of_role: tuple[int, ...] = (), role: str = "") -> Claim:
    """Members 10, 11, ...; their roles as digits."""
    roles = np.array([int(digit) for digit in role], np.int64)
    members = np.arange(10, 10 + len(roles))
    return Claim(0, make_gang(1, lacking), members, roles, lacking, of_role, np.zeros(0, np.int64), 0)


@pytest.mark.parametrize(
    ("it", "missing", "core"),
    [
        pytest.param(claim(2, (), "000"), 0, [10, 11], id="the-first"),
        pytest.param(claim(3, (), "00"), 1, [10, 11], id="one-short"),
        pytest.param(claim(2, (1, 1), "0001"), 0, [10, 13], id="one-of-each"),
        # one of role 1 and two of any: the first of role 1, then the first two of the others
        pytest.param(claim(3, (0, 1), "0001"), 0, [10, 11, 13], id="a-role-and-the-rest"),
        pytest.param(claim(2, (0, 2), "0001"), 1, [10, 13], id="a-role-short"),
        # two of role 0 and two of role 1 are not there; of the six in all that it lacks, three are there
        pytest.param(claim(6, (2, 4), "011"), 3, [10, 11, 12], id="short-in-roles-and-in-all"),
        pytest.param(claim(1, (0,), "7"), 0, [10], id="a-role-that-has-no-minimum"),
    ],
)
def test_what_a_gang_lacks(it, missing, core):
    assert it.missing == missing
    assert it.core().tolist() == core


def test_the_core_can_be_chosen_in_another_order():
    it = claim(3, (0, 1), "00101")
    assert it.core(np.array([4, 3, 2, 1, 0])).tolist() == [12, 13, 14]


@pytest.mark.parametrize(
    ("it", "placed", "satisfied", "surplus"),
    [
        pytest.param(claim(2, (), "0000"), [10, 12], True, [], id="enough"),
        pytest.param(claim(2, (), "0000"), [10], False, [], id="too-few"),
        pytest.param(claim(2, (), "0000"), [10, 11, 13], True, [13], id="one-too-many"),
        pytest.param(claim(2, (1, 1), "0011"), [10, 11], False, [11], id="too-few-of-a-role"),
        pytest.param(claim(2, (1, 1), "0011"), [10, 11, 13], True, [11], id="the-role-stays"),
        pytest.param(claim(0, (), "0"), [], True, [], id="lacks-nothing"),
    ],
)
def test_whether_a_claim_is_met(it, placed, satisfied, surplus):
    node_of = np.full(20, -1)
    node_of[placed] = 3
    assert it.satisfied(node_of) is satisfied
    if satisfied:
        assert it.surplus(node_of).tolist() == surplus


# -- what is known ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "field", "reason"),
    [
        pytest.param(make_gang(0, 1), "id", "must not be 0", id="zero"),
        pytest.param(make_gang(1, -1), "minimum", "is -1; give 0 or more", id="minimum"),
        pytest.param(make_gang(1, 1, roles={"a": 1, "b": -1}), "roles", "below 0", id="role-minimum"),
        pytest.param(make_gang(1, 1, maximum=-1), "maximum", "give 0 for none, or more", id="maximum"),
        pytest.param(
            make_gang(1, 3, maximum=2), "maximum", "at least 3 are needed; give 3 or more", id="less-than-min"
        ),
        pytest.param(
            make_gang(1, 1, roles={"a": 2, "b": 2}, maximum=3), "maximum", "at least 4 are needed", id="less-than-roles"
        ),
        pytest.param(
            make_gang(1, 1, roles={str(n): 0 for n in range(MAX_ROLES + 1)}), "roles", "at most 64", id="roles"
        ),
        pytest.param(GangObserved(1, 1, topology_required=True), "topology_key", "name a node label", id="no-key"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(gang, field, reason):
    cluster = make_cluster(make_gang(1, 3), GPU1, make_tasks([1], 1, gang=1))
    before = cluster.state.opportunities
    (outcome,) = cluster.tell(gang)
    (refusal,) = outcome.refused
    assert (refusal.kind, refusal.field) == ("gang", field)
    assert reason in refusal.reason
    assert cluster.state.opportunities == before
    assert cluster.state.gangs.known(1) == make_gang(1, 3)


def test_tasks_of_unknown_gangs_are_left_out_and_the_others_are_not():
    cluster = make_cluster(GPU1, make_gang(1, 1))
    cluster.tell(make_tasks([1], 1, gang=1), make_tasks([2], 1))
    (outcome,) = cluster.tell(make_tasks([3], 1, gang=7))
    assert outcome.unknown_gangs == {7}
    assert cluster.waiting() == {1, 2}


def test_a_gang_lives_while_its_owner_or_a_member_does():
    cluster = make_cluster(GPU1, make_gang(1, 1), make_tasks([1, 2], 1, gang=1))
    gangs = cluster.state.gangs
    cluster.tell(removed(1, 2))
    assert gangs.known(1), "its owner lives"
    cluster.tell(make_tasks([3], 1, gang=1), GangRemoved(1))
    assert gangs.known(1), "a member lives"
    cluster.tell(ended(3))
    assert gangs.known(1), "it is known until it is removed"
    cluster.tell(removed(3))
    assert gangs.known(1) is None
    assert len(gangs) == 0
    assert cluster.tell(make_tasks([4], 1, gang=1))[0].unknown_gangs == {1}


def test_a_gang_that_is_observed_again_is_not_removed():
    cluster = make_cluster(GPU1, make_gang(1, 1), make_tasks([1], 1, gang=1), GangRemoved(1), make_gang(1, 2))
    cluster.tell(removed(1))
    assert cluster.state.gangs.known(1) == make_gang(1, 2)


def test_a_removed_gang_whose_last_member_joins_another_is_forgotten():
    cluster = make_cluster(GPU1, make_gang(1, 1), make_gang(2, 1), make_tasks([1], 1, gang=1), GangRemoved(1))
    cluster.tell(make_tasks([1], 1, gang=2))
    assert cluster.state.gangs.known(1) is None
    assert cluster.tell(GangRemoved(1), GangRemoved(99)) == [Outcome(), Outcome()]


@pytest.mark.parametrize(
    ("event", "rises"),
    [
        pytest.param(make_gang(1, 3), False, id="the-same-again"),
        pytest.param(make_gang(1, 2), True, id="resized"),
        pytest.param(make_gang(1, 3, created_us=5), True, id="of-another-age"),
        pytest.param(make_gang(2, 3), True, id="new"),
        pytest.param(make_tasks([3], 1, gang=1), True, id="a-member"),
        pytest.param(make_tasks([3], 1, gang=1, on="n0"), True, id="a-member-that-runs"),
        pytest.param(make_tasks([1], 1), True, id="a-member-leaves"),
        pytest.param(make_tasks([1], 1, gang=1, role=1), True, id="another-role"),
        pytest.param(make_tasks([1], 1, gang=1), False, id="a-member-again"),
        pytest.param(GangRemoved(1), False, id="removed"),
        # members that wait no more may have kept others waiting
        pytest.param(removed(1), True, id="a-member-that-waits-is-removed"),
        pytest.param(ended(1), True, id="a-member-that-waits-ends"),
        pytest.param(removed(9), False, id="a-single-task-that-waits-is-removed"),
    ],
)
def test_what_makes_a_round_worth_while(event, rises):
    cluster = make_cluster(
        *(*gpu_nodes(1), GPU1, make_class(2, gpu=9), make_gang(1, 3), make_tasks([1, 2], 1, gang=1)),
        make_tasks([9], 2),
    )
    cluster.round()
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(event)
    assert cluster.scheduler.due(NOW_US) is rises


# -- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ages", "classes", "winner"),
    [
        pytest.param((0, 1), (1, 1), 2, id="the-older"),
        pytest.param((1, 0), (1, 1), 1, id="the-older-again"),
        pytest.param((9, 0), (1, 2), 2, id="priority-before-age"),
        pytest.param((0, 0), (1, 1), 1, id="the-first-known"),
    ],
)
def test_who_goes_first(ages, classes, winner):
    # 3 GPUs, 2 each: one of the two gangs. Class 2 has priority
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(2, gpu=1, priority=1)),
        *(make_gang(g, 2, created_us=NOW_US - age) for g, age in zip((1, 2), ages, strict=True)),
        *(make_tasks([100 * g + 1, 100 * g + 2], cls, gang=g) for g, cls in zip((1, 2), classes, strict=True)),
    )
    assert placed_gangs(cluster) == {winner}


@pytest.mark.parametrize(
    ("age", "placed"),
    [pytest.param(10, {9}, id="older-than-the-gang"), pytest.param(1, {1}, id="younger-than-the-gang")],
)
def test_a_single_task_takes_its_turn_by_age(age, placed):
    # 2 GPUs: the gang of two, or the single task, which leaves one
    cluster = make_cluster(
        *(*gpu_nodes(2), GPU1, make_gang(1, 2, created_us=NOW_US - 5), make_tasks([101, 102], 1, gang=1)),
        make_tasks([901], 1, created_us=NOW_US - age),
    )
    assert placed_gangs(cluster) == placed


def test_an_incomplete_gang_makes_no_single_task_older():
    """Gang 1 cannot be tried, so tasks are compared with gang 2."""
    cluster = make_cluster(
        *(*gpu_nodes(2), GPU1, make_gang(1, 2, created_us=0), make_tasks([101], 1, gang=1)),
        *(make_gang(2, 2, created_us=NOW_US - 5), make_tasks([201, 202], 1, gang=2)),
        make_tasks([901], 1, created_us=NOW_US - 10),
    )
    assert placed_gangs(cluster) == {9}


def test_what_an_older_gang_cannot_use_goes_to_a_younger_one_and_to_singles():
    # 4 GPUs; 5 do not fit, so 3 and 1
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), GPU1),
        *(make_gang(1, 5, created_us=NOW_US - 9), make_tasks(range(101, 106), 1, gang=1)),
        *(make_gang(2, 3, created_us=NOW_US - 5), make_tasks(range(201, 204), 1, gang=2)),
        make_tasks([901, 902], 1),
    )
    placed = cluster.round()
    assert {201, 202, 203} < set(placed)
    assert len(placed) == 4


def test_members_beyond_the_minimum_come_after_the_minimums_of_all():
    # 4 GPUs: 2 + 2, though gang 1 is older and has four members
    cluster = make_cluster(
        *(*gpu_nodes(4), GPU1),
        *(make_gang(1, 2, created_us=NOW_US - 9), make_tasks(range(101, 105), 1, gang=1)),
        *(make_gang(2, 2, created_us=NOW_US - 5), make_tasks(range(201, 203), 1, gang=2)),
    )
    assert sorted(uid // 100 for uid in cluster.round()) == [1, 1, 2, 2]


def test_members_of_a_lower_priority_beyond_the_minimum_wait_for_theirs():
    # 3 GPUs: two for the gang's minimum (of priority 9), one for the single task of priority 5, none for member 103
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(5, gpu=1, priority=5), make_class(9, gpu=1, priority=9)),
        *(make_gang(1, 2), make_tasks([101, 102], 9, gang=1), make_tasks([103], 1, gang=1)),
        make_tasks([901], 5),
    )
    assert set(cluster.round()) == {101, 102, 901}


def test_the_smallest_members_will_do_if_the_oldest_do_not_fit():
    # 3 GPUs; two of four members are enough: 4 + 4 do not fit, nor 4 + 1, but 1 + 1 do
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(2, gpu=4), make_gang(1, 2)),
        *(make_tasks([101, 102], 2, gang=1, created_us=0), make_tasks([103, 104], 1, gang=1)),
    )
    assert {103, 104} == set(cluster.round())


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
def test_who_comes_later_follows_those_that_are_there(required, expected):
    """Two members run in rack a, which is full: the third has to wait, or may go elsewhere."""
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 2, n0="a", n1="a", n2="b"), GPU1, make_gang(1, 3, topology="rack", required=required)),
        *(make_tasks([101], 1, gang=1, on="n0"), make_tasks([102], 1, gang=1, on="n1"), make_tasks([103], 1, gang=1)),
    )
    assert cluster.round() == expected
    cluster.tell(make_node("n1", gpu=2, labels={"rack": "a"}))
    if required:
        assert cluster.round() == {103: "n1"}


def test_members_on_nodes_without_the_label_do_not_say_where_the_others_go():
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
def test_a_gang_that_has_waited_keeps_room_free(created_us, singles):
    cluster = starving(created_us=created_us)
    assert len(cluster.round()) == singles


def test_the_room_grows_until_the_gang_fits():
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


def test_what_it_cannot_take_is_not_kept():
    # the gang of two lacks one GPU and can use nothing of n2, which has none
    cluster = make_cluster(
        *(*gpu_nodes(2), make_node("n2", cpu=4), GPU1, make_class(2, cpu=1), make_tasks([1], 1, on="n0")),
        *(make_gang(1, 2, created_us=OVERDUE_US), make_tasks([101, 102], 1, gang=1), make_tasks([901, 902], 2)),
    )
    assert set(cluster.round()) == {901, 902}


def test_lower_priorities_respect_it_and_higher_ones_do_not():
    cluster = starving(others=0)
    cluster.tell(make_class(2, gpu=1, priority=-1), make_class(3, gpu=1, priority=1))
    cluster.tell(make_tasks([801], 2), make_tasks([951], 3))
    assert set(cluster.round()) == {951}


def test_a_younger_gang_respects_it():
    cluster = starving(others=0)
    cluster.tell(make_gang(2, 2, created_us=NOW_US), make_tasks([201, 202], 1, gang=2))
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert placed_gangs(cluster) == {1}


def test_younger_gangs_that_fit_by_their_sums_do_not_overtake_it():
    """Sums say that all three fit: 9 GPUs, of which members of 3 can use one node only."""
    cluster = make_cluster(
        *(*gpu_nodes(3, 2, 2, 2), GPU1, make_class(3, gpu=3)),
        *(make_gang(1, 1, created_us=OVERDUE_US), make_tasks([101], 3, gang=1)),
        *(make_gang(2, 3), make_tasks([201, 202, 203], 1, gang=2), make_gang(3, 3)),
        make_tasks([301, 302, 303], 1, gang=3),
    )
    assert placed_gangs(cluster) == {1, 2, 3}


def test_two_gangs_that_starve_do_not_block_each_other():
    # 5 GPUs, one held: 3 would fit, 4 would fit, both never; only the older one keeps room
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


def test_a_gang_that_no_empty_cluster_could_take_keeps_nothing():
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), GPU1, make_gang(1, 5, created_us=0), make_tasks(range(101, 106), 1, gang=1)),
        *(make_gang(2, 4, created_us=1), make_tasks(range(201, 205), 1, gang=2), make_tasks([901], 1)),
    )
    assert placed_gangs(cluster) == {2}


def test_the_room_is_in_a_domain_that_can_become_large_enough():
    """Rack b has the more room now, and never enough; rack a will have it when task 1 goes."""
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


# -- members that depend on where others are --------------------------------------------------------------------------


def test_a_gang_that_wants_to_be_near_a_task_that_is_placed_later_in_the_round_is_tried_again():
    cluster = make_cluster(
        *(*host_nodes(3), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_profile(1, app="lead")),
        *(make_gang(1, 2, created_us=NOW_US - 9), make_tasks([101, 102], 2, gang=1), make_tasks([901], 1, profile=1)),
    )
    assert set(cluster.round()) == {101, 102, 901}


def test_what_a_member_counts_on_is_not_taken_back_as_surplus():
    """A follower needs a lead beside it; two of the three members are enough."""
    cluster = make_cluster(
        *(*host_nodes(2, 2), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_profile(1, app="lead")),
        *(make_gang(1, 2), make_tasks([101], 2, gang=1), make_tasks([102, 103], 1, gang=1, profile=1)),
    )
    assert set(cluster.round()) == {101, 102, 103}


# -- reasons ----------------------------------------------------------------------------------------------------------


INCOMPLETE, DOES_NOT_FIT = ReasonKind.GANG_INCOMPLETE, ReasonKind.GANG_DOES_NOT_FIT


@pytest.mark.parametrize(
    ("gang", "members", "gpus", "reason"),
    [
        pytest.param(make_gang(1, 5), 3, 9, Reason(INCOMPLETE, 0, "gang-1", "2"), id="two-missing"),
        pytest.param(make_gang(1, 3), 3, 2, Reason(DOES_NOT_FIT, 0, "gang-1", "2/3"), id="two-of-three-fit"),
        pytest.param(make_gang(1, 3), 5, 0, Reason(DOES_NOT_FIT, 0, "gang-1", "0/3"), id="none-fits"),
        pytest.param(
            make_gang(1, 3, roles={"a": 0, "b": 2}), 4, 9, Reason(INCOMPLETE, 0, "gang-1", "2"), id="role-missing"
        ),
        pytest.param(
            make_gang(1, 3, created_us=OVERDUE_US), 3, 2, Reason(DOES_NOT_FIT, 0, "gang-1", "2/3"), id="reserved"
        ),
        pytest.param(
            make_gang(1, 3, topology="rack", required=True), 3, 9, Reason(DOES_NOT_FIT, 0, "gang-1", "0/3"), id="domain"
        ),
    ],
)
def test_what_its_members_are_told(gang, members, gpus, reason):
    # a second node keeps reservations possible
    cluster = make_cluster(
        *(*gpu_nodes(gpus, 3), GPU1, make_tasks([1, 2, 3], 1, on="n1"), gang),
        make_tasks(range(101, 101 + members), 1, gang=1),
    )
    (reasons,) = why(cluster)
    assert reasons[0] == reason


def test_classes_that_compete_never_make_all_fit():
    # 2 GPUs would take the member of 2, or two of 1 each: counted apart all three fit, together two
    cluster = make_cluster(
        *(*gpu_nodes(2), GPU1, make_class(2, gpu=2), make_gang(1, 3)),
        *(make_tasks([101, 102], 1, gang=1), make_tasks([103], 2, gang=1)),
    )
    assert all(reasons[0] == Reason(DOES_NOT_FIT, 0, "gang-1", "2/3") for reasons in why(cluster))


def test_beyond_the_minimum_the_gang_is_no_reason():
    cluster = make_cluster(*gpu_nodes(2), GPU1, make_gang(1, 2), make_tasks(range(101, 104), 1, gang=1))
    assert why(cluster) == [(Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "gpu"),)]


def test_a_change_of_the_gang_is_news():
    cluster = make_cluster(*gpu_nodes(2), GPU1, make_gang(1, 4), make_tasks([101, 102], 1, gang=1))
    news = []
    for event in (make_tasks([103], 1, gang=1), make_gang(1, 4), make_gang(1, 3)):
        (waiting,) = cluster.run().waiting
        news.append((waiting.reasons[0].value, len(waiting.news)))
        cluster.tell(event)
    (waiting,) = cluster.run().waiting
    assert [*news, (waiting.reasons[0].value, len(waiting.news))] == [("2", 2), ("1", 3), ("1", 0), ("2/3", 3)]


# -- the independent check --------------------------------------------------------------------------------------------


def judged(cluster: Cluster, *uids: int) -> list[bool]:
    """What the check says of placing these on n0, one after the other."""
    rows = np.array([cluster.state.task_row(uid) for uid in uids], np.int64)
    nodes = np.full(len(uids), cluster.state.node_row("id-n0"), np.int64)
    return [bool(sound) for sound in Checker(cluster.state).judge(rows, nodes, np.arange(len(uids))).sound]


@pytest.mark.parametrize(
    ("gang", "placed", "sound"),
    [
        pytest.param(make_gang(1, 3), [101, 102, 103], True, id="whole"),
        pytest.param(make_gang(1, 2), [101, 102, 103], True, id="more-than-the-minimum"),
        pytest.param(make_gang(1, 3), [101, 102], False, id="half"),
        pytest.param(make_gang(1, 1, roles={"a": 1, "b": 1}), [101, 102], False, id="a-role-short"),
        # 103 has role 1
        pytest.param(make_gang(1, 1, roles={"a": 1, "b": 1}), [101, 103], True, id="both-roles"),
        pytest.param(make_gang(1, 0), [101], True, id="no-minimum"),
    ],
)
def test_half_a_gang_is_refused_and_the_others_are_not(gang, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, gang, make_tasks([101, 102, 103], 1, gang=1, role=[0, 0, 1]), make_tasks([901], 1))
    )
    assert judged(cluster, *placed, 901) == [sound] * len(placed) + [True]


def test_members_that_are_placed_already_count():
    cluster = make_cluster(
        *gpu_nodes(9), GPU1, make_gang(1, 3), make_tasks([101, 102], 1, gang=1, on="n0"), make_tasks([103], 1, gang=1)
    )
    assert judged(cluster, 103) == [True]
    cluster.tell(ended(101))
    assert judged(cluster, 103) == [False]


def test_a_member_that_is_refused_takes_its_gang_along_and_who_counts_on_the_gang():
    """102 is not welcome, so the gang is half; 901 wants to be beside 101."""
    cluster = make_cluster(
        make_node("n0", gpu=9, labels={"host": "n0"}),
        *(GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_class(3, gpu=1, demand=selecting(needs("k")))),
        *(make_profile(1, app="lead"), make_gang(1, 2), make_tasks([101], 1, gang=1, profile=1)),
        *(make_tasks([102], 3, gang=1), make_tasks([901], 2), make_tasks([902], 1)),
    )
    assert judged(cluster, 101, 102, 901, 902) == [False, False, False, True]


@pytest.mark.parametrize(
    ("maximum", "there", "placed", "sound"),
    [
        pytest.param(3, 1, 2, True, id="reached"),
        pytest.param(3, 1, 3, False, id="one-too-many"),
        pytest.param(2, 3, 1, False, id="there-were-too-many-already"),
        pytest.param(0, 3, 3, True, id="none"),
    ],
)
def test_more_than_the_maximum_is_refused(maximum, there, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 2, maximum=maximum), make_tasks([901], 1)),
        *(make_tasks(range(201, 201 + there), 1, gang=1, on="n0"), make_tasks(range(101, 101 + placed), 1, gang=1)),
    )
    assert judged(cluster, *range(101, 101 + placed), 901) == [sound] * placed + [True]


def judged_at(cluster: Cluster, placed: dict[int, str]) -> list[bool]:
    """What the check says of placing these at once."""
    rows = np.array([cluster.state.task_row(uid) for uid in placed], np.int64)
    nodes = np.array([cluster.state.node_row(f"id-{name}") for name in placed.values()], np.int64)
    return [bool(sound) for sound in Checker(cluster.state).judge(rows, nodes, np.zeros(len(placed), np.int64)).sound]


@pytest.mark.parametrize(
    ("minimum", "there", "placed", "sound"),
    [
        # n0, n1 are in rack a, n2, n3 in rack b, n4 in none; three are needed
        pytest.param(3, {}, "n0 n1 n1", True, id="one-rack"),
        pytest.param(3, {}, "n0 n1 n2", False, id="two-racks"),
        pytest.param(3, {}, "n4 n4 n4", False, id="no-rack"),
        pytest.param(3, {}, "n0 n1 n1 n2 n4", True, id="beyond-the-minimum-anywhere"),
        pytest.param(3, {201: "n0"}, "n1 n1", True, id="where-one-is"),
        pytest.param(3, {201: "n2"}, "n1 n1", False, id="where-none-is"),
        pytest.param(3, {201: "n0", 202: "n2"}, "n1", True, id="in-one-of-two"),
        pytest.param(3, {201: "n4"}, "n2 n3", True, id="one-that-is-nowhere-binds-nobody"),
        pytest.param(3, {201: "n4"}, "n1 n3", False, id="but-one-rack-it-must-be"),
        pytest.param(3, {201: "n0", 202: "n0", 203: "n0"}, "n2", True, id="nothing-is-lacked"),
        pytest.param(3, {201: "n4", 202: "n4", 203: "n4"}, "n4", True, id="nothing-is-lacked-in-no-rack"),
        pytest.param(0, {}, "n0 n2", True, id="no-minimum"),
    ],
)
def test_a_minimum_outside_one_domain_is_refused(minimum, there, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9, 9, 9, 9, 9, **RACKS), GPU1, make_gang(1, minimum, topology="rack", required=True)),
        *(make_tasks([uid], 1, gang=1, on=name) for uid, name in there.items()),
        *(make_tasks(range(101, 106), 1, gang=1), make_tasks([901], 1)),
    )
    new = dict(zip(range(101, 106), placed.split(), strict=False))
    assert judged_at(cluster, {**new, 901: "n4"}) == [sound] * len(new) + [True]


def test_a_preferred_topology_is_no_demand():
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 1, 1, **RACKS), GPU1, make_gang(1, 2, topology="rack")), make_tasks([101, 102], 1, gang=1)
    )
    assert judged_at(cluster, {101: "n0", 102: "n2"}) == [True, True]


def test_the_roles_that_are_lacked_must_be_in_the_domain_too():
    cluster = make_cluster(
        *(*gpu_nodes(9, 9, 9, 9, **RACKS), GPU1),
        make_gang(1, 2, roles={"lead": 1, "rest": 1}, topology="rack", required=True),
        make_tasks([101, 102, 103], 1, gang=1, role=[0, 1, 1]),
    )
    assert judged_at(cluster, {101: "n2", 102: "n0", 103: "n1"}) == [False] * 3
    assert judged_at(cluster, {101: "n1", 102: "n0", 103: "n2"}) == [True] * 3


# -- lives ------------------------------------------------------------------------------------------------------------


def test_a_hundred_for_ninety_nine():
    """100 tasks of one GPU each and 99 GPUs: none is placed, and others use the GPUs in the same round."""
    cluster = make_cluster(
        *(make_node(f"n{i}", gpu=9) for i in range(11)),
        *(GPU1, make_gang(1, 100), make_tasks(range(1, 101), 1, gang=1), make_tasks(range(1001, 1051), 1)),
    )
    assert set(cluster.round()) == set(range(1001, 1051))
    cluster.tell(removed(*range(1001, 1051)))
    assert cluster.round() == {}
    cluster.tell(make_node("more", gpu=1))
    assert set(cluster.round()) == set(range(1, 101))


def test_two_that_need_more_than_half_run_one_after_the_other():
    """10 GPUs; A and B need 6 each, and their tasks come in turns."""
    tasks = [make_tasks([uid], 1, gang=1 + uid % 2, created_us=NOW_US + uid) for uid in range(12)[::-1] if uid]
    cluster = make_cluster(
        *(*gpu_nodes(5, 5), GPU1, make_gang(1, 6, created_us=NOW_US + 1), make_gang(2, 6, created_us=NOW_US)),
        *(*tasks, make_tasks([12], 1, gang=1)),
    )
    odd = {1, 3, 5, 7, 9, 11}
    assert set(cluster.round()) == odd, "gang 2 is the older one"
    assert cluster.round() == {}
    cluster.tell(ended(*odd))
    assert set(cluster.round()) == {2, 4, 6, 8, 10, 12}


def test_three_with_tasks_of_others_in_between():
    """4 GPUs, and tasks of others come between the members of a gang of three."""
    cluster = make_cluster(*gpu_nodes(2, 2), GPU1, make_gang(1, 3))
    seen: dict[int, str] = {}
    events: list[Event] = [
        *(make_tasks([101], 1, gang=1), make_tasks([901], 1), make_tasks([102], 1, gang=1)),
        *(make_tasks([902], 1), make_tasks([103], 1, gang=1), ended(901)),
    ]
    for step, event in enumerate(events):
        cluster.tell(event)
        seen.update(cluster.round(NOW_US + step))
    # the others were placed at once, the gang when one of them left it the third GPU
    assert list(seen)[:2] == [901, 902]
    assert set(list(seen)[2:]) == {101, 102, 103}


def test_a_member_that_its_node_rejects_comes_back_and_the_gang_is_complete_again():
    cluster = make_cluster(*gpu_nodes(1, 1, 1), GPU1, make_gang(1, 3), make_tasks([101, 102, 103], 1, gang=1))
    placed = cluster.round()
    assert set(placed) == {101, 102, 103}
    cluster.tell(PlacementRejected(102, f"id-{placed[102]}", NOW_US + SECOND_US))
    assert cluster.round() == {}, "not before its time"
    assert cluster.scheduler.wake_us(NOW_US) == NOW_US + SECOND_US
    assert cluster.scheduler.due(NOW_US + SECOND_US)
    assert cluster.round(NOW_US + SECOND_US) == {102: placed[102]}


def test_a_gang_that_lost_a_node_gets_its_replacement_before_younger_ones():
    # 3 GPUs hold the gang; n2 fails, n3 comes: its one GPU goes to the replacement, not to the single task
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 1), GPU1, make_gang(1, 3, created_us=NOW_US - 9)),
        *(make_tasks([101], 1, gang=1, on="n0"), make_tasks([102], 1, gang=1, on="n1")),
        *(make_tasks([103], 1, gang=1, on="n2"), make_tasks([901], 1, created_us=NOW_US)),
    )
    cluster.tell(NodeRemoved("id-n2"), removed(103), make_tasks([104], 1, gang=1), make_node("n3", gpu=1))
    assert cluster.round() == {104: "n3"}


@pytest.mark.parametrize("other", ["older-gang", "older-single"])
def test_a_gang_of_which_half_is_there_goes_first(other):
    """Whoever bound the first two was killed: the third GPU is for the third member, though others wait for longer."""
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_gang(1, 3), make_tasks([101, 102], 1, gang=1, on="n0")),
        make_tasks([103], 1, gang=1),
    )
    if other == "older-gang":
        cluster.tell(make_gang(2, 1, created_us=NOW_US - 9), make_tasks([201], 1, gang=2, created_us=NOW_US - 9))
    else:
        cluster.tell(make_tasks([901], 1, created_us=NOW_US - 9))
    assert set(cluster.round()) == {103}


def test_a_gang_that_lost_two_gets_both_back_or_none():
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 1), GPU1, make_gang(1, 3), make_tasks([101], 1, gang=1, on="n0")),
        *(make_tasks([901], 1, on="n1"), make_tasks([102, 103], 1, gang=1)),
    )
    assert cluster.round() == {}
    cluster.tell(ended(901))
    assert set(cluster.round()) == {102, 103}


@pytest.mark.parametrize(
    ("minimum", "placed"),
    [
        pytest.param(3, {103, 104}, id="raised-within-reach"),
        pytest.param(5, set(), id="raised-beyond-its-members"),
        pytest.param(2, {103, 104}, id="lowered"),
    ],
)
def test_a_gang_may_be_resized(minimum, placed):
    # 4 GPUs, 2 held by the gang
    cluster = make_cluster(
        *(*gpu_nodes(4), GPU1, make_gang(1, 2), make_tasks([101, 102], 1, gang=1, on="n0")),
        *(make_gang(1, minimum), make_tasks([103, 104], 1, gang=1)),
    )
    assert set(cluster.round()) == placed


def test_who_waits_for_room_that_is_kept_is_told_for_whom():
    # one of three GPUs is held: the overdue gang of three keeps the other two, and the single task is told so
    cluster = make_cluster(
        *gpu_nodes(3),
        GPU1,
        make_gang(1, 3, created_us=OVERDUE_US),
        make_tasks([9], 1, on="n0"),
        make_tasks([1, 2, 3], 1, gang=1, created_us=OVERDUE_US),
        make_tasks([4], 1),
    )
    result = cluster.run()
    (single,) = [w for w in result.waiting if w.count == 1]
    assert single.reasons == (Reason(ReasonKind.KEPT_FREE, 1, "gang-1"),)


# -- a maximum --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "on_nodes", "waiting", "placed"),
    [
        pytest.param(make_gang(1, 2, maximum=3), 0, 5, 3, id="two-to-three"),
        pytest.param(make_gang(1, 3, maximum=3), 0, 5, 3, id="exactly-three"),
        pytest.param(make_gang(1, 2, maximum=4), 3, 5, 1, id="some-are-there"),
        pytest.param(make_gang(1, 2, maximum=3), 3, 5, 0, id="full"),
        pytest.param(make_gang(1, 2, maximum=3), 4, 5, 0, id="more-than-it-may-have"),
        pytest.param(make_gang(1, 0, maximum=1), 0, 5, 1, id="no-minimum"),
        pytest.param(make_gang(1, 4, maximum=9), 0, 5, 5, id="not-reached"),
    ],
)
def test_no_more_than_the_maximum_is_placed(gang, on_nodes, waiting, placed):
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, gang, make_tasks(range(101, 101 + on_nodes), 1, gang=1, on="n0")),
        *(make_tasks(range(201, 201 + waiting), 1, gang=1), make_tasks([901], 1)),
    )
    result = cluster.run()
    assert per_node(cluster.names(result)) == {"n0": placed + 1}, "and the single task is"
    told = {reason for w in result.waiting for reason in w.reasons}
    full = Reason(ReasonKind.GANG_FULL, 0, "gang-1", f"{on_nodes + placed}/{gang.maximum}")
    assert told == ({full} if placed < waiting else set())


def test_the_oldest_members_go_first_and_a_member_that_goes_makes_room_for_the_next():
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 1, maximum=2)),
        make_tasks([101, 102, 103], 1, gang=1, created_us=[NOW_US - 1, NOW_US - 3, NOW_US - 2]),
    )
    assert set(cluster.round()) == {102, 103}
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(make_tasks([102], 1, gang=1, on="n0", leaving=True))
    assert cluster.scheduler.due(NOW_US), "one that is on its way out does not count"
    assert set(cluster.round()) == {101}


def test_where_the_oldest_do_not_fit_others_are_placed_up_to_the_maximum():
    # two of five, 3 GPUs: the two large ones, which are offered first, do not fit
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(2, gpu=4, priority=0), make_gang(1, 0, maximum=2)),
        *(make_tasks([101, 102], 2, gang=1, created_us=0), make_tasks([103, 104, 105], 1, gang=1)),
    )
    placed = cluster.round()
    assert set(placed) == {103, 104}


def test_a_full_gang_that_lacks_a_role_waits_for_one_of_the_others_to_go():
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 2, roles={"lead": 1, "rest": 0}, maximum=2)),
        *(make_tasks([101, 102], 1, gang=1, role=1, on="n0"), make_tasks([103], 1, gang=1, role=0)),
    )
    ((reason,),) = why(cluster)
    assert reason == Reason(ReasonKind.GANG_FULL, 0, "gang-1", "2/2")
    cluster.tell(ended(101))
    assert set(cluster.round()) == {103}


def test_members_that_others_count_on_stay_within_the_maximum():
    """A follower needs a lead beside it: two of the three members may be placed, and one of them is enough."""
    cluster = make_cluster(
        *(*host_nodes(9), make_class(2, gpu=1, peers=WITH_LEAD), GPU1, make_profile(1, app="lead")),
        *(make_gang(1, 1, maximum=2), make_tasks([101, 102], 2, gang=1), make_tasks([103], 1, gang=1, profile=1)),
    )
    assert set(cluster.round()) == {101, 103}


def test_a_maximum_holds_when_nothing_is_lacked_and_tasks_could_be_placed_one_by_one():
    """Single tasks that want to be near each other are looked at again one by one: not past a maximum."""
    cluster = make_cluster(
        *(*host_nodes(9), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_gang(1, 0, maximum=1)),
        *(make_tasks([101, 102], 1, gang=1), make_tasks([901], 2)),
    )
    assert len(cluster.round()) == 1
