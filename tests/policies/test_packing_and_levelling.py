"""The arithmetic of bin-packing, cpu-memory and trivial, and how their placements differ."""

from dataclasses import replace

import numpy as np
import pytest

from firmament_py.policy import WAIT_MIN
from policies.bin_packing import BinPacking
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from policies.trivial import Trivial
from tests.builders import make_class, make_cluster, make_node, make_tasks, per_node
from tests.policies.rig import make_view


def test_bin_packing_charges_for_emptiness():
    # half requested: 1000 x 0.5; a quarter: 1000 x 0.75; the scarcer resource counts: 1000 x (1 - 0.75)
    view = make_view(
        resources=("pods", "cpu"), requests=[[1, 1]], allocatable=[[8, 8]] * 3, free=[[4, 4], [6, 6], [6, 2]]
    )
    assert BinPacking().costs(view).place.tolist() == [[500, 750, 250]]


def test_bin_packing_by_amount_fills_small_nodes_first():
    # left are 4 of 4 cpu, 5, 3 and 8 of 8; 1 GPU of 4
    view = make_view(
        resources=("cpu", "gpu"),
        requests=[[1, 0]],
        allocatable=[[4, 0], [8, 0], [8, 0], [8, 4]],
        free=[[4, 0], [5, 0], [3, 0], [8, 1]],
    )
    assert BinPacking("amount").costs(view).place.tolist() == [[500, 625, 375, 250 + 1000 + 10_000]]
    assert BinPacking("share").costs(view).place.tolist() == [[1000, 625, 375, 250 + 1000 + 10_000]]


@pytest.mark.parametrize(("by", "nodes"), [("amount", {"small": 4}), ("share", {"large": 4})])
def test_bin_packing_by_amount_spares_large_nodes(by, nodes):
    cluster = make_cluster(
        make_node("small", cpu=4),
        make_node("large", cpu=8),
        make_class(1, cpu=1),
        make_tasks([1], 1, on="large"),
        make_tasks(range(2, 6), 1),
        policy=BinPacking(by),
    )
    assert per_node(cluster.round()) == nodes


def test_bin_packing_fills_device_fragments_and_spares_devices():
    # a has no GPU; b has 4, 1 requested; c has 4, none requested; cpu is empty everywhere
    view = make_view(
        resources=("cpu", "gpu"),
        requests=[[1, 1], [1, 0]],
        allocatable=[[8, 0], [8, 4], [8, 4]],
        free=[[8, 0], [8, 3], [8, 4]],
    )
    assert BinPacking().costs(view).place.tolist() == [
        # b: scarcest share 1/4: 750, and 4000 x (1 - 1/4) = 3000; c: 1000 + 4000
        [1000, 3750, 5000],
        [1000, 13750, 15000],
    ]


def test_cpu_memory_levels_and_balances():
    # the example of the module, two nodes of 4 cpu and 8 Gi; on the first 1 cpu and 4 Gi are requested.
    # place: (1, 0) takes (1/4)^2 - 0 = 1/16 from the first, adds 1/16 to the second: 10,000 x 2/16 more there;
    # (0, 2) adds 1/4 - 1/16 = 3/16 to the first and 1/16 to the second.
    # slots: both classes have size 1/4; of volume 2/4, 35 % are 0.175: one task of the first class, so m = (1, 0)
    view = make_view(
        resources=("cpu", "memory"), requests=[[1, 0], [0, 2]], allocatable=[[4, 8]] * 2, free=[[3, 4], [4, 8]]
    )
    costs = CpuMemory().costs(view)
    assert costs.place.tolist() == [[0, 1250], [1250, 0]]
    assert costs.slot.tolist() == [[500, 500, 750], [0, 250, 500]]


def test_cpu_memory_places_large_tasks_first_and_in_portions():
    # sizes 2/8 and 1/8; 35 % of the volume 4 x 2/8 + 4 x 1/8 = 12/8 is 4.2/8: three of the large kind, 2 cpu each.
    # a has 4 of 8 cpu requested; both stand at 5/8 when a has taken (5 - 4) / 2 and b 5 / 2, rounded up
    view = make_view(
        resources=("cpu", "memory"), requests=[[2, 0], [1, 0]], allocatable=[[8, 8]] * 2, free=[[4, 8], [8, 8]]
    )
    view = replace(view, waiting=np.array([4, 4]), task_class=np.repeat([0, 1], 4), task_age_us=np.zeros(8, np.int64))
    costs = CpuMemory().costs(view)
    assert costs.node_limit is not None
    assert costs.node_limit.tolist() == [1, 3]
    assert (costs.wait - WAIT_MIN).tolist() == [9999] * 4 + [5000] * 4


