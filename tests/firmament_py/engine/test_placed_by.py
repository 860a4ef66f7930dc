"""Every placement says which step of the round decided it: in the result, the statistics, the state and the story."""

import pytest

from firmament_py.flow.network import Status
from firmament_py.flow.solver import unsolved
from firmament_py.model.placed_by import PlacedBy
from protos.gen import flow_pb2
from tests.builders import (
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    preempting_cluster,
    removed,
)
from tests.firmament_py.placement.test_repacking import cluster_of_equal_nodes

ONE_CPU, TWO_CPU = make_class(1, cpu=1), make_class(2, cpu=2)


class Unable:
    """A solver that finds no flow."""

    name = "unable"

    def solve(self, network):
        return unsolved(network, Status.INFEASIBLE)


def two_classes(**options):
    return make_cluster(make_node("a", cpu=9), ONE_CPU, TWO_CPU, make_tasks([1], 1), make_tasks([2], 2), **options)


def gang_that_flows_miss():
    """Members of (2, 2), (1, 3) and (4, 1) cpu and memory: the first two on a, the third alone on b; by value for
    capacity, flows send others together."""
    kinds = make_class(1, cpu=2, memory=2), make_class(2, cpu=1, memory=3), make_class(3, cpu=4, memory=1)
    members = [make_tasks([uid], uid, gang=1) for uid in (1, 2, 3)]
    nodes = make_node("a", cpu=5, memory=6), make_node("b", cpu=4, memory=4)
    return make_cluster(*nodes, *kinds, make_gang(1, 3, created_us=0), *members)


def after_an_eviction():
    cluster = preempting_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=4), make_class(2, cpu=4, priority=5)),
        *(make_tasks([1], 1, on="a"), make_tasks([2], 2)),
    )
    assert cluster.preempted(cluster.run()) == {1: 2}
    cluster.tell(removed(1))
    return cluster


def beside_a_victim():
    """2 cpu are free, and task 1 leaves 2 more. One decision serves 2 and 3; the more important one goes first."""
    return preempting_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=2), make_class(2, cpu=2, priority=5)),
        *(make_class(3, cpu=2, priority=4), make_tasks([1], 1, on="a"), make_tasks([2], 2), make_tasks([3], 3)),
    )


@pytest.mark.parametrize(
    ("world", "counts"),
    [
        pytest.param(two_classes, {"flow": 2}, id="flow"),
        pytest.param(lambda: two_classes(solver=Unable()), {"greedy": 2}, id="greedy"),
        pytest.param(
            lambda: make_cluster(make_node("a", cpu=9), ONE_CPU, make_tasks([1, 2], 1)),
            {"cheapest slots": 2},
            id="cheapest-slots",
        ),
        pytest.param(
            lambda: make_cluster(make_node("a", cpu=9), ONE_CPU, make_tasks([1, 2], 1, required_node=["a", "a"])),
            {"required node": 2},
            id="required-node",
        ),
        pytest.param(gang_that_flows_miss, {"gang search": 3}, id="gang-search"),
        pytest.param(after_an_eviction, {"nomination": 1}, id="nomination"),
        pytest.param(beside_a_victim, {"preemption": 1}, id="preemption"),
    ],
)
def test_each_step_signs_what_it_places(world, counts):
    cluster = world()
    result = cluster.run()
    assert result.stats.placed_by == counts
    assert result.stats.placed == len(result.placed_by) == sum(counts.values())
    assert cluster.state.tasks.placed_by[result.tasks].tolist() == result.placed_by.tolist()
    [step] = counts
    for uid in cluster.state.tasks.uid[result.tasks].tolist():
        assert cluster.state.history.story(uid)[-1].startswith(f"placed by {step} on ")


@pytest.mark.parametrize(("cells", "step"), [(5_000_000, "packing"), (100, "patterns")])
def test_only_what_moves_is_signed_by_the_packing(monkeypatch, cells, step):
    monkeypatch.setattr("firmament_py.placement.repacking.CELLS", cells)
    flows, packed = cluster_of_equal_nodes(improve=0).run(), cluster_of_equal_nodes().run()
    assert step not in flows.stats.placed_by
    by = packed.stats.placed_by
    assert by[step] >= packed.stats.placed - flows.stats.placed > 0
    assert sum(by.values()) == packed.stats.placed


def test_who_has_placed_a_task_is_forgotten_once_it_is_not_there_any_more():
    cluster = make_cluster(make_node("a", cpu=1), make_node("b", cpu=1), ONE_CPU, make_tasks([1], 1))
    [node] = cluster.round().values()
    row = cluster.state.task_row(1)
    cluster.tell(make_tasks([1], 1, on=node))
    assert cluster.state.tasks.placed_by[row] == PlacedBy.CHEAPEST_SLOTS, "a bind confirms it"
    cluster.tell(make_tasks([1], 1, on="b" if node == "a" else "a"))
    assert cluster.state.tasks.placed_by[row] == PlacedBy.UNKNOWN, "others have bound it"


def test_the_contract_has_the_same_steps():
    assert {step.value: step.name for step in PlacedBy} == {
        number: name.removeprefix("PLACED_BY_") for name, number in flow_pb2.PlacedBy.items()
    }
