"""The arithmetic of quincy, and its rounds: fewest bytes moved, against the full network."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import Event
from firmament_py.policy import COST_MAX, View, checked_costs
from firmament_py.policy.locality import Inputs
from firmament_py.policy.registry import UnknownPolicyError, load
from firmament_py.snapshot.snapshot import take_snapshot
from policies.load_spreading import LoadSpreading
from policies.quincy import Quincy
from tests.builders import NOW_US, make_class, make_cluster, make_inputs, make_node, make_tasks, per_node

MIB = 2**20
RACK = "topology.kubernetes.io/rack"
ZONE = "topology.kubernetes.io/zone"

pytestmark = pytest.mark.slow


def racked(name: str, rack: str, label: str = RACK, pods: int = 110):
    return make_node(name, labels={label: rack} if rack else {}, pods=pods)


def costs_of(inputs: Inputs, policy: Quincy):
    """Costs on one empty node for each of the inputs' nodes."""
    nodes, tasks = len(inputs.rack), len(inputs.of_task)
    view = View(
        resources=("pods",),
        requests=np.ones((1, 1), np.int64),
        priority=np.zeros(1, np.int64),
        waiting=np.full(1, tasks),
        allocatable=np.full((nodes, 1), 10),
        free=np.full((nodes, 1), 10),
        running=np.zeros(nodes, np.int64),
        slot_offsets=np.arange(3),
        task_class=np.zeros(tasks, np.int64),
        task_age_us=np.zeros(tasks, np.int64),
        inputs=inputs,
    )
    return checked_costs(policy, view)


def inputs_of(*events) -> Inputs:
    cluster = make_cluster(*events, make_class(1), make_tasks([1], 1, inputs=5))
    found = take_snapshot(cluster.state, NOW_US, Quincy().rack_labels).inputs
    assert found is not None
    return found


def example(*extra):
    """1000 MiB, of which a has 600 and b, in a's rack, 200 others; c is in that rack, d in another, e in none."""
    return inputs_of(
        *(racked("a", "r"), racked("b", "r"), racked("c", "r"), racked("d", "s"), racked("e", "")),
        *extra,
        make_inputs(5, (600, "a"), (200, "b"), (200, "")),
    )


# -- costs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "costs"),
    [
        # a: 200 + 0.5 x 200; b: 200 + 0.5 x 600; c: 200 + 0.5 x 800; d, e: all
        pytest.param({"threshold": 0.0}, [300, 500, 600, 1000, 1000], id="the-example"),
        pytest.param({"threshold": 0.2}, [300, 500, 600, 1000, 1000], id="at-the-threshold"),
        pytest.param({"threshold": 0.21}, [300, 600, 600, 1000, 1000], id="b-has-too-little"),
        pytest.param({"threshold": 0.81}, [1000] * 5, id="nobody-has-enough"),
        # bytes inside the rack cost nothing: 200 for all of it
        pytest.param({"rack_weight": 0.0}, [200, 200, 200, 1000, 1000], id="racks-are-fast"),
        # or as much as others: what is not on the node
        pytest.param({"rack_weight": 1.0}, [400, 800, 1000, 1000, 1000], id="racks-are-no-better"),
        pytest.param({"unit_mib": 100}, [3, 5, 6, 10, 10], id="unit"),
        # 300 / 64 = 4.69, 500 / 64 = 7.81, 600 / 64 = 9.375, 1000 / 64 = 15.625
        pytest.param({"unit_mib": 64}, [5, 8, 9, 16, 16], id="rounded"),
    ],
)
def test_what_a_node_costs(options, costs):
    found = costs_of(example(), Quincy(**options))
    assert found.data.row(0).tolist() == costs
    assert found.data.row(-1).tolist() == [0] * 5


def test_racks_are_defined_by_a_configured_label_or_by_zones():
    events = (racked("a", "r", "my/row"), racked("b", "r", "my/row"), make_inputs(5, (100, "a")))
    assert Quincy(rack_label="my/row").rack_labels == ("my/row",)
    cluster = make_cluster(*events, make_class(1), make_tasks([1], 1, inputs=5))
    found = take_snapshot(cluster.state, NOW_US, ("my/row",)).inputs
    assert found is not None
    assert costs_of(found, Quincy()).data.row(0).tolist() == [0, 50]
    zoned = inputs_of(racked("a", "z", ZONE), racked("b", "z", ZONE), make_inputs(5, (100, "a")))
    assert costs_of(zoned, Quincy()).data.row(0).tolist() == [0, 50]
    bare = inputs_of(make_node("a"), make_node("b"), make_inputs(5, (100, "a"), (60, "b")))
    assert costs_of(bare, Quincy()).data.row(0).tolist() == [60, 100], "a node without a rack is one of its own"