def test_cpu_memory_does_not_count_on_nodes_that_are_closed():
    view = make_view(resources=("cpu", "memory"), requests=[[1, 1]], allocatable=[[16, 16]] * 2, free=[[16, 16]] * 2)
    view = replace(view, waiting=np.array([12]), task_class=np.zeros(12, np.int64), task_age_us=np.zeros(12, np.int64))
    # 35 % of 12 tasks are five: 2.5 for each of two nodes, or all for one
    for depth, maximum in (([12, 12], [3, 3]), ([0, 12], [0, 5])):
        costs = CpuMemory().costs(replace(view, depth=np.array(depth)))
        assert costs.node_limit is not None
        assert costs.node_limit.tolist() == maximum


NODES = [make_node(name, cpu=8, memory=8) for name in ("a", "b", "c", "d")]


@pytest.mark.parametrize(
    ("policy", "spread"),
    [
        pytest.param(BinPacking(), [4], id="bin-packing-uses-one-node"),
        pytest.param(CpuMemory(), [1, 1, 1, 1], id="cpu-memory-uses-all"),
        pytest.param(LoadSpreading(), [1, 1, 1, 1], id="load-spreading-uses-all"),
    ],
)
def test_where_four_equal_tasks_go(policy, spread):
    cluster = make_cluster(*NODES, make_class(1, cpu=1, memory=1), make_tasks(range(1, 5), 1), policy=policy)
    assert sorted(per_node(cluster.round()).values()) == spread


def test_a_task_goes_to_the_node_that_lacks_its_kind_of_load():
    """cpu-memory sends cpu-heavy tasks to the node with memory in use; to load-spreading both nodes are equal."""
    cluster = make_cluster(
        make_node("a", cpu=8, memory=8),
        make_node("b", cpu=8, memory=8),
        make_class(1, cpu=4, memory=0),
        make_class(2, cpu=0, memory=4),
        make_class(3, cpu=4, memory=0),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2, on="b"),
        make_tasks([3], 3),
        policy=CpuMemory(),
    )
    assert per_node(cluster.round()) == {"b": 1}


def test_trivial_places_all_tasks_that_fit():
    cluster = make_cluster(*NODES, make_class(1, cpu=5, memory=1), make_tasks(range(1, 7), 1), policy=Trivial())
    assert sorted(per_node(cluster.round()).values()) == [1, 1, 1, 1]


def test_cpu_memory_does_not_displace_small_tasks_by_a_large_one():
    cluster = make_cluster(
        *(make_node("a", cpu=8, memory=8), make_class(1, cpu=8, memory=1), make_class(2, cpu=1, memory=1)),
        *(make_tasks([1], 1), make_tasks(range(2, 10), 2)),
        policy=CpuMemory(),
    )
    assert set(cluster.round()) == set(range(2, 10))


@pytest.mark.parametrize("policy", [BinPacking(), LoadSpreading(by="requested")])
def test_a_host_port_on_every_node_does_not_make_all_nodes_look_full(policy):
    """A DaemonSet's task is on each node, with or without a port; of 16 cpu node i has i in use."""

    def placed(tokens):
        cluster = make_cluster(
            *(make_node(f"n{i}", cpu=16) for i in range(8)),
            *(make_class(1, tokens=tokens), make_class(2, cpu=1)),
            policy=policy,
        )
        for i in range(8):
            cluster.tell(make_tasks([100 + i], 1, on=f"n{i}"))
            cluster.tell(make_tasks(range(1000 + 20 * i, 1000 + 20 * i + i), 2, on=f"n{i}"))
        cluster.tell(make_tasks(range(1, 9), 2))
        return per_node(cluster.round())

    assert placed(["TCP:9100"]) == placed([])


def test_bin_packing_packs_single_tasks_of_many_classes_onto_one_node():
    cluster = make_cluster(
        *(make_node(f"n{i:02}", cpu=16_000) for i in range(60)),
        *(make_class(c, cpu=50 + c) for c in range(1, 61)),
        *(make_tasks([c], c) for c in range(1, 61)),
        policy=BinPacking(),
    )
    assert len(set(cluster.round().values())) == 1


def test_cpu_memory_sends_nothing_to_nodes_above_the_common_level():
    cluster = make_cluster(
        *(make_node(f"n{i:03}", cpu=1000, memory=1000) for i in range(60)),
        *(make_class(1, cpu=500, memory=500), make_class(2, cpu=5, memory=5)),
        *(make_tasks([1000 + i], 1, on=f"n{i:03}") for i in range(50)),
        make_tasks(range(1, 201), 2),
        policy=CpuMemory(),
    )
    assert {node >= "n050" for node in cluster.round().values()} == {True}
