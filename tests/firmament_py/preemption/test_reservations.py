"""Preemption by tasks that have waited for so long that capacity is reserved for them: it is theirs to use."""

import numpy as np
import pytest

from firmament_py.eviction.evict import evict
from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.events import NodeRemoved
from firmament_py.preemption.decision import EvictionSearch
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)

OVERDUE_US = NOW_US - 400 * SECOND_US
LOW, HIGH, LARGE, ALONE = 1, 2, 3, 4
APART = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "web")), "kubernetes.io/hostname"),))


def full_node(*waiting):
    """A node of 4 CPUs with one task that may not be evicted and three that may."""
    return preempting_cluster(
        make_node("a", cpu=4, labels={"kubernetes.io/hostname": "a"}),
        make_label_set(1, app="web"),
        make_class(LOW, cpu=1),
        make_class(HIGH, cpu=1, priority=5),
        make_class(LARGE, cpu=3, priority=5),
        make_class(ALONE, cpu=3, priority=5, peers=APART),
        make_tasks([1], LOW, on="a", unevictable=True),
        make_tasks([2, 3, 4], LOW, on="a", label_set=1),
        *waiting,
    )


@pytest.mark.parametrize("created_us", [NOW_US, OVERDUE_US])
@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(lambda at: [make_tasks([11], LARGE, created_us=at)], id="a task"),
        pytest.param(
            lambda at: [make_gang(7, 3, created_us=at), make_tasks([11, 12, 13], HIGH, gang=7, created_us=at)],
            id="a gang",
        ),
        pytest.param(lambda at: [make_tasks([11], ALONE, created_us=at)], id="a task with constraints"),
    ],
)
def test_what_is_reserved_for_a_preemptor_is_free_for_it(waiting, created_us):
    cluster = full_node(*waiting(created_us))
    assert set(cluster.preempted(cluster.run())) == {2, 3, 4}
    assert set(cluster.nominated().values()) == {"a"}


def one_is_served():
    """The budget permits one eviction, and task 10 has the higher priority. So 8 CPUs of node b stay reserved for task
    11, of which task 12 would take the 4 that are free."""
    return preempting_cluster(
        make_node("a", cpu=8),
        make_node("b", cpu=8),
        make_label_set(1, app="web"),
        make_budget(9, tasks_like(needs("app", "In", "web")), 1),
        make_class(5, cpu=4),
        make_class(6, cpu=4, priority=5),
        make_class(7, cpu=8, priority=5),
        make_class(8, cpu=8, priority=9),
        make_tasks([1], 5, on="a", label_set=1),
        make_tasks([2], 5, on="b", label_set=1),
        make_tasks([10], 8),
        make_tasks([11], 7, created_us=OVERDUE_US),
        make_tasks([12], 6, created_us=OVERDUE_US + SECOND_US),
    )


def test_what_is_reserved_for_a_task_that_is_not_served_is_not_free_for_other_preemptors():
    cluster = one_is_served()
    result = cluster.run()
    assert list(cluster.preempted(result).values()) == [10]
    assert cluster.names(result) == {}
    assert set(cluster.nominated()) == {10}


def test_costs_of_victims_are_shared_also_where_a_reservation_stays(monkeypatch):
    values: list[list[float]] = []

    def noting(arrivals, residents, *others, **options):
        values.append(residents.value.tolist())
        return evict(arrivals, residents, *others, **options)

    def sharing(search, question, **options):
        if "shared_by" in options:
            return decide(search, question, **options)
        shared_by = np.full(search.state.tasks.capacity, 4)
        return decide(search, question, **options, shared_by=shared_by)

    decide = EvictionSearch.decide
    with monkeypatch.context() as patched:
        patched.setattr("firmament_py.preemption.decision.evict", noting)
        one_is_served().run()
        alone = values.copy()
        patched.setattr(EvictionSearch, "decide", sharing)
        values.clear()
        one_is_served().run()
    assert len(alone) > 1
    assert values == [[value / 4 for value in each] for each in alone]


def test_a_preemptor_waits_for_its_victim_beside_what_is_reserved():
    """4 CPUs are free, and reserved for task 11, which never preempts: task 12 takes those of its victim instead."""
    cluster = preempting_cluster(
        make_node("a", cpu=8),
        make_class(5, cpu=4),
        make_class(6, cpu=8, priority=5, never_preempts=True),
        make_class(7, cpu=4, priority=5),
        make_tasks([1], 5, on="a"),
        make_tasks([11], 6, created_us=OVERDUE_US),
    )
    assert cluster.names(cluster.run()) == {}
    cluster.tell(make_tasks([12], 7))
    result = cluster.run()
    assert cluster.preempted(result) == {1: 12}
    assert cluster.names(result) == {}
    assert cluster.nominated() == {12: "a"}


def test_what_is_free_is_not_reserved_from_a_preemptor_of_higher_priority():
    """2 of 8 CPUs are free, and reserved for task 11: task 12 needs them as well."""
    cluster = preempting_cluster(
        make_node("a", cpu=8),
        make_class(6, cpu=3, priority=10),
        make_class(7, cpu=8, priority=50),
        make_tasks([1, 2], 6, on="a"),
        make_tasks([11], 6, created_us=OVERDUE_US),
        make_tasks([12], 7),
    )
    assert cluster.preempted(cluster.run()) == {1: 12, 2: 12}


def beside_a_task_that_leaves(*, holder_us):
    """One of 5 CPUs is free, another one is about to be. Task 3, which never preempts, needs both. Tasks 4 and 5, of a
    lower priority, need one each."""
    return preempting_cluster(
        *(make_node("n", cpu=5), make_class(1, cpu=3, priority=5), make_class(2, cpu=1)),
        *(make_class(3, cpu=2, priority=9, never_preempts=True), make_class(4, cpu=1, priority=5)),
        *(make_tasks([1], 1, on="n"), make_tasks([2], 2, on="n", leaving=True)),
        *(make_tasks([3], 3, created_us=holder_us), make_tasks([4, 5], 4)),
    )


def test_what_is_about_to_leave_is_for_the_task_that_it_is_reserved_for():
    """A lower-priority task is not nominated either: each round would end the nomination that the last one made."""
    cluster = beside_a_task_that_leaves(holder_us=OVERDUE_US)
    for _ in range(3):
        assert cluster.round() == {}
        assert cluster.nominated() == {}
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(removed(2))
    assert cluster.round() == {3: "n"}


def test_there_may_be_no_nodes():
    """All that ran on the last one is still known: it could leave."""
    cluster = beside_a_task_that_leaves(holder_us=OVERDUE_US)
    cluster.round()
    cluster.tell(NodeRemoved("id-n"))
    assert cluster.round() == {}


def test_no_task_loses_its_place_to_a_reservation_that_is_made_after_it():
    """Task 4 is placed where it was nominated in the round in which task 3 has waited for long. Task 5 preempts for
    itself in vain, on the same node."""
    cluster = preempting_cluster(
        *(make_node("n", cpu=4), make_class(2, cpu=1), make_class(4, cpu=2, priority=5)),
        *(make_class(3, cpu=3, priority=9, never_preempts=True), make_tasks(range(11, 15), 2, on="n")),
        make_tasks([4], 4),
    )
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 2
    assert cluster.nominated() == {4: "n"}
    cluster.tell(removed(*victims), make_tasks([5], 4), make_tasks([3], 3, created_us=OVERDUE_US))
    assert cluster.round() == {4: "n"}
