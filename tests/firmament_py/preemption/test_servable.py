"""Gangs and tasks that no evictions and moves can serve: no search begins for them, and gangs learn how far it is."""

from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest

from firmament_py.explain.reason import ReasonKind
from firmament_py.model.options import Preempting
from firmament_py.preemption.decision import EvictionSearch
from firmament_py.preemption.servable import Servable
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
from tests.effort import examples
from tests.firmament_py.preemption.moving import LARGE as MOVING_LARGE
from tests.firmament_py.preemption.moving import SMALL, URGENT, VITAL, fixed, movable, moving_cluster
from tests.firmament_py.preemption.priorities import HIGH, LARGE, LOW, MID, nodes_with, on_each
from tests.firmament_py.preemption.test_gang_worlds import GangWorld


def bounds(result):
    """Values of the reasons that evictions and moves do not help, by gang."""
    reasons = {reason for waiting in result.waiting for reason in waiting.reasons}
    return {reason.detail: reason.value for reason in reasons if reason.kind == ReasonKind.NOT_BY_PREEMPTION}


def searches(cluster, *args):
    """The outcome of a round, and how many searches it began."""
    with patch.object(EvictionSearch, "decide", autospec=True, side_effect=EvictionSearch.decide) as decide:
        return cluster.run(*args), decide.call_count


GANG = make_gang(7, 3), make_tasks([11, 12, 13], HIGH, gang=7)


@pytest.mark.parametrize(
    ("third", "at_best"),
    [
        pytest.param(make_tasks([3], HIGH, on="c"), "2/3", id="one priority is not lower"),
        pytest.param(make_tasks([3], LOW, on="c", unevictable=True), "2/3", id="one is static"),
        pytest.param(make_tasks([3], LOW, on="c", label_set=1), "2/3", id="one is in a budget"),
        pytest.param(make_tasks([3], LOW, on="c", leaving=True), None, id="one leaves"),
        pytest.param(make_tasks([3], LOW, on="c"), None, id="all may be evicted"),
    ],
)
def test_a_gang_learns_how_many_members_evictions_can_serve(third, at_best):
    events = make_label_set(1, app="web"), make_budget(1, tasks_like(needs("app")), 0)
    cluster = nodes_with(*events, *on_each([1, 2], "ab"), third, *GANG)
    result, begun = searches(cluster)
    assert bounds(result) == ({} if at_best is None else {"gang-7": at_best})
    assert (begun == 0) == (at_best is not None)
    assert bool(cluster.nominated()) == (at_best is None)


def test_members_above_the_minimum_of_a_gang_are_limited():
    low = make_gang(5, 2), make_tasks([1], LOW, on="a", gang=5), make_tasks([2, 3], LOW, on="b", gang=5)
    above = make_tasks([4], HIGH, on="b"), make_gang(7, 2), make_tasks([11, 12], MID, gang=7)
    # the gang keeps a member of higher priority, so that it is not evicted as a whole, and one of four may go
    whole = make_tasks([9], HIGH, on="c", gang=5)
    cluster = preempting_cluster(
        *(make_class(number, cpu=4, priority=priority) for number, priority in ((LOW, 0), (MID, 10), (HIGH, 100))),
        *(make_node(name, cpu=cpu) for name, cpu in (("a", 4), ("b", 12), ("c", 4))),
        *low,
        *above,
        whole,
    )
    cluster.tell(make_gang(5, 3))
    result, begun = searches(cluster)
    assert (bounds(result), begun) == ({"gang-7": "1/2"}, 0)


def test_single_tasks_are_left_out_of_the_search_when_none_could_fit():
    cluster = nodes_with(*on_each([1, 2, 3], "abc", HIGH), make_tasks([11], HIGH), make_tasks([12], MID))
    cluster.tell(make_tasks([4], LOW))
    assert searches(cluster)[1] == 0
    cluster.tell(removed(1), make_tasks([5], LOW, on="a"))
    result, begun = searches(cluster)
    assert begun > 0
    assert set(cluster.preempted(result).values()) == {11}


