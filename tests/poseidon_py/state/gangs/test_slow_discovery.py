"""Lookups of kinds and of owners that take long, and what is said of them."""

import pytest

from poseidon_py.kube.client import UnreachableError
from poseidon_py.state.gangs.model import Owner, Unknown
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.discovery import Api, Retries, object_cache, recheck


@pytest.fixture
def retries():
    return Retries()


@pytest.fixture
async def slow(retries):
    """A cache whose lookups take long at once, with the kind RayCluster."""
    api = Api()
    known: list[str] = []
    kind, resource, _ = OWNER_KINDS["rayclusters"]
    owner = Owner(kind, "r", "uid-r", resource.group)
    async with object_cache(
        api, lambda *_, gone=False: None, known.append, retries, pause=3600, say_after=0.0
    ) as found:
        yield api, found, known, owner


RAY = {"/apis/ray.io": ["v1"], "/apis/ray.io/v1": ["rayclusters"]}


async def test_kinds_of_owners_that_are_asked_for_are_looked_up(slow):
    api, found, _known, owner = slow
    api.served |= RAY
    path = "/apis/ray.io/v1/namespaces/ns/rayclusters/r"
    api.items[path] = '{"metadata": {"name": "r", "namespace": "ns", "uid": "uid-r"}, "spec": {}}'
    for _ in range(2):
        with pytest.raises(Unknown):
            found.owner(owner, "ns")
        await settle()
    assert found.owner(owner, "ns").counts.size == 1
    assert found.has_owner("uid-r")
    assert found.serves(OWNER_KINDS["rayclusters"].resource)


async def test_a_kind_that_is_not_installed_is_logged_and_found_later(slow, caplog):
    api, found, _known, owner = slow
    with caplog.at_level("INFO"), pytest.raises(Unknown):
        found.owner(owner, "ns")
    with caplog.at_level("INFO"):
        await settle()
    assert found.owner(owner, "ns") is None
    assert not found.serves(OWNER_KINDS["rayclusters"].resource)
    assert [each.message for each in caplog.records] == [
        "rayclusters.ray.io is not served, and is looked for again every 5 s"
    ]
    api.served |= RAY
    recheck(found)
    await settle()
    with pytest.raises(Unknown):
        found.owner(owner, "ns")


async def test_a_discovery_that_takes_long_says_why(slow):
    api, found, known, owner = slow
    api.faults.append(UnreachableError("refused"))
    with pytest.raises(Unknown) as lookup:
        found.owner(owner, "ns")
    assert lookup.value.why == ""
    await settle()
    assert known == ["rayclusters.ray.io"]  # so that the pods are resolved again
    with pytest.raises(Unknown) as lookup:
        found.owner(owner, "ns")
    assert lookup.value.why == "cannot find out whether rayclusters.ray.io is served: refused"
    recheck(found)
    await settle()
    assert found.owner(owner, "ns") is None


async def test_a_lookup_of_an_owner_that_takes_long_says_why(slow, retries):
    api, found, known, owner = slow
    api.served |= RAY
    for faults in ([], [UnreachableError("refused")]):
        with pytest.raises(Unknown):
            found.owner(owner, "ns")
        api.faults += faults
        await settle()
        with pytest.raises(Unknown) as lookup:
            found.owner(owner, "ns")
        api.faults += [UnreachableError("refused")] if not faults else []
        await settle()
    assert known[-1] == "rayclusters.ray.io/uid-r"
    with pytest.raises(Unknown) as lookup:
        found.owner(owner, "ns")
    assert lookup.value.why == "cannot look up its owner, RayCluster ns/r: refused"
    retries.now.set()
    await settle()
    assert found.owner(owner, "ns") is None
    assert found.serves(OWNER_KINDS["rayclusters"].resource)
