"""The store in ConfigMaps: nothing that was written is lost, few and small objects, one writer."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from benchmarks.cluster import Cluster, ClusterSettings
from poseidon_py.hooks.storage.config_maps import HOLDER, LABEL, ConfigMapStore
from poseidon_py.hooks.storage.segments import Segments
from poseidon_py.hooks.storage.store import Request, StoreError, StoreTakenError
from poseidon_py.kube.client import MERGE_PATCH, ApiError, Kube
from poseidon_py.kube.credentials import at
from tests.effort import examples
from tests.poseidon_py.hooks.config_map_api import FOLDER, ConfigMapApi

LIMIT = 200


def store(api, holder="one", limit=LIMIT):
    return ConfigMapStore(api, "hooks", "jobs", holder, limit)


def stored(api):
    """All texts of all objects; a key in two objects is an error."""
    found = {}
    for each in api.objects.values():
        for key, text in each.get("data", {}).items():
            assert key not in found
            found[key] = text
    return found


keys = st.sampled_from([f"k.{number}" for number in range(30)])
changes = st.dictionaries(keys, st.one_of(st.none(), st.text(max_size=40)), max_size=8)


class Storing(RuleBasedStateMachine):
    """The model is a dict. After an error the caller repeats the changes, as the journal does."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.api = ConfigMapApi()
        self.model = {}
        self.uncertain: dict[str, str | None] = {}
        self.tried: dict[str, set[str | None]] = {}
        self.lives = 0
        self.start()

    def start(self):
        self.lives += 1
        self.store = store(self.api, f"life-{self.lives}")
        for _ in range(20):
            try:
                found = self.loop.run_until_complete(self.store.load())
                break
            except StoreError:
                continue
        for key, tried in self.tried.items():  # by writes that failed before the crash
            assert found.get(key) in {*tried, self.model.get(key)}
            self.model.pop(key, None)
            if key in found:
                self.model[key] = found[key]
        self.uncertain, self.tried = {}, {}
        assert found == self.model

    @rule(new=changes, faults=st.lists(st.sampled_from(["", "", "refused", "lost"]), max_size=4))
    def write(self, new, faults):
        self.api.faults = faults
        self.uncertain |= new
        for key, text in new.items():
            self.tried.setdefault(key, set()).add(text)
        try:
            self.loop.run_until_complete(self.store.write(self.uncertain))
        except StoreError:
            return
        self.apply()

    def apply(self):
        for key, text in self.uncertain.items():
            self.model.pop(key, None)
            if text is not None:
                self.model[key] = text
        self.uncertain, self.tried = {}, {}

    @rule(faults=st.lists(st.sampled_from(["", "refused", "lost"]), max_size=4))
    def crash(self, faults):
        self.api.faults = faults
        self.start()

    @rule(number=st.integers(0, 20))
    def somebody_labels_an_object(self, number):
        names = sorted(self.api.objects)
        patch = {"metadata": {"labels": {"team": "a"}}}
        self.api.faults = []
        path = f"{FOLDER}/{names[number % len(names)]}"
        self.loop.run_until_complete(self.api.call("PATCH", path, json.dumps(patch).encode(), MERGE_PATCH))

    @invariant()
    def few_objects_of_limited_size(self):
        sizes = [sum(map(len, each.get("data", {}).values())) for each in self.api.objects.values()]
        assert max(sizes) <= 2 * LIMIT  # texts that grow in place
        if not self.uncertain:
            assert stored(self.api) == self.model
            full = [size for size in sizes if size > LIMIT / 8]
            # all but the last have at least a quarter; keys and overhead count as well
            assert len(sizes) <= len(full) + 2 + len(self.model) // 3

    def teardown(self):
        self.api.faults = []
        self.loop.run_until_complete(self.store.write(self.uncertain))
        self.apply()
        self.start()
        assert stored(self.api) == self.model
        self.loop.close()


Storing.TestCase.settings = examples(60, steps=30)


TestStoring = pytest.mark.slow(Storing.TestCase)


async def test_a_former_writer_cannot_write():
    api = ConfigMapApi()
    former = store(api)
    await former.load()
    await former.write({"k.1": "a"})
    latter = store(api, "two")
    assert await latter.load() == {"k.1": "a"}
    with pytest.raises(StoreTakenError, match="two has taken over"):
        await former.write({"k.2": "b"})
    assert stored(api) == {"k.1": "a"}


