"""Queues whose quotas count devices, through the whole bridge and the flow service, against the synthetic cluster."""

import pytest
import yaml

from tests.benchmarks.cluster.device_builders import claim, claim_template, device_class, request
from tests.poseidon_py.app.devices.device_world import DeviceWorld
from tests.poseidon_py.app.queue_kinds import declare, install, install_own
from tests.poseidon_py.gang_world import job
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KUEUE = "kueue.x-k8s.io/v1beta2"
LABEL = {"kueue.x-k8s.io/queue-name": "lq"}
OWN = "deviceclass.resource.kubernetes.io/gpu"


@pytest.fixture
async def world(tmp_path):
    async with world_of(DeviceWorld, tmp_path, nodes=3) as world:
        yield world


def kueue(world, *mappings, **quotas):
    """A ClusterQueue with a quota of cpu, memory and these, and Kueue's configuration."""
    install(world.cluster, "ClusterQueue", "LocalQueue", "ResourceFlavor")
    amounts = {"cpu": 8, "memory": "4Gi", **quotas}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    group = {"coveredResources": [*amounts], "flavors": [{"name": "all", "resources": resources}]}
    declare(world.cluster, KUEUE, "ResourceFlavor", "all", {})
    declare(world.cluster, KUEUE, "ClusterQueue", "a", {"resourceGroups": [group], "namespaceSelector": {}})
    declare(world.cluster, KUEUE, "LocalQueue", "lq", {"clusterQueue": "a"}, "default")
    config = {"controller_manager_config.yaml": yaml.safe_dump({"resources": {"deviceClassMappings": list(mappings)}})}
    metadata = {"name": "kueue-manager-config", "namespace": "default"}
    world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": config})


async def scheduler(world, kind):
    bridge = await world.bridge()
    await world.until(lambda: bridge.store.queues.active is not None and bridge.store.queues.active.kind == kind)
    return bridge


GPUS = {"name": "gpus", "deviceClassNames": ["gpu"]}


async def test_claims_of_templates_count_as_what_kueues_configuration_maps_their_class_to(world):
    """Two devices each, four in the quota, eight on the nodes: the third pod waits until one ends."""
    world.gpus(4, 4)
    world.create(claim_template("two", request(count=2)))
    kueue(world, GPUS, gpus=4)
    await scheduler(world, "kueue")
    for name in "abc":
        world.pod(name, of="two", labels=LABEL)
    await world.until(lambda: len(world.running()) == 2)
    await world.until(lambda: any("quota" in event["message"] for event in world.events("FailedScheduling")))
    (waiting,) = world.pods.keys() - world.running()
    assert world.events("FailedScheduling")[-1]["message"] == "waits for quota of queue a: lacks 2 gpus"
    world.check()
    world.delete(sorted(world.running())[0])
    await world.until(lambda: waiting in world.running())
    world.check()


async def test_extended_resources_of_a_mapped_class_count_there_and_not_twice(world):
    """By claim and by extended resource, from one quota; there is none of the extended resource itself."""
    world.gpus(4, 4, served="example.com/gpu")
    world.create(claim_template("one", request()))
    kueue(world, GPUS, gpus=3)
    await scheduler(world, "kueue")
    world.extended("extended", "example.com/gpu", 2, labels=LABEL)
    await world.until(lambda: world.running() == {"extended"})
    world.pod("claims", of="one", labels=LABEL)
    await world.until(lambda: world.running() == {"extended", "claims"})
    world.extended("another", "example.com/gpu", labels=LABEL)
    await world.until(lambda: world.events("FailedScheduling"))
    assert world.running() == {"extended", "claims"}
    world.check()


async def test_an_extended_resource_of_a_class_that_is_not_mapped_counts_as_itself(world):
    world.gpus(4, served="example.com/gpu")
    kueue(world, **{"example.com/gpu": 1})
    await scheduler(world, "kueue")
    for name in "ab":
        world.extended(name, "example.com/gpu", labels=LABEL)
    await world.until(lambda: len(world.running()) == 1 and world.events("FailedScheduling"))
    assert "example.com/gpu" in world.events("FailedScheduling")[0]["message"]


