"""Whole rounds on random clusters, checked by the oracle: no over-commitment, no node that a task must avoid, no task
placed twice, no waiting task that fits, an optimum each time, and equal placements for equal events."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import firmament_py.engine.round
from firmament_py.admission.backfill import RESERVE_AFTER_US
from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import NetworkxSolver
from firmament_py.model.constraints import NO_DEMAND
from firmament_py.model.events import Event, NodeRemoved, PlacementRejected
from firmament_py.network.build import PlacementNetwork
from firmament_py.placement import placer
from firmament_py.policy import COST_MAX, WAIT_MIN, Aggregators, AnywherePolicy, Costs, waiting_cost
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, Cluster, make_class, make_cluster, make_node, make_tasks, removed
from tests.effort import examples
from tests.firmament_py import oracle
from tests.firmament_py.oracle import PlainTask, World
from tests.firmament_py.strategies import demands, labels, taints

pytestmark = pytest.mark.slow


class Patchwork:
    """A policy with costs that differ for every class and node, as far apart as the contract allows."""

    name = "patchwork"

    def costs(self, view):
        c, n = len(view.requests), len(view.allocatable)
        place = (np.arange(c)[:, None] * 7919 + np.arange(n)[None, :] * 104729) % (COST_MAX + 1)
        slot = np.minimum(view.running[:, None] * 300 + view.slot_offsets[None, :] * 400_000, COST_MAX)
        return Costs(place.astype(np.int64), slot.astype(np.int64), waiting_cost(view))


class Portions:
    """Computes costs again after each task of a node."""

    name = "portions"

    def costs(self, view):
        return replace(LoadSpreading().costs(view), node_limit=np.ones(len(view.allocatable), np.int64))


class InTurns(Patchwork):
    """Places classes in stages, with a soft limit of one or two tasks of a class per node."""

    name = "in-turns"

    def costs(self, view):
        c, n = len(view.requests), len(view.allocatable)
        soft = (np.arange(c)[:, None] + np.arange(n)[None, :]) % 3
        surplus = np.arange(c) * (COST_MAX // max(c, 1))
        step = np.arange(c)[::-1] // 2 if c > 1 else None
        return replace(super().costs(view), soft_limit=soft, soft_limit_cost=surplus, stage=step)


class InGroups(Patchwork):
    """Two groups of nodes, which take up to two tasks of a class at no extra cost; every fifth node is in none."""

    name = "in-groups"

    def costs(self, view):
        c, n = len(view.requests), len(view.allocatable)
        of_node = np.where(np.arange(n) % 5 == 4, -1, np.arange(n) % 2)
        groups = Aggregators(of_node, np.arange(2 * c).reshape(c, 2) % 3, np.arange(c) * 1000 % COST_MAX)
        return replace(super().costs(view), aggregators=groups)


POLICIES = [LoadSpreading(), AnywherePolicy(), Patchwork(), Portions(), InTurns(), InGroups()]


@st.composite
def clusters(draw, max_nodes=5, max_tasks=14, priorities=3, plain=False):
    """Events of a cluster that is too small for its tasks, with tasks of others already there."""
    amounts = st.sampled_from([0, 1, 2, 3, 4, 6])
    nodes = [
        make_node(
            f"n{i}",
            pods=draw(st.integers(0, 6)),
            cpu=draw(st.integers(0, 12)),
            memory=draw(st.integers(0, 12)),
            labels={} if plain else draw(labels),
            taints=() if plain else draw(taints),
        )
        for i in range(draw(st.integers(0, max_nodes)))
    ]
    classes = [
        make_class(
            c + 1,
            cpu=draw(amounts),
            memory=draw(amounts),
            priority=draw(st.integers(0, priorities - 1)),
            demand=NO_DEMAND if plain or draw(st.booleans()) else draw(demands),
        )
        for c in range(draw(st.integers(1, 5)))
    ]
    events: list[Event] = [*classes, *nodes]
    uid = 1
    for node in nodes:
        for cls in draw(st.lists(st.sampled_from(classes), max_size=2)):
            events.append(make_tasks([uid], cls.id, on=node.name))
            uid += 1
    for cls in draw(st.lists(st.sampled_from(classes), max_size=max_tasks)):
        age = draw(st.sampled_from([0, 3, 100, 10**6]))
        events.append(make_tasks([uid], cls.id, created_us=NOW_US - age * SECOND_US))
        uid += 1
    return events


def world_of(events) -> World:
    world = World()
    for reported in events:
        match type(reported).__name__:
            case "NodeObserved":
                world.nodes[reported.id] = reported
            case "ClassDefined":
                world.classes[reported.id] = reported
            case "TasksObserved":
                for i, uid in enumerate(reported.uid.tolist()):
                    node = reported.nodes[0] if reported.nodes else None
                    world.tasks[uid] = PlainTask(int(reported.class_id[i]), node, "bound" if node else "waiting")
    return world


def carry_out(world: World, placements: dict[int, str]) -> None:
    """Puts the placements into the plain world, judging each."""
    before = world.overcommitted()
    for uid, name in placements.items():
        task = world.tasks[uid]
        assert task.state == "waiting", f"task {uid} was {task.state} and is placed"
        assert f"id-{name}" in world.nodes
        assert world.welcome(task.cls, f"id-{name}"), f"task {uid} is not welcome on {name}"
        assert world.fits(task.cls, f"id-{name}"), f"task {uid} does not fit on {name}"
        task.node, task.state = f"id-{name}", "assumed"
    assert world.overcommitted() == before, "a node is over-committed that was not"


def left_over(world: World) -> list[tuple[int, str]]:
    """Waiting tasks, each with a node that could take it."""
    return [
        (uid, node)
        for uid, task in world.tasks.items()
        if task.state == "waiting"
        for node in world.nodes
        if world.takes(task.cls, node)
    ]


def unexplained(cluster: Cluster, world: World) -> list[tuple[int, str]]:
    """Waiting tasks, each with a node that could take it, unless its capacity is reserved for a task that goes first
    and the task's reasons include that."""
    holders = cluster.scheduler.reservation_holders
    left = []
    for uid, node in left_over(world):
        row = cluster.state.task_row(uid)
        assert row is not None
        reasons = {why.kind for why in reasons_of_task(cluster.state, row, holders)}
        priority = world.classes[world.tasks[uid].cls].priority
        if not (any(priority <= of_holder for of_holder, _ in holders) and ReasonKind.RESERVED in reasons):
            left.append((uid, node))
    return left


