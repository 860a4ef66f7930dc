"""Pods with device claims, through the whole bridge and the flow service, against the synthetic cluster."""

from contextlib import suppress

import pytest

from benchmarks.cluster.http.faults import Rule
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import NODES
from poseidon_py.bind.device_claims import DeviceBinder
from tests.benchmarks.cluster.device_builders import (
    claim,
    claim_template,
    device,
    device_class,
    request,
    resource_slice,
)
from tests.poseidon_py.app.devices.device_world import DeviceWorld
from tests.poseidon_py.app.test_gangs import install
from tests.poseidon_py.gang_world import job
from tests.poseidon_py.world import world_of

EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
TIME = "2026-01-01T00:00:00Z"

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path):
    async with world_of(DeviceWorld, tmp_path, nodes=3) as world:
        yield world


async def test_pods_get_devices_of_their_own(world):
    """Five devices, six pods: the sixth waits, says why, and gets the device of the first that ends."""
    world.gpus(2, 3)
    world.create(claim_template("one", request()))
    bridge = await world.bridge()
    for at in range(6):
        world.pod(f"p{at}", of="one")
    await world.until(lambda: len(world.running()) == 5)
    world.check()
    assert len(world.devices()) == 5
    (waiting,) = world.pods.keys() - world.running()
    await world.until(lambda: world.events("FailedScheduling"))
    assert "0/3 nodes are available: 3 cannot allocate all claims" in world.events("FailedScheduling")[0]["message"]
    (account,) = (await bridge.explain("default", waiting))["devices"]
    assert (account["request"], account["class"], account["count"]) == ("gpu", "gpu", 1)
    assert (account["devices"], account["nodes_with_enough"]) == ({"in use": 5}, 0)
    world.delete(sorted(world.running())[0])
    await world.until(lambda: waiting in world.running())
    world.check()


async def test_a_claim_in_common_is_allocated_once_and_all_its_pods_follow(world):
    world.gpus(1, 1)
    world.create(claim("shared", request()))
    await world.bridge()
    for at in range(6):
        world.pod(f"p{at}", claim_name="shared")
    await world.until(lambda: len(world.running()) == 6)
    nodes = {pod["spec"]["nodeName"] for pod in world.pods.values()}
    assert len(nodes) == 1
    assert len(world.claims["shared"]["status"]["reservedFor"]) == 6
    for at in range(6):
        world.delete(f"p{at}")
    await world.until(lambda: "allocation" not in world.claims["shared"].get("status", {}))


async def test_devices_of_one_numa_node(world):
    """A pod wants two devices of one NUMA node; one node has two of different ones, the other has them."""
    world.gpus(2, 3, numa=[{"int": 0}, {"int": 1}, {"int": 1}])
    two = request(count=2)
    template = claim_template("two", two)
    template["spec"]["spec"]["devices"]["constraints"] = [{"matchAttribute": "gpu.example.com/numa"}]
    world.create(template)
    await world.bridge()
    for name in "ab":
        world.pod(name, of="two")
    await world.until(lambda: world.running())
    await world.until(lambda: world.events("FailedScheduling"))
    ((name, devices),) = world.devices().items()
    assert world.running() == {name}
    assert sorted(devices) == [f"{world.names()[1]}/gpu-1", f"{world.names()[1]}/gpu-2"]


async def test_an_extended_resource_is_served_by_devices_or_by_a_device_plugin(world):
    """Two devices on one node, one of a device plugin on another: three pods with one each."""
    resource = "example.com/gpu"
    world.create(device_class("gpu", extendedResourceName="example.com/gpu"))
    first, second, _ = world.names()
    world.create(resource_slice("s", device("gpu-0"), device("gpu-1"), pool=first, node=first))
    node = world.cluster.get(NODES, second)
    node["status"]["allocatable"][resource] = node["status"]["capacity"][resource] = "1"
    world.cluster.api.update(NODES, "", second, node, "status")
    await world.bridge()
    for at in range(4):
        world.extended(f"p{at}", resource)
    await world.until(lambda: len(world.running()) == 3)
    world.check()
    nodes = [pod["spec"]["nodeName"] for pod in world.pods.values() if "nodeName" in pod["spec"]]
    assert sorted(nodes) == sorted([first, first, second])
    served = [pod["status"].get("extendedResourceClaimStatus") for pod in world.pods.values()]
    assert sorted(each is None for each in served) == [False, False, True, True]
    mapping = {"containerName": "c", "resourceName": resource, "requestName": "container-0-request-0"}
    assert [each["requestMappings"] for each in served if each] == [[mapping]] * 2


async def test_every_class_has_an_implicit_resource(world):
    """Beside a claim for the same devices: three on one node, and none is given twice."""
    world.gpus(3)
    world.create(claim_template("two", request(count=2)))
    await world.bridge()
    world.pod("claims", of="two")
    for name in "ab":
        world.extended(name, "deviceclass.resource.kubernetes.io/gpu")
    await world.until(lambda: len(world.running()) == 2)
    await world.until(lambda: world.events("FailedScheduling"))
    world.check()