@pytest.mark.parametrize(
    ("asked", "named", "why"),
    [
        (request(), True, "resourceclaim c has no quota, as other pods may share it; use a template"),
        (request(allocationMode="All"), False, "All has no quota, as it is not known what it takes; give a count"),
        (
            {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
            False,
            "firstAvailable has no quota, as it is not known what it takes; use exactly",
        ),
        (request(device_class="fpga"), False, "device class fpga has no quota; name it in"),
        (request(device_class="part"), False, "the sources of parts are not counted; map the class without sources"),
    ],
)
async def test_what_kueue_refuses_waits_and_says_why(world, asked, named, why):
    world.gpus(2)
    for name in ("fpga", "part"):
        world.create(device_class(name))
    world.create(claim("c", asked) if named else claim_template("t", asked))
    source = {"counter": {"name": "memory", "driver": "gpu.example.com"}}
    kueue(world, GPUS, {"name": "parts", "deviceClassNames": ["part"], "sources": [source]}, gpus=4)
    await scheduler(world, "kueue")
    world.pod("refused", labels=LABEL, **({"claim_name": "c"} if named else {"of": "t"}))
    await world.until(lambda: any(why in event["message"] for event in world.events("FailedScheduling")))
    world.create(claim("free", asked)) if named else None
    world.pod("in-no-queue", **({"claim_name": "free"} if named else {"of": "t"}))
    await world.until(lambda: world.running() == {"in-no-queue"})


async def test_our_own_queues_count_devices_by_class(world):
    """A gang that needs more than the limit waits as a whole; one within it runs."""
    world.gpus(4, 4)
    world.create(claim_template("one", request()))
    install_own(world.cluster)
    declare(world.cluster, "poseidon.io/v1", "Queue", "team", {"limit": {OWN: "3"}})
    await scheduler(world, "poseidon")
    for name, size in (("large", 4), ("small", 3)):
        found = job(name, size, gang="all", cpu="100m")
        pod_template = found["spec"]["template"]
        pod_template["metadata"].setdefault("labels", {})["poseidon.io/queue"] = "team"
        pod_template["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": "one"}]
        world.create(found)
    await world.until(lambda: len(world.running()) == 3)
    assert {name.rpartition("-")[0] for name in world.running()} == {"small"}
    world.check()


async def test_a_shared_claim_counts_once_as_long_as_one_of_its_pods_runs(world):
    world.gpus(4)
    world.create(claim("shared", request(count=2)), claim_template("one", request()))
    install_own(world.cluster)
    declare(world.cluster, "poseidon.io/v1", "Queue", "team", {"limit": {OWN: "2"}})
    labels = {"poseidon.io/queue": "team"}
    await scheduler(world, "poseidon")
    for name in "ab":
        world.pod(name, claim_name="shared", labels=labels)
    await world.until(lambda: world.running() == {"a", "b"})
    world.pod("c", of="one", labels=labels)
    await world.until(lambda: world.events("FailedScheduling"))
    world.delete("a")
    await world.until(lambda: "a" not in world.pods)
    assert world.running() == {"b"}
    world.delete("b")
    await world.until(lambda: world.running() == {"c"})


async def test_a_guarantee_of_devices_is_taken_back(world):
    """What a queue has beyond its share goes to the queue below its guarantee."""
    world.gpus(2, 2)
    world.create(claim_template("one", request()))
    install_own(world.cluster)
    for name in "ab":
        declare(world.cluster, "poseidon.io/v1", "Queue", name, {"guarantee": {OWN: "2"}})
    await scheduler(world, "poseidon")
    for at in range(4):
        world.pod(f"a{at}", of="one", labels={"poseidon.io/queue": "a"})
    await world.until(lambda: len(world.running()) == 4)
    for at in range(2):
        world.pod(f"b{at}", of="one", labels={"poseidon.io/queue": "b"})
    await world.until(lambda: {"b0", "b1"} <= world.running())
    assert len(world.running()) == 4
    world.check()
