"""Lookups by name of objects whose definition has just been installed, or never is."""

from contextlib import suppress

import pytest

from poseidon_py.state.gangs.by_pod_group import GROUPS
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS
from tests.poseidon_py.settling import VirtualTime, settle, turns_until
from tests.poseidon_py.state.gangs.discovery import Api, Retries, object_cache


@pytest.fixture
async def time():
    return VirtualTime()


@pytest.fixture
async def rig(time):
    """Its API, the cache, and the lookups that have ended."""
    api = Api()
    known: list[str] = []
    async with object_cache(api, lambda *_, gone=False: None, known.append, Retries()) as found:
        yield api, found, known


async def find(found, resource, name):
    """The object, once its lookups have ended."""
    for _ in range(2):
        try:
            return found.find(resource, "ns", name)
        except Unknown:
            await settle()
    return found.find(resource, "ns", name)


@pytest.mark.parametrize("resource", [LEADER_WORKER_SETS, *GROUPS], ids=lambda each: each.label)
async def test_a_kind_that_is_installed_right_before_its_first_object_is_found_by_name(time, rig, resource):
    """Pods that name a LeaderWorkerSet by labels alone were placed one by one."""
    api, found, known = rig
    assert await find(found, resource, "x") is None
    known.clear()
    collection = f"/apis/{resource.group}/{resource.versions[0]}/{resource.plural}"
    api.served |= {
        f"/apis/{resource.group}": [resource.versions[0]],
        collection.rpartition("/")[0]: [resource.plural],
    }
    api.listed[collection] = ['{"metadata": {"name": "g", "namespace": "ns", "uid": "uid-g"}, "spec": {}}']
    with pytest.raises(Unknown) as lookup:
        found.find(resource, "ns", "g")
    assert lookup.value.what == resource.label
    await time.elapse(2.1)
    assert known == [resource.label]
    assert found.find(resource, "ns", "g").uid == "uid-g"
    assert found.find(resource, "ns", "absent") is None  # it is served now


async def test_many_names_of_a_kind_that_is_not_served_cause_few_discoveries(time, rig):
    """Each waits for one, and all for the same; none waits for ever where further names follow without a pause."""
    api, found, known = rig
    assert await find(found, LEADER_WORKER_SETS, "x") is None
    known.clear()
    before, waiting, longest = api.asked.count("/apis"), {}, 0.0
    for at in range(100):
        waiting[f"g-{at}"] = time.now
        with pytest.raises(Unknown):
            found.find(LEADER_WORKER_SETS, "ns", f"g-{at}")
        await time.elapse(0.1)
        if known:
            known.clear()
            for name in list(waiting):
                with suppress(Unknown):
                    assert found.find(LEADER_WORKER_SETS, "ns", name) is None
                    longest = max(longest, time.now - waiting.pop(name))
    assert 4 <= api.asked.count("/apis") - before <= 6
    assert longest < 2.2  # _RECHECK_ON_DEMAND and a discovery
    assert all(time.now - asked_at < 2.2 for asked_at in waiting.values())


async def test_names_that_are_asked_during_a_discovery_delay_none_that_wait_for_it(time, rig):
    api, found, known = rig
    assert await find(found, LEADER_WORKER_SETS, "x") is None
    await time.elapse(3)
    known.clear()
    with pytest.raises(Unknown):
        found.find(LEADER_WORKER_SETS, "ns", "a")
    asked = len(api.asked)
    await turns_until(lambda: len(api.asked) > asked)
    with pytest.raises(Unknown):
        found.find(LEADER_WORKER_SETS, "ns", "b")
    await settle()
    assert known == [LEADER_WORKER_SETS.label]
    assert found.find(LEADER_WORKER_SETS, "ns", "a") is None
    with pytest.raises(Unknown):
        found.find(LEADER_WORKER_SETS, "ns", "b")  # the answer may be older than its definition
    await time.elapse(2.1)
    assert found.find(LEADER_WORKER_SETS, "ns", "b") is None
