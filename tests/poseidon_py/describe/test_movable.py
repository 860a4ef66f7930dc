"""Which pods may be evicted in order to run on another node, and what the engine learns of it."""

import json

import msgspec
import pytest

from poseidon_py.describe.annotations.movable import MOVABLE, movable, problem_of
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.kube.objects import Pod
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod_json

YES, NO = {MOVABLE: "true"}, {MOVABLE: "false"}
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DISRUPT = "karpenter.sh/do-not-disrupt"
PREFER = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
DATA = {"poseidon.io/data": "1Ki@n"}


def made(annotations=None, name="a", *, kind="ReplicaSet", controller=True, at="n", **fields) -> Pod:
    body = pod_json(name, node=at, annotations=annotations, **fields)
    if kind:
        owner = {"uid": "u", "kind": kind, "name": "o", "controller": controller}
        body["metadata"]["ownerReferences"] = [{"uid": "v", "kind": "Other", "name": "v"}, owner]
    return msgspec.json.decode(json.dumps(body), type=Pod)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, None),
        ({}, None),
        ({"about": MOVABLE}, None),
        (YES, True),
        (NO, False),
        ({MOVABLE: "yes"}, False),
        ({MOVABLE: "True"}, False),
        ({MOVABLE: ""}, False),
        ({MOVABLE: True}, False),  # invalid: the values of annotations are texts
        (YES | {SAFE: "false"}, False),
        (YES | {SAFE: "true"}, True),
        (YES | {DISRUPT: "true"}, False),
        (YES | {DISRUPT: "false"}, True),
        (YES | {PREFER: ""}, False),
        ({SAFE: "false"}, False),
        ({SAFE: "true"}, None),
        ({DISRUPT: "true"}, False),
        ({PREFER: "false"}, False),
        (YES | {"kubernetes.io/config.mirror": "5"}, False),
    ],
)
def test_the_annotations(annotations, expected):
    assert movable(made(annotations), assigned_to_us=True) is expected


@pytest.mark.parametrize("annotations", [YES, None])
@pytest.mark.parametrize(
    ("fields", "mine", "can_be"),
    [
        ({"kind": "ReplicaSet"}, True, True),
        ({"kind": "StatefulSet"}, True, True),
        ({"kind": "Job"}, True, True),
        ({"kind": "DaemonSet"}, True, False),
        ({"kind": "Node"}, True, False),
        ({"kind": ""}, True, False),
        ({"controller": False}, True, False),
        ({"controller": None}, True, False),
        ({}, False, False),
        ({"spec": {"priorityClassName": "high"}}, True, True),
        ({"spec": {"priorityClassName": "system-cluster-critical"}}, True, False),
        ({"spec": {"priorityClassName": "system-node-critical"}}, True, False),
    ],
)
def test_the_other_conditions_hold_whoever_opts_in(fields, mine, can_be, annotations):
    expected = (True if annotations else None) if can_be else False
    assert movable(made(annotations, **fields), assigned_to_us=mine) is expected


def test_an_invalid_value_is_named_with_its_remedy():
    expected = (
        "metadata.annotations[poseidon.io/movable]: 'yes' is ignored, and the pod is not moved; give true or false"
    )
    assert problem_of(made({MOVABLE: "yes"})) == expected
    assert [problem_of(made(each)) for each in (None, YES, NO, {SAFE: "x"}, {MOVABLE: True})] == [""] * 5


# -- what the engine learns -------------------------------------------------------------------------------------------


def namespace(labels: dict[str, str] | None = None) -> Namespace:
    body = {"metadata": {"name": "default", "uid": "ns", "labels": labels or {}}}
    return msgspec.json.decode(json.dumps(body), type=Namespace)


def store_of(*pods: Pod) -> Store:
    store = Store(["poseidon"])
    store.observe_node(node("n"))
    for each in pods:
        store.observe_pod(each)
    return store


