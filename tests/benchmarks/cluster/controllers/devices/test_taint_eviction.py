"""Pods are deleted from devices with a taint NoExecute: by slice and by rule, now, later or never. Time is virtual."""

from __future__ import annotations

import time

import pytest

from benchmarks.cluster import NodeShape
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.clock import rfc3339
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS, RESOURCE_SLICES, TAINT_RULES
from benchmarks.cluster.store.kinds import EVENTS, PODS
from tests.benchmarks.cluster.builders import Still
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    consumer,
    device,
    pod_with_claim,
    resource_slice,
    result,
    taint_rule,
)

NODE = "node-00000"
BROKEN = {"key": "example.com/broken", "effect": "NoExecute"}


@pytest.fixture
def still() -> Still:
    still = Still(nodes=1)
    still.cluster.create(resource_slice("s", device("gpu-0"), device("gpu-1"), node=NODE))
    return still


def run(still, name="p", device_name="gpu-0", *, tolerations=(), bound=True):
    """A pod that runs on a device."""
    still.cluster.create(claim(f"{name}-claim", finalizers=("resource.kubernetes.io/delete-protection",)))
    made = still.cluster.create(pod_with_claim(name, claim_name=f"{name}-claim"))
    found = result(device_name, **({"tolerations": list(tolerations)} if tolerations else {}))
    status = {"allocation": allocation(found, node=NODE), "reservedFor": [consumer(name, made["metadata"]["uid"])]}
    still.api.patch(RESOURCE_CLAIMS, "default", f"{name}-claim", {"status": status}, MERGE_PATCH, "status")
    if bound:
        still.bind(name, NODE)
    still.pass_time(2)


def taint(still, name="gpu-0", **fields):
    devices = [device(one, taints=[{**BROKEN, **fields}]) if one == name else device(one) for one in ("gpu-0", "gpu-1")]
    still.api.patch(RESOURCE_SLICES, "", "s", {"spec": {"devices": devices}}, MERGE_PATCH)
    still.pass_time(0)


def untaint(still):
    devices = [device("gpu-0"), device("gpu-1")]
    still.api.patch(RESOURCE_SLICES, "", "s", {"spec": {"devices": devices}}, MERGE_PATCH)
    still.pass_time(0)


def going(still):
    """The pods that have been deleted."""
    return sorted({entry.name for entry in still.cluster.audit.of("delete")})


def tolerate(seconds=None, **fields):
    toleration = {"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute", **fields}
    return [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]


def condition(still, name="r"):
    (found,) = still.cluster.get(TAINT_RULES, name)["status"]["conditions"]
    return found["status"], found["reason"], found["message"]


def events(still):
    return [one["message"] for one in still.cluster.objects(EVENTS) if one["reason"] == "DeviceTaintManagerEviction"]


def test_a_taint_in_the_slice_deletes_the_pods_of_that_device(still):
    run(still, "p", "gpu-0")
    run(still, "q", "gpu-1")
    taint(still, "gpu-0")
    assert going(still) == ["p"]
    (found,) = [
        one for one in still.cluster.get(PODS, "p")["status"]["conditions"] if one["type"] == "DisruptionTarget"
    ]
    assert (found["status"], found["reason"]) == ("True", "DeletionByDeviceTaintManager")
    assert events(still) == ["Marking for deletion"]
    still.pass_time(60)
    assert [one["metadata"]["name"] for one in still.pods()] == ["q"]
    assert still.cluster.get(RESOURCE_CLAIMS, "p-claim")["status"] == {}
    assert still.cluster.agenda.failures == 0


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_delete_nobody(still, effect):
    run(still)
    taint(still, effect=effect)
    still.cluster.create(taint_rule(effect=effect, driver="gpu.example.com"))
    still.pass_time(60)
    assert going(still) == []


@pytest.mark.parametrize(
    ("selector", "deleted"),
    [
        pytest.param({"driver": "gpu.example.com"}, ["p", "q"], id="driver"),
        pytest.param({"driver": "gpu.example.com", "pool": "pool", "device": "gpu-1"}, ["q"], id="device"),
        pytest.param({"pool": "other"}, [], id="other pool"),
        pytest.param({}, ["p", "q"], id="everything"),
    ],
)
def test_a_rule_deletes_the_pods_of_the_devices_that_it_selects(still, selector, deleted):
    run(still, "p", "gpu-0")
    run(still, "q", "gpu-1")
    still.cluster.create(taint_rule(**selector))
    still.pass_time(0)
    assert going(still) == deleted
    expected = "Completed" if deleted else "NotStarted"
    assert condition(still)[:2] == ("False", expected)
    count = len(deleted)
    assert condition(still)[2] == (
        f"{count} pod{'s' * (count > 1)} evicted since starting the controller." * bool(count)
    )


