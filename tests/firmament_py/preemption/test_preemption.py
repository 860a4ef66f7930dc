"""Priority preemption: preemptors, nominations, and what ends them."""

import pytest

from firmament_py.model.constraints import Taint
from firmament_py.model.events import NodeRemoved
from firmament_py.model.options import Preempting
from tests.builders import NOW_US, make_class, make_node, make_tasks, needs, preempting_cluster, removed, selecting
from tests.firmament_py.preemption.priorities import CLASSES, HIGH, LOW, MID, full_node


def test_a_task_of_higher_priority_evicts_one_of_lower_priority_and_is_nominated():
    cluster = full_node(make_tasks([1, 2], LOW, on="a"), make_tasks([3], HIGH))
    result = cluster.run()
    assert not cluster.names(result)
    [(victim, preemptor)] = cluster.preempted(result).items()
    assert victim in (1, 2)
    assert preemptor == 3
    assert cluster.nominated() == {3: "a"}
    assert (result.stats.preempted, result.stats.nominated) == (1, 1)


def test_when_the_victim_is_gone_the_preemptor_is_placed():
    cluster = full_node(make_tasks([1, 2], LOW, on="a"), make_tasks([3], HIGH))
    [victim] = cluster.preempted(cluster.run())
    cluster.tell(removed(victim))
    assert cluster.round() == {3: "a"}
    assert not cluster.nominated()


def test_it_does_not_preempt_again_while_its_victim_terminates():
    cluster = full_node(make_tasks([1, 2], LOW, on="a"), make_tasks([3], HIGH))
    [victim] = cluster.preempted(cluster.run())
    for _ in range(3):
        assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([victim], LOW, on="a", leaving=True), make_tasks([3], HIGH, nominated="a"))
    assert not cluster.preempted(cluster.run())
    assert cluster.nominated() == {3: "a"}


def test_a_victim_that_stays_after_all_makes_it_preempt_anew():
    cluster = full_node(make_tasks([1], LOW, on="a"), make_tasks([3], HIGH), cpu=4)
    assert cluster.preempted(cluster.run()) == {1: 3}
    cluster.tell(make_tasks([1], LOW, on="a"), make_tasks([3], HIGH))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.preempted(cluster.run()) == {1: 3}


@pytest.mark.parametrize("waiting", [LOW, MID])
def test_equal_and_lower_priorities_evict_no_task(waiting):
    cluster = full_node(make_tasks([1, 2], MID, on="a"), make_tasks([3], waiting))
    result = cluster.run()
    assert not cluster.preempted(result)
    assert not cluster.nominated()


def test_a_class_that_never_preempts_waits():
    patient = make_class(9, cpu=4, priority=100, never_preempts=True)
    cluster = full_node(patient, make_tasks([1, 2], LOW, on="a"), make_tasks([3], 9))
    assert not cluster.preempted(cluster.run())


def test_preemption_can_be_switched_off():
    cluster = full_node(make_tasks([1, 2], LOW, on="a"), make_tasks([3], HIGH), preempting=Preempting.OFF)
    assert not cluster.preempted(cluster.run())


def test_a_node_that_could_never_take_the_task_is_not_tried():
    picky = make_class(9, cpu=4, priority=100, demand=selecting(needs("disk")))
    large = make_class(8, cpu=9, priority=100)
    cluster = full_node(picky, large, make_tasks([1, 2], LOW, on="a"), make_tasks([3], 9), make_tasks([4], 8))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_node("a", cpu=8, taints=[Taint("t", "", "NoSchedule")]), make_tasks([5], HIGH))
    assert not cluster.preempted(cluster.run())


def test_with_preemption_off_a_nomination_by_others_ends_with_its_reason():
    cluster = full_node(
        make_tasks([1], LOW, on="a", leaving=True),
        make_tasks([2], HIGH, nominated="a"),
        make_tasks([3], LOW),
        cpu=4,
        preempting=Preempting.OFF,
    )
    assert not cluster.round()
    assert cluster.nominated() == {2: "a"}
    cluster.tell(make_tasks([1], LOW, on="a"))
    assert not cluster.round()
    assert not cluster.nominated()


