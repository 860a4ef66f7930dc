"""Input sets: their definitions, the locations of their blocks in a round, and their removal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import Block, InputsDefined, NodeRemoved
from firmament_py.policy.locality import Inputs, gather
from firmament_py.snapshot.snapshot import take_snapshot
from firmament_py.state import input_sets as module
from firmament_py.state.input_sets import MAX_BLOCKS, MAX_BYTES, InputSetTable
from firmament_py.state.table import UNKNOWN
from tests.builders import NOW_US, make_class, make_cluster, make_inputs, make_node, make_tasks, removed

MIB = 2**20
RACKS = ("rack", "zone")

pytestmark = pytest.mark.slow


def seen(cluster) -> Inputs:
    found = take_snapshot(cluster.state, NOW_US, RACKS).inputs
    assert found is not None
    return found


def near(inputs: Inputs) -> dict[tuple[int, int], int]:
    columns = (inputs.near_set.tolist(), inputs.near_node.tolist(), inputs.near_bytes.tolist())
    return {(s, n): b // MIB for s, n, b in zip(*columns, strict=True)}


def racks(inputs: Inputs) -> dict[tuple[int, int], int]:
    columns = (inputs.rack_set.tolist(), inputs.rack_id.tolist(), inputs.rack_bytes.tolist())
    return {(s, r): b // MIB for s, r, b in zip(*columns, strict=True)}


def racked(name: str, rack: str, **labels: str):
    return make_node(name, labels={**({"rack": rack} if rack else {}), **labels})


# -- where data is ----------------------------------------------------------------------------------------------------


def test_a_block_counts_once_on_a_node_and_once_in_a_rack():
    # a and b are in rack r, c in s; 10 on a and b, 20 on b (said twice), 40 on c, 80 nowhere
    cluster = make_cluster(
        *(racked("a", "r"), racked("b", "r"), racked("c", "s"), make_class(1)),
        make_inputs(5, (10, "a b"), (20, "b b"), (40, "c"), (80, "")),
        make_tasks([1, 2], 1, inputs=[0, 5]),
    )
    inputs = seen(cluster)
    assert inputs.total.tolist() == [150 * MIB]
    assert inputs.of_task.tolist() == [-1, 0]
    assert near(inputs) == {(0, 0): 10, (0, 1): 30, (0, 2): 40}
    r, s = inputs.rack[0], inputs.rack[2]
    assert racks(inputs) == {(0, r): 30, (0, s): 40}


def test_a_replica_can_have_a_known_rack_only():
    cluster = make_cluster(
        *(racked("a", "r"), racked("b", "s"), make_class(1)),
        make_inputs(5, (10, "a", "s"), (20, "", "s unknown"), (40, "", "r s")),
        make_tasks([1], 1, inputs=5),
    )
    inputs = seen(cluster)
    assert near(inputs) == {(0, 0): 10}
    assert racks(inputs) == {(0, inputs.rack[0]): 50, (0, inputs.rack[1]): 70}


def test_the_first_label_in_use_defines_racks():
    events = (make_class(1), make_inputs(5, (10, "a"), (20, "", "z")), make_tasks([1], 1, inputs=5))
    zoned = seen(make_cluster(racked("a", "", zone="z"), racked("b", "", zone="y"), racked("c", ""), *events))
    assert racks(zoned) == {(0, zoned.rack[0]): 30}
    assert zoned.rack[2] == -1
    bare = seen(make_cluster(make_node("a"), *events))
    assert (bare.rack.tolist(), racks(bare), near(bare)) == ([-1], {}, {(0, 0): 10})
    mixed = seen(make_cluster(racked("a", "r", zone="z"), racked("b", "", zone="z"), *events))
    assert mixed.rack.tolist() == [0, -1], "one node with a rack is enough for racks to count"
    assert racks(mixed) == {(0, 0): 10}


def test_data_counts_while_its_node_exists():
    cluster = make_cluster(
        *(racked("a", "r"), racked("b", "s"), make_class(1)),
        make_inputs(5, (10, "a b"), (20, "later")),
        make_tasks([1], 1, inputs=5),
    )
    assert near(seen(cluster)) == {(0, 0): 10, (0, 1): 10}
    cluster.tell(NodeRemoved("id-a"))
    assert near(seen(cluster)) == {(0, 0): 10}
    cluster.tell(racked("a", "r"), racked("later", "s"))
    names = [cluster.state.nodes.observed[row].name for row in cluster.state.present_nodes().tolist()]
    assert {names[n]: b for (_, n), b in near(seen(cluster)).items()} == {"a": 10, "b": 10, "later": 20}


def test_names_of_nodes_are_looked_up_when_nodes_change_only():
    cluster = make_cluster(racked("a", "r"), racked("b", "s"), make_class(1))
    index = cluster.state.node_index
    before = index.rows_by_name()
    cluster.tell(make_inputs(5, (10, "b")), make_tasks([1], 1, inputs=5))
    assert near(seen(cluster)) == {(0, 1): 10}
    assert index.rows_by_name() is before
    cluster.tell(make_inputs(6, (20, "c")), make_tasks([2], 1, inputs=6))
    assert near(seen(cluster)) == {(0, 1): 10}, "c does not exist"
    cluster.tell(racked("c", "s"), NodeRemoved("id-a"))
    assert set(index.rows_by_name()) == {"b", "c"}
    names = [cluster.state.nodes.observed[row].name for row in cluster.state.present_nodes().tolist()]
    assert {(s, names[n]): b for (s, n), b in near(seen(cluster)).items()} == {(0, "b"): 10, (1, "c"): 20}


def test_no_inputs_if_not_needed_or_not_read():
    cluster = make_cluster(make_node("a"), make_class(1), make_inputs(5, (1, "a")), make_tasks([1], 1))
    assert take_snapshot(cluster.state, NOW_US, RACKS).inputs is None
    cluster.tell(make_tasks([2], 1, inputs=5))
    assert take_snapshot(cluster.state, NOW_US).inputs is None


names = st.lists(st.sampled_from("abcd"), max_size=3).map(tuple)
blocks = st.lists(
    st.builds(Block, st.sampled_from([0, 1, 3, 1000]), names, st.lists(st.sampled_from("rst"), max_size=2).map(tuple)),
    max_size=5,
)


@given(
    sets=st.lists(blocks, min_size=1, max_size=4),
    rack=st.lists(st.sampled_from(["r", "s", None]), min_size=3, max_size=3),
)
def test_bytes_are_counted_correctly(sets, rack):
    table = InputSetTable()
    for number, described in enumerate(sets):
        assert table.define(InputsDefined(number + 1, tuple(described))) is None
    node_of, rack_of = {"a": 0, "b": 1, "c": 2}, {"r": 0, "s": 1}
    of_node = np.array([rack_of.get(r, -1) for r in rack])
    rows = table.find(np.arange(1, len(sets) + 1, dtype=np.uint64))
    found = gather(
        np.arange(len(sets)), len(sets), table.placed(rows, of_node, np.array([0, 1, 2, -1]), node_of, rack_of), of_node
    )
    on_node: dict[tuple[int, int], int] = {}
    in_rack: dict[tuple[int, int], int] = {}
    for s, described in enumerate(sets):
        assert found.total[s] == sum(block.bytes for block in described)
        for block in described:
            here = {node_of[name] for name in block.nodes if name in node_of}
            around = {int(of_node[n]) for n in here} | {rack_of[name] for name in block.racks if name in rack_of}
            for n in here:
                on_node[s, n] = on_node.get((s, n), 0) + block.bytes
            for r in around - {-1}:
                in_rack[s, r] = in_rack.get((s, r), 0) + block.bytes
    in_use = zip(found.near_set.tolist(), found.near_node.tolist(), found.near_bytes.tolist(), strict=True)
    assert {(s, n): b for s, n, b in in_use} == {k: b for k, b in on_node.items() if b}
    in_use = zip(found.rack_set.tolist(), found.rack_id.tolist(), found.rack_bytes.tolist(), strict=True)
    assert {(s, r): b for s, r, b in in_use} == {k: b for k, b in in_rack.items() if b}
    part = found.of_tasks(np.array([-1, len(sets) - 1]))
    last = {n: b for (s, n), b in on_node.items() if s == len(sets) - 1 and b}
    assert (part.of_task.tolist(), len(part.total)) == ([-1, 0], 1)
    assert dict(zip(part.near_node.tolist(), part.near_bytes.tolist(), strict=True)) == last


def test_the_largest_set_adds_up_exactly():
    table = InputSetTable()
    assert table.define(InputsDefined(1, (Block(MAX_BYTES, ("a",)),) * MAX_BLOCKS)) is None
    none = np.full(1, -1)
    found = gather(
        np.zeros(1, np.int64),
        1,
        table.placed(table.find(np.ones(1, np.uint64)), none, np.array([0, -1]), {"a": 0}, {}),
        none,
    )
    assert (found.total.tolist(), found.near_bytes.tolist()) == ([2**62], [2**62])


# -- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("described", "field", "remedy"),
    [
        pytest.param((Block(-1, ("a",)),), "blocks[0].bytes", "give 0", id="negative"),
        pytest.param((Block(1), Block(MAX_BYTES + 1)), "blocks[1].bytes", "give 0", id="enormous"),
        pytest.param((Block(1),) * (MAX_BLOCKS + 1), "blocks", "at most 4096", id="many"),
    ],
)
def test_an_invalid_set_is_refused_and_its_tasks_read_nothing(described, field, remedy):
    cluster = make_cluster(make_node("a"), make_class(1))
    outcome = cluster.tell(InputsDefined(7, described))[0]
    [refusal] = outcome.refused
    assert (refusal.kind, refusal.id, refusal.field) == ("inputs", "7", field)
    assert remedy in refusal.reason
    assert not cluster.tell(make_tasks([1], 1, inputs=7))[0].unknown_inputs
    assert cluster.round() == {1: "a"}


def test_many_invalid_sets_stop_neither_rounds_nor_sweeps(monkeypatch):
    cluster = make_cluster(racked("a", "r"), make_class(1), make_inputs(1, (1, "a")))
    monkeypatch.setattr(cluster.state.inputs, "_spare_rows", 0)
    ids = range(2, 202)
    for number in ids:
        assert cluster.tell(InputsDefined(number, (Block(-1, ("a",)),)))[0].refused
    cluster.tell(make_tasks([1, *ids], 1, inputs=[1, *ids]))
    inputs = seen(cluster)
    assert inputs.total.tolist() == [MIB, *[0] * len(ids)]
    assert near(inputs) == {(0, 0): 1}
    cluster.tell(removed(1, *ids))
    for _ in range(2):
        cluster.state.sweep()
    assert (cluster.state.inputs.find(np.array(ids, np.uint64)) == UNKNOWN).all()


def test_the_id_0_means_none():
    cluster = make_cluster(make_node("a"), make_class(1))
    assert [r.field for r in cluster.tell(InputsDefined(0, ()))[0].refused] == ["id"]
    assert not cluster.tell(make_tasks([1, 2], 1, inputs=[0, 0]))[0].unknown_inputs


def test_tasks_of_an_unknown_set_are_left_out_and_named():
    cluster = make_cluster(make_node("a"), make_class(1), make_inputs(7, (1, "a")))
    outcome = cluster.tell(make_tasks([1, 2, 3], 1, inputs=[7, 8, 0]))[0]
    assert (outcome.unknown_inputs, cluster.waiting()) == ({8}, {1, 3})
    cluster.tell(make_inputs(8, (1, "a")), make_tasks([2], 1, inputs=8))
    assert cluster.waiting() == {1, 2, 3}


def test_the_input_set_of_a_task_can_change():
    cluster = make_cluster(*(racked("a", "r"), make_class(1)), make_inputs(7, (1, "a")), make_inputs(8, (2, "a")))
    cluster.tell(make_tasks([1], 1, inputs=7), make_tasks([1], 1, inputs=8))
    assert near(seen(cluster)) == {(0, 0): 2}
    assert int(cluster.state.inputs.tasks.sum()) == 1


def test_unused_sets_are_removed_and_requested_again(monkeypatch):
    monkeypatch.setattr(module, "_SPARE_NAMES", 0)
    cluster = make_cluster(make_node("a"), make_class(1))
    state = cluster.state
    monkeypatch.setattr(state.inputs, "_spare_rows", 1)
    cluster.tell(make_inputs(1, (1, "v w x y", "r")), make_inputs(2, (2, "a b", "s t")), make_inputs(3, (3, "z")))
    cluster.tell(make_tasks([1], 1, inputs=2))
    for _ in range(2):
        state.sweep()
    assert len(state.inputs) == 2, "row 0 and the set that is in use"
    assert (set(state.inputs._nodes), set(state.inputs._racks)) == ({"a", "b"}, {"s", "t"})
    assert near(seen(cluster)) == {(0, 0): 2}, "what is left is numbered anew"
    assert state.apply(make_tasks([2], 1, inputs=3)).unknown_inputs == {3}
    cluster.tell(removed(1))
    assert int(state.inputs.tasks[1:].sum()) == 0


def test_names_are_renumbered_once_as_many_sets_are_gone_as_are_left(monkeypatch):
    renumbered: list[int] = []
    gone = [0]
    monkeypatch.setattr(InputSetTable, "_renumber", lambda table: renumbered.append(len(table)))
    monkeypatch.setattr(InputSetTable, "remove_unused", lambda _: gone)
    table = InputSetTable()
    for number in range(1, 4):
        table.define(make_inputs(number, (1, "a")))  # four rows with that of no inputs
    for _ in range(3):
        table.sweep()
    assert renumbered == []
    table.sweep()
    assert renumbered == [4]
    table.sweep()
    assert renumbered == [4], "counted anew"


def test_bound_and_ended_tasks_count_until_they_are_removed():
    cluster = make_cluster(make_node("a"), make_class(1), make_inputs(7, (1, "a")), make_tasks([1], 1, inputs=7))
    assert cluster.round() == {1: "a"}
    cluster.tell(make_tasks([1], 1, on="a", inputs=7))
    assert int(cluster.state.inputs.tasks[1]) == 1
    cluster.tell(removed(1))
    assert int(cluster.state.inputs.tasks[1]) == 0
