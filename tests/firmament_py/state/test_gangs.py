"""The gang table, and single decisions about gangs: tables with the arithmetic beside them."""

import numpy as np
import pytest

from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.events import GangObserved, GangRemoved, Outcome
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.state.gangs import MAX_LEVELS, MAX_ROLES
from tests.builders import (
    NOW_US,
    ended,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_tasks,
    per_node,
    removed,
)
from tests.firmament_py.gang_builders import GPU1, WITH_LEAD, gpu_nodes, host_nodes, placed_gangs, why

# -- claims -----------------------------------------------------------------------------------------------------------


def claim(lacking: int, of_role: tuple[int, ...] = (), role: str = "") -> JobDemand:
    """Members 10, 11, ...; their roles as digits."""
    roles = np.array([int(digit) for digit in role], np.int64)
    members = np.arange(10, 10 + len(roles))
    return JobDemand(0, make_gang(1, lacking), 0, members, roles, lacking, of_role, np.zeros(0, np.int64), 0)


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
def test_lacking_members(it, missing, core):
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
def test_satisfied_demands(it, placed, satisfied, surplus):
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
        pytest.param(make_gang(1, 1, start={"cpu": -1}), "start_amounts", "below 0", id="start-amounts"),
        pytest.param(GangObserved(1, 1, topology_required=True), "topology_key", "name a node label", id="no-key"),
        pytest.param(make_gang(1, 1, narrower=["a"]), "narrower_keys", "empty or repeated label", id="no-wider-key"),
        pytest.param(
            make_gang(1, 1, topology="b", narrower=["a", "b"]), "narrower_keys", "empty or repeated", id="repeated-key"
        ),
        pytest.param(
            make_gang(1, 1, topology="b", outer=["b"]), "narrower_keys", "empty or repeated", id="repeated-outer-key"
        ),
        pytest.param(
            make_gang(1, 1, topology="b", narrower=[str(n) for n in range(MAX_LEVELS)]),
            "narrower_keys",
            "16 entries; give at most 15",
            id="levels",
        ),
    ],
)
def test_invalid_gangs_are_refused_and_change_nothing(gang, field, reason):
    cluster = make_cluster(make_gang(1, 3), GPU1, make_tasks([1], 1, gang=1))
    before = cluster.state.changes.number
    (outcome,) = cluster.tell(gang)
    (refusal,) = outcome.refused
    assert (refusal.kind, refusal.field) == ("gang", field)
    assert reason in refusal.reason
    assert cluster.state.changes.number == before
    assert cluster.state.gangs.known(1) == make_gang(1, 3)


def test_tasks_of_unknown_gangs_are_left_out_and_the_others_are_not():
    cluster = make_cluster(GPU1, make_gang(1, 1))
    cluster.tell(make_tasks([1], 1, gang=1), make_tasks([2], 1))
    (outcome,) = cluster.tell(make_tasks([3], 1, gang=7))
    assert outcome.unknown_gangs == {7}
    assert cluster.waiting() == {1, 2}


def test_a_gang_exists_while_its_owner_or_a_member_does():
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


def test_a_removed_gang_whose_last_member_joins_another_is_dropped():
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
def test_events_that_make_a_round_due(event, rises):
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
def test_queue_order(ages, classes, winner):
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
def test_a_single_task_is_ordered_by_age(age, placed):
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


def test_capacity_that_an_older_gang_cannot_use_goes_to_others():
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


def test_the_smallest_members_are_placed_if_the_oldest_do_not_fit():
    # 3 GPUs; two of four members are enough: 4 + 4 do not fit, nor 4 + 1, but 1 + 1 do
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(2, gpu=4), make_gang(1, 2)),
        *(make_tasks([101, 102], 2, gang=1, created_us=0), make_tasks([103, 104], 1, gang=1)),
    )
    assert {103, 104} == set(cluster.round())


# -- members that depend on where others are --------------------------------------------------------------------------


def test_a_gang_with_affinity_to_a_task_placed_later_is_tried_again():
    cluster = make_cluster(
        *(*host_nodes(3), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_label_set(1, app="lead")),
        *(make_gang(1, 2, created_us=NOW_US - 9), make_tasks([101, 102], 2, gang=1), make_tasks([901], 1, label_set=1)),
    )
    assert set(cluster.round()) == {101, 102, 901}


def test_a_member_that_others_depend_on_is_not_surplus():
    """A follower needs a lead beside it; the minimum is two of the three members."""
    cluster = make_cluster(
        *(*host_nodes(2, 2), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_label_set(1, app="lead")),
        *(make_gang(1, 2), make_tasks([101], 2, gang=1), make_tasks([102, 103], 1, gang=1, label_set=1)),
    )
    assert set(cluster.round()) == {101, 102, 103}


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
    reported = {reason for w in result.waiting for reason in w.reasons}
    full = Reason(ReasonKind.GANG_FULL, 0, "gang-1", f"{on_nodes + placed}/{gang.maximum}")
    assert reported == ({full} if placed < waiting else set())


def test_the_oldest_members_go_first_and_a_removed_member_is_replaced():
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 1, maximum=2)),
        make_tasks([101, 102, 103], 1, gang=1, created_us=[NOW_US - 1, NOW_US - 3, NOW_US - 2]),
    )
    assert set(cluster.round()) == {102, 103}
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(make_tasks([102], 1, gang=1, on="n0", leaving=True))
    assert cluster.scheduler.due(NOW_US), "one that is on its way out does not count"
    assert set(cluster.round()) == {101}


def test_other_members_are_placed_up_to_the_maximum_if_the_oldest_do_not_fit():
    # two of five, 3 GPUs: the two large ones, which are offered first, do not fit
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_class(2, gpu=4, priority=0), make_gang(1, 0, maximum=2)),
        *(make_tasks([101, 102], 2, gang=1, created_us=0), make_tasks([103, 104, 105], 1, gang=1)),
    )
    placed = cluster.round()
    assert set(placed) == {103, 104}


def test_a_full_gang_that_lacks_a_role_waits_until_a_member_is_removed():
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 2, roles={"lead": 1, "rest": 0}, maximum=2)),
        *(make_tasks([101, 102], 1, gang=1, role=1, on="n0"), make_tasks([103], 1, gang=1, role=0)),
    )
    ((reason,),) = why(cluster)
    assert reason == Reason(ReasonKind.GANG_FULL, 0, "gang-1", "2/2")
    cluster.tell(ended(101))
    assert set(cluster.round()) == {103}


def test_members_that_others_depend_on_count_for_the_maximum():
    """A follower needs a lead beside it: at most two of the three members can be placed; the minimum is one."""
    cluster = make_cluster(
        *(*host_nodes(9), make_class(2, gpu=1, peers=WITH_LEAD), GPU1, make_label_set(1, app="lead")),
        *(make_gang(1, 1, maximum=2), make_tasks([101, 102], 2, gang=1), make_tasks([103], 1, gang=1, label_set=1)),
    )
    assert set(cluster.round()) == {101, 103}


def test_a_maximum_holds_for_members_placed_one_by_one():
    """Single tasks with affinity to each other are tried again one by one, within the maximum."""
    cluster = make_cluster(
        *(*host_nodes(9), GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_gang(1, 0, maximum=1)),
        *(make_tasks([101, 102], 1, gang=1), make_tasks([901], 2)),
    )
    assert len(cluster.round()) == 1
