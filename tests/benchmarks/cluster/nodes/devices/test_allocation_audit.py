"""Every write that gives away what is not free is noticed, and no other."""

from __future__ import annotations

import random

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.nodes.devices.inventory import DeviceId
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS
from benchmarks.cluster.store.kinds import NAMESPACES
from tests.benchmarks.cluster.builders import Still
from tests.benchmarks.cluster.device_builders import DRIVER, allocation, claim, device, request, resource_slice, result

SHARES = [f"{at}1111111-2222-4333-8444-555555555555" for at in range(10)]


@pytest.fixture
def still() -> Still:
    return Still(controllers=False)


def publish(still, *devices, **spec):
    still.cluster.create(resource_slice("s", *devices, **spec))


def allocate(still, name, *results):
    still.cluster.create(claim(name, request(count=len(results))))
    patch = {"status": {"allocation": allocation(*results)}}
    still.api.patch(RESOURCE_CLAIMS, "default", name, patch, MERGE_PATCH, "status")
    return [one.problem for one in still.cluster.device_violations]


def free(still, name):
    still.api.patch(RESOURCE_CLAIMS, "default", name, {"status": {"allocation": None}}, MERGE_PATCH, "status")


def shared(memory="10", **fields):
    return device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": memory}}, **fields)


def share(at, memory):
    return result(shareID=SHARES[at], consumedCapacity={"memory": memory})


def test_a_device_has_one_holder(still):
    publish(still, device("gpu-0"), device("gpu-1"))
    assert allocate(still, "a", result("gpu-0")) == []
    assert allocate(still, "b", result("gpu-1")) == []
    assert allocate(still, "c", result("gpu-0")) == ["it is held 2 times, by default/a, default/c"]
    (found,) = still.cluster.device_violations
    assert (found.claim, found.device) == ("default/c", f"{DRIVER}/pool/gpu-0")
    assert found.version == still.api.get(RESOURCE_CLAIMS, "default", "c").version


@pytest.mark.parametrize("way", ["cleared", "deleted"])
def test_a_device_is_free_after_its_holder(still, way):
    publish(still, device("gpu-0"))
    allocate(still, "a", result("gpu-0"))
    if way == "cleared":
        free(still, "a")
    else:
        delete(still.api, RESOURCE_CLAIMS, "default", "a")
    assert still.cluster.allocations.holders(DeviceId(DRIVER, "pool", "gpu-0")) == []
    assert allocate(still, "b", result("gpu-0")) == []


def test_a_claim_may_not_hold_a_device_twice(still):
    publish(still, device("gpu-0"))
    assert allocate(still, "a", result("gpu-0"), result("gpu-0")) == ["it is held 2 times, by default/a"]


def test_a_device_that_is_not_published_is_noticed(still):
    publish(still, device("gpu-0"))
    assert allocate(still, "a", result("gpu-1")) == ["no slice of the newest generation of the pool has it"]
    still.cluster.create(resource_slice("t", device("gpu-9"), generation=2))
    assert len(allocate(still, "b", result("gpu-0"))) == 2


def test_one_that_is_withdrawn_later_is_not(still):
    publish(still, device("gpu-0"))
    allocate(still, "a", result("gpu-0"))
    still.cluster.create(resource_slice("t", generation=2))
    still.api.patch(RESOURCE_CLAIMS, "default", "a", {"status": {"reservedFor": []}}, MERGE_PATCH, "status")
    assert still.cluster.device_violations == []


def test_administrative_access_does_not_count(still):
    home = {"metadata": {"name": "default", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
    still.api.patch(NAMESPACES, "", "default", home, MERGE_PATCH)
    publish(still, device("gpu-0"))
    assert allocate(still, "a", result("gpu-0")) == []
    assert allocate(still, "b", result("gpu-0", adminAccess=True)) == []
    free(still, "a")
    assert allocate(still, "c", result("gpu-0")) == []


def test_shares_fit_into_the_capacity(still):
    publish(still, shared("10"))
    assert allocate(still, "a", share(0, "4")) == []
    assert allocate(still, "b", share(1, "6")) == []
    assert allocate(still, "c", share(2, "1")) == ["11 of 10 of its capacity memory is consumed"]
    free(still, "c")
    free(still, "a")
    assert len(allocate(still, "d", share(3, "4"))) == 1


def test_shares_are_distinct(still):
    publish(still, shared("10"))
    assert allocate(still, "a", share(0, "1")) == []
    assert allocate(still, "b", share(0, "1")) == [f"the shares {SHARES[0]}, {SHARES[0]} are not distinct"]
    free(still, "b")
    assert "are not distinct" in allocate(still, "c", result())[-1]


def counters(**amounts):
    return {"name": "c", "counters": {name: {"value": value} for name, value in amounts.items()}}


def consuming(name, **amounts):
    consumed = {key: {"value": value} for key, value in amounts.items()}
    return device(name, consumesCounters=[{"counterSet": "c", "counters": consumed}])


def test_partitions_in_use_consume_no_more_than_their_counters(still):
    still.cluster.create(resource_slice("counters", sharedCounters=[counters(memory="40Gi")], count=2))
    publish(
        still, consuming("gpu-0", memory="40Gi"), consuming("a", memory="20Gi"), consuming("b", memory="20Gi"), count=2
    )
    assert allocate(still, "a", result("a")) == []
    assert allocate(still, "b", result("b")) == []
    wrong = allocate(still, "c", result("gpu-0"))
    # 20 + 20 + 40 Gi of 40 Gi
    assert wrong == [f"devices of the pool consume {80 * 2**30} of {40 * 2**30} of the counter c/memory"]
    for name in "abc":
        free(still, name)
    assert len(allocate(still, "d", result("gpu-0"))) == 1
    assert allocate(still, "e", result("a"))[-1] == (
        f"devices of the pool consume {60 * 2**30} of {40 * 2**30} of the counter c/memory"
    )


def test_a_shared_device_consumes_its_counters_once(still):
    still.cluster.create(resource_slice("counters", sharedCounters=[counters(memory="10")], count=2))
    fields = consuming("gpu-0", memory="10")
    publish(still, shared("10", **{"consumesCounters": fields["consumesCounters"]}), count=2)
    assert allocate(still, "a", share(0, "5")) == []
    assert allocate(still, "b", share(1, "5")) == []


def test_random_writes_are_judged_like_a_plain_recount(still):
    """Claims take and give up random devices; a violation is noticed exactly when a recount finds too much in use."""
    rng = random.Random(7)
    publish(still, *(device(f"gpu-{at}") for at in range(4)), shared("10") | {"name": "shared"})
    owned: dict[str, dict] = {}
    noticed = recounted = 0
    for step in range(300):
        if owned and rng.random() < 0.45:
            name = rng.choice(sorted(owned))
            del owned[name]
            free(still, name)
            continue
        name = f"c{step}"
        if rng.random() < 0.5:
            owned[name] = result(f"gpu-{rng.randrange(4)}")
            wrong = sum(one["device"] == owned[name]["device"] for one in owned.values()) > 1
        else:
            identity = f"{step:08x}-2222-4333-8444-555555555555"
            owned[name] = result("shared", shareID=identity, consumedCapacity={"memory": str(rng.randint(1, 4))})
            used = sum(int(one["consumedCapacity"]["memory"]) for one in owned.values() if one["device"] == "shared")
            wrong = used > 10
        recounted += wrong
        noticed = len(allocate(still, name, owned[name]))
        assert noticed == recounted
    assert recounted > 20