def test_costs_above_the_maximum_are_scaled_down_per_task():
    # 4 TiB in MiB are 4 x 2**20 > COST_MAX: everything shrinks alike, so half is still half
    tib = 2**20
    inputs = inputs_of(racked("a", "r"), racked("b", "s"), make_inputs(5, (2 * tib, "a"), (tib, "b"), (tib, "")))
    assert costs_of(inputs, Quincy()).data.row(0).tolist() == [COST_MAX // 2, COST_MAX * 3 // 4]
    larger = costs_of(inputs, Quincy(unit_mib=1024)).data.row(0).tolist()
    assert larger == [2 * 1024, 3 * 1024]


def test_no_bytes_cost_nothing():
    inputs = inputs_of(racked("a", "r"), make_inputs(5, (0, "a")))
    assert costs_of(inputs, Quincy()).data.row(0).tolist() == [0]


def test_slot_costs_follow_the_requested_share():
    # 10 pods a node, none taken: 0, 1/10, 2/10 of 50
    assert costs_of(example(), Quincy(spread_mib=50)).slot.tolist() == [[0, 5, 10]] * 5
    assert costs_of(example(), Quincy(spread_mib=0)).slot.tolist() == [[0]]
    assert costs_of(example(), Quincy(spread_mib=50, unit_mib=5)).slot.tolist() == [[0, 1, 2]] * 5


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("threshold", "1.5", "0 .. 1"),
        ("threshold", "nan", "0 .. 1"),
        ("rack-weight", "-1", "0 .. 1"),
        ("unit-mib", "0", "1 or more"),
        ("spread-mib", "-1", "0 .. 1000000"),
        ("unit-mib", "1Gi", "type int"),
    ],
)
def test_invalid_options_are_refused_by_name(option, value, hint):
    with pytest.raises(UnknownPolicyError) as caught:
        load("quincy", {option: value})
    assert f"option {option}" in str(caught.value)
    assert hint in str(caught.value)


# -- placements -------------------------------------------------------------------------------------------------------


def test_tasks_go_to_their_data_unlike_with_load_spreading():
    """a runs 3 tasks and holds all data of the new ones; b and c are empty."""
    events: list[Event] = [racked("a", "r"), racked("b", "r"), racked("c", "s"), make_class(1)]
    events += [make_tasks(range(1, 4), 1, on="a"), make_inputs(5, (1024, "a")), make_tasks(range(4, 8), 1, inputs=5)]
    assert per_node(make_cluster(*events, policy=Quincy()).round()) == {"a": 4}
    spread = per_node(make_cluster(*events, policy=LoadSpreading()).round())
    assert max(spread.get("b", 0), spread.get("c", 0)) == 2
    assert "a" not in spread


def test_the_task_with_most_bytes_to_move_gets_the_node():
    """Both read from a, which has one slot: 900 MiB and 500 MiB; b in a's rack is next best, c far away.

    900 on a, 500 on b: 0 + 250; the other way round 450. d takes neither.
    """
    nodes = (racked("a", "r", pods=1), racked("b", "r", pods=1), racked("c", "s"))
    events = (make_class(1), make_inputs(5, (500, "a")), make_inputs(9, (900, "a")))
    for first, second in ((5, 9), (9, 5)):
        cluster = make_cluster(*nodes, *events, make_tasks([1, 2], 1, inputs=[first, second]), policy=Quincy())
        placed = cluster.round()
        assert {first: placed[1], second: placed[2]} == {5: "b", 9: "a"}


def test_moving_data_costs_less_than_waiting():
    # Quincy would let it wait for a while; here a round leaves no task waiting that fits
    nodes = (racked("a", "r", pods=1), racked("b", "s", pods=1))
    events = (make_class(1), make_inputs(5, (500_000, "a")), make_tasks([1], 1, on="a"), make_tasks([2], 1, inputs=5))
    assert make_cluster(*nodes, *events, policy=Quincy()).round() == {2: "b"}


def test_tasks_without_data_fill_nodes_evenly():
    nodes = [make_node(name, pods=20) for name in "abc"]
    cluster = make_cluster(*nodes, make_class(1), make_tasks(range(1, 31), 1), policy=Quincy())
    assert per_node(cluster.round()) == {"a": 10, "b": 10, "c": 10}


def test_tasks_of_one_job_share_a_vertex():
    seen = []
    cluster = make_cluster(
        *(racked(f"n{i}", f"r{i % 2}") for i in range(4)),
        *(make_class(1), make_inputs(5, (10, "n0")), make_tasks(range(1, 1001), 1, inputs=5)),
        policy=Quincy(),
        observer=lambda network, solution: seen.append(network),
    )
    assert len(cluster.round()) == 440
    assert seen[0].group_size.tolist() == [1000]


def test_the_largest_reader_is_not_starved_by_the_oldest():
    """Waiting costs dominate a flow: without capacity, age decides which task waits, not bytes."""
    events = (
        *(racked("a", "r", pods=1), make_class(1), make_inputs(5, (1, "a")), make_inputs(6, (9000, "a"))),
        make_tasks([1], 1, inputs=5, created_us=NOW_US - 3_600_000_000),
        make_tasks([2], 1, inputs=6),
    )
    assert make_cluster(*events, policy=Quincy()).round() == {1: "a"}