def row(store: Store, name: str = "a"):
    """`movable` and `inputs_id` of the pod's row, and whether its input set is sent along."""
    known, rows = store.pods[f"uid-{name}"], Rows()
    describe_pod(store, known)
    state = target(store, known)
    assert state is not None
    rows.add(known, state)
    update = rows.finish(store, set(), set())
    tasks = update.tasks
    is_movable = tasks.movable[0] if tasks.movable else False
    inputs_id = tasks.inputs_id[0] if tasks.inputs_id else 0
    assert [each.id for each in update.inputs] == [inputs_id] * bool(inputs_id)
    return is_movable, inputs_id != 0


@pytest.mark.parametrize(
    ("annotations", "at", "expected"),
    [
        pytest.param(YES | DATA, "n", (True, True), id="opted in"),
        pytest.param(YES, "n", (True, False), id="opted in, without data"),
        pytest.param(DATA, "n", (False, False), id="did not"),
        pytest.param(NO | DATA, "n", (False, False), id="opted out"),
        pytest.param(YES | DATA, "", (False, True), id="pending"),
    ],
)
def test_the_row_of_a_pod(annotations, at, expected):
    assert row(store_of(made(annotations, at=at))) == expected


def test_an_annotation_that_changes_reaches_the_engine():
    store = store_of(made(DATA))
    assert row(store) == (False, False)
    for annotations, expected in ((YES | DATA, True), (NO | DATA, False)):
        store.observe_pod(made(annotations))
        assert row(store) == (expected, expected)


@pytest.mark.parametrize("flag", ["spared", "migration_refused"])
def test_a_pod_whose_eviction_was_refused_is_not_moved_for_a_while(flag):
    store = store_of(made(YES))
    known = store.pods["uid-a"]
    assert row(store) == (True, False)
    setattr(known, flag, True)
    assert row(store) == (False, False)
    setattr(known, flag, False)
    assert row(store) == (True, False)


def test_members_of_gangs_are_not_moved():
    store = store_of(made(YES))
    describe_pod(store, store.pods["uid-a"])
    gang = store.pods["uid-a"].gang
    for gang.id, gang.blocked in ((5, ""), (0, "its PodGroup does not exist")):
        state = target(store, store.pods["uid-a"])
        assert state is not None
        assert (state.gang, state.movable) == (gang.id, False)


def test_a_column_without_movable_pods_is_omitted():
    store, rows = store_of(made(), made(NO, "b")), Rows()
    for known in store.pods.values():
        describe_pod(store, known)
        state = target(store, known)
        assert state is not None
        rows.add(known, state)
    assert not rows.finish(store, set(), set()).tasks.movable


def test_the_label_of_a_namespace_is_the_default_of_its_pods():
    pods = [made(DATA), made(NO, "no"), made(YES, "yes"), made(None, "alone", kind=""), made(None, "w", at="")]
    store = store_of(*pods, made(None, "other", namespace="other"))
    names = ("a", "no", "yes", "alone", "w", "other")
    found = {name: row(store, name)[0] for name in names}
    assert found == dict.fromkeys(names, False) | {"yes": True}
    for labels, default in ((YES, True), ({MOVABLE: "on"}, False), (YES, True), (None, False)):
        for known in store.pods.values():
            known.dirty = False
        store.observe_namespace(namespace(labels))
        assert {known.name for known in store.pods.values() if known.dirty} == {"a", "no", "yes", "alone"}
        found = {name: row(store, name)[0] for name in names}
        assert found == dict.fromkeys(names, False) | {"yes": True, "a": default}
        assert row(store) == (default, default)  # with its data, which is not described again
    store.observe_namespace(namespace(YES))
    assert row(store)[0]
    store.remove_namespace("default")
    assert not row(store)[0]
    # a label that does not matter
    store.observe_namespace(namespace({"x": "y"}))
    for known in store.pods.values():
        known.dirty = False
    store.observe_namespace(namespace({"x": "z"}))
    assert not any(known.dirty for known in store.pods.values())