def test_what_a_more_important_task_evicts_may_serve_others():
    """A task of 4 cpu evicts one of 8, which leaves 4 for one that may not evict that."""
    cluster = preempting_cluster(
        make_class(1, cpu=8, priority=50),
        make_class(2, cpu=4, priority=100),
        make_class(3, cpu=4, priority=10),
        make_class(4, cpu=2),
        make_node("a", cpu=8),
        make_node("b", cpu=2),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 4, on="b"),
        make_tasks([11], 2),
        make_gang(7, 1),
        make_tasks([12], 3, gang=7),
    )
    result = cluster.run()
    assert bounds(result) == {}
    assert set(cluster.preempted(result)) == {1}
    assert cluster.nominated() == {11: "a", 12: "a"}


def test_members_that_a_gang_needs_stay():
    """Gang 5 has its minimum, and a member of higher priority, so that it is not evicted as a whole either."""
    needed = make_gang(5, 2), make_tasks([1], LOW, on="a", gang=5), make_tasks([2], HIGH, on="b", gang=5)
    cluster = nodes_with(*needed, make_tasks([3], LOW, on="c"), make_gang(7, 2), make_tasks([11, 12], MID, gang=7))
    result, begun = searches(cluster)
    assert (bounds(result), begun) == ({"gang-7": "1/2"}, 0)


def test_a_place_that_is_kept_for_a_less_important_task_counts():
    """Node `a` is kept for task 10 until task 1 has left."""
    kept_for = make_tasks([1], LOW, on="a", leaving=True), make_tasks([10], MID, nominated="a")
    gang = make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7)
    cluster = nodes_with(*kept_for, make_tasks([2], LOW, on="b"), *gang, names="ab")
    assert bounds(cluster.run()) == {}
    assert cluster.nominated() == {11: "a", 12: "b"}


def test_gangs_of_different_classes_have_bounds_of_their_own():
    """Gang 8 requests two nodes of 8 cpu, both of which are full of tasks of its own priority."""
    nodes = make_node("c", cpu=8), make_node("d", cpu=8)
    large = *nodes, make_tasks([3, 4], HIGH, on="c"), make_tasks([5, 6], HIGH, on="d")
    gangs = make_gang(7, 2), make_tasks([11, 12], HIGH, gang=7), make_gang(8, 2), make_tasks([21, 22], LARGE, gang=8)
    cluster = nodes_with(*on_each([1, 2], "ab"), *large, *gangs, names="ab")
    assert bounds(cluster.run()) == {"gang-8": "0/2"}
    assert cluster.nominated() == {11: "a", 12: "b"}


def test_a_task_that_may_be_evicted_or_moved_leaves_once():
    """It could go to `b`."""
    vital = fixed(2, "a", VITAL), fixed(3, "b", VITAL)
    gang = make_gang(7, 1), make_tasks([11], URGENT, gang=7)
    cluster = moving_cluster(movable(1, "a"), *vital, *gang, preempting=Preempting.WITHIN_BUDGETS)
    result, begun = searches(cluster)
    assert (bounds(result), begun) == ({"gang-7": "0/1"}, 0)


@pytest.mark.parametrize("topology", [{}, {"topology": "zone"}], ids=["anywhere", "in a zone"])
def test_bounds_are_calculated_for_the_highest_priorities(topology, monkeypatch):
    """The second gang could be served, as far as is known, and is searched for unless its domains are needed."""
    monkeypatch.setattr("firmament_py.preemption.servable._PRIORITIES", 1)
    important = make_gang(7, 4), make_tasks([11, 12, 13, 14], HIGH, gang=7)
    other = make_gang(8, 4, **topology), make_tasks([21, 22, 23, 24], MID, gang=8)
    cluster = nodes_with(*on_each([1, 2, 3], "abc"), *important, *other)
    result, begun = searches(cluster)
    assert bounds(result) == {"gang-7": "3/4"}
    assert (begun > 0) == (not topology)