@pytest.mark.parametrize("gib", [500, 1024, 9000])
def test_a_large_reader_far_from_its_data_is_not_starved_by_tasks_without_data(gib):
    """However many bytes must be moved, an hour of waiting costs more."""
    events = (
        *(racked("a", "r", pods=1), racked("b", "s", pods=0), make_class(1), make_inputs(5, (gib * 1024, "b"))),
        make_tasks([1], 1, inputs=5, created_us=NOW_US - 3_600_000_000),
        make_tasks([2], 1),
    )
    assert make_cluster(*events, policy=Quincy()).round() == {1: "a"}


# -- the optimum ------------------------------------------------------------------------------------------------------

STEP = 2  # MiB: bytes inside a rack at half the cost are whole units


@st.composite
def clusters(draw, most_tasks=10, classes=1):
    """Nodes with capacity for some pods, in racks or not, and waiting tasks, most with separate data."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 6)))]
    rack = {name: draw(st.sampled_from(["r", "s", ""])) for name in names}
    pods = {name: draw(st.integers(0, 4)) for name in names}
    sets = {}
    for number in range(1, draw(st.integers(2, 7))):
        count = draw(st.integers(0, 4))
        sets[number] = [
            (
                draw(st.integers(0, 50)) * STEP,
                " ".join(draw(st.lists(st.sampled_from([*names, "gone"]), max_size=3, unique=True))),
                " ".join(draw(st.lists(st.sampled_from(["r", "s"]), max_size=1))),
            )
            for _ in range(count)
        ]
    of_task = draw(st.lists(st.sampled_from([0, *sets]), min_size=1, max_size=most_tasks))
    of_class = sorted(draw(st.lists(st.integers(1, classes), min_size=len(of_task), max_size=len(of_task))))
    return rack, pods, sets, of_task, of_class


def reported(world, policy, **options):
    rack, pods, sets, of_task, of_class = world
    return make_cluster(
        *(racked(name, rack[name], pods=pods[name]) for name in rack),
        *(make_class(number) for number in sorted(set(of_class))),
        *(make_inputs(number, *blocks) for number, blocks in sets.items()),
        make_tasks(range(1, len(of_task) + 1), of_class, inputs=of_task if any(of_task) else 0),
        policy=policy,
        **options,
    )


def half_mib_moved(world, task: int, node: str) -> int:
    """By the blocks alone: 2 for a MiB from another rack, 1 for one from this rack, 0 for one that is here."""
    rack, _, sets, of_task, _ = world
    total = 0
    for size, on, in_racks in sets.get(of_task[task], ()):
        nodes = [name for name in on.split() if name in rack]
        racks = {rack[name] for name in nodes} | ({*in_racks.split()} & {*rack.values()})
        weight = 0 if node in nodes else 1 if rack[node] and rack[node] in racks else 2
        total += size * weight
    return total


def least_moved(world) -> tuple[int, int]:
    """(tasks placed, half MiB moved) of the network in full: every pod to every node."""
    rack, pods, _, of_task, _ = world
    graph = networkx.DiGraph()
    graph.add_node("sink", demand=len(of_task))
    for task in range(len(of_task)):
        graph.add_node(task, demand=-1)
        graph.add_edge(task, "sink", capacity=1, weight=10**9)
        for name in rack:
            graph.add_edge(task, name, capacity=1, weight=half_mib_moved(world, task, name))
    for name in rack:
        graph.add_edge(name, "sink", capacity=pods[name])
    cost = networkx.network_simplex(graph)[0]
    return len(of_task) - cost // 10**9, cost % 10**9


@given(clusters())
def test_a_round_moves_the_minimum_of_bytes(world):
    cluster = reported(world, Quincy(threshold=0, spread_mib=0))
    placed = cluster.round()
    moved = sum(half_mib_moved(world, uid - 1, node) for uid, node in placed.items())
    assert (len(placed), moved) == least_moved(world)


@given(clusters(classes=3))
def test_a_round_moves_the_minimum_of_bytes_for_classes_with_equal_requests(world):
    cluster = reported(world, Quincy(threshold=0, spread_mib=0))
    placed = cluster.round()
    moved = sum(half_mib_moved(world, uid - 1, node) for uid, node in placed.items())
    assert (len(placed), moved) == least_moved(world)


@given(clusters(), st.sampled_from([0.02, 0.14, 0.5, 1.0]))
def test_a_threshold_costs_at_most_what_it_hides(world, threshold):
    """On the node of each task, the cost exceeds the moved bytes by less than the threshold of its input."""
    cluster = reported(world, Quincy(threshold=threshold, spread_mib=0))
    placed = cluster.round()
    moved = sum(half_mib_moved(world, uid - 1, node) for uid, node in placed.items())
    _, _, sets, of_task, _ = world
    hidden = sum(2 * threshold * sum(size for size, *_ in sets.get(s, ())) for s in of_task)
    count, least = least_moved(world)
    assert len(placed) == count
    assert least <= moved <= least + hidden