def test_a_rule_without_selector_selects_nothing(still):
    run(still)
    manifest = taint_rule()
    del manifest["spec"]["deviceSelector"]
    still.cluster.create(manifest)
    still.pass_time(60)
    assert going(still) == []


def test_what_is_tolerated_for_ever_stays(still):
    run(still, tolerations=tolerate())
    taint(still)
    still.pass_time(1000)
    assert going(still) == []


def test_what_is_tolerated_for_some_time_stays_as_long(still):
    run(still, tolerations=tolerate(30))
    still.cluster.create(taint_rule(driver="gpu.example.com"))
    still.pass_time(25)
    assert going(still) == []
    assert condition(still) == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    still.pass_time(10)
    assert going(still) == ["p"]
    assert condition(still) == ("False", "Completed", "1 pod evicted since starting the controller.")


def test_the_shortest_of_several_times_counts(still):
    run(still, tolerations=tolerate(300) + tolerate(20))
    taint(still)
    still.pass_time(25)
    assert going(still) == ["p"]


def test_the_time_of_the_taint_counts_not_when_it_was_seen(still):
    run(still, tolerations=tolerate(600))
    taint(still, timeAdded=rfc3339(time.time() - 590))
    assert going(still) == []
    still.pass_time(11)
    assert going(still) == ["p"]


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, True, id="every key"),
        pytest.param({"key": "example.com/broken", "operator": "Exists"}, False, id="without effect"),
        pytest.param(
            {"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"}, False, id="another effect"
        ),
        pytest.param(
            {"key": "example.com/broken", "operator": "Equal", "value": "yes", "effect": "NoExecute"}, True, id="value"
        ),
        pytest.param(
            {"key": "example.com/broken", "operator": "Equal", "value": "no", "effect": "NoExecute"}, False, id="other"
        ),
    ],
)
def test_which_tolerations_count(still, toleration, stays):
    run(still, tolerations=[toleration])
    taint(still, value="yes")
    assert going(still) == ([] if stays else ["p"])


@pytest.mark.parametrize("way", ["taint", "rule", "effect"])
def test_a_taint_that_goes_in_time_spares_the_pod(still, way):
    run(still, tolerations=tolerate(30))
    if way == "taint":
        taint(still)
    else:
        still.cluster.create(taint_rule(driver="gpu.example.com"))
    still.pass_time(20)
    if way == "taint":
        untaint(still)
    elif way == "rule":
        delete(still.api, TAINT_RULES, "", "r")
    else:
        still.api.patch(TAINT_RULES, "", "r", {"spec": {"taint": {"effect": "NoSchedule"}}}, MERGE_PATCH)
    still.pass_time(100)
    assert going(still) == []
    assert events(still) == ["Cancelling deletion"]
    if way == "effect":
        assert condition(still) == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")


def test_a_taint_that_comes_back_has_its_own_time(still):
    taint(still, timeAdded="2026-01-01T00:00:00Z")
    run(still, tolerations=tolerate(30))
    assert going(still) == ["p"]  # it was added long ago
    untaint(still)
    run(still, "q", "gpu-1", tolerations=tolerate(30))
    taint(still, "gpu-1")
    still.pass_time(20)
    assert going(still) == ["p"]
    still.pass_time(20)
    assert going(still) == ["p", "q"]


def test_a_pod_that_is_bound_to_a_tainted_device_is_deleted_then(still):
    taint(still)
    run(still, bound=False)
    assert going(still) == []
    still.bind("p", NODE)
    still.pass_time(0)
    assert going(still) == ["p"]


def test_a_rule_without_effect_says_how_many_devices_it_selects(still):
    still.cluster.create(taint_rule(effect="None", driver="gpu.example.com"))
    still.pass_time(0)
    assert condition(still) == ("False", "NoEffect", "2 published devices selected.")


def test_a_driver_taints_its_device():
    still = Still(nodes=1, shapes=(NodeShape(devices=(("a100", 2),)),))
    still.cluster.create(claim("p-claim"))
    made = still.cluster.create(pod_with_claim("p", claim_name="p-claim"))
    found = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": NODE, "device": "gpu-1"}
    status = {"allocation": allocation(found, node=NODE), "reservedFor": [consumer("p", made["metadata"]["uid"])]}
    still.api.patch(RESOURCE_CLAIMS, "default", "p-claim", {"status": status}, MERGE_PATCH, "status")
    still.bind("p", NODE)
    still.pass_time(2)
    assert still.phases() == {"Running": 1}
    still.cluster.drivers.taint("gpu.nvidia.com", NODE, "gpu-1", [{"key": "example.com/hot", "effect": "NoExecute"}])
    still.pass_time(0)
    assert "p" in going(still)
