"""Whole rounds on random clusters, checked by the oracle: no over-commitment, no node that a task must avoid, no task
placed twice, no waiting task that fits, an optimum each time, and equal placements for equal events."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import firmament_py.engine.round
from firmament_py.flow.network import Solution, Status
from firmament_py.model.events import NodeRemoved, PlacementRejected
from firmament_py.network import cheapest_slots
from firmament_py.placement import placer
from firmament_py.policy import COST_MAX, WAIT_MIN, AnywherePolicy, Costs, waiting_cost
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_node, make_tasks, removed
from tests.effort import examples
from tests.firmament_py.engine.random_rounds import (
    POLICIES,
    RESERVE_AFTER,
    Portions,
    assert_solved_to_optimum,
    carry_out,
    clusters,
    inversions,
    left_over,
    unexplained,
    world_of,
)
from tests.firmament_py.oracle import PlainTask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters(), reserve_after_us=RESERVE_AFTER)
def test_a_round_keeps_constraints_and_leaves_no_task_that_fits(policy, events, reserve_after_us):
    cluster, world = make_cluster(*events, policy=policy, reserve_after_us=reserve_after_us), world_of(events)
    placements = cluster.round()
    carry_out(world, placements)
    assert unexplained(cluster, world) == []
    assert cluster.waiting() == {uid for uid, task in world.tasks.items() if task.state == "waiting"}
    event(f"placed: {min(len(placements), 3)}")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(
    events=clusters(),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=5),
    reserve_after_us=RESERVE_AFTER,
)
def test_many_rounds_with_changes_in_between(policy, events, steps, reserve_after_us):
    """Tasks end, placements are rejected, nodes leave and come back smaller; the next round uses the capacity."""
    cluster, world = make_cluster(*events, policy=policy, reserve_after_us=reserve_after_us), world_of(events)
    for kind, which in steps:
        carry_out(world, cluster.round())
        assert unexplained(cluster, world) == []
        in_use = sorted(uid for uid, task in world.tasks.items() if task.node in world.nodes)
        nodes = sorted(world.nodes)
        if kind == 0 and in_use:
            uid = in_use[which % len(in_use)]
            cluster.tell(removed(uid))
            del world.tasks[uid]
        elif kind == 1 and nodes:
            gone = nodes[which % len(nodes)]
            cluster.tell(NodeRemoved(gone))
            del world.nodes[gone]
        elif kind == 2 and nodes:
            old = world.nodes[nodes[which % len(nodes)]]
            new = make_node(old.name, pods=9, cpu=which, memory=4, labels=old.labels)
            cluster.tell(new)
            world.nodes[new.id] = new
        elif kind == 3:
            assumed = sorted(uid for uid, task in world.tasks.items() if task.state == "assumed")
            if assumed:
                uid = assumed[which % len(assumed)]
                cluster.tell(PlacementRejected(uid, world.tasks[uid].node or ""))
                world.tasks[uid] = PlainTask(world.tasks[uid].cls)


@given(events=clusters(plain=True), few=st.integers(0, 2))
def test_the_last_resort_keeps_constraints_and_leaves_no_task_that_fits(events, few):
    """With few flows left, the remaining tasks are placed class by class."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placer, "FLOWS_PER_STAGE", few)
        cluster, world = make_cluster(*events, reserve_after_us=None), world_of(events)
        carry_out(world, cluster.round())
    assert left_over(world) == []


@given(events=clusters(), at_once=st.integers(1, 2))
def test_stages_keep_constraints_and_leave_no_task_that_fits(events, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placer, "CELLS_AT_ONCE", 0)
        patch.setattr(placer, "CLASSES_AT_ONCE", at_once)
        cluster, world = make_cluster(*events, reserve_after_us=None), world_of(events)
        carry_out(world, cluster.round())
    assert left_over(world) == []


class Helpless:
    name = "helpless"

    def solve(self, network):
        return Solution(Status.FAILED, np.zeros(len(network.tail), np.int64), 0)


@given(events=clusters())
def test_a_solver_that_fails_stops_nothing(events):
    cluster, world = make_cluster(*events, solver=Helpless(), reserve_after_us=None), world_of(events)
    carry_out(world, cluster.round())
    assert left_over(world) == []


class Raising:
    name = "raising"

    def costs(self, view):
        raise RuntimeError("no")


@given(events=clusters())
def test_a_policy_that_fails_stops_nothing_and_is_named(events):
    cluster, world = make_cluster(*events, policy=Raising(), reserve_after_us=None), world_of(events)
    result = cluster.run()
    carry_out(world, cluster.names(result))
    assert left_over(world) == []
    if len(result.tasks):
        assert "policy raising: costs() raised RuntimeError: no" in result.stats.fallback


class Slow(Portions):
    """Takes sixteen seconds for each result, by a clock that only it moves; computes costs again after each task."""

    name = "slow"

    def __init__(self):
        self.answers = 0

    def costs(self, view):
        self.answers += 1
        return super().costs(view)

    def clock(self):
        return 16.0 * self.answers


def test_a_slow_policy_is_not_called_again_in_a_round(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(firmament_py.engine.round, "perf_counter", slow.clock)
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks(range(1, 41), 1), policy=slow)
    result = cluster.run()
    assert (len(result.tasks), slow.answers) == (40, 2), "after 32 seconds the others are placed anywhere"
    assert result.stats.fallback == "policy slow: costs() took more than 30 s of a round, and was not called again"
    cluster.tell(make_tasks([50], 1))
    cluster.run()
    assert slow.answers == 3, "in the next round it is"


