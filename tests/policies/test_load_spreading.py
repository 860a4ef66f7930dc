"""The arithmetic of load-spreading."""

import numpy as np
import pytest

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event
from firmament_py.policy import COST_MAX
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks, per_node
from tests.policies.rig import make_view, places


def slot_costs(*, running, allocatable, free, offsets=(0, 1, 2)):
    view = make_view(allocatable=allocatable, free=free, running=running, offsets=offsets)
    return LoadSpreading().costs(view).slot.tolist()


@pytest.mark.parametrize(
    ("running", "allocatable", "free", "costs"),
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
def test_slot_costs(running, allocatable, free, costs):
    assert slot_costs(running=running, allocatable=allocatable, free=free) == costs


def test_slots_are_weighed_at_their_offsets():
    assert slot_costs(running=[1], allocatable=[[9, 9]], free=[[9, 9]], offsets=(0, 1, 4)) == [[100, 200, 500]]


def test_the_emptier_node_catches_up_first():
    # a runs 3, b none; of 5 tasks b gets 0, 1, 2 (costs 0 .. 299), then both stand at 3 and share the last two
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


def test_by_requested():
    # the example of the module: m = 1 of 10; the first node is half requested, and more by its other resource
    view = make_view(
        resources=("cpu", "memory"), requests=[[1, 0]], allocatable=[[10, 10], [10, 10], [0, 10]],
        free=[[5, 9], [10, 10], [0, 2]],
    )  # fmt: skip
    costs = LoadSpreading(by="requested").costs(view).slot.tolist()
    assert costs == [[5000, 6000, 7000], [0, 1000, 2000], [8000, 8000, 8000]]


def test_by_requested_large_tasks_count_for_more():
    """a runs one large task, b four small ones: by tasks the next goes to a, by what is requested to b."""
    events: list[Event] = [
        *(make_node("a", cpu=8), make_node("b", cpu=8), make_class(1, cpu=5), make_class(2, cpu=1)),
        *(make_tasks([1], 1, on="a"), make_tasks([2, 3, 4, 5], 2, on="b"), make_tasks([6], 2)),
    ]
    assert places(LoadSpreading(), *events) == {6: "a"}
    assert places(LoadSpreading(by="requested"), *events) == {6: "b"}


@pytest.mark.parametrize("by", ["tasks", "requested"])
def test_devices_are_left_to_tasks_that_request_them(by):
    events: list[Event] = [
        *(make_node("gpu", cpu=100, gpu=4), make_node("plain", cpu=100)),
        *(make_class(1, cpu=1), make_class(2, cpu=1, gpu=1)),
        *(make_tasks(range(1, 11), 1), make_tasks(range(11, 13), 2)),
    ]
    placed = places(LoadSpreading(by=by), *events)
    assert {placed[uid] for uid in (11, 12)} == {"gpu"}
    assert {placed[uid] for uid in range(1, 11)} == {"plain"}
    careless = places(LoadSpreading(by=by, spare_devices=0), *events)
    assert {careless[uid] for uid in range(1, 11)} == {"gpu", "plain"}


def test_spare_devices_more_tasks_run_elsewhere_before_a_device_node_is_used():
    events: list[Event] = [make_node("gpu", gpu=4), make_node("plain"), make_class(1), make_tasks(range(1, 21), 1)]
    assert per_node(places(LoadSpreading(spare_devices=6), *events)) == {"gpu": 7, "plain": 13}


def test_a_node_without_resources_does_not_make_the_others_devices():
    events: list[Event] = [
        *(make_node("a", cpu=8), make_node("b", cpu=8), make_node("c", pods=9)),
        make_class(1),
        make_tasks([1, 2, 3], 1),
    ]
    assert per_node(places(LoadSpreading(), *events)) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("count", [-1, 1001])
def test_spare_devices_has_a_range(count):
    with pytest.raises(ValueError, match=f"option spare-devices is {count}; give a number of tasks from 0"):
        LoadSpreading(spare_devices=count)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["tasks", "requested"])
def test_50_000_equal_tasks_on_5000_equal_nodes_are_ten_on_each(by):
    state = ClusterState()
    for i in range(5000):
        state.apply(make_node(f"n{i}", cpu=32))
    state.apply(make_class(1, cpu=1))
    state.apply(make_tasks(range(1, 50_001), 1))
    result = Scheduler(state, LoadSpreading(by=by), OrToolsSolver()).run(NOW_US)
    assert np.unique(result.nodes, return_counts=True)[1].tolist() == [10] * 5000


@pytest.mark.slow
@pytest.mark.parametrize("by", ["tasks", "requested"])
def test_equal_tasks_that_come_in_bursts_differ_by_one_at_most(by):
    """On 5000 nodes of which some have devices: equal nodes are balanced, whatever the other nodes are."""
    state = ClusterState()
    for i in range(5000):
        state.apply(make_node(f"n{i}", cpu=32, gpu=4 if i % 10 == 0 else 0))
    state.apply(make_class(1, cpu=1))
    scheduler = Scheduler(state, LoadSpreading(by=by), OrToolsSolver())
    for first in range(1, 50_001, 7000):
        state.apply(make_tasks(range(first, min(first + 7000, 50_001)), 1))
        scheduler.run(NOW_US)
    with_devices = np.arange(5000) % 10 == 0
    tasks = state.nodes.tasks[state.present_nodes()]
    assert tasks.sum() == 50_000
    for alike in (tasks[with_devices], tasks[~with_devices]):
        assert alike.max() - alike.min() <= 1


@pytest.mark.parametrize("classes", [1, 4, 40])
def test_an_idle_node_takes_tasks_of_many_classes_as_it_takes_those_of_one(classes):
    """One node runs fifty tasks, the other none: forty more go to the other, whatever their classes."""
    cluster = make_cluster(
        *(make_node("idle", cpu=100_000, pods=500), make_node("busy", cpu=100_000, pods=500)),
        *(make_class(c, cpu=c) for c in range(1, 42)),
        make_tasks(range(1000, 1050), 41, on="busy"),
        *(make_tasks([100 + i], 1 + i % classes) for i in range(40)),
    )
    result = cluster.run()
    assert set(cluster.names(result).values()) == {"idle"}
    assert result.stats.solves == (classes > 1)


@pytest.mark.parametrize(("label", "in_rack_1"), [("", 0), ("rack", 2)])
def test_tasks_of_a_class_go_to_all_racks_alike(label, in_rack_1):
    """Of three nodes that can take tasks one is in rack 1, which has more tasks than the others will get."""
    cluster = make_cluster(
        *(make_node(name, cpu=20, labels={"rack": rack}) for name, rack in (("a", "1"), ("b", "2"), ("c", "2"))),
        make_node("full", cpu=1, labels={"rack": "1"}),
        make_class(1, cpu=1),
        make_class(2, cpu=1),
        make_tasks([100], 2, on="full"),
        make_tasks(range(1, 7), 2, on="a"),
        make_tasks(range(11, 17), 1),
        policy=LoadSpreading(spread_label=label, spread_cost=10_000),
    )
    assert per_node(cluster.round()).get("a", 0) == in_rack_1


def test_a_label_that_no_node_has_changes_nothing():
    view = make_view(allocatable=[[9, 8]], free=[[9, 8]], running=[0], offsets=(0, 1))
    assert LoadSpreading(spread_label="rack").costs(view).aggregators is None
