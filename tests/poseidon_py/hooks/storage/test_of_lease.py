"""Two schedulers with hooks in one namespace: each has the store of its lease."""

import json

import msgspec
import pytest

from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.storage.config_maps import HOLDER, LABEL, LEASE, ConfigMapStore
from poseidon_py.hooks.storage.of_lease import store_name, store_of_lease
from poseidon_py.hooks.storage.store import StoreError
from tests.poseidon_py.hooks.config_map_api import FOLDER, ConfigMapApi
from tests.poseidon_py.hooks.world import make_transition

DEFAULT = "poseidon"


def of_lease(api, lease, *, hooks=("billing",), lease_namespace="kube-system", holder="one"):
    config = HookConfig(tuple(Hook(name, "http://localhost") for name in hooks), "hooks")
    return store_of_lease(api, config, "scheduler", lease, lease_namespace, holder, default_lease=DEFAULT)


def texts(*deliveries):
    """Records of a hook, each with a number, by key."""
    records = [Record(hook, f"id-{number}", number, 1.0, make_transition()) for hook, number in deliveries]
    return {record.key: msgspec.json.encode(record).decode() for record in records}


def test_the_name_of_a_store_is_a_valid_label():
    assert store_name("scheduler", DEFAULT, DEFAULT) == "scheduler"
    assert store_name("scheduler", "batch", DEFAULT) == "scheduler.batch"
    long = [store_name("scheduler", "a" * 80 + end, DEFAULT) for end in "xy"]
    assert len(set(long)) == 2
    assert all(len(each) <= 63 for each in long)


async def test_processes_with_leases_of_their_own_share_nothing():
    api = ConfigMapApi()
    one, other = of_lease(api, DEFAULT), of_lease(api, "batch", holder="two")
    await one.load()
    await one.write(texts(("billing", 1)))
    assert await other.load() == {}
    await other.write(texts(("billing", 2)))
    await one.write(texts(("billing", 3)))  # nobody has taken it over
    assert sorted(api.objects) == ["poseidon-hooks-scheduler-1", "poseidon-hooks-scheduler.batch-1"]
    assert await of_lease(api, DEFAULT).load() == texts(("billing", 1), ("billing", 3))
    assert await of_lease(api, "batch").load() == texts(("billing", 2))
    leases = {name: each["metadata"]["annotations"][LEASE] for name, each in api.objects.items()}
    assert list(leases.values()) == ["kube-system/poseidon", "kube-system/batch"]


async def _former(api):
    """What an earlier version has stored, which knew no leases."""
    store = ConfigMapStore(api, "hooks", "scheduler", "former")
    await store.load()
    await store.write(texts(("billing", 1), ("alerts", 2)))
    return store


async def test_what_was_stored_before_goes_to_the_process_whose_hooks_it_is_for():
    api = ConfigMapApi()
    await _former(api)
    batch = of_lease(api, "batch", holder="two")
    assert await batch.load() == texts(("billing", 1))
    assert await of_lease(api, DEFAULT, hooks=("alerts",)).load() == texts(("alerts", 2))
    await batch.write({"billing.id-1": None})
    assert await of_lease(api, "batch", holder="three").load() == {}  # it is not taken over twice


async def test_what_the_process_of_the_default_lease_has_marked_is_its_own():
    api = ConfigMapApi()
    await _former(api)
    everything = texts(("billing", 1), ("alerts", 2))
    assert await of_lease(api, DEFAULT).load() == everything
    assert await of_lease(api, "batch").load() == {}
    assert await of_lease(api, DEFAULT).load() == everything


@pytest.mark.parametrize("lost", range(4))
async def test_nothing_is_lost_if_the_takeover_is_interrupted(lost):
    api = ConfigMapApi()
    await _former(api)
    api.faults = [""] * lost + ["refused"] * 4
    store = of_lease(api, "batch")
    try:
        await store.load()
    except StoreError:
        api.faults = []
        assert await of_lease(api, "batch", holder="again").load() == texts(("billing", 1))
    api.faults = []
    assert await of_lease(api, "batch", holder="last").load() == texts(("billing", 1))


async def test_a_former_version_that_still_runs_goes_on():
    api = ConfigMapApi()
    former = await _former(api)
    await of_lease(api, "batch", holder="two").load()
    await former.write(texts(("alerts", 3)))
    assert {"alerts.id-2", "alerts.id-3"} <= api.objects["poseidon-hooks-scheduler-1"]["data"].keys()
    assert api.objects["poseidon-hooks-scheduler-1"]["metadata"]["annotations"] == {HOLDER: "former"}


async def test_a_store_of_a_lease_in_another_namespace_is_refused():
    api = ConfigMapApi()
    await of_lease(api, "batch").load()
    before = json.dumps(api.objects)
    with pytest.raises(StoreError) as refused:
        await of_lease(api, "batch", lease_namespace="other").load()
    assert str(refused.value) == (
        "ConfigMap hooks/poseidon-hooks-scheduler.batch-1 has the deliveries of lease kube-system/batch, not of "
        "other/batch: give the hooks a namespace of their own"
    )
    assert json.dumps(api.objects) == before


async def test_texts_that_are_no_deliveries_stay_where_they_are():
    api = ConfigMapApi()
    body = {
        "metadata": {"name": "poseidon-hooks-scheduler-0", "labels": {LABEL: "scheduler"}},
        "data": {"totals": "{}", "x": "["},
    }
    await api.call("POST", FOLDER, json.dumps(body).encode())
    assert await of_lease(api, "batch").load() == {}
    assert api.objects["poseidon-hooks-scheduler-0"]["data"].keys() == {"totals", "x"}