# -- the optimum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters(max_nodes=4, max_tasks=10))
def test_every_network_of_a_round_is_solved_to_its_optimum(policy, events):
    seen = []
    cluster = make_cluster(*events, policy=policy, observer=lambda *pair: seen.append(pair))
    stats = cluster.run().stats
    assert stats.solves + stats.trials == len(seen)
    assert_solved_to_optimum(seen)
    assert all((network.group_wait >= WAIT_MIN).all() for network, _ in seen)
    solved = [(len(network.flow.supply), len(network.flow.tail), solution.cost) for network, solution in seen]
    reported = stats.vertices, stats.arcs, stats.objective
    if stats.solves:  # a trial may come before the first network of the round
        assert reported in solved if stats.trials else reported == solved[0]
    else:
        assert reported[:2] == (0, 0), "a few tasks of one class need no network"


def test_a_round_reports_the_size_of_its_own_network_and_of_no_trial(monkeypatch):
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # each takes a network
    of = make_class(1), make_node("full", pods=1), make_tasks([1], 1, on="full"), make_tasks([2], 1)
    overdue = make_tasks([3], 1, created_us=NOW_US - 1_000_000_000)
    stats = make_cluster(*of, overdue).run().stats
    assert (stats.solves, stats.trials) == (0, 1), "whether the overdue task could ever fit"
    assert (stats.vertices, stats.arcs, stats.objective) == (0, 0, 0)


# -- determinism ----------------------------------------------------------------------------------------------------


@given(events=clusters())
def test_the_same_events_give_the_same_placements(events):
    assert make_cluster(*events).round() == make_cluster(*events).round()


@given(events=clusters(plain=True), data=st.data())
def test_the_order_of_reports_does_not_matter(events, data):
    tasks = [e for e in events if type(e).__name__ == "TasksObserved"]
    others = [e for e in events if type(e).__name__ != "TasksObserved"]
    shuffled = data.draw(st.permutations(tasks))
    assert make_cluster(*others, *tasks).round() == make_cluster(*others, *shuffled).round()


@given(events=clusters())
def test_of_one_class_the_oldest_are_placed(events):
    cluster = make_cluster(*events)
    placed = cluster.round()
    created = {
        int(uid): (int(cls), int(created))
        for reported in events
        if type(reported).__name__ == "TasksObserved"
        for uid, cls, created in zip(reported.uid, reported.class_id, reported.created_us, strict=True)
    }
    for uid in cluster.waiting():
        cls, since = created[uid]
        assert all(created[p][1] <= since for p in placed if created[p][0] == cls)


# -- priorities -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [LoadSpreading(), AnywherePolicy()], ids=lambda p: p.name)
@given(events=clusters())
def test_no_task_waits_for_capacity_given_to_a_lower_priority(policy, events):
    """Holds for costs that do not depend on the class: see below for the others."""
    cluster, world = make_cluster(*events, policy=policy, reserve_after_us=None), world_of(events)
    placed = cluster.round()
    carry_out(world, placed)
    assert inversions(world, placed) == []


@given(events=clusters(plain=True, priorities=4), few=st.integers(0, 1), at_once=st.sampled_from([1, 2, 256]))
def test_no_task_waits_for_capacity_given_to_a_lower_priority_class_by_class(events, few, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placer, "FLOWS_PER_STAGE", few)
        patch.setattr(placer, "CELLS_AT_ONCE", 0)
        patch.setattr(placer, "CLASSES_AT_ONCE", at_once)
        cluster, world = make_cluster(*events, reserve_after_us=None), world_of(events)
        placed = cluster.round()
    carry_out(world, placed)
    assert inversions(world, placed) == []


class Particular:
    """The class of high priority has the highest cost on the only node, the other one costs nothing."""

    name = "particular"

    def costs(self, view):
        place = np.where(view.priority[:, None] == view.priority.max(), COST_MAX, 0)
        return Costs(place.astype(np.int64), np.zeros((1, 1), np.int64), waiting_cost(view))


def test_no_cost_of_a_placement_outweighs_a_priority():
    # room for one; placing the important task saves WAIT_MIN + 12,000,000 - 1,000,000, the other WAIT_MIN + 10,000
    cluster = make_cluster(
        *(make_node("a", cpu=1), make_class(1, cpu=1, priority=5), make_class(2, cpu=1, priority=1)),
        *(make_tasks([1], 1), make_tasks([2], 2, created_us=NOW_US - SECOND_US)),
        policy=Particular(),
    )
    assert cluster.round() == {1: "a"}


# -- figures --------------------------------------------------------------------------------------------------------


@examples(20)
@given(events=clusters())
def test_the_statistics_of_a_round_add_up(events):
    cluster, world = make_cluster(*events, reserve_after_us=None), world_of(events)
    result = cluster.run()
    stats = result.stats
    waiting = [task for task in world.tasks.values() if task.state == "waiting"]
    assert stats.pending == len(waiting)
    assert stats.placed == len(result.tasks)
    assert stats.waiting == stats.pending - stats.placed == sum(w.count for w in result.waiting)
    assert stats.nodes == len(world.nodes)
    assert stats.classes == len({task.cls for task in waiting})
    assert stats.seconds == pytest.approx(sum(stats.stage_seconds.values()))
    assert stats.fallback == ""


def test_a_time_that_has_passed_wakes_nobody():
    cluster = make_cluster(make_node("n", cpu=4), make_class(1, cpu=4))
    cluster.tell(make_tasks([1], 1))
    assert cluster.round() == {1: "n"}
    cluster.tell(PlacementRejected(1, "id-n", NOW_US + 1), make_tasks([2], 1))
    assert cluster.round() == {2: "n"}
    assert cluster.scheduler.wake_us(NOW_US) == NOW_US + 1
    assert cluster.round(NOW_US + 2) == {}, "it waits for another reason now"
    assert cluster.scheduler.wake_us(NOW_US + 2) == 0