async def test_a_gang_gets_devices_for_all_or_none(world):
    world.gpus(2, 2)
    world.create(claim_template("one", request()))
    await world.bridge()
    for name, size in (("large", 5), ("small", 4)):
        found = job(name, size, gang="all", cpu="100m")
        spec = found["spec"]["template"]["spec"]
        spec["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": "one"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "d"}]
        world.create(found)
    await world.until(lambda: len(world.running("small")) == 4)
    assert world.running("large") == set()
    world.check()


async def test_a_pod_of_higher_priority_evicts_the_holder_of_a_device(world):
    world.gpus(1)
    world.create(claim_template("one", request()))
    world.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    )
    await world.bridge()
    world.pod("low", of="one")
    await world.until(lambda: world.running() == {"low"})
    world.pod("high", of="one", priorityClassName="high", priority=100)
    await world.until(lambda: world.running() == {"high"})
    assert "low" not in world.pods
    world.check()


async def test_a_restarted_scheduler_knows_what_is_in_use(world):
    world.gpus(2)
    world.create(claim_template("one", request()))
    bridge = await world.bridge()
    world.pod("a", of="one")
    await world.until(lambda: world.running() == {"a"})
    await world.stop(bridge)
    await world.bridge()
    world.pod("b", of="one")
    world.pod("c", of="one")
    await world.until(lambda: len(world.running()) == 2)
    world.check()
    await world.until(lambda: world.events("FailedScheduling"))
    assert len(world.running()) == 2


async def test_what_is_missing_is_said(world):
    """A claim that does not exist, a class that does not exist: each a condition, at once, and each mended later."""
    world.gpus(1)
    await world.bridge()
    world.pod("a", claim_name="later")

    def messages_of(name):
        conditions = world.pods[name].get("status", {}).get("conditions", ())
        return [each.get("message", "") for each in conditions if each["type"] == "PodScheduled"]

    await world.until(lambda: any('resourceclaim "later" not found' in text for text in messages_of("a")))
    world.create(claim("later", request(device_class="fpga")))
    await world.until(lambda: any("device class fpga does not exist" in text for text in messages_of("a")))
    world.create(device_class("fpga"))
    await world.until(lambda: world.running() == {"a"})


async def test_faults_of_all_writes(world):
    """Refused, lost and broken requests, claims that others change meanwhile: all pods run, on devices of their own."""
    world.gpus(4, 4, 4)
    world.create(claim_template("one", request()))
    claims = ("resourceclaims", "resourceclaims/status")
    world.cluster.faults.set(
        Rule(("patch",), claims, rate_500=0.15, rate_reset=0.1, rate_lost=0.15, latency_ms=5.0, first=60),
        Rule(("create",), ("pods/binding",), rate_500=0.2, rate_lost=0.2, first=10),
    )
    await world.bridge()
    for at in range(10):
        world.pod(f"p{at}", of="one")

    def meddle():
        for name, found in world.claims.items():
            found["metadata"].setdefault("labels", {})["at"] = str(len(world.running()))
            with suppress(ApiError):
                world.cluster.api.update(RESOURCE_CLAIMS, "default", name, found)
        return len(world.running()) == 10

    await world.until(meddle, 60)
    world.check()


async def test_a_scheduler_that_ends_leaves_nothing_that_the_next_does_not_mend(world):
    """The first ends after a claim was allocated, and before its pod is bound; its node takes no pods then."""
    world.gpus(1, 1)
    world.create(claim_template("one", request()), claim("named", request()))
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), rate_503=1.0))
    first = await world.bridge(shutdown_timeout=0.1)
    world.pod("a", claim_name="named")
    await world.until(lambda: "allocation" in world.claims["named"].get("status", {}))
    await world.stop(first)
    world.cluster.faults.set()
    (device_on,) = {each["pool"] for each in world.claims["named"]["status"]["allocation"]["devices"]["results"]}
    world.cordon(device_on)
    await world.bridge()
    await world.until(lambda: world.running() == {"a"})
    assert world.pods["a"]["spec"]["nodeName"] != device_on
    world.check()


@pytest.mark.parametrize("leads_when_it_sees_the_claim", [True, False])
async def test_a_claim_that_was_left_behind_is_replaced(world, monkeypatch, leads_when_it_sees_the_claim):
    """That of a process that ended before the bind."""
    if not leads_when_it_sees_the_claim:
        monkeypatch.setattr(DeviceBinder, "left_behind", lambda self, known, key: None)
    world.gpus(1)
    world.extended("a", "deviceclass.resource.kubernetes.io/gpu")
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
        "uid": world.pods["a"]["metadata"]["uid"],
        "controller": True,
    }
    left = claim("left", request())
    left["metadata"] |= {"ownerReferences": [owner], "annotations": {EXTENDED_CLAIM: "true"}}
    world.create(left)

    await world.bridge()
    await world.until(lambda: world.running() == {"a"})
    await world.until(lambda: "left" not in world.claims)
    assert len(world.claims) == 1


