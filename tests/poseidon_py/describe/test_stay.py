"""The start of a pod, whether it is expected to stay, and the rows that the engine gets."""

import pytest

from poseidon_py.describe.lifetime import lasting, started_us
from poseidon_py.feed.update_rows import Rows, describe_pod, target
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod

CREATED_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


def owned(kind, policy=None, **fields):
    made = pod(owner="uid-o" if kind else "", spec={"restartPolicy": policy} if policy else {}, **fields)
    for owner in made.metadata.owners or ():
        owner.kind = kind
    return made


@pytest.mark.parametrize(
    ("kind", "policy", "mine", "stays"),
    [
        ("DaemonSet", "Always", True, True),
        ("DaemonSet", "Always", False, True),
        ("Node", "Never", False, True),
        ("ReplicaSet", "Always", True, True),
        ("StatefulSet", None, True, True),  # as if it was Always
        ("Job", "Never", True, False),
        ("Job", "OnFailure", False, False),
        ("", "Always", True, False),  # who made it will delete it
        ("", "Never", False, False),
        ("", "Always", False, True),
    ],
)
def test_which_pods_are_lasting(kind, policy, mine, stays):
    assert lasting(owned(kind, policy), assigned_to_us=mine) is stays


def running(expected="60", started="2026-01-01T00:00:00Z"):
    annotations = {"poseidon.io/expected-duration": expected} if expected else {}
    return pod(node="n", annotations=annotations, status={"startTime": started} if started else {})


@pytest.mark.parametrize(
    ("made", "since"),
    [
        (running(), CREATED_US),
        (running(expected=""), 0),  # without an expected duration
        (running(started=""), 0),
        (running(started="today"), 0),
    ],
)
def test_the_start_of_a_pod(made, since):
    assert started_us(made) == since


def rows_of(*pods):
    store, rows = Store(["poseidon"]), Rows()
    store.observe_node(node("n"))
    for each in pods:
        store.observe_pod(each)
    for known in store.pods.values():
        describe_pod(store, known)
        message = target(store, known)
        assert message is not None
        rows.add(known, message)
    return rows.finish(store, set(), set()).tasks


def test_the_rows_for_the_engine():
    other = pod("o", node="n", scheduler="other", spec={"restartPolicy": "Always"})
    tasks = rows_of(running(), other, pod("w"))
    assert list(tasks.started_us) == [CREATED_US, 0, 0]
    assert list(tasks.lasting) == [False, True, False]


def test_columns_of_defaults_are_omitted():
    tasks = rows_of(pod("a"), pod("b", node="n"))
    assert not tasks.started_us
    assert not tasks.lasting
