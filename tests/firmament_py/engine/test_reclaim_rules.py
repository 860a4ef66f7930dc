"""Preemption by the rules of each kind of queues, in rounds: borrowing, fair sharing, shares, flavors."""

import numpy as np
import pytest

from firmament_py.model.queues import (
    BorrowWithin,
    Division,
    Flavor,
    Fungibility,
    QueueTree,
    Reclaim,
    ReclaimRules,
    Sharing,
    Within,
)
from firmament_py.preemption import reclaimer
from tests.builders import (
    NOW_US,
    SECOND_US,
    ended,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    removed,
    tasks_like,
)
from tests.firmament_py.engine.reclaiming import OLD_US, A, cluster_of, cohort, running
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree


def limited(b=None, *, reclaim=Reclaim.ANY, **fields):
    """Queue a is below x, b and c are below y."""
    return tree(
        queue("top"),
        queue("x", "top", quota(8)),
        queue("y", "top", quota(0), **fields),
        queue("a", "x", quota(0), reclaim=reclaim),
        queue("b", "y", quota(0), evictions_per_hour=b),
        queue("c", "y", quota(2), reclaim=reclaim),
    )


def lost(cluster, now_us=NOW_US):
    victims = cluster.preempted(cluster.run(now_us))
    if victims:
        cluster.tell(removed(*victims))
        cluster.run(now_us)
    return len(victims)


@pytest.mark.parametrize("above", [False, True], ids=["its own limit", "that of the queue above"])
def test_no_more_tasks_of_a_queue_are_evicted_in_an_hour_than_it_says(above):
    queues = limited(evictions_per_hour=3) if above else limited(3)
    cluster = cluster_of(queues, running(range(1, 9)), make_tasks([11, 12], 1, queue=A))
    hour_us = 3600 * SECOND_US
    assert lost(cluster) == 2
    cluster.tell(make_tasks([13, 14], 1, queue=A))
    assert lost(cluster, NOW_US + 60 * SECOND_US) == 1
    assert lost(cluster, NOW_US + 120 * SECOND_US) == 0
    assert cluster.scheduler.wake_us(NOW_US + 120 * SECOND_US) == NOW_US + hour_us
    assert cluster.scheduler.due(NOW_US + hour_us)
    assert lost(cluster, NOW_US + hour_us) == 1


def test_what_queues_below_the_same_one_evict_from_each_other_does_not_count_there():
    cluster = cluster_of(
        limited(evictions_per_hour=0), running(range(1, 9)), make_tasks([11, 12], 1, queue=queue_id("c"))
    )
    assert lost(cluster) == 2


def test_a_gang_that_needs_more_than_may_be_evicted_evicts_none():
    cluster = cluster_of(
        limited(3), running(range(1, 9)), make_gang(7, 4), make_tasks(range(11, 15), 1, queue=A, gang=7)
    )
    assert lost(cluster) == 0


def test_borrowing_within_the_cohort_needs_a_policy():
    def world(**fields):
        queues = tree(
            queue("top"),
            queue("a", "top", quota(1), reclaim=Reclaim.ANY, **fields),
            queue("b", "top", quota(1)),
            queue("c", "top", quota(6)),
        )
        return cluster_of(
            queues, running(range(1, 8)), running([9], cls=2, queue=A), make_tasks([11], 2, queue=A), cpu=8
        )

    assert world().run().preemption.is_empty
    cluster = world(borrow_within=BorrowWithin(lower_priority=True))
    assert len(cluster.preempted(cluster.run())) == 1


def test_a_task_that_borrows_takes_the_victim_that_it_may_take_while_borrowing(monkeypatch):
    """Ten tasks of b could leave if a did not borrow then. A more important one of its own leaves instead."""
    monkeypatch.setattr(reclaimer, "_SEARCHES", 2)
    borrowing = BorrowWithin(lower_priority=True, max_priority=-1)
    queues = tree(
        queue("top", "", quota(9)),
        queue("a", "top", quota(1), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY, borrow_within=borrowing),
        queue("b", "top", quota(1)),
    )
    of_b = [running([1 + i], on=f"n{i}") for i in range(10)]
    own = running([21], on="n10", cls=2, queue=A)
    waiting = make_class(3, cpu=1, priority=9), make_tasks([31], 3, queue=A)
    cluster = cluster_of(queues, *of_b, own, *waiting, nodes=[f"n{i}" for i in range(11)], cpu=1)
    assert cluster.preempted(cluster.run()) == {21: 31}


