"""Labels and taints as columns give the results of the one-node evaluators, and of the oracle, at all times."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from firmament_py.model.constraints import NO_DEMAND, NodeDemand, Taint, Toleration
from firmament_py.model.events import NodeObserved
from firmament_py.state.label_index import LabelColumns
from firmament_py.state.node_index import NodeIndex
from tests.builders import needs, selecting
from tests.firmament_py import oracle
from tests.firmament_py.strategies import demands, labels, taints


class ColumnsAgreeWithOneNodeAtATime(RuleBasedStateMachine):
    """Nodes are added, changed and removed, and their rows reused, while old and new demands are evaluated."""

    def __init__(self):
        super().__init__()
        self.node_index = NodeIndex()
        self.nodes: dict[int, NodeObserved] = {}

    @rule(row=st.sampled_from([0, 1, 2, 63, 64, 300]), labels=labels, taints=taints, name=st.sampled_from(["n0", "n1"]))
    def describe(self, row, labels, taints, name):
        node = NodeObserved(str(row), name, {}, labels, taints)
        changed = self.node_index.set(row, node)
        assert changed is (self.nodes.get(row) != node)
        self.nodes[row] = node

    @rule(row=st.sampled_from([0, 1, 2, 63, 64, 300]))
    def forget(self, row):
        self.node_index.forget(row)
        self.nodes.pop(row, None)

    @rule()
    def sweep(self):
        self.node_index.sweep()

    @rule(demand=demands, again=st.booleans())
    def evaluate(self, demand, again):
        rows = np.array(sorted(self.nodes), np.int64)
        selected, taint = self.node_index.evaluate(demand, rows)
        if again:  # out of the cache
            selected, taint = self.node_index.evaluate(demand, rows)
        for i, row in enumerate(rows.tolist()):
            node = self.nodes[row]
            fields = {"metadata.name": node.name}
            assert selected[i] == demand.selects(node.labels, fields) == oracle.selected(demand, node)
            keeps_away = demand.untolerated(node.taints)
            assert (taint[i] >= 0) == (keeps_away is not None) == oracle.repelled(demand, node)
            if keeps_away is not None:
                assert self.node_index.taint(int(taint[i])) == keeps_away


TestColumnsAgreeWithOneNodeAtATime = pytest.mark.slow(ColumnsAgreeWithOneNodeAtATime.TestCase)


def test_a_key_that_no_row_has_gets_no_column():
    columns = LabelColumns()
    columns.set(0, {"a": "b"})
    assert not columns.meets([needs(f"key{i}") for i in range(10_000)]).any()
    assert columns.meets([needs(f"key{i}", "DoesNotExist") for i in range(10_000)]).all()
    assert (columns.domains("key1") == -1).all()
    assert columns.texts("key1") == []
    assert len(columns._columns) == 0


def test_a_column_is_removed_with_the_last_row_of_its_key():
    columns = LabelColumns()
    columns.set(0, {"a": "b"})
    columns.set(1, {"a": "c"})
    assert columns.meets([needs("a", "In", "c")])[:2].tolist() == [False, True]
    columns.set(1, {})
    columns.forget(0)
    assert len(columns._columns) == 0
    columns.set(0, {"a": "c"})
    assert columns.meets([needs("a", "In", "c")])[:2].tolist() == [True, False]


def test_unused_columns_are_removed_and_built_again(monkeypatch):
    monkeypatch.setattr("firmament_py.state.label_index._SPARE_COLUMNS", 3)
    columns, keys = LabelColumns(), [f"key{i}" for i in range(8)]
    columns.set(0, dict.fromkeys(keys, "x"))
    for _ in range(3):
        assert columns.meets([needs(key) for key in keys])[0]
        columns.sweep()
        assert len(columns._columns) == 8
    for _ in range(2):
        assert columns.meets([needs("key1")])[0]
        columns.sweep()
    assert list(columns._columns) == ["key1"]
    columns.set(1, {"key2": "y"})
    assert columns.meets([needs("key2", "In", "x", "y")])[:3].tolist() == [True, True, False]


@given(demands, labels, taints)
def test_the_one_node_evaluators_agree_with_the_oracle(demand, labels, taints):
    node = NodeObserved("i", "n1", {}, labels, taints)
    assert demand.selects(labels, {"metadata.name": "n1"}) == bool(oracle.selected(demand, node))
    assert (demand.untolerated(taints) is not None) == oracle.repelled(demand, node)


def probe(name: str, labels: Mapping[str, str] | None = None, *taints: Taint) -> NodeObserved:
    return NodeObserved("i", name, {}, labels or {}, taints)


def _matching(labels: NodeIndex, demand: NodeDemand, *rows: int) -> list[bool]:
    selected, taint = labels.evaluate(demand, np.array(rows, np.int64))
    return [bool(b) for b in selected & (taint < 0)]


def test_a_repeated_description_changes_nothing():
    table = NodeIndex()
    assert table.set(0, probe("n", {"k": "v"}))
    generation = table.version
    assert not table.set(0, probe("n", {"k": "v"}))
    assert table.version == generation


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(probe("m", {"k": "v"}), id="name"),
        pytest.param(probe("n", {"k": "w"}), id="label"),
        pytest.param(probe("n"), id="no-label"),
        pytest.param(probe("n", {"k": "v"}, Taint("t", "", "NoSchedule")), id="taint"),
    ],
)
def test_a_change_affects_demands_evaluated_before(change):
    table = NodeIndex()
    table.set(0, probe("n", {"k": "v"}))
    demand = selecting(needs("k", "In", "v"))
    before = table.version
    assert _matching(table, demand, 0) == [True]
    assert table.set(0, change)
    assert table.version > before
    assert _matching(table, demand, 0) == [change == probe("m", {"k": "v"})]


def test_a_reused_row_has_nothing_of_the_old_node():
    table = NodeIndex()
    table.set(0, probe("n", {"k": "v"}, Taint("t", "", "NoExecute")))
    assert _matching(table, selecting(needs("k")), 0) == [False]
    table.forget(0)
    table.set(0, probe("m"))
    assert _matching(table, selecting(needs("k")), 0) == [False]
    assert _matching(table, NO_DEMAND, 0) == [True]


def test_removing_an_unknown_row_does_nothing():
    table = NodeIndex()
    table.forget(5)
    assert table.version == 0


def test_unused_values_and_taints_are_dropped():
    """Nodes are added and removed for years, each with a unique value in a label and in a taint."""
    table = NodeIndex()
    in_use = selecting(needs("name", "NotIn", "none"))
    tolerant = NodeDemand(tolerations=(Toleration("owner", "Equal", "n5999", ""),))
    for number in range(6_000):
        name = f"n{number}"
        table.set(number % 3, probe(name, {"name": name}, Taint("owner", name, "NoSchedule")))
        if number % 1000 == 999:
            assert _matching(table, selecting(needs("name", "In", name)), 0, 1, 2) == [False] * 3, "tainted"
    selected, taint = table.evaluate(selecting(needs("name", "In", "n5998", "n5999")), np.arange(3))
    # 5998 is on row 1 and 5999 on row 2
    assert selected.tolist() == [False, True, True]
    assert [table.taint(int(number)).value for number in taint] == ["n5997", "n5998", "n5999"]
    assert _matching(table, tolerant, 0, 1, 2) == [False, False, True]
    assert table.evaluate(in_use, np.arange(3))[0].all()
    assert table._labels._column("name").values < 3000
    assert len(table._taint_sets) < 3000


def test_many_distinct_taints_are_distinguished():
    table = NodeIndex()
    for row in range(200):
        table.set(row, probe(f"n{row}", {}, Taint("soft", "", "PreferNoSchedule"), Taint("t", str(row), "NoSchedule")))
    demand = NodeDemand(tolerations=(Toleration("t", "Equal", "117", ""),))
    _, taint = table.evaluate(demand, np.arange(200))
    assert [row for row in range(200) if taint[row] < 0] == [117]
    assert table.taint(int(taint[199])) == Taint("t", "199", "NoSchedule")
