"""Identity: the same after any restart, and never shared."""

import uuid

from poseidon_py.util import ids
from poseidon_py.util.ids import TaskIds, hash64, job_id, node_id


def test_ids_depend_on_the_state_of_the_api_server_only():
    # the figures are part of the promise: another version must find the same
    assert hash64("0b1a3e2c-6b3f-4f5e-9d0e-1a2b3c4d5e6f") == hash64(b"0b1a3e2c-6b3f-4f5e-9d0e-1a2b3c4d5e6f")
    assert TaskIds().add("u") == TaskIds().add("u") == hash64("u")
    assert job_id("owner") == hash64("owner")
    assert node_id("n", "u") == node_id("n", "u") == str(uuid.UUID(node_id("n", "u")))


def test_a_recreated_node_has_another_id():
    assert len({node_id("n", "u"), node_id("n", "v"), node_id("m", "u"), node_id("n", "")}) == 4


def test_0_means_none_and_is_never_an_id(monkeypatch):
    monkeypatch.setattr("xxhash.xxh3_64_intdigest", lambda data, seed: 0)
    assert hash64("anything") == 1


def test_two_pods_with_the_same_hash_get_different_ids(monkeypatch, caplog):
    monkeypatch.setattr(ids, "hash64", lambda uid, seed=0: 7 + seed)
    tasks = TaskIds()
    assert [tasks.add("a"), tasks.add("b"), tasks.add("c"), tasks.add("a")] == [7, 8, 9, 7]
    assert (tasks.uid(7), tasks.uid(8), tasks.uid(99)) == ("a", "b", None)
    assert "same task id" in caplog.text
    tasks.remove(7)
    assert tasks.add("d") == 7