async def test_binding_conditions_are_waited_for(world):
    """Of two pods one gets its device ready; of the other the driver says that it failed, and then that it did not."""
    world.create(device_class("gpu"), claim("good", request()), claim("bad", request()))
    node = world.names()[0]
    waits = {"bindsToNode": True, "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    world.create(resource_slice("s", device("gpu-0", **waits), device("gpu-1", **waits), pool=node, node=node))
    await world.bridge()

    def report(name, condition):
        found = world.claims[name]
        (result,) = found["status"]["allocation"]["devices"]["results"]
        about = {key: result[key] for key in ("driver", "pool", "device")}
        stated = {"type": condition, "status": "True", "reason": "x", "message": "", "lastTransitionTime": TIME}
        found["status"]["devices"] = [about | {"conditions": [stated]}]
        world.cluster.api.update(RESOURCE_CLAIMS, "default", name, found, "status")

    def is_allocated(name):
        return "allocation" in world.claims[name].get("status", {})

    for name in ("good", "bad"):
        world.pod(name, claim_name=name)
    await world.until(lambda: is_allocated("good") and is_allocated("bad"))
    assert not world.bound()
    report("good", "ready")
    await world.until(lambda: world.running() == {"good"})
    report("bad", "failed")
    await world.until(lambda: any("binding failed: failed" in e["message"] for e in world.events("FailedScheduling")))
    await world.until(lambda: is_allocated("bad") and not world.claims["bad"]["status"].get("devices"))
    report("bad", "ready")
    await world.until(lambda: world.running() == {"good", "bad"})


async def test_claims_of_extended_resources_are_removed_when_their_pod_is_not_bound(world):
    world.gpus(1)
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), rate_500=1.0, first=3))
    await world.bridge(bind_patience=0.0)
    world.extended("a", "deviceclass.resource.kubernetes.io/gpu")
    await world.until(lambda: world.running() == {"a"})
    await world.until(lambda: len(world.claims) == 1)
    world.check()
    world.delete("a")
    await world.until(lambda: not world.claims)


async def test_a_slice_that_is_refused_has_an_event_and_a_pod_that_needs_it_waits(world):
    world.create(device_class("gpu"), claim("c", request()))
    takes = device("gpu-0", nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "2"}}})
    node = world.names()[0]
    world.create(resource_slice("s", takes, pool=node, node=node))
    await world.bridge()
    world.pod("p", claim_name="c")
    await world.until(lambda: world.events("NotHonoured") and world.events("FailedScheduling"))
    (event,) = world.events("NotHonoured")
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("ResourceSlice", "s")
    assert event["message"].startswith("spec.devices[].nodeAllocatableResources{}.mapping.deviceMultiplier: ")
    assert not world.running()


@pytest.mark.parametrize("generated", [False, True])
async def test_a_claim_of_a_pod_group_is_reserved_for_the_group(world, generated):
    """All members share it, on one node. Members that are replaced find the devices again; they are free when the group
    is gone."""
    await install(world, ("scheduling.k8s.io", "v1alpha2", "PodGroup"))
    world.gpus(2, 1)
    world.create(claim_template("t", request()) if generated else claim("shared", request()))
    source = {"of": "t"} if generated else {"claim_name": "shared"}
    entry = {"name": "d", **({"resourceClaimTemplateName": "t"} if generated else {"resourceClaimName": "shared"})}
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": [entry]}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "pg"}, "spec": spec}
    world.create(group)
    await world.bridge()

    def users():
        (found,) = world.claims.values()
        stated = found["status"].get("reservedFor", [])
        return [(user.get("apiGroup"), user["resource"], user["name"]) for user in stated]

    for at in range(3):
        world.pod(f"m{at}", schedulingGroup={"podGroupName": "pg"}, **source)
    await world.until(lambda: len(world.running()) == 3)
    assert len({pod["spec"]["nodeName"] for pod in world.pods.values()}) == 1
    assert users() == [("scheduling.k8s.io", "podgroups", "pg")]
    for name in list(world.running()):
        world.delete(name)
    for at in range(3):
        world.pod(f"n{at}", schedulingGroup={"podGroupName": "pg"}, **source)
    await world.until(lambda: len(world.running()) == 3)
    assert users() == [("scheduling.k8s.io", "podgroups", "pg")]


async def test_a_pod_beside_a_group_is_a_user_of_its_own(world):
    await install(world, ("scheduling.k8s.io", "v1alpha2", "PodGroup"))
    world.gpus(2, 1)
    world.create(claim("shared", request()))
    entries = [{"name": "d", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": entries}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "pg"}, "spec": spec}
    world.create(group)
    await world.bridge()
    world.pod("member", claim_name="shared", schedulingGroup={"podGroupName": "pg"})
    world.pod("beside", claim_name="shared")
    await world.until(lambda: len(world.running()) == 2)
    users = {(user["resource"], user["name"]) for user in world.claims["shared"]["status"]["reservedFor"]}
    assert users == {("podgroups", "pg"), ("pods", "beside")}