def test_what_is_kept_for_a_task_is_not_for_others_of_its_priority_or_below():
    cluster = full_node(make_tasks([1, 2], LOW, on="a"), make_tasks([3], MID))
    [victim] = cluster.preempted(cluster.run())
    cluster.tell(removed(*({1, 2} - {victim})), make_tasks([4], LOW), make_tasks([5], MID, created_us=NOW_US + 1))
    # 4 cpu are free, and 4 more will be; 3 is placed at once, so the room of its victim is left for one of the others
    placed = cluster.round()
    assert placed == {3: "a"}
    cluster.tell(removed(victim))
    assert cluster.round() == {5: "a"}


def test_a_higher_priority_takes_over_and_the_former_preemptor_waits_again():
    cluster = full_node(make_tasks([1], LOW, on="a"), make_tasks([2], MID), cpu=4)
    assert cluster.preempted(cluster.run()) == {1: 2}
    cluster.tell(make_tasks([3], HIGH))
    result = cluster.run()
    assert not cluster.preempted(result)
    assert cluster.nominated() == {3: "a"}
    assert cluster.state.tasks.uid[result.preemption.unnominated].tolist() == [2]
    cluster.tell(removed(1))
    assert cluster.round() == {3: "a"}
    assert cluster.waiting() == {2}


def test_a_nominated_task_is_placed_elsewhere_if_that_is_sooner():
    cluster = full_node(make_tasks([1], LOW, on="a"), make_tasks([2], HIGH), make_tasks([3], LOW), cpu=4)
    cluster.run()
    cluster.tell(make_node("b", cpu=4))
    assert cluster.round() == {2: "b"}
    assert cluster.waiting() == {3}
    assert cluster.scheduler.due(NOW_US)  # its node is free for others now


@pytest.mark.parametrize("change", ["removed", "tainted", "shrunk"])
def test_a_nomination_ends_with_its_node(change):
    cluster = full_node(make_tasks([1], LOW, on="a"), make_tasks([2], HIGH), cpu=4)
    cluster.run()
    taints = [Taint("t", "", "NoSchedule")] if change == "tainted" else []
    cluster.tell(
        NodeRemoved("id-a")
        if change == "removed"
        else make_node("a", cpu=1 if change == "shrunk" else 4, taints=taints)
    )
    cluster.run()
    assert not cluster.nominated()


def test_others_may_use_what_was_kept_for_a_nomination_that_fails():
    """Another scheduler takes 2 of the 4 cpu that the victim leaves: too few are left for its preemptor. The task of
    1 cpu came before the nomination failed, and nothing changes afterwards."""
    cluster = full_node(
        *(make_class(8, cpu=2, priority=200), make_class(9, cpu=1)),
        *(make_tasks([1], LOW, on="a"), make_tasks([2], HIGH)),
        cpu=4,
    )
    assert cluster.preempted(cluster.run()) == {1: 2}
    cluster.tell(make_tasks([3], 8, on="a"), removed(1), make_tasks([4], 9))
    assert cluster.round() == {}
    assert not cluster.nominated()
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {4: "a"}
    assert not cluster.scheduler.due(NOW_US), "2 waits, and has lost no further nomination"


def test_after_a_failover_the_nomination_and_the_terminating_victim_are_enough():
    cluster = full_node(
        make_tasks([1], LOW, on="a", leaving=True), make_tasks([2], HIGH, nominated="a"), make_tasks([3], MID), cpu=4
    )
    assert not cluster.preempted(cluster.run())
    cluster.tell(removed(1))
    assert cluster.round() == {2: "a"}


def test_what_the_round_has_placed_itself_goes_before_what_runs():
    cluster = preempting_cluster(
        *CLASSES,
        make_class(5, cpu=8, priority=100),
        make_node("a", cpu=8),
        make_node("b", cpu=8),
        make_tasks([1], LOW, on="a", started_us=NOW_US - 10**9),
        make_tasks([2], LOW, on="b"),
        make_tasks([3, 4], LOW),
        make_tasks([5], 5),
    )
    result = cluster.run()
    assert len(cluster.preempted(result)) == 1
    [node] = cluster.nominated().values()
    assert set(cluster.names(result).values()) == {"a", "b"} - {node}


