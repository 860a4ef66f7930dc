"""Node limits of policies: placing in portions, with costs computed again for each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.network import cheapest_slots
from firmament_py.network.capacities import Capacities, selected, with_node_limit
from firmament_py.snapshot.domain_limits import DomainLimit
from tests.builders import make_class, make_cluster, make_node, make_tasks, per_node
from tests.firmament_py.engine.random_rounds import Portions


def capacities(slots):
    slots = np.array(slots, np.int64)
    return Capacities(slots, slots.max(axis=0), {})


@pytest.mark.parametrize(
    ("maximum", "waiting", "depth"),
    [
        pytest.param([1, 2, 9], 3, [1, 2, 3], id="cut"),
        pytest.param([9, 9, 9], 3, [8, 4, 3], id="nothing-to-cut"),
        # a fiftieth of 200 is 4, and 1 + 1 + 1 is less: twice as many
        pytest.param([1, 1, 1], 200, [2, 2, 2], id="raised"),
        pytest.param([0, 2, 9], 3, [0, 2, 3], id="closed"),
        pytest.param([0, 0, 0], 3, [1, 1, 1], id="none-can-be-closed-if-all-are"),
        # a fiftieth of 9999 is 200, and there is room for 15: all of it
        pytest.param([1, 1, 1], 9999, [8, 4, 3], id="raised-to-all-there-is"),
    ],
)
def test_node_limits_are_kept_but_allow_progress(maximum, waiting, depth):
    cut = with_node_limit(capacities([[8, 4, 0], [1, 1, 3]]), np.array(maximum), waiting)
    assert cut.depth.tolist() == depth
    assert (cut.slots <= cut.depth).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 999))
def test_open_nodes_keep_some_capacity(slots, maximum, waiting):
    before = capacities([slots])
    cut = with_node_limit(before, np.full(len(slots), maximum), waiting)
    assert ((cut.depth > 0) == (before.depth > 0)).all()
    assert (cut.depth <= before.depth).all()
    assert cut.depth.sum() >= min(-(-waiting // 50), before.depth.sum())


def test_portions_are_placed_until_no_task_is_left(monkeypatch):
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # each takes a network
    networks = []
    cluster = make_cluster(
        *(make_node(name, cpu=8) for name in "ab"),
        make_class(1, cpu=1),
        make_tasks(range(1, 11), 1),
        policy=Portions(),
        observer=lambda network, solution: networks.append(network),
    )
    assert per_node(cluster.round()) == {"a": 5, "b": 5}
    assert [int(network.group_size.sum()) for network in networks] == [10, 8, 6, 4, 2]


def test_a_zone_of_which_a_part_has_one_node_is_still_a_zone():
    slots, zones = (
        np.ones((1, 3), np.int64),
        DomainLimit(np.array([0, 0, 1]), np.ones(2, np.int64), np.ones(2, np.int64), 7),
    )
    part = selected(Capacities(slots, slots[0], {0: [zones]}), np.array([0, 2]))
    [limit] = part.limits[0]
    assert limit.domain.tolist() == [0, 1]
    assert not limit.is_per_node
    assert part.nodes is not None
    assert part.nodes.tolist() == [0, 2]
