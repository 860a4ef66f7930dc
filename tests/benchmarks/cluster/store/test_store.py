"""Versions, history, order, pages."""

from __future__ import annotations

import tracemalloc

import pytest

from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import CONFIGMAPS, PODS
from benchmarks.cluster.store.lists import ListOptions, Lists
from benchmarks.cluster.store.selectors import parse_fields, parse_labels
from benchmarks.cluster.store.store import Change, Selection, Store

EVERYTHING = Selection()


def config(name: str, namespace: str = "a", **labels: str):
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


@pytest.fixture
def store() -> Store:
    return Store(history=8)


def test_versions_are_unique_over_kinds_and_stamped(store):
    one = store.put(CONFIGMAPS, config("x"), None)
    two = store.put(PODS, config("x"), None)
    assert two.version == one.version + 1
    assert two.parse()["metadata"]["resourceVersion"] == str(two.version)


def test_lists_are_in_key_order_whatever_the_order_of_writes(store):
    for name, namespace in (("b", "z"), ("a", "z"), ("c", "a"), ("a", "a-b"), ("b", "a")):
        store.put(CONFIGMAPS, config(name, namespace), None)
    gone = store.get(CONFIGMAPS, "a", "c")
    assert gone is not None
    store.remove(CONFIGMAPS, gone)
    store.put(CONFIGMAPS, config("c", "a"), None)
    # "a-b/" sorts before "a/", as in the real storage.
    assert [r.key for r in store.select(CONFIGMAPS, EVERYTHING)] == ["a-b/a", "a/b", "a/c", "z/a", "z/b"]
    assert [r.key for r in store.select(CONFIGMAPS, Selection("a"))] == ["a/b", "a/c"]


def test_history_is_complete_or_reported_as_compacted(store):
    start = store.put(CONFIGMAPS, config("x"), None).version
    for _ in range(7):
        record = store.get(CONFIGMAPS, "a", "x")
        store.put(CONFIGMAPS, config("x"), record)
    assert [change.version for change in store.since(CONFIGMAPS, start)] == list(range(start + 1, start + 8))
    store.put(CONFIGMAPS, config("y"), None)  # the ninth change: the first one falls out
    assert len(store.since(CONFIGMAPS, start)) == 8
    with pytest.raises(ApiError) as gone:
        store.since(CONFIGMAPS, start - 1)
    assert (gone.value.code, gone.value.reason) == (410, "Expired")
    assert "too old resource version" in gone.value.message


def test_a_version_takes_little_more_memory_than_its_text():
    """Hundreds of thousands of versions are kept."""
    store = Store()
    record = store.put(CONFIGMAPS, {**config("x"), "data": {"text": "x" * 1500}}, None)
    tracemalloc.start()
    try:
        for _ in range(100):
            record = store.put(CONFIGMAPS, record.parse(), record)
        taken = tracemalloc.get_traced_memory()[0] / 100
    finally:
        tracemalloc.stop()
    assert len(record.raw) < taken < len(record.raw) + 1500


def test_subscribers_hear_each_change_once_in_order(store):
    heard: list[Change] = []
    cancel = store.subscribe(CONFIGMAPS, heard.append)
    record = store.put(CONFIGMAPS, config("x"), None)
    record = store.put(CONFIGMAPS, config("x", labels="1"), record)
    store.remove(CONFIGMAPS, record)
    cancel()
    store.put(CONFIGMAPS, config("y"), None)
    assert [change.type for change in heard] == ["ADDED", "MODIFIED", "DELETED"]
    assert [change.version for change in heard] == sorted(change.version for change in heard)


def test_selection_by_fields_and_labels(store):
    for name, node in (("p", "n1"), ("q", ""), ("r", "n1")):
        obj = {**config(name, app=name), "spec": {"nodeName": node}, "status": {"phase": "Pending"}}
        store.put(PODS, obj, None)

    def names(fields: str = "", labels: str = "") -> list[str]:
        selection = Selection("", parse_labels(labels), parse_fields(PODS, fields))
        return [record.name for record in store.select(PODS, selection)]

    assert names("spec.nodeName=n1") == ["p", "r"]
    assert names("spec.nodeName=") == ["q"]
    assert names("spec.nodeName!=n1,status.phase=Pending") == ["q"]
    assert names("metadata.name!=p", "app in (p,r)") == ["r"]


def test_pages_show_one_version_despite_later_changes(store):
    lists = Lists(store)
    for i in range(5):
        store.put(CONFIGMAPS, config(f"c{i}"), None)
    version = store.version
    first = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, limit=2))
    assert (first.version, first.remaining) == (version, 3)
    removed = store.get(CONFIGMAPS, "a", "c3")
    assert removed is not None
    store.remove(CONFIGMAPS, removed)
    store.put(CONFIGMAPS, config("c9"), None)
    second = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, limit=2, token=first.token))
    third = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, limit=2, token=second.token))
    names = [record.name for page in (first, second, third) for record in page.records]
    assert names == ["c0", "c1", "c2", "c3", "c4"]
    assert {second.version, third.version} == {version}
    assert third.token == ""


def test_an_expired_token_comes_with_another_to_continue(store):
    lists = Lists(store)
    for i in range(5):
        store.put(CONFIGMAPS, config(f"c{i}"), None)
    first = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, limit=2))
    store.put(CONFIGMAPS, config("c9"), None)
    lists.forget()
    with pytest.raises(ApiError) as gone:
        lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, limit=2, token=first.token))
    assert gone.value.code == 410
    token = (gone.value.metadata or {})["continue"]
    others = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, token=token))
    assert [record.name for record in others.records] == ["c2", "c3", "c4", "c9"]


@pytest.mark.parametrize(
    ("version", "match", "limit", "code"),
    [
        ("", "Exact", 0, 422),
        ("0", "Exact", 0, 422),
        ("x", "", 0, 422),
        ("999", "NotOlderThan", 0, 504),
        ("1", "Exact", 0, 410),
        ("1", "", 2, 410),
    ],
)
def test_invalid_versions_of_lists(store, version, match, limit, code):
    for i in range(12):
        store.put(CONFIGMAPS, config(f"c{i}"), None)
    options = ListOptions(EVERYTHING, limit=limit, resource_version=version, match=match)
    with pytest.raises(ApiError) as refused:
        Lists(store).answer(CONFIGMAPS, options)
    assert refused.value.code == code


def test_exact_versions_show_earlier_states(store):
    record = store.put(CONFIGMAPS, config("x", v="1"), None)
    then = store.version
    store.put(CONFIGMAPS, config("x", v="2"), record)
    store.put(CONFIGMAPS, config("y"), None)
    lists = Lists(store)
    options = ListOptions(EVERYTHING, resource_version=str(then), match="Exact")
    page = lists.answer(CONFIGMAPS, options)
    assert [record.labels for record in page.records] == [{"v": "1"}]
    assert page.version == then
    newest = lists.answer(CONFIGMAPS, ListOptions(EVERYTHING, resource_version=str(then), match="NotOlderThan"))
    assert len(newest.records) == 2
