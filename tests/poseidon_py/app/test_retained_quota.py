"""Workloads that keep their quota while their pods come and go, through the whole bridge with a real flow service."""

import pytest

from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.kinds import PODS
from poseidon_py.kube.informers import informers
from poseidon_py.state.queues import watches
from tests.poseidon_py.app.queue_kinds import install
from tests.poseidon_py.app.test_queues import LABEL, declare_team, waits_for_quota
from tests.poseidon_py.gang_world import World, job, template
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path, monkeypatch):
    monkeypatch.setattr(watches, "RECHECK", 0.1)
    monkeypatch.setattr(informers, "RECHECK", 0.1)
    async with world_of(World, tmp_path) as world:
        install(world.cluster, "ClusterQueue", "LocalQueue", "ResourceFlavor")
        declare_team(world)
        set_quota(world, 2)
        yield world


def change(world, kind, name, spec, namespace=""):
    world.cluster.api.patch(
        world.cluster.kinds.find("kueue.x-k8s.io", "v1beta2", kind), namespace, name, {"spec": spec}, MERGE_PATCH
    )


def set_quota(world, cpu):
    resources = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "4Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "all", "resources": resources}]}]
    change(world, "clusterqueues", "team-a", {"resourceGroups": groups})


def workload(name, size, completions, **fields):
    found = job(name, size, completions=completions, **fields)
    found["metadata"]["labels"] = {LABEL: "lq"}
    return found


def succeeded(world, name="j"):
    return world.jobs()[name]["status"].get("succeeded", 0)


async def test_the_pods_of_a_workload_follow_each_other_before_younger_pods(world):
    await world.bridge()
    world.create(workload("j", 2, 6, seconds=0.3))
    await world.until(lambda: len(world.running("j-")) == 2)
    world.cluster.add_pods(1, template("1", labels={LABEL: "lq"}), prefix="young-")
    await world.until(lambda: succeeded(world) >= 3)
    assert not world.bound("young-")
    await world.until(lambda: succeeded(world) == 6)
    await world.until(lambda: len(world.bound("young-")) == 1)
    world.check()


@pytest.mark.parametrize("how", ["ClusterQueue", "LocalQueue", "lower"])
async def test_a_workload_that_has_started_goes_on_in_a_queue_that_admits_no_others(world, how):
    await world.bridge()
    world.create(workload("j", 2, 6, seconds=0.4))
    await world.until(lambda: len(world.running("j-")) == 2)
    if how == "ClusterQueue":
        change(world, "clusterqueues", "team-a", {"stopPolicy": "Hold"})
    elif how == "LocalQueue":
        change(world, "localqueues", "lq", {"stopPolicy": "Hold"}, "default")
    else:
        set_quota(world, 1)
    world.create(workload("late", 2, 2, seconds=0.3))
    await world.until(lambda: succeeded(world) == 6)
    assert not world.bound("late-")


async def test_a_pod_that_has_failed_is_replaced_within_the_quota_of_its_workload(world):
    await world.bridge()
    world.create(workload("j", 2, 2, seconds=60.0))
    await world.until(lambda: len(world.running("j-")) == 2)
    world.cluster.add_pods(1, template("1", labels={LABEL: "lq"}), prefix="young-")
    (failed, other) = sorted(world.running("j-"))
    pod = world.pods[failed]
    pod["status"]["phase"] = "Failed"
    world.cluster.api.update(PODS, "default", failed, pod, "status")
    await world.until(lambda: len(world.running("j-") - {failed}) == 2)
    assert other in world.running("j-")
    assert not world.bound("young-")


async def test_a_restarted_scheduler_knows_that_a_workload_has_started(world):
    bridge = await world.bridge()
    world.create(workload("j", 2, 6, seconds=1.0))
    await world.until(lambda: len(world.running("j-")) == 2)
    await world.stop(bridge)
    change(world, "clusterqueues", "team-a", {"stopPolicy": "Hold"})
    await world.bridge()
    await world.until(lambda: succeeded(world) == 6)


async def test_a_replacement_in_a_pod_group_has_the_quota_of_the_pod_that_failed(world):
    await world.bridge()
    labels = {LABEL: "lq", "kueue.x-k8s.io/pod-group-name": "g"}
    member = template("1", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"})
    world.cluster.add_pods(2, member, prefix="p-")
    await world.until(lambda: len(world.running("p-")) == 2)
    failed = min(world.running("p-"))
    pod = world.pods[failed]
    pod["status"]["phase"] = "Failed"
    world.cluster.api.update(PODS, "default", failed, pod, "status")
    world.cluster.add_pods(1, template("1", labels={LABEL: "lq"}), prefix="young-")
    await world.until(lambda: waits_for_quota(world, "young-"))
    world.cluster.add_pods(1, member, prefix="r-")
    await world.until(lambda: len(world.running("r-")) == 1)
    assert not world.bound("young-")
