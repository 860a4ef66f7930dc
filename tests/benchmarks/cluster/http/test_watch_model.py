"""A client that lists and then watches ends with the content of the store, after any faults in between."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchmarks.cluster.http.watches import Watch, WatchOptions
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import CONFIGMAPS
from benchmarks.cluster.store.lists import ListOptions, Lists
from benchmarks.cluster.store.selectors import parse_labels
from benchmarks.cluster.store.store import Selection, Store
from tests.effort import examples

names = st.sampled_from(["a", "b", "c", "d"])
labels = st.sampled_from(["in", "out"])


class Client:
    """A reflector: lists in pages, watches, resumes at the last version, lists again on 410."""

    def __init__(self, store: Store, lists: Lists, selection: Selection) -> None:
        self.store, self.lists, self.selection = store, lists, selection
        self.known: dict[str, str] = {}
        self.version = 0
        self.watch: Watch | None = None
        self.cancel: Any = None
        self.relists = 0

    def connect(self) -> None:
        """Watch from the last version known, or list first."""
        for _ in range(2):
            watch = Watch(self.store, CONFIGMAPS, WatchOptions(self.selection), None)
            try:
                for change in self.store.since(CONFIGMAPS, self.version):
                    watch.take(change)
            except ApiError as error:
                if error.code != 410:
                    raise
                self.relist()
                continue
            self.watch = watch
            self.cancel = self.store.subscribe(CONFIGMAPS, watch.take)
            return
        raise AssertionError("410 right after a list")

    def relist(self) -> None:
        self.relists += 1
        self.known = {}
        token = ""
        while True:
            page = self.lists.answer(CONFIGMAPS, ListOptions(self.selection, limit=2, token=token))
            for record in page.records:
                self.known[record.key] = str(record.version)
            self.version, token = page.version, page.token
            if not token:
                return

    def drop(self) -> None:
        """The connection breaks; unread events are lost."""
        if self.watch is not None:
            self.cancel()
            self.watch = None

    def read(self) -> None:
        if self.watch is None:
            return
        for line in self.watch.drain().splitlines():
            event = orjson.loads(line)
            metadata = event["object"]["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            version = int(metadata["resourceVersion"])
            assert version > self.version, "changes come in order"
            self.version = version
            if event["type"] == "DELETED":
                assert key in self.known, "only what was there can go"
                del self.known[key]
            else:
                assert (event["type"] == "ADDED") is (key not in self.known)
                self.known[key] = metadata["resourceVersion"]


class WatchMachine(RuleBasedStateMachine):
    """Writes, reads, broken connections and compactions in any order."""

    @initialize()
    def start(self) -> None:
        self.store = Store(history=5)
        self.lists = Lists(self.store)
        self.clients = [
            Client(self.store, self.lists, Selection()),
            Client(self.store, self.lists, Selection(labels=parse_labels("side=in"))),
        ]

    @rule(name=names, label=labels)
    def write(self, name: str, label: str) -> None:
        before = self.store.get(CONFIGMAPS, "n", name)
        obj = {"metadata": {"name": name, "namespace": "n", "labels": {"side": label}}}
        self.store.put(CONFIGMAPS, obj, before)

    @rule(name=names)
    def delete(self, name: str) -> None:
        before = self.store.get(CONFIGMAPS, "n", name)
        if before is not None:
            self.store.remove(CONFIGMAPS, before)

    @rule()
    def compact(self) -> None:
        self.store.compact()
        self.lists.forget()

    @rule(which=st.integers(0, 1))
    def drop(self, which: int) -> None:
        self.clients[which].drop()

    @rule(which=st.integers(0, 1))
    def read(self, which: int) -> None:
        self.clients[which].read()

    @rule()
    def catch_up(self) -> None:
        for client in self.clients:
            if client.watch is None:
                client.connect()
            client.read()
            expected = {r.key: str(r.version) for r in self.store.select(CONFIGMAPS, client.selection)}
            assert client.known == expected

    @invariant()
    def the_past_can_be_rebuilt(self) -> None:
        if not hasattr(self, "store"):
            return
        collection = self.store.collection(CONFIGMAPS)
        assert collection.at(self.store.version) == collection.objects
        oldest = collection.at(collection.compacted)
        assert oldest is not None
        assert all(record.version <= max(collection.compacted, 1) for record in oldest.values())

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.catch_up()


WatchMachine.TestCase.settings = examples(75, steps=30)
TestWatchMachine = pytest.mark.slow(WatchMachine.TestCase)