RESERVE_AFTER = st.sampled_from([None, RESERVE_AFTER_US])
"""Without reservations a round leaves nothing at all that fits."""


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


def assert_flow_is_right(network: PlacementNetwork, solution: Solution) -> None:
    """Conserved at each vertex, within each capacity, and worth the cost it claims."""
    flow, net = solution.flow, network.flow
    assert (flow >= 0).all()
    assert (flow <= net.capacity).all()
    balance = net.supply.copy()
    np.subtract.at(balance, net.tail, flow)
    np.add.at(balance, net.head, flow)
    assert not balance.any()
    assert int((flow * net.unit_cost).sum()) == solution.cost


def assert_solved_to_optimum(seen: list[tuple[PlacementNetwork, Solution]]) -> None:
    """Checks observed solutions: each is valid, at the cost of the reference solver's."""
    for network, solution in seen:
        assert solution.status is Status.OPTIMAL
        assert_flow_is_right(network, solution)
        reference = NetworkxSolver().solve(network.flow)
        assert reference.status is Status.OPTIMAL
        assert solution.cost == reference.cost


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters(max_nodes=4, max_tasks=10))
def test_every_network_of_a_round_is_solved_to_its_optimum(policy, events):
    seen = []
    cluster = make_cluster(*events, policy=policy, observer=lambda *pair: seen.append(pair))
    stats = cluster.run().stats
    assert stats.solves + stats.trials == len(seen)
    assert_solved_to_optimum(seen)
    if seen:
        first, solution = seen[0]
        assert (stats.vertices, stats.arcs) == (len(first.flow.supply), len(first.flow.tail))
        assert stats.objective == solution.cost
        assert (first.group_wait >= WAIT_MIN).all()


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


def inversions(world: World, placed: dict[int, str]) -> list[tuple[int, str]]:
    """Waiting tasks that a node would take if those of strictly lower priority that were placed there in this round
    were not there."""
    found = []
    for uid, task in world.tasks.items():
        if task.state != "waiting":
            continue
        priority = world.classes[task.cls].priority
        for node in world.nodes:
            lower: Counter[str] = Counter()
            for other, name in placed.items():
                cls = world.classes[world.tasks[other].cls]
                if f"id-{name}" == node and cls.priority < priority:
                    lower.update(oracle.requests(cls))
            if lower and world.takes(task.cls, node, without=lower):
                found.append((uid, node))
    return found


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