def test_a_task_that_may_not_take_from_others_takes_from_its_own_queue():
    """Ten tasks of b borrow less than a does: each of them is refused in the end."""
    queues = tree(
        queue("top", "", quota(19)),
        queue("a", "top", quota(1), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
        queue("b", "top", quota(1)),
        sharing=Sharing.FAIR,
    )
    of_b = [running([1 + i], on=f"n{i}") for i in range(10)]
    own = [running([21 + i], on=f"n{10 + i}", cls=1 if i == 0 else 2, queue=A) for i in range(11)]
    nodes = [f"n{i}" for i in range(21)]
    cluster = cluster_of(queues, *of_b, *own, make_tasks([41], 2, queue=A), nodes=nodes, cpu=1)
    assert cluster.preempted(cluster.run()) == {21: 41}


def test_fair_sharing_ends_at_equal_shares():
    queues = tree(
        queue("top", "", quota(8)),
        queue("a", "top", quota(0), reclaim=Reclaim.ANY),
        queue("b", "top", quota(0), reclaim=Reclaim.ANY),
        sharing=Sharing.FAIR,
    )
    cluster = cluster_of(queues, running(range(1, 9)), make_tasks(range(11, 19), 1, queue=A))
    for _ in range(4):
        victims = cluster.preempted(cluster.run())
        cluster.tell(*([ended(*victims)] if victims else []))
        placed = cluster.round()
        cluster.tell(*(make_tasks([uid], 1, on=node, queue=A) for uid, node in placed.items()))
    tasks = cluster.state.tasks
    on_nodes = tasks.queue[(tasks.node >= 0) & ~tasks.leaving]
    assert np.unique(on_nodes, return_counts=True)[1].tolist() == [4, 4]


def test_fair_sharing_takes_from_the_highest_share_whatever_the_priorities():
    queues = tree(
        queue("top", "", quota(6)),
        queue("a", "top", quota(2), reclaim=Reclaim.ANY),
        queue("b", "top", quota(0)),
        queue("c", "top", quota(0)),
        sharing=Sharing.FAIR,
    )
    of_b, of_c = running(range(1, 6), cls=2), running([11, 12, 13], queue=queue_id("c"))
    cluster = cluster_of(queues, of_b, of_c, make_tasks([21, 22], 1, queue=A))
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 2
    assert victims.keys() <= {*range(1, 6)}, "b borrows 5 and then 4, c 3"


def test_what_queues_are_entitled_to_comes_before_what_they_borrow():
    """Else c takes half of what a borrows, and d then takes from both: running tasks of c leave for nothing."""
    queues = tree(
        queue("top", "", quota(6)),
        queue("a", "top", quota(0), reclaim=Reclaim.ANY),
        queue("c", "top", quota(2), reclaim=Reclaim.ANY),
        queue("d", "top", quota(4), reclaim=Reclaim.ANY),
        sharing=Sharing.FAIR,
    )
    c, d = queue_id("c"), queue_id("d")
    first = make_tasks(range(21, 29), 1, queue=c, created_us=OLD_US)
    cluster = cluster_of(
        queues,
        running(range(1, 12), queue=A),
        running([12], queue=c),
        first,
        make_tasks(range(31, 35), 1, queue=d),
        cpu=12,
    )
    victims = cluster.preempted(cluster.run())
    assert victims.keys() <= {*range(1, 12)}
    assert len(victims) == 8, "a borrows 3 then, and so does c"
    assert cluster.nominated().keys() >= {31, 32, 33, 34}


def test_a_gang_is_entitled_to_what_covers_all_of_it():
    """Else the second gang borrows what d, whose tasks are newer, is entitled to."""
    queues = tree(
        queue("top"),
        queue("a", "top", quota(0), reclaim=Reclaim.ANY),
        queue("c", "top", quota(3), reclaim=Reclaim.ANY),
        queue("d", "top", quota(4), reclaim=Reclaim.ANY),
        sharing=Sharing.FAIR,
    )
    gangs = []
    for gang, uids in ((1, [21, 22, 23]), (2, [24, 25, 26])):
        tasks = make_tasks(uids, 1, queue=queue_id("c"), gang=gang, created_us=OLD_US + gang)
        gangs += [make_gang(gang, 3, whole=True), tasks]
    singles = make_tasks(range(31, 35), 1, queue=queue_id("d"))
    cluster = cluster_of(queues, running(range(1, 8), queue=A), *gangs, singles, cpu=7)
    assert cluster.preempted(cluster.run()).keys() == {*range(1, 8)}
    assert cluster.nominated().keys() == {21, 22, 23, 31, 32, 33, 34}


def test_kai_reclaims_up_to_the_fair_share():
    queues = tree(
        queue("a", "", quota(0)),
        queue("b", "", quota(0)),
        sharing=Sharing.PROPORTIONAL,
        division=Division.SURPLUS_BY_WEIGHT,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    cluster = cluster_of(queues, running(range(1, 9)), make_tasks(range(11, 19), 1, queue=A))
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 4


def test_in_a_department_the_queues_above_their_share_lose_first():
    """d has 6 of its 4; its queue c is within its share, and its tasks are newer."""
    queues = tree(
        queue("d", "", quota(4)),
        queue("e", "", quota(4)),
        queue("a", "e", quota(4)),
        queue("b", "d", quota(0)),
        queue("c", "d", quota(4)),
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    of_c = make_tasks([5, 6, 7, 8], 1, on="n", queue=queue_id("c"), created_us=NOW_US - 1, started_us=NOW_US - 1)
    cluster = cluster_of(queues, running(range(1, 5)), of_c, make_tasks(range(11, 15), 1, queue=A))
    assert set(cluster.preempted(cluster.run())) == {1, 2, 3, 4}


@pytest.mark.parametrize(("importance", "victims"), [((0, 1), {1, 2, 3, 4}), ((1, 0), {5, 6, 7, 8})])
def test_queues_of_lower_priority_lose_first(importance, victims):
    first, second = importance
    queues = tree(
        queue("a", "", quota(4)),
        queue("b", "", quota(0), priority=first),
        queue("c", "", quota(0), priority=second),
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    of_c = make_tasks([5, 6, 7, 8], 2, on="n", queue=queue_id("c"), created_us=OLD_US, started_us=OLD_US)
    cluster = cluster_of(queues, running(range(1, 5)), of_c, make_tasks(range(11, 15), 1, queue=A))
    assert set(cluster.preempted(cluster.run())) == victims


def test_what_is_reserved_for_a_task_that_has_waited_for_long_does_not_hinder_its_reclaim():
    """Quota suffices, so capacity is reserved for it; one of b's tasks stays in any case."""
    queues = tree(
        queue("a", "", quota(4)),
        queue("b", "", quota(4)),
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    large = make_class(3, cpu=3)
    cluster = cluster_of(queues, large, running(range(1, 9)), make_tasks([11], 3, queue=A, created_us=OLD_US))
    cluster.tell(running([1], unevictable=True))
    assert len(cluster.preempted(cluster.run())) == 3


def test_tasks_without_a_queue_preempt_by_priority_and_queues_do_not_preempt_them():
    cluster = cluster_of(cohort(), running(range(1, 9)), make_tasks([11], 2))
    assert len(cluster.preempted(cluster.run())) == 1
    cluster = cluster_of(cohort(), running(range(1, 9), queue=0), make_tasks([11], 2, queue=A))
    assert cluster.run().preemption.is_empty


# -- the choice of a flavor ---------------------------------------------------------------------------------------


def two_kinds(fungibility, **fields):
    """Queue b uses the quota of a on red nodes; a has quota on blue ones, too."""
    flavors = tuple(Flavor(name, {"kind": name}) for name in ("red", "blue"))
    quotas = quota(4, on="red/cpu"), quota(4, on="blue/cpu")
    queues = (
        queue("top"),
        queue("a", "top", *quotas, reclaim=Reclaim.ANY, fungibility=fungibility),
        queue("b", "top", quota(0, on="red/cpu")),
    )
    return cluster_of(
        QueueTree(queues, flavors),
        make_node("red", cpu=4, labels={"kind": "red"}),
        make_node("blue", cpu=4, labels={"kind": "blue"}),
        make_label_set(7),
        running(range(1, 5), on="red", **fields),
        make_tasks([11], 1, queue=A),
        nodes=(),
    )


def test_a_task_goes_to_the_next_flavor_or_preempts_on_the_first_as_its_queue_says():
    cluster = two_kinds(Fungibility())
    assert cluster.round() == {11: "blue"}
    cluster = two_kinds(Fungibility(try_next_to_avoid_preemption=False))
    result = cluster.run()
    assert len(cluster.preempted(result)) == 1
    assert cluster.nominated() == {11: "red"}


def test_a_task_whose_victims_are_not_found_takes_the_next_flavor():
    """Quota says that b gives back; a budget keeps its tasks."""
    cluster = two_kinds(Fungibility(try_next_to_avoid_preemption=False), label_set=7)
    cluster.tell(make_budget(1, tasks_like(), 0))
    result = cluster.run()
    assert result.preemption.is_empty
    assert cluster.names(result) == {}
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {11: "blue"}
    assert not cluster.scheduler.due(NOW_US)


@pytest.mark.parametrize(("first", "victims"), [("a", {}), ("b", {1: 2})])
def test_queues_that_deserve_one_resource_each_do_not_evict_each_other_in_turn(first, victims):
    """One task fits. b's uses 3 of 4 CPUs that b deserves, a's 2 of 3 of the memory, and each some of the other one."""
    described = tree(
        queue("top"),
        queue("a", "top", quota(0), quota(3, on="red/mem")),
        queue("b", "top", quota(4), quota(0, on="red/mem")),
        sharing=Sharing.PROPORTIONAL,
        division=Division.AS_STATED,
        reclaim_rules=ReclaimRules.DESERVED,
    )
    second = "b" if first == "a" else "a"
    cluster = cluster_of(described, make_node("n", cpu=4, mem=3), make_class(3, cpu=3, mem=2), nodes=())
    cluster.tell(running([1], 3, queue=queue_id(first)), make_tasks([2], 3, queue=queue_id(second)))
    assert cluster.preempted(cluster.run()) == victims
