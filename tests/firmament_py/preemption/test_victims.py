"""Which tasks are evicted: the least important, the fewest, the youngest; within budgets; as the policy says."""

import numpy as np

from firmament_py.model.options import Preempting
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    make_budget,
    make_class,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)
from tests.firmament_py.preemption.priorities import CLASSES, HIGH, LOW, MID, full_node


def test_the_lowest_priority_is_evicted_first_then_the_fewest_then_the_youngest():
    cluster = preempting_cluster(
        *CLASSES,
        make_class(4, cpu=2),
        *(make_node(name, cpu=4) for name in "abcd"),
        make_tasks([1], MID, on="a"),
        make_tasks([2, 3], 4, on="b"),
        make_tasks([4], LOW, on="c", started_us=NOW_US - 3_600_000_000),
        make_tasks([5], LOW, on="d", started_us=NOW_US - 60_000_000),
        make_tasks([6], HIGH),
    )
    assert cluster.preempted(cluster.run()) == {5: 6}
    cluster.tell(make_tasks([7], HIGH))
    assert cluster.preempted(cluster.run()) == {4: 7}
    cluster.tell(make_tasks([8], HIGH))
    assert cluster.preempted(cluster.run()) == {2: 8, 3: 8}
    cluster.tell(make_tasks([9], HIGH))
    assert cluster.preempted(cluster.run()) == {1: 9}
    cluster.tell(make_tasks([10], HIGH))
    assert not cluster.preempted(cluster.run())


def test_no_more_are_evicted_than_must():
    small, large = make_class(4, cpu=1), make_class(5, cpu=3, priority=100)
    cluster = full_node(
        small, large, make_tasks([1], LOW, on="a"), make_tasks([2, 3, 4, 5], 4, on="a"), make_tasks([6], 5)
    )
    assert set(cluster.preempted(cluster.run())) == {1}  # one of 4 cpu, not three of 1


def test_a_budget_holds():
    web = make_label_set(1, app="web")
    cluster = full_node(
        web,
        make_budget(1, tasks_like(needs("app")), 0),
        make_tasks([1], LOW, on="a", label_set=1),
        make_tasks([2], MID, on="a"),
        make_tasks([3], HIGH),
    )
    assert cluster.preempted(cluster.run()) == {2: 3}  # although its priority is higher
    cluster.tell(make_tasks([4], HIGH))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_budget(1, tasks_like(needs("app")), 1))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.preempted(cluster.run()) == {1: 4}


def test_a_budget_counts_all_evictions_of_a_round():
    cluster = preempting_cluster(
        *CLASSES,
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 2),
        *(make_node(f"n{n}", cpu=4) for n in range(4)),
        *(make_tasks([n], LOW, on=f"n{n}", label_set=1) for n in range(4)),
        make_tasks(range(10, 14), HIGH),
    )
    assert len(cluster.preempted(cluster.run())) == 2
    assert len(cluster.nominated()) == 2


def test_a_budget_counts_victims_that_it_does_not_know_yet():
    """The number that it permits follows an eviction with delay."""
    web = tasks_like(needs("app"))
    cluster = preempting_cluster(
        *CLASSES,
        make_label_set(1, app="web"),
        make_budget(1, web, 2),
        *(make_node(f"n{n}", cpu=4) for n in range(4)),
        *(make_tasks([n], LOW, on=f"n{n}", label_set=1) for n in range(4)),
        make_tasks([10], HIGH),
    )
    [victim] = cluster.preempted(cluster.run())
    cluster.tell(make_tasks([11, 12], HIGH))
    assert len(cluster.preempted(cluster.run())) == 1
    cluster.tell(make_budget(1, web, 1))  # knows one of them
    assert not cluster.preempted(cluster.run())
    cluster.tell(removed(victim))
    cluster.run()
    assert len(cluster.state.tasks.uid[cluster.state.tasks.preempted]) == 1
    cluster.tell(make_budget(1, web, 0), make_budget(1, web, 1))
    assert len(cluster.preempted(cluster.run())) == 1


def test_budgets_may_be_exceeded_as_a_last_resort():
    cluster = preempting_cluster(
        *CLASSES,
        make_label_set(1, app="web"),
        make_budget(1, tasks_like(needs("app")), 0),
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        make_tasks([1], LOW, on="a", label_set=1),
        make_tasks([2], MID, on="b"),
        make_tasks([3], HIGH),
        preempting=Preempting.BEYOND_BUDGETS,
    )
    assert cluster.preempted(cluster.run()) == {2: 3}
    cluster.tell(make_tasks([4], HIGH))
    assert cluster.preempted(cluster.run()) == {1: 4}


def test_static_pods_and_those_that_leave_are_spared():
    cluster = preempting_cluster(
        *CLASSES,
        *(make_node(name, cpu=4) for name in "ac"),
        make_tasks([1], LOW, on="a", unevictable=True),
        make_tasks([3], LOW, on="c", leaving=True),
        make_tasks([4, 5], HIGH),
    )
    result = cluster.run()
    assert not cluster.preempted(result)
    assert len(cluster.nominated()) == 1
    assert set(cluster.nominated().values()) == {"c"}


def test_a_task_that_has_saved_its_work_loses_less():
    cluster = preempting_cluster(
        *CLASSES,
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        make_tasks([1], LOW, on="a", started_us=NOW_US - 7_200_000_000, checkpoint_us=NOW_US - 1_000_000),
        make_tasks([2], LOW, on="b", started_us=NOW_US - 3_600_000_000),
        make_tasks([3], HIGH),
    )
    assert cluster.preempted(cluster.run()) == {1: 3}


class Sparing(LoadSpreading):
    """Large tasks are evicted rather than small ones."""

    def __init__(self, cost):
        super().__init__()
        self._cost = cost

    def eviction_costs(self, victims):
        assert "cpu" in victims.resources
        cpu = victims.requests[:, victims.resources.index("cpu")]
        return np.full(len(victims.task_class), self._cost) // cpu[victims.task_class]


def test_the_policy_says_what_an_eviction_costs():
    cluster = preempting_cluster(
        make_class(1, cpu=2),
        make_class(2, cpu=4),
        make_class(3, cpu=4, priority=1),
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        make_tasks([1, 2], 1, on="a"),
        make_tasks([3], 2, on="b"),
        make_tasks([4], 3),
        policy=Sparing(1000),
    )
    assert cluster.preempted(cluster.run()) == {3: 4}


def test_a_policy_that_fails_is_ignored():
    cluster = full_node(make_tasks([1], LOW, on="a"), make_tasks([2], HIGH), cpu=4, policy=Sparing(0))
    result = cluster.run()
    assert cluster.preempted(result) == {1: 2}
    assert "eviction_costs() leaves the range" in result.stats.fallback