def test_movers_need_places_of_their_own():
    """Two nodes of 8 with 10 in use: a task of 8 leaves 8 for them."""
    running = movable(1, "a", SMALL), movable(2, "b", SMALL), movable(3, "a"), fixed(4, "b", SMALL)
    cluster = moving_cluster(*running, make_gang(7, 1), make_tasks([11], MOVING_LARGE, gang=7))
    result, begun = searches(cluster)
    assert (bounds(result), begun) == ({"gang-7": "0/1"}, 0)
    cluster.tell(removed(1))
    assert cluster.migrating(cluster.run(NOW_US + 2 * SECOND_US))


def test_no_more_members_fit_than_moves_are_allowed():
    running = [movable(uid, name) for uid, name in enumerate("abcd", start=1)]
    gang = make_gang(7, 2), make_tasks([11, 12], MOVING_LARGE, gang=7)
    cluster = moving_cluster(*running, *gang, names="abcd", moves_at_once=1)
    result, begun = searches(cluster)
    assert (bounds(result), begun) == ({"gang-7": "1/2"}, 0)
    assert len(moving_cluster(*running, *gang, names="abcd", moves_at_once=2).run().migration.tasks) == 2


def test_the_bound_is_recalculated_only_when_something_has_changed():
    running = movable(1, "a"), movable(2, "a"), movable(3, "b")
    gang = make_gang(7, 1), make_tasks([11], MOVING_LARGE, gang=7)
    cluster = moving_cluster(*running, *gang)
    with patch("firmament_py.preemption.servable.ServedBound.together", return_value=0) as together:
        for second in range(1, 4):
            assert bounds(cluster.run(NOW_US + second * SECOND_US)) == {"gang-7": "0/1"}
        assert together.call_count == 1
        cluster.tell(make_node("c", cpu=2))
        cluster.run(NOW_US + 5 * SECOND_US)
        assert together.call_count == 2


class Unfiltered(Servable):
    """Notes what it rules out, uids of single tasks and of the members of gangs, and lets the search try all."""

    singles: ClassVar[set[int]]
    gangs: ClassVar[list[set[int]]]

    def of(self, singles, demands):
        some, left = super().of(singles, demands)
        uid = self._ledger.snapshot.task_uid
        ruled_out = [demand for demand in demands if demand.key in self.at_best]
        assert len(left) + len(ruled_out) == len(demands)
        Unfiltered.singles = set(uid[np.setdiff1d(singles, some)].tolist())
        Unfiltered.gangs = [set(uid[demand.members].tolist()) for demand in ruled_out]
        for demand in ruled_out:
            if demand.topology_required:
                domain = self._ledger.snapshot.domains_for(demand)
                self.within[demand.key] = [[domain == d for d in range(domain.max() + 1)]]
        return singles, demands


class ProvedWorld(GangWorld):
    """What is ruled out is not served by a search that tries it all the same."""

    def round(self):
        Unfiltered.singles, Unfiltered.gangs = set(), []
        with patch("firmament_py.preemption.preemptor.Servable", Unfiltered):
            changed = super().round()
        nominated = set(self.cluster.nominated())
        served = nominated | {uid for uid, task in self.tasks.items() if task.on is not None}
        assert not Unfiltered.singles & served, "a task is served that was ruled out"
        assert not any(members & nominated for members in Unfiltered.gangs), "a gang is served that was ruled out"
        return changed


class ProvedWorldBeyondBudgets(ProvedWorld):
    preempting = Preempting.BEYOND_BUDGETS


TestProvedWorld = pytest.mark.slow(ProvedWorld.TestCase)
TestProvedWorld.settings = examples(16, steps=20)
TestProvedWorldBeyondBudgets = pytest.mark.slow(ProvedWorldBeyondBudgets.TestCase)
TestProvedWorldBeyondBudgets.settings = examples(6, steps=20)
