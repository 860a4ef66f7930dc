"""The start of a pod, whether it is expected to stay or can be evicted, and the rows that the engine gets."""

import pytest

from poseidon_py.describe.lifetime import daemon, lasting, started_us, unevictable
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod

CREATED_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
STARTED = "2026-01-01T00:00:00Z"
NOW_US = CREATED_US + 3_600_000_000


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


@pytest.mark.parametrize(("kind", "belongs"), [("DaemonSet", True), ("Node", True), ("ReplicaSet", False), ("", False)])
def test_which_pods_belong_to_their_nodes(kind, belongs):
    made = owned(kind, "Always", node="n")
    assert daemon(made) is belongs
    assert list(rows_of(made).daemon) == [True] * belongs


def running(expected="60", started="2026-01-01T00:00:00Z"):
    annotations = {"poseidon.io/expected-duration": expected} if expected else {}
    return pod(node="n", annotations=annotations, status={"startTime": started} if started else {})


@pytest.mark.parametrize(
    ("made", "since"),
    [
        (running(), CREATED_US),
        (running(expected=""), CREATED_US),
        (running(started=""), 0),
        (running(started="today"), 0),
    ],
)
def test_the_start_of_a_pod(made, since):
    assert started_us(made) == since


@pytest.mark.parametrize(
    ("made", "never"),
    [
        (owned("Node"), True),
        (pod(annotations={"kubernetes.io/config.mirror": "5"}), True),
        (pod(annotations={"kubernetes.io/config.mirror": ""}), True),
        (pod(annotations={"about": "kubernetes.io/config.mirror"}), False),
        (pod(annotations={"kubernetes.io/config.mirror": 5}), False),  # invalid
        (owned("DaemonSet"), False),
        (pod(), False),
    ],
)
def test_static_pods_are_never_evicted(made, never):
    assert unevictable(made) is never


def store_of(*pods):
    store = Store(["poseidon"], now_us=lambda: NOW_US)
    store.observe_node(node("n"))
    for each in pods:
        store.observe_pod(each)
    return store


def rows_of(*pods):
    store, rows = store_of(*pods), Rows()
    for known in store.pods.values():
        describe_pod(store, known)
        message = target(store, known)
        assert message is not None
        rows.add(known, message)
    return rows.finish(store, set(), set()).tasks


def test_the_rows_for_the_engine():
    other = pod("o", node="n", scheduler="other", spec={"restartPolicy": "Always"})
    static = pod("s", node="n", annotations={"kubernetes.io/config.mirror": "5"}, status={"startTime": STARTED})
    waits = pod("w", status={"nominatedNodeName": "n"})
    tasks = rows_of(running(), other, waits, static)
    assert list(tasks.started_us) == [CREATED_US, NOW_US, 0, CREATED_US]
    assert list(tasks.lasting) == [False, True, False, False]
    assert list(tasks.unevictable) == [False, False, False, True]
    assert [tasks.nodes[at - 1] if at else "" for at in tasks.nominated] == ["", "", tasks.nodes[0], ""]


def test_columns_of_defaults_are_omitted():
    tasks = rows_of(pod("a"), pod("b"))
    assert not tasks.started_us
    assert not tasks.lasting
    assert not tasks.nominated
    assert not tasks.unevictable


def described(store):
    (known,) = store.pods.values()
    describe_pod(store, known)
    return target(store, known)


def test_a_start_that_the_kubelet_reports_later_does_not_change_the_row():
    store = store_of(pod(node="n"))
    row = described(store)
    assert row.started_us == NOW_US
    store.observe_pod(pod(node="n", status={"startTime": STARTED}))
    assert described(store) == row
    store.touch_pod("uid-pod")
    assert described(store) == row


def test_with_an_expected_duration_the_start_is_that_of_the_kubelet():
    store = store_of(running(started=""))
    assert described(store).started_us == 0
    store.observe_pod(running())
    assert described(store).started_us == CREATED_US


def test_a_placement_that_a_resync_sends_as_bound_has_a_start_that_stays():
    store = store_of(pod())
    (known,) = store.pods.values()
    describe_pod(store, known)
    store.assume(known, "n")
    describe_pod(store, known)
    known.sent = target(store, known, fresh=True)
    assert known.sent.started_us == NOW_US
    store.now_us = lambda: NOW_US + 1
    assert described(store) == known.sent
    store.observe_pod(pod(node="n"))
    assert known.sent.unevictable  # until it is bound
    assert described(store) == known.sent._replace(unevictable=False)


def test_a_placement_that_failed_leaves_no_start():
    store = store_of(pod())
    (known,) = store.pods.values()
    store.assume(known, "n")
    describe_pod(store, known)
    store.release(known)
    store.now_us = lambda: NOW_US + 1
    assert described(store).started_us == 0
    store.observe_pod(pod(node="n"))
    assert described(store).started_us == NOW_US + 1


def test_a_victim_is_leaving_although_its_pod_is_not_deleted_yet():
    store = store_of(pod(node="n"))
    assert not described(store).leaving
    store.pods["uid-pod"].preempting = True
    assert described(store).leaving


def test_a_nomination_names_a_node_that_exists_and_ends_with_the_wait():
    store = store_of(pod(status={"nominatedNodeName": "m"}))
    assert described(store).nominated == ""
    store.observe_node(node("m"))
    assert described(store).nominated == store.id_of_node("m")
    store.assume(store.pods["uid-pod"], "n")
    assert described(store).nominated == ""
    store.observe_pod(pod(node="n", status={"nominatedNodeName": "m"}))
    assert described(store).nominated == ""
    assert store.pods["uid-pod"].nominated == ""
