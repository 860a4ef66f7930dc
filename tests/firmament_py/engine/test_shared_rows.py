"""Rounds in which classes share rows of networks, as those of many Services do: here also few of them."""

from dataclasses import replace

import pytest
from hypothesis import given

from benchmarks.loads.constraints import START_US, ConstraintSpec, load
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.options import EngineOptions
from firmament_py.network import alike
from firmament_py.policy import registry
from tests.builders import make_cluster
from tests.effort import seeds
from tests.firmament_py.engine.random_rounds import POLICIES, carry_out, clusters, inversions, left_over, world_of

SERVICES = ConstraintSpec("services", nodes=12, pods=30, groups=10)


@pytest.fixture(autouse=True, scope="module")
def shared_by_few():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "FEWEST", 2)
        yield


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@given(events=clusters())
def test_rounds_keep_constraints_and_leave_no_task_that_fits(policy, events):
    cluster, world = make_cluster(*events, policy=policy, reserve_after_us=None), world_of(events)
    result = cluster.run()
    placed = cluster.names(result)
    carry_out(world, placed)
    assert left_over(world) == []
    assert inversions(world, placed) == []
    assert result.stats.dropped == 0


def outcome(spec: ConstraintSpec) -> tuple[int, int, int]:
    """Cost of the first flow, tasks placed, arcs."""
    made = load(spec)
    assert made.tasks is not None
    engine = Engine(registry.load(registry.DEFAULT_POLICY, {}), OrToolsSolver(), options=EngineOptions(certified=True))
    engine.apply([*made.cluster, made.tasks])
    assert engine.run_round(START_US + 1_000_000) is not None
    stats = engine.last_round
    assert stats is not None
    assert stats.uncertified == 0
    return stats.objective, stats.placed, stats.arcs


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SERVICES, id="empty"),
        pytest.param(replace(SERVICES, running=60), id="some-run"),
        pytest.param(replace(SERVICES, nodes=40, zones=4, running=300, pods=90), id="many-run"),
        pytest.param(replace(SERVICES, nodes=6, groups=4, running=100, pods=60), id="tasks-of-a-class-meet"),
    ],
)
@seeds(0, 12)
def test_services_cost_as_much_as_with_a_row_each(spec, seed, monkeypatch):
    spec = replace(spec, seed=seed)
    together = outcome(spec)
    monkeypatch.setattr(alike, "FEWEST", 1_000)
    apart = outcome(spec)
    assert together[:2] == apart[:2]
    assert together[1] == spec.pods


def test_arcs_do_not_grow_with_the_number_of_services(monkeypatch):
    """24 Services on 40 nodes: with a row each they have at least an arc for each of 960 pairs."""
    spec = replace(SERVICES, nodes=40, groups=24, running=100, pods=48)
    together = outcome(spec)[2]
    monkeypatch.setattr(alike, "FEWEST", 1_000)
    assert outcome(spec)[2] > 960
    assert together < 720
