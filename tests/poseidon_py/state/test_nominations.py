"""Nominations end with their pods and nodes; tests/poseidon_py/preempt/test_nominator.py has those of other writers."""

from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod

NOMINATED = {"nominatedNodeName": "n"}


def store_of(**fields):
    store = Store(["poseidon"])
    store.observe_node(node("n"))
    store.observe_pod(pod(**fields))
    return store, store.pods["uid-pod"]


def test_a_nomination_ends_when_its_node_is_gone_and_does_not_return_with_the_name():
    store, known = store_of(status=NOMINATED)
    assert known.nominated == "n"
    known.dirty = False
    store.remove_node("n")
    assert (known.nominated, known.dirty) == ("", True)
    store.observe_node(node("n", uid="another"))
    store.observe_pod(pod(status=NOMINATED))
    assert known.nominated == ""


def test_pods_whose_node_is_gone_are_to_be_written_once():
    store, known = store_of(status=NOMINATED)
    for name in ("renominated", "removed"):
        store.observe_pod(pod(name, status=NOMINATED))
    assert store.nominations.take_stale() == []
    store.remove_node("n")
    store.nominations.set(store.pods["uid-renominated"], "m")
    store.remove_pod("uid-removed")
    assert store.nominations.take_stale() == [known]
    assert store.nominations.take_stale() == []


def test_the_row_is_sent_again_when_the_nominated_node_appears():
    store, known = store_of(status={"nominatedNodeName": "m"})
    known.dirty = False
    store.observe_node(node("m"))
    assert known.dirty


def test_a_bound_pod_and_one_of_another_scheduler_are_not_nominated():
    assert store_of(status=NOMINATED, node="n")[1].nominated == ""
    assert store_of(status=NOMINATED, scheduler="other")[1].nominated == ""


def test_the_nomination_of_a_removed_pod_leaves_nothing_behind():
    store, known = store_of(status=NOMINATED)
    store.remove_pod(known.uid)
    assert known.nominated == ""
    store.nominations.set(known, "n")  # by a request that ended late
    assert known.nominated == ""
    assert not store.nominations.others_on("n", known)


def test_whether_others_wait_for_a_node():
    store, known = store_of(status=NOMINATED)
    assert not store.nominations.others_on("n", known)
    store.observe_pod(pod("q", status=NOMINATED))
    assert store.nominations.others_on("n", known)
    store.nominations.set(store.pods["uid-q"], "")
    assert not store.nominations.others_on("n", known)
