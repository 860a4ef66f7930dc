"""Order of tasks over many rounds: age within a class, and no starvation of large tasks."""

import numpy as np
import pytest

from firmament_py.model.events import Outcome
from firmament_py.placement import list_scheduling, placer
from firmament_py.placement.placer import CLASSES_AT_ONCE
from firmament_py.policy import AnywherePolicy, Costs, waiting_cost
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_node, make_tasks, removed


def test_the_oldest_of_a_class_goes_first_whatever_its_uid():
    cluster = make_cluster(
        make_node("a", cpu=2),
        make_class(1, cpu=1),
        make_tasks([1, 2, 3, 4], 1, created_us=[NOW_US - s * SECOND_US for s in (0, 9, 7, 8)]),
    )
    assert set(cluster.round()) == {2, 4}


def test_of_two_classes_that_compete_for_a_slot_the_older_task_goes_first():
    cluster = make_cluster(
        *(make_node("a", cpu=1, memory=1), make_class(1, cpu=1), make_class(2, cpu=1, memory=1)),
        *(make_tasks([1], 1), make_tasks([2], 2, created_us=NOW_US - 60 * SECOND_US)),
    )
    assert cluster.round() == {2: "a"}


def test_the_higher_priority_goes_first_whatever_the_age():
    cluster = make_cluster(
        *(make_node("a", cpu=1), make_class(1, cpu=1, priority=1), make_class(2, cpu=1)),
        *(make_tasks([1], 1), make_tasks([2], 2, created_us=0)),
    )
    assert cluster.round() == {1: "a"}


def test_lower_priorities_get_capacity_that_higher_ones_cannot_use():
    # 10 cpu: one of the two 6-cpu tasks, then the 4 that are left go to the small ones in the same round
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_class(1, cpu=6, priority=9), make_class(2, cpu=2)),
        *(make_tasks([1, 2], 1), make_tasks([3, 4, 5], 2)),
    )
    placed = cluster.round()
    assert len({1, 2} & set(placed)) == 1
    assert len({3, 4, 5} & set(placed)) == 2


class Opposed:
    """Larger nodes cost less for high priorities, smaller ones for the others."""

    name = "opposed"

    def costs(self, view):
        large = view.allocatable[:, 1] > view.allocatable[:, 1].min()
        important = view.priority == view.priority.max()
        place = np.where(important[:, None] != large, 1000, 0)
        return Costs(place.astype(np.int64), np.zeros((1, 1), np.int64), waiting_cost(view))


def test_a_task_turned_away_is_placed_again_before_lower_priorities(monkeypatch):
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    # both large ones are sent to a, where one fits, and the small ones to b, where the other would fit without them
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_node("b", cpu=6)),
        *(make_class(1, cpu=6, priority=9), make_class(2, cpu=6, priority=9), make_class(3, cpu=1)),
        *(make_tasks([1], 1), make_tasks([2], 2), make_tasks(range(10, 14), 3)),
        policy=Opposed(),
    )
    placed = cluster.round()
    assert sorted((placed[1], placed[2])) == ["a", "b"]
    assert [placed[uid] for uid in range(10, 14)] == ["a"] * 4


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_priorities_that_are_turned_away_share_the_flows_of_a_stage(monkeypatch, flows):
    """The largest node costs least for all; of each priority one of two tasks fits there, or none."""
    monkeypatch.setattr(placer, "FLOWS_PER_STAGE", flows)
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    nodes = [make_node("large", cpu=21), *(make_node(f"n{i}", cpu=6) for i in range(30))]
    cluster = make_cluster(*nodes, make_class(99, cpu=1), make_tasks(range(900, 930), 99), policy=Crowding())
    for priority in range(1, 9):
        for k in (0, 1):
            cls = 10 * priority + k
            cluster.tell(make_class(cls, cpu=5 + k, priority=priority), make_tasks([cls], cls))
    result = cluster.run()
    assert result.stats.solves <= flows
    assert {10 * p + k for p in range(1, 9) for k in (0, 1)} <= set(cluster.names(result))


class Crowding:
    """The largest node costs nothing."""

    name = "crowding"

    def costs(self, view):
        cost = np.where(view.allocatable[:, 1] == view.allocatable[:, 1].max(), 0, 1000)
        return Costs(cost[None].astype(np.int64), np.zeros((1, 1), np.int64), waiting_cost(view))


def test_a_stream_of_small_tasks_does_not_starve_a_large_one():
    """A node becomes empty again and again; a task that needs all of it has been waiting for a month."""
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_class(1, cpu=10), make_class(2, cpu=1)),
        make_tasks([1], 1, created_us=NOW_US - 30 * 86_400 * SECOND_US),
    )
    for step in range(1, 6):
        now = NOW_US + step * 3600 * SECOND_US
        small = range(100 * step, 100 * step + 10)
        cluster.tell(make_tasks(small, 2, created_us=now))
        if 1 in cluster.round(now):
            return
        cluster.tell(removed(*small))
    pytest.fail("placed nothing but the small ones")


def test_a_failed_round_is_due_again(monkeypatch):
    cluster = make_cluster(
        make_node("a"), make_class(1), make_class(2), make_tasks([1], 1), make_tasks([2], 2)
    )  # those of one class need no solver
    with monkeypatch.context() as patch:
        patch.setattr("firmament_py.admission.queue_order.place_nominated", lambda: None)  # takes no placer
        with pytest.raises(TypeError):
            cluster.scheduler.run(NOW_US)
    cluster.state.validate()
    assert cluster.scheduler.due(NOW_US)


class Scribbling:
    """Changes its view: all costs become 0."""

    name = "scribbling"

    def costs(self, view):
        view.requests[:] = 0
        raise RuntimeError("and then breaks down")


def test_a_policy_cannot_change_its_view():
    cluster = make_cluster(make_node("a", cpu=3), make_class(1, cpu=2), make_tasks([1, 2, 3], 1), policy=Scribbling())
    result = cluster.scheduler.run(NOW_US)
    assert (result.stats.placed, result.stats.dropped) == (1, 0)


class Renaming:
    """Changes the attributes of a class in its view."""

    name = "renaming"

    def costs(self, view):
        view.traits[0]["kind"] = "mine"
        return AnywherePolicy().costs(view)


def test_a_policy_cannot_change_a_class():
    tame = make_class(1, traits={"kind": "tame"})
    cluster = make_cluster(make_node("a"), tame, make_tasks([1], 1), policy=Renaming())
    assert "TypeError" in cluster.run().stats.fallback
    assert cluster.tell(tame) == [Outcome()], "told again, it is the same class"


@pytest.mark.parametrize("cells", [0, 4_000_000])
@pytest.mark.parametrize("row", [2, CLASSES_AT_ONCE + 44])
def test_the_oldest_goes_first_however_many_classes_wait(row, cells, monkeypatch):
    monkeypatch.setattr(placer, "CELLS_AT_ONCE", cells)
    classes = CLASSES_AT_ONCE + 100
    cluster = make_cluster(
        make_node("a", cpu=1, memory=10**6, pods=1),
        *(make_class(c, cpu=1, memory=c) for c in range(1, classes + 1)),
        *(
            make_tasks([c], c, created_us=NOW_US - (7 * 86_400 if c == row else 1) * SECOND_US)
            for c in range(1, classes + 1)
        ),
    )
    assert cluster.round() == {row: "a"}