def test_many_preemptors_share_victims_and_nodes():
    cluster = preempting_cluster(
        make_class(1, cpu=3),
        make_class(2, cpu=2, priority=5),
        *(make_node(f"n{n}", cpu=6) for n in range(20)),
        *(make_tasks([100 + 2 * n, 101 + 2 * n], 1, on=f"n{n}") for n in range(20)),
        make_tasks(range(30), 2),
    )
    result = cluster.run()
    # three preemptors for two victims of a node: ten nodes, not thirty victims
    assert len(cluster.nominated()) == 30
    assert len(cluster.preempted(result)) == 20
    cluster.tell(removed(*cluster.preempted(result)))
    assert len(cluster.round()) == 30


def test_ports_are_resources_like_others():
    cluster = preempting_cluster(
        make_class(1, cpu=1, tokens=["TCP:80"]),
        make_class(2, cpu=1, tokens=["TCP:80"], priority=1),
        make_node("a", cpu=4),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2),
    )
    assert cluster.preempted(cluster.run()) == {1: 2}


def test_what_the_round_has_placed_moves_if_that_serves_more():
    """The older task fits on both nodes and got the free one, which is the only one for the other."""
    cluster = preempting_cluster(
        make_class(1, cpu=4),
        make_class(2, cpu=4, priority=5),
        make_class(3, cpu=4, priority=5, demand=selecting(needs("disk"))),
        make_node("a", cpu=4, labels={"disk": ""}),
        make_node("b", cpu=4),
        make_tasks([1], 1, on="b"),
        make_tasks([2], 2, created_us=NOW_US - 3_600_000_000),
        make_tasks([3], 3),
    )
    result = cluster.run()
    assert cluster.names(result) == {3: "a"}
    assert cluster.preempted(result) == {1: 2}
    assert cluster.nominated() == {2: "b"}


def test_of_several_nominated_tasks_the_most_important_is_placed_first():
    cluster = full_node(
        make_tasks([1], LOW, on="a", leaving=True),
        make_tasks([2], LOW, on="a", leaving=True),
        make_tasks([3], MID, nominated="a"),
        make_tasks([4], HIGH, nominated="a"),
    )
    cluster.tell(removed(1))
    assert cluster.round() == {4: "a"}
    assert cluster.nominated() == {3: "a"}
    cluster.tell(removed(2))
    assert cluster.round() == {3: "a"}


def test_a_task_that_loses_its_place_of_the_round_gets_another_one_at_once():
    cluster = preempting_cluster(
        make_class(1, cpu=4),
        make_class(2, cpu=1),
        make_class(3, cpu=8, priority=100, demand=selecting(needs("disk"))),
        make_node("a", cpu=8, labels={"disk": ""}),
        make_node("b", cpu=7),
        make_tasks([1], 1, on="a"),
        make_tasks([11, 12, 13], 2, on="b"),
        make_tasks([2], 1),  # fits on both, and fewer tasks run on a
        make_tasks([3], 3),
    )
    result = cluster.run()
    assert cluster.preempted(result) == {1: 3}
    assert cluster.nominated() == {3: "a"}
    assert cluster.names(result) == {2: "b"}


@pytest.mark.parametrize("protected", [False, True])
def test_a_higher_priority_does_not_take_the_node_of_a_nominated_task_that_is_never_preempted(protected):
    cluster = full_node(
        make_tasks([1], LOW, on="a", leaving=True),
        make_tasks([2], MID, nominated="a", unevictable=protected),
        make_tasks([3], HIGH),
        cpu=4,
    )
    result = cluster.run()
    assert cluster.nominated() == ({2: "a"} if protected else {3: "a"})
    assert not cluster.preempted(result)
    cluster.tell(removed(1))
    assert cluster.round() == ({2: "a"} if protected else {3: "a"})
