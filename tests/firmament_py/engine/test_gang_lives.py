"""Gangs over several rounds, and the reasons reported for them."""

import pytest

from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.model.events import Event, NodeRemoved, PlacementRejected
from tests.builders import NOW_US, SECOND_US, ended, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.firmament_py.gang_builders import GPU1, OVERDUE_US, gpu_nodes, why

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
def test_reasons_of_members(gang, members, gpus, reason):
    # a second node keeps reservations possible
    cluster = make_cluster(
        *(*gpu_nodes(gpus, 3), GPU1, make_tasks([1, 2, 3], 1, on="n1"), gang),
        make_tasks(range(101, 101 + members), 1, gang=1),
    )
    (reasons,) = why(cluster)
    assert reasons[0] == reason


def test_competing_classes_are_never_reported_to_fit_together():
    # 2 GPUs would take the member of 2, or two of 1 each: counted apart all three fit, together two
    cluster = make_cluster(
        *(*gpu_nodes(2), GPU1, make_class(2, gpu=2), make_gang(1, 3)),
        *(make_tasks([101, 102], 1, gang=1), make_tasks([103], 2, gang=1)),
    )
    assert all(reasons[0] == Reason(DOES_NOT_FIT, 0, "gang-1", "2/3") for reasons in why(cluster))


def test_members_beyond_the_minimum_have_no_gang_reason():
    cluster = make_cluster(*gpu_nodes(2), GPU1, make_gang(1, 2), make_tasks(range(101, 104), 1, gang=1))
    assert why(cluster) == [(Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "gpu"),)]


def test_a_change_of_the_gang_is_reported():
    cluster = make_cluster(*gpu_nodes(2), GPU1, make_gang(1, 4), make_tasks([101, 102], 1, gang=1))
    news = []
    for event in (make_tasks([103], 1, gang=1), make_gang(1, 4), make_gang(1, 3)):
        (waiting,) = cluster.run().waiting
        news.append((waiting.reasons[0].value, len(waiting.unreported)))
        cluster.tell(event)
    (waiting,) = cluster.run().waiting
    assert [*news, (waiting.reasons[0].value, len(waiting.unreported))] == [("2", 2), ("1", 3), ("1", 0), ("2/3", 3)]


# -- lives ------------------------------------------------------------------------------------------------------------


def test_a_hundred_tasks_on_ninety_nine_gpus():
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


def test_two_gangs_that_need_more_than_half_run_one_after_the_other():
    """10 GPUs; A and B need 6 each, and their tasks arrive alternately."""
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


def test_a_gang_of_three_interleaved_with_other_tasks():
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


def test_a_rejected_member_is_placed_again():
    cluster = make_cluster(*gpu_nodes(1, 1, 1), GPU1, make_gang(1, 3), make_tasks([101, 102, 103], 1, gang=1))
    placed = cluster.round()
    assert set(placed) == {101, 102, 103}
    cluster.tell(PlacementRejected(102, f"id-{placed[102]}", NOW_US + SECOND_US))
    assert cluster.round() == {}, "not before its time"
    assert cluster.scheduler.wake_us(NOW_US) == NOW_US + SECOND_US
    assert cluster.scheduler.due(NOW_US + SECOND_US)
    assert cluster.round(NOW_US + SECOND_US) == {102: placed[102]}


def test_a_gang_that_lost_a_node_is_completed_before_younger_gangs():
    # 3 GPUs hold the gang; n2 fails, n3 comes: its one GPU goes to the replacement, not to the single task
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 1), GPU1, make_gang(1, 3, created_us=NOW_US - 9)),
        *(make_tasks([101], 1, gang=1, on="n0"), make_tasks([102], 1, gang=1, on="n1")),
        *(make_tasks([103], 1, gang=1, on="n2"), make_tasks([901], 1, created_us=NOW_US)),
    )
    cluster.tell(NodeRemoved("id-n2"), removed(103), make_tasks([104], 1, gang=1), make_node("n3", gpu=1))
    assert cluster.round() == {104: "n3"}


@pytest.mark.parametrize("other", ["older-gang", "older-single"])
def test_a_partly_placed_gang_goes_first(other):
    """The bridge was killed after binding the first two: the third GPU is for the third member, although others have
    waited longer."""
    cluster = make_cluster(
        *(*gpu_nodes(3), GPU1, make_gang(1, 3), make_tasks([101, 102], 1, gang=1, on="n0")),
        make_tasks([103], 1, gang=1),
    )
    if other == "older-gang":
        cluster.tell(make_gang(2, 1, created_us=NOW_US - 9), make_tasks([201], 1, gang=2, created_us=NOW_US - 9))
    else:
        cluster.tell(make_tasks([901], 1, created_us=NOW_US - 9))
    assert set(cluster.round()) == {103}


def test_a_gang_that_lost_two_members_gets_both_replaced_or_none():
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
def test_a_gang_can_be_resized(minimum, placed):
    # 4 GPUs, 2 held by the gang
    cluster = make_cluster(
        *(*gpu_nodes(4), GPU1, make_gang(1, 2), make_tasks([101, 102], 1, gang=1, on="n0")),
        *(make_gang(1, minimum), make_tasks([103, 104], 1, gang=1)),
    )
    assert set(cluster.round()) == placed


def test_a_reason_names_the_gang_that_capacity_is_reserved_for():
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
    assert single.reasons == (Reason(ReasonKind.RESERVED, 1, "gang-1"),)
