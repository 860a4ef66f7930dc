"""Label sets: the tasks that a selector matches, by namespace, by the labels of namespaces, by labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import PeerSelector
from firmament_py.model.events import NamespaceObserved, Outcome
from firmament_py.state.label_sets import NO_LABELS, LabelSetTable
from firmament_py.state.table import UNKNOWN
from tests.builders import make_class, make_cluster, make_label_set, make_tasks, needs, tasks_like
from tests.firmament_py import peer_oracle
from tests.firmament_py.mixtures import LABELS, NAMESPACES
from tests.firmament_py.strategies import requirements

APP = (needs("app", "In", "a"),)
RED = (needs("team", "In", "red"),)


def table() -> LabelSetTable:
    """1: default, app a; 2: default, nothing; 3: red, app a; 4: unknown, app a. Team red has namespace red."""
    label_sets = LabelSetTable()
    label_sets.describe_namespace("red", {"team": "red"})
    for number, namespace, labels in [(1, "default", {"app": "a"}), (2, "default", {}), (3, "red", {"app": "a"})]:
        label_sets.define(number, namespace, labels)
    label_sets.define(4, "unknown", {"app": "a"})
    return label_sets


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(PeerSelector(frozenset(["default"]), None, APP), {1}, id="a-namespace"),
        pytest.param(PeerSelector(frozenset(["default", "red"]), None, APP), {1, 3}, id="namespaces"),
        pytest.param(PeerSelector(frozenset(["default"]), None, ()), {1, 2}, id="empty-selector"),
        pytest.param(PeerSelector(frozenset(["default"]), None, None), set(), id="absent-selector"),
        pytest.param(PeerSelector(frozenset(), None, APP), set(), id="no-namespace"),
        pytest.param(PeerSelector(frozenset(), (), APP), {1, 3, 4}, id="every-namespace"),
        pytest.param(PeerSelector(frozenset(), RED, APP), {3}, id="namespaces-of-a-team"),
        pytest.param(PeerSelector(frozenset(["default"]), RED, APP), {1, 3}, id="namespaces-and-those-of-a-team"),
        pytest.param(PeerSelector(frozenset(), (needs("team", "DoesNotExist"),), APP), {1, 4}, id="without-labels"),
        pytest.param(PeerSelector(frozenset(["nowhere"]), None, ()), set(), id="a-namespace-without-tasks"),
        pytest.param(PeerSelector(frozenset(["default"]), None, (needs("app", "NotIn", "a"),)), {2}, id="notin"),
    ],
)
def test_tasks_that_a_selector_matches(selector, expected):
    label_sets = table()
    chosen = label_sets.matching(selector)
    assert set(label_sets.id[chosen].tolist()) == expected
    assert not chosen[NO_LABELS]
    for row in label_sets.rows().tolist():
        assert chosen[row] == (row != NO_LABELS and selector.matches(*label_sets.describe(row)))


def test_results_follow_namespaces_and_label_sets():
    label_sets, selector = table(), PeerSelector(frozenset(), RED, APP)
    assert label_sets.describe_namespace("unknown", {"team": "red"})
    assert not label_sets.describe_namespace("unknown", {"team": "red"})
    assert set(label_sets.id[label_sets.matching(selector)].tolist()) == {3, 4}
    label_sets.define(5, "red", {"app": "a", "more": ""})
    label_sets.define(5, "red", {"app": "a", "more": ""})
    assert set(label_sets.id[label_sets.matching(selector)].tolist()) == {3, 4, 5}
    assert label_sets.find(np.array([5, 9, 1], np.uint64)).tolist() == [5, UNKNOWN, 1]


@given(data=st.data())
def test_against_the_oracle(data):
    label = requirements(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "x"]))
    team = requirements(st.just("team"), st.sampled_from(["red", "blue"]))
    few = st.lists(label, max_size=2).map(tuple)
    selector = data.draw(
        st.builds(
            PeerSelector,
            st.frozensets(st.sampled_from(NAMESPACES)),
            st.none() | st.lists(team, max_size=2).map(tuple),
            st.none() | few,
        )
    )
    label_sets, world = LabelSetTable(), peer_oracle.World()
    number = 0
    for name in NAMESPACES:
        world.namespaces[name] = data.draw(st.sampled_from([{}, {"team": "red"}, {"team": "blue"}]))
        label_sets.describe_namespace(name, world.namespaces[name])
        for labels in LABELS:
            number += 1
            label_sets.define(number, name, labels)
            row = label_sets.find(np.array([number], np.uint64))[0]
            task = peer_oracle.Task(make_class(1), name, labels)
            assert label_sets.matching(selector)[row] == peer_oracle.matches(world, selector, task)


def test_an_undefined_label_set_is_requested():
    cluster = make_cluster(make_class(1), make_label_set(1, app="a"))
    outcome = cluster.tell(make_tasks([1], 1, label_set=7))[0]
    assert (outcome.unknown_label_sets, cluster.waiting()) == ({7}, set())
    assert cluster.tell(make_label_set(7), make_tasks([1], 1, label_set=7)) == [Outcome(), Outcome()]
    assert cluster.waiting() == {1}


def test_unused_label_sets_are_removed(monkeypatch):
    monkeypatch.setattr("firmament_py.state.label_sets.SPARE_ROWS", 2)
    cluster = make_cluster(make_class(1), make_label_set(1, app="a"), make_tasks([1], 1, label_set=1))
    cluster.tell(*(make_label_set(number, n=str(number)) for number in range(2, 30)))
    label_sets, known = cluster.state.label_sets, np.array([1, 2, 29], np.uint64)
    cluster.state.sweep()
    assert (label_sets.find(known) >= 0).all(), "their tasks may be on the way"
    cluster.tell(make_tasks([2], 1, label_set=29))
    cluster.state.sweep()
    assert (label_sets.find(known) >= 0).tolist() == [True, False, True], "two are in use, the other has been idle"
    chosen = label_sets.matching(tasks_like(needs("n", "Exists")))
    assert all(labels for _, _, labels in (label_sets.describe(row) for row in np.flatnonzero(chosen).tolist()))


def test_a_namespace_is_described_after_it_is_observed():
    cluster = make_cluster()
    before = cluster.state.changes.number
    cluster.tell(NamespaceObserved("x", {}), NamespaceObserved("x", {"team": "red"}))
    assert cluster.state.changes.number > before


def test_removed_namespaces_are_dropped(monkeypatch):
    monkeypatch.setattr("firmament_py.state.label_sets._SPARE_NAMESPACES", 3)
    monkeypatch.setattr("firmament_py.state.label_sets.SPARE_ROWS", 0)
    label_sets, selector = table(), PeerSelector(frozenset(["default", "red"]), RED, APP)
    before = set(label_sets.id[label_sets.matching(selector)].tolist())
    for step in range(50):
        label_sets.describe_namespace(f"n{step}", {"team": "blue"})
        label_sets.describe_namespace(f"n{step}", {})
        label_sets.tasks[label_sets.rows()] = 1
        label_sets.sweep()
        assert len(label_sets._names) <= 2 * 3 + 4
    assert set(label_sets.id[label_sets.matching(selector)].tolist()) == before == {1, 3}
    for row in label_sets.rows()[1:].tolist():
        assert selector.matches(*label_sets.describe(row)) == bool(label_sets.matching(selector)[row])
