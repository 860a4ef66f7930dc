"""The arithmetic of load-spreading."""

import numpy as np
import pytest

from firmament_py.policy import COST_MAX, View
from policies.load_spreading import LoadSpreading
from tests.builders import make_class, make_cluster, make_node, make_tasks, per_node


def slot_prices(*, running, allocatable, free, offsets=(0, 1, 2)):
    nodes = len(running)
    view = View(
        resources=("pods", "cpu"),
        requests=np.ones((1, 2), np.int64),
        priority=np.zeros(1, np.int64),
        waiting=np.ones(1, np.int64),
        allocatable=np.array(allocatable, np.int64).reshape(nodes, -1),
        free=np.array(free, np.int64).reshape(nodes, -1),
        running=np.array(running, np.int64),
        slot_offsets=np.array(offsets, np.int64),
        task_class=np.zeros(1, np.int64),
        task_age_us=np.zeros(1, np.int64),
    )
    return LoadSpreading().price(view).slot.tolist()


@pytest.mark.parametrize(
    ("running", "allocatable", "free", "prices"),
    [
        pytest.param([0], [[9, 8]], [[9, 8]], [[0, 100, 200]], id="empty"),
        # 3 tasks, cpu half requested: 3 x 100 + floor(0.5 x 99) = 349
        pytest.param([3], [[9, 8]], [[6, 4]], [[349, 449, 549]], id="half-requested"),
        # the scarcer of 1/4 and 3/4: floor(0.75 x 99) = 74
        pytest.param([1], [[8, 8]], [[6, 2]], [[174, 274, 374]], id="the-scarcest-counts"),
        pytest.param([2], [[9, 8]], [[7, 0]], [[299, 399, 499]], id="full"),
        pytest.param([2], [[9, 8]], [[7, -8]], [[299, 399, 499]], id="over-committed-counts-as-full"),
        pytest.param([1], [[9, 0]], [[9, 0]], [[100, 200, 300]], id="no-such-resource"),
        pytest.param([1], [[9, 0]], [[9, -4]], [[100, 200, 300]], id="no-such-resource-over-committed"),
        pytest.param([20_000], [[9, 8]], [[9, 8]], [[COST_MAX] * 3], id="cut-at-the-dearest"),
    ],
)
def test_slot_prices(running, allocatable, free, prices):
    assert slot_prices(running=running, allocatable=allocatable, free=free) == prices


def test_slots_are_priced_at_their_offsets():
    assert slot_prices(running=[1], allocatable=[[9]], free=[[9]], offsets=(0, 1, 4)) == [[100, 200, 500]]


def test_the_emptier_node_catches_up_first():
    # a runs 3, b none; of 5 tasks b gets 0, 1, 2 (prices 0 .. 299), then both stand at 3 and share the last two
    cluster = make_cluster(
        *(make_node("a"), make_node("b"), make_class(1), make_tasks([1, 2, 3], 1, on="a"), make_tasks(range(4, 9), 1))
    )
    assert per_node(cluster.round()) == {"b": 4, "a": 1}


def test_among_equally_busy_nodes_the_larger_one_goes_first():
    # one task of 2 cpu on each: 2/4 is requested on a, 2/16 on b
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_node("b", cpu=16), make_class(1, cpu=2)),
        *(make_tasks([1], 1, on="a"), make_tasks([2], 1, on="b"), make_tasks([3], 1)),
    )
    assert cluster.round() == {3: "b"}
