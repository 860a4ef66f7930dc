"""The contract of data costs: every breach is named by its field, and does not stop scheduling."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.network import cheapest_slots
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import COST_MAX, Costs, PolicyError, View, checked_costs, waiting_cost
from firmament_py.policy.locality import DataCosts, Inputs
from policies.load_spreading import LoadSpreading
from policies.quincy import Quincy
from tests.builders import make_class, make_cluster, make_inputs, make_node, make_tasks
from tests.firmament_py.policy.test_api import GOOD, VIEW, Answering

pytestmark = pytest.mark.slow


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# three tasks on three nodes, two sets; nodes 0 and 1 are in rack 0, node 2 in none
DATA = DataCosts(
    of_task=ints(0, -1, 1),
    anywhere=ints(9, COST_MAX),
    near_set=ints(0, 1),
    near_node=ints(0, 2),
    near_cost=ints(0, 5),
    rack=ints(0, 0, -1),
    rack_set=ints(0),
    rack_id=ints(0),
    rack_cost=ints(5),
)


def test_data_within_the_contract_passes():
    costs = replace(GOOD, data=DATA)
    assert checked_costs(Answering(costs), VIEW) is costs
    none = ints()
    empty = DataCosts(ints(-1, -1, -1), none, none, none, none, ints(-1, -1, -1), none, none, none)
    assert checked_costs(Answering(replace(GOOD, data=empty)), VIEW).data is empty


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"of_task": ints(0, 1)}, r"data.of_task has shape \(2,\), not \(3,\)"),
        ({"of_task": ints(0, 2, 1)}, "data.of_task leaves the range -1 .. 1: 0 .. 2"),
        ({"of_task": ints(-2, 1, 1)}, "data.of_task leaves the range"),
        ({"anywhere": ints(0, COST_MAX + 1)}, "data.anywhere leaves the range"),
        ({"anywhere": ints(0, -1)}, "data.anywhere leaves the range"),
        ({"anywhere": np.array([np.nan, 1.0])}, "data.anywhere is float64, not an int64"),
        ({"anywhere": np.zeros((2, 1), np.int64)}, r"data.anywhere has shape \(2, 1\)"),
        ({"anywhere": cast(Any, [1, 2])}, "data.anywhere is list"),
        ({"near_set": ints(0, 2)}, "data.near_set leaves the range"),
        ({"near_set": ints(0)}, r"data.near_node has shape \(2,\), not \(1,\)"),
        ({"near_node": ints(0, 3)}, "data.near_node leaves the range 0 .. 2"),
        ({"near_node": ints(-1, 0)}, "data.near_node leaves the range"),
        ({"near_cost": ints(0)}, r"data.near_cost has shape \(1,\), not \(2,\)"),
        ({"near_cost": ints(0, -1)}, "data.near_cost leaves the range"),
        ({"rack": ints(0, 0)}, r"data.rack has shape \(2,\), not \(3,\)"),
        ({"rack": ints(0, 0, 3)}, "data.rack leaves the range -1 .. 2"),
        ({"rack_set": ints(-1)}, "data.rack_set leaves the range"),
        ({"rack_id": ints(1)}, "data.rack_id leaves the range 0 .. 0"),
        ({"rack_cost": ints(COST_MAX + 1)}, "data.rack_cost leaves the range"),
        ({"rack_cost": np.zeros(1, np.int32)}, "data.rack_cost is int32"),
    ],
)
def test_a_breach_is_named(change, complaint):
    with pytest.raises(PolicyError, match=f"policy answering: {complaint}"):
        checked_costs(Answering(replace(GOOD, data=replace(DATA, **change))), VIEW)


def test_data_must_be_data_costs():
    with pytest.raises(PolicyError, match="policy answering: data is dict, not DataCosts"):
        checked_costs(Answering(replace(GOOD, data=cast(Any, {}))), VIEW)


class Watching:
    """Records its views."""

    name = "watching"

    def __init__(self, racks: tuple[str, ...] | None, broken: bool = False) -> None:
        if racks is not None:
            self.rack_labels = racks
        self._broken = broken
        self.seen: list[Inputs | None] = []

    def costs(self, view: View) -> Costs:
        self.seen.append(view.inputs)
        flat = np.zeros((1, 1), np.int64)
        data = replace(DATA, of_task=np.full(len(view.task_class), 7)) if self._broken else None
        return Costs(flat, flat, waiting_cost(view), data=data)


EVENTS = (make_node("a"), make_class(1), make_inputs(5, (1, "a")), make_tasks([1, 2], 1, inputs=[0, 5]))


def test_a_policy_with_rack_labels_gets_inputs():
    blind, seeing = Watching(None), Watching(())
    make_cluster(*EVENTS, policy=blind).round()
    make_cluster(*EVENTS, policy=seeing).round()
    assert blind.seen == [None]
    [inputs] = seeing.seen
    assert inputs is not None
    assert (inputs.of_task.tolist(), inputs.near_bytes.tolist()) == ([-1, 0], [2**20])
    nothing = Watching(())
    make_cluster(make_node("a"), make_class(1), make_tasks([1], 1), policy=nothing).round()
    assert nothing.seen == [None]


def test_invalid_data_costs_do_not_stop_scheduling():
    cluster = make_cluster(*EVENTS, policy=Watching((), broken=True))
    result = cluster.run()
    assert len(result.tasks) == 2
    assert "data.of_task" in result.stats.fallback


def test_input_sets_change_nothing_for_policies_that_ignore_them(monkeypatch):
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # each takes a network
    found: list[PlacementNetwork] = []
    for events in (EVENTS, (*EVENTS[:2], make_tasks([1, 2], 1))):
        make_cluster(*events, policy=LoadSpreading(), observer=lambda network, _: found.append(network)).round()
    one, other = found
    for name in ("tail", "head", "capacity", "unit_cost", "supply"):
        assert getattr(one.flow, name).tolist() == getattr(other.flow, name).tolist()


@st.composite
def inputs(draw, nodes=3):
    """Of three tasks; racks hold at least what each of their nodes does, sizes up to the largest that there are."""
    sets = draw(st.integers(1, 3))
    total = draw(st.lists(st.sampled_from([0, 1, 2**20, 10**9, 2**62]), min_size=sets, max_size=sets))
    rack = ints(*draw(st.lists(st.integers(-1, 1), min_size=nodes, max_size=nodes)))
    in_use = {
        (s, n): draw(st.integers(1, total[s]))
        for s in range(sets)
        for n in range(nodes)
        if total[s] and draw(st.booleans())
    }
    around: dict[tuple[int, int], int] = {}
    for (s, n), size in in_use.items():
        if rack[n] >= 0:
            key = (s, int(rack[n]))
            around[key] = draw(st.integers(max(size, around.get(key, 0)), total[s]))
    near, racks = sorted(in_use), sorted(around)
    return Inputs(
        of_task=ints(*draw(st.lists(st.integers(-1, sets - 1), min_size=3, max_size=3))),
        total=ints(*total),
        near_set=ints(*(s for s, _ in near)),
        near_node=ints(*(n for _, n in near)),
        near_bytes=ints(*(in_use[key] for key in near)),
        rack=rack,
        rack_set=ints(*(s for s, _ in racks)),
        rack_id=ints(*(r for _, r in racks)),
        rack_bytes=ints(*(around[key] for key in racks)),
    )


@given(
    seen=inputs(),
    threshold=st.sampled_from([0.0, 0.14, 1.0]),
    weight=st.sampled_from([0.0, 0.3, 1.0]),
    unit=st.sampled_from([1, 64]),
)
def test_quincy_keeps_the_contract_and_never_costs_less_than_the_moved_bytes(seen, threshold, weight, unit):
    costs = checked_costs(Quincy(threshold=threshold, rack_weight=weight, unit_mib=unit), replace(VIEW, inputs=seen))
    assert costs.data is not None
    for s, total in enumerate(seen.total.tolist()):
        scale = min(1 / (unit * 2**20), COST_MAX / max(total, 1))
        for n, cost in enumerate(costs.data.row(s).tolist()):
            on_node = sum(seen.near_bytes[(seen.near_set == s) & (seen.near_node == n)].tolist())
            in_rack = sum(seen.rack_bytes[(seen.rack_set == s) & (seen.rack_id == seen.rack[n])].tolist())
            moved = (total - max(in_rack, on_node)) + weight * (max(in_rack, on_node) - on_node)
            assert moved * scale - 0.51 <= cost <= (moved + threshold * total) * scale + 0.51
