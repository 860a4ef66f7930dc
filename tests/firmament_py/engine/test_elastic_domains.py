"""Members beyond the minimum of a gang that requires a topology: in the domain of the others, or nowhere."""

import pytest

from firmament_py.explain.blocking import blocking
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from tests.builders import (
    NOW_US,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    preempting_cluster,
    removed,
)

CPU1 = make_class(1, cpu=1)
RACK = "rack"


def racks(**sizes):
    """One node in each rack, with so many cpus, and one in none."""
    return [*(make_node(name, cpu=cpu, labels={RACK: name}) for name, cpu in sizes.items()), make_node("none", cpu=9)]


def all_rounds(cluster):
    placed: dict[int, str] = {}
    while cluster.scheduler.due(NOW_US):
        placed |= cluster.round()
    return placed


def reasons_of(cluster, uid):
    return reasons_of_task(cluster.state, cluster.state.task_row(uid))


@pytest.mark.parametrize("required", [True, False])
def test_members_beyond_the_minimum_stay_in_the_domain_that_is_required(required):
    gang = make_gang(7, 2, topology=RACK, required=required)
    cluster = make_cluster(
        CPU1, *racks(a=3, b=4), make_tasks([901], 1, on="b"), gang, make_tasks(range(1, 7), 1, gang=7)
    )
    placed = all_rounds(cluster)
    if not required:
        assert len(placed) == 6
        return
    # three fit in either rack
    assert [*placed.values()] == ["a"] * 3
    (waiting, *_) = sorted(cluster.waiting())
    assert set(reasons_of(cluster, waiting)) == {
        Reason(ReasonKind.INSUFFICIENT_RESOURCE, 1, "cpu"),
        Reason(ReasonKind.GANG_DOMAIN, 2, "gang-7", RACK),
    }
    row = cluster.state.task_row(waiting)
    assert row is not None
    kinds = {each.kind for each in blocking(cluster.state, row).constraints}
    assert kinds == {ReasonKind.INSUFFICIENT_RESOURCE, ReasonKind.GANG_DOMAIN}


def test_they_are_placed_when_the_domain_gets_room():
    cluster = make_cluster(
        *(CPU1, *racks(a=3, b=9), make_gang(7, 2, topology=RACK, required=True)),
        *(make_tasks([901], 1, on="a"), make_tasks(range(1, 4), 1, gang=7, on=None)),
        make_tasks([902, 903, 904, 905, 906, 907, 908, 909], 1, on="b"),
    )
    assert all_rounds(cluster) == {1: "a", 2: "a"}
    cluster.tell(removed(902))
    assert all_rounds(cluster) == {}
    cluster.tell(removed(901))
    assert all_rounds(cluster) == {3: "a"}


def test_two_gangs_of_one_class_join_their_own_domains():
    cluster = make_cluster(
        *(CPU1, *racks(a=2, b=5)),
        *(make_gang(number, 1, topology=RACK, required=True) for number in (7, 8)),
        *(make_tasks([1], 1, gang=7, on="a"), make_tasks([2], 1, gang=8, on="b")),
        *(make_tasks([11, 12, 13], 1, gang=7), make_tasks([21, 22, 23], 1, gang=8)),
    )
    assert all_rounds(cluster) == {11: "a", 21: "b", 22: "b", 23: "b"}


def test_the_next_member_chooses_another_domain_once_none_is_left_in_the_first():
    cluster = make_cluster(
        *(CPU1, *racks(a=1, b=2), make_gang(7, 1, topology=RACK, required=True)),
        *(make_tasks([1], 1, gang=7, on="a"), make_tasks([2, 3], 1, gang=7)),
    )
    assert all_rounds(cluster) == {}
    cluster.tell(removed(1), make_node("a", cpu=0, labels={RACK: "a"}))
    assert all_rounds(cluster) == {2: "b", 3: "b"}


def test_a_gang_outside_of_all_domains_gets_its_others_in_one():
    cluster = make_cluster(
        *(CPU1, *racks(a=2, b=2), make_gang(7, 1, topology=RACK, required=True)),
        *(make_tasks([1], 1, gang=7, on="none"), make_tasks([2, 3, 4], 1, gang=7)),
    )
    placed = all_rounds(cluster)
    assert len(placed) == 2
    assert len({*placed.values()} & {"a", "b"}) == len({*placed.values()}) == 1


def test_they_preempt_in_the_domain_only():
    cluster = preempting_cluster(
        *(CPU1, make_class(2, cpu=1, priority=10), make_gang(7, 1, topology=RACK, required=True)),
        *(make_node(name, cpu=2, labels={RACK: name}) for name in "ab"),
        *(make_tasks([1], 2, gang=7, on="a"), make_tasks([901], 1, on="a"), make_tasks([902, 903], 1, on="b")),
        make_tasks([2, 3], 2, gang=7),
    )
    assert [*cluster.preempted(cluster.run())] == [901]
    assert {*cluster.nominated().values()} == {"a"}


@pytest.mark.parametrize("outer", [(), ("block",)])
def test_a_rack_of_another_block_with_the_same_name_is_another_domain(outer):
    """Three fit in racks a of both blocks together; the fourth and fifth have no place in that of block y."""
    sizes = {"x": 2, "y": 4}
    nodes = [make_node(block, cpu=cpu, labels={RACK: "a", "block": block}) for block, cpu in sizes.items()]
    gang = make_gang(7, 3, topology=RACK, outer=outer, required=True)
    cluster = make_cluster(CPU1, *nodes, gang, make_tasks(range(1, 7), 1, gang=7))
    placed = all_rounds(cluster)
    assert len(placed) == (4 if outer else 6)
    assert {*placed.values()} == ({"y"} if outer else {"x", "y"})


@pytest.mark.parametrize(("maximum", "rack"), [(0, "b"), (3, "a"), (4, "b")])
def test_a_gang_starts_where_most_of_its_members_fit(maximum, rack):
    """As Kueue, which admits as many pods of a Job as fit in one domain. Of domains that take as many, the tightest."""
    gang = make_gang(7, 2, topology=RACK, required=True, maximum=maximum)
    cluster = make_cluster(CPU1, *racks(a=3, b=5, c=9), make_tasks([901], 1, on="c"), gang)
    cluster.tell(make_tasks(range(1, 6), 1, gang=7))
    placed = all_rounds(cluster)
    assert {*placed.values()} == {rack}
    assert len(placed) == (maximum or 5)
