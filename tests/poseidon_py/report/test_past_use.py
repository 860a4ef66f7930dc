"""What queues used in the past, in a ConfigMap: written at a bounded rate, read once, and told to a new engine."""

import json

import pytest

from poseidon_py.describe.queues.model import id_of
from poseidon_py.kube.client import ApiError, NotFoundError, UnreachableError
from poseidon_py.report.past_use import NAME, PastUseStore, key_of
from protos.gen import flow_pb2
from tests.poseidon_py.state.queues.rig import Rig

KEY = key_of("poseidon")
FOLDER = "/api/v1/namespaces/kube-system/configmaps"
AT_US = 1_700_000_000_000_000


class Api:
    def __init__(self):
        self.data: dict[str, str] | None = None
        self.requests: list[str] = []
        self.fail: list[Exception] = []

    def _note(self, what):
        self.requests.append(what)
        if self.fail:
            raise self.fail.pop(0)

    async def call(self, verb, path):
        assert (verb, path) == ("GET", f"{FOLDER}/{NAME}")
        self._note("get")
        if self.data is None:
            raise NotFoundError(404, "NotFound", "gone")
        return json.dumps({"data": self.data}).encode()

    async def merge(self, path, patch):
        assert path == f"{FOLDER}/{NAME}"
        self._note("patch")
        if self.data is None:
            raise NotFoundError(404, "NotFound", "gone")
        self.data |= patch["data"]
        return b""

    async def create(self, path, body, timeout=30.0):
        assert (path, body["metadata"]["name"]) == (FOLDER, NAME)
        self._note("create")
        self.data = dict(body["data"])
        return b""


class Bridge:
    """A replica with queue a, which past use concerns."""

    def __init__(self, api, half_life=60.0):
        self.rig = Rig("poseidon")
        self.rig.queues.past_use.half_life_seconds = half_life
        self.rig.put("Queue", "a")
        self.leads = True
        self.sleeps: list[float] = []
        self.store = PastUseStore(api, self.rig.queues, lambda: self.leads, namespace="kube-system", sleep=self.sleep)

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        if len(self.sleeps) > 3:
            raise EOFError

    def report(self, at_us=AT_US, amount=1234.5678):
        past = self.rig.queues.past_use.last = flow_pb2.PastUse(at_us=at_us)
        for ident in (id_of("queue/a"), 0, 99):
            of = past.of.add(id=ident)
            of.amounts.add(flavor="zone.io/a=b", resource="nvidia.com/gpu", amount=amount)

    def resent(self):
        """What an engine is told that has just started."""
        return self.rig.queues.past_use.attached(self.rig.message()).past_use


async def test_a_new_replica_tells_its_engine_what_was_stored():
    api = Api()
    old = Bridge(api)
    await old.store.load()
    assert not old.resent().at_us
    old.report()
    await old.store.save()
    assert api.requests == ["get", "patch", "create"]
    new = Bridge(api)
    await new.store.load()
    resent = new.resent()
    assert resent.at_us == AT_US
    assert {of.id: [(each.flavor, each.resource, each.amount) for each in of.amounts] for of in resent.of} == {
        id_of("queue/a"): [("zone.io/a=b", "nvidia.com/gpu", 1234.57)],
        0: [("zone.io/a=b", "nvidia.com/gpu", 1234.57)],
    }
    new.report(AT_US + 5, 7.0)
    assert new.resent().at_us == AT_US + 5


async def test_it_is_written_by_the_leader_once_for_each_report():
    api = Api()
    bridge = Bridge(api)
    bridge.leads = False
    bridge.report()
    await bridge.store.save()
    assert api.requests == []
    bridge.leads = True
    for _ in range(3):
        await bridge.store.save()
    assert api.requests == ["patch", "create"]
    bridge.report(AT_US + 1)
    with pytest.raises(EOFError):
        await bridge.store.run()
    assert api.requests == ["patch", "create", "patch"]
    assert bridge.sleeps == [300.0] * 4


async def test_without_a_half_life_nothing_is_written_or_told():
    api = Api()
    bridge = Bridge(api, half_life=0.0)
    bridge.report()
    await bridge.store.save()
    assert (api.requests, bridge.resent().at_us) == ([], 0)


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no"), UnreachableError("no")])
async def test_errors_are_logged_and_the_next_write_succeeds(error, caplog):
    api = Api()
    api.data = {}
    bridge = Bridge(api)
    api.fail = [error, error]
    await bridge.store.load()
    bridge.report()
    await bridge.store.save()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    await bridge.store.save()
    assert json.loads(api.data[KEY])["at_us"] == AT_US


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at_us": "x", "used": {}}', '{"at_us": 5, "used": {"a": 7}}'])
async def test_what_cannot_be_read_counts_as_nothing(text, caplog):
    api = Api()
    api.data = {KEY: text}
    bridge = Bridge(api)
    await bridge.store.load()
    assert bridge.resent().at_us == 0
    assert "past use of queues starts at 0" in caplog.text


async def test_what_is_too_large_is_not_written(caplog, monkeypatch):
    monkeypatch.setattr("poseidon_py.report.past_use._LARGEST", 10)
    bridge = Bridge(api := Api())
    bridge.report()
    await bridge.store.save()
    assert api.requests == []
    assert "is not stored" in caplog.text


async def test_queues_of_different_kinds_have_records_of_their_own():
    """Schedulers with different --queues share the ConfigMap, and keep what the other has written."""
    api = Api()
    api.data = {key_of("kueue"): (kueue := '{"at_us": 5, "used": {"clusterqueue/x": []}}')}
    bridge = Bridge(api)
    await bridge.store.load()
    assert bridge.resent().at_us == 0
    bridge.report()
    await bridge.store.save()
    assert api.data[key_of("kueue")] == kueue
    assert json.loads(api.data[key_of("poseidon")])["at_us"] == AT_US


async def test_what_was_stored_before_kinds_had_records_is_read():
    api = Api()
    api.data = {"past-use.json": '{"at_us": 5, "used": {"queue/a": []}}'}
    bridge = Bridge(api)
    await bridge.store.load()
    assert bridge.resent().at_us == 5
