"""Random clusters, policies that take every path of a round, and what a round must leave."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import NetworkxSolver
from firmament_py.model.constraints import NO_DEMAND
from firmament_py.model.events import Event
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import COST_MAX, Aggregators, AnywherePolicy, Costs, waiting_cost
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, Cluster, make_class, make_node, make_tasks
from tests.firmament_py import oracle
from tests.firmament_py.oracle import PlainTask, World
from tests.firmament_py.strategies import demands, labels, taints


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