async def test_what_a_former_writer_stores_last_is_found():
    """It has created an object after the other one has listed them."""
    api = ConfigMapApi()
    former = store(api)
    await former.load()
    await former.write({"k.1": "a" * 150})
    listed = dict(api.objects)
    await former.write({"k.2": "b" * 150})
    stray = {name: each for name, each in api.objects.items() if name not in listed}
    assert len(stray) == 1
    for name in stray:
        del api.objects[name]
    latter = store(api, "two")
    await latter.load()
    await latter.write({"k.3": "c" * 10})
    api.objects |= stray
    assert await latter.strays() == {"k.2": "b" * 150}
    assert await latter.strays() == {}
    await latter.write({"k.2": None})
    assert stored(api).keys() == {"k.1", "k.3"}


async def test_a_stray_does_not_stop_writes():
    api = ConfigMapApi()
    one = store(api)
    await one.load()
    body = {"metadata": {"name": "poseidon-hooks-jobs-2", "labels": {LABEL: "jobs"}}, "data": {"k.9": "stray"}}
    await api.call("POST", FOLDER, json.dumps(body).encode())
    await one.write({"k.1": "a" * 150})
    await one.write({"k.2": "b" * 150})
    assert stored(api).keys() == {"k.1", "k.2", "k.9"}
    assert await one.strays() == {"k.9": "stray"}


async def test_an_object_that_somebody_deletes_is_created_again():
    api = ConfigMapApi()
    one = store(api)
    await one.load()
    await one.write({"k.1": "a", "k.2": "b"})
    api.objects.clear()
    await one.write({"k.3": "c"})
    assert stored(api) == {"k.1": "a", "k.2": "b", "k.3": "c"}


async def test_a_foreign_object_with_the_label_is_left_alone():
    api = ConfigMapApi()
    body = {"metadata": {"name": "theirs", "labels": {LABEL: "jobs"}}, "data": {"x": "y"}}
    await api.call("POST", FOLDER, json.dumps(body).encode())
    assert await store(api).load() == {}
    assert api.objects["theirs"]["data"] == {"x": "y"}
    assert HOLDER not in api.objects["theirs"]["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(ApiError(403, "Forbidden", "no"), r"may not read ConfigMaps in hooks.*docs/rbac.md", id="403"),
        pytest.param(ApiError(400, "BadRequest", "no"), "cannot read ConfigMaps in hooks: 400", id="400"),
    ],
)
async def test_errors_name_the_remedy(monkeypatch, error, message):
    api = ConfigMapApi()

    async def fail(*_):
        raise error

    monkeypatch.setattr(api, "page", fail)
    with pytest.raises(StoreError, match=message):
        await store(api).load()


@given(
    st.lists(st.tuples(st.integers(0, 40), st.one_of(st.none(), st.integers(1, 60))), max_size=120),
)
@examples(60)
def test_full_segments_of_which_little_is_left_are_emptied(steps):
    segments = Segments(LIMIT)
    for key, size in steps:
        segments.set(f"k.{key}", None if size is None else "x" * size)
        segments.compact()
        for segment in list(segments.unwritten()):
            if segments.is_empty(segment):
                segments.remove(segment)
            else:
                segment.version = "1"
                segment.dirty.clear()
    total = sum(segment.size for segment in segments._segments.values())
    assert len(segments) <= 2 + total / (LIMIT / 4)


@pytest.mark.slow
async def test_on_an_api_server():
    """The same over HTTP: takeover, conflicts, requests of users."""
    async with Cluster(ClusterSettings(nodes=0)) as cluster:
        kube = Kube(at(cluster.url))
        await kube.start()
        try:
            former = ConfigMapStore(kube, "kube-system", "jobs", "one", LIMIT)
            assert await former.load() == {}
            texts = {f"h.{number}": f"text {number} \u00e4" * 3 for number in range(40)}
            await former.write(texts)
            await former.write(dict.fromkeys(list(texts)[:35]))
            latter = ConfigMapStore(kube, "kube-system", "jobs", "two", LIMIT)
            assert await latter.load() == dict(list(texts.items())[35:])
            with pytest.raises(StoreTakenError):
                await former.write({"h.99": "x"})
            await latter.write(dict.fromkeys(texts))
            assert await latter.load() == {}
            assert await latter.requests() == []
            path = "/api/v1/namespaces/kube-system/configmaps"
            body = {
                "metadata": {"name": "poseidon-hooks-jobs-requests"},
                "data": {"retry.h.1": "", "bad": "", "drop.h.2": ""},
            }
            await kube.create(path, body)
            requests = await latter.requests()
            assert set(requests) == {Request("retry", "h.1"), Request("drop", "h.2")}
            await latter.answered(requests)
            assert await latter.requests() == []
            with pytest.raises(StoreError, match="there is no namespace absent; create it"):
                await ConfigMapStore(kube, "absent", "jobs", "one").load()
        finally:
            await kube.close()
