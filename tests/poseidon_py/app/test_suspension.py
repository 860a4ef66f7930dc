"""Suspended workloads through the whole bridge with a real flow service, against the synthetic cluster, whose Job
controller plays its part."""

import asyncio

import pytest

from benchmarks.cluster.api.patches import MERGE_PATCH
from poseidon_py.kube.informers import informers
from poseidon_py.state.queues import watches
from poseidon_py.workloads import controller
from tests.poseidon_py.app.queue_kinds import install
from tests.poseidon_py.app.test_queues import LABEL, declare_team
from tests.poseidon_py.gang_world import World, job
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path, monkeypatch):
    monkeypatch.setattr(watches, "RECHECK", 0.1)
    monkeypatch.setattr(informers, "RECHECK", 0.1)
    monkeypatch.setattr(controller, "PERIOD", 0.05)
    async with world_of(World, tmp_path) as world:
        yield world


def stop(world, policy):
    queues = world.cluster.kinds.find("kueue.x-k8s.io", "v1beta2", "clusterqueues")
    world.cluster.api.patch(queues, "", "team-a", {"spec": {"stopPolicy": policy}}, MERGE_PATCH)


async def shown(bridge):
    """What `poseidon jobs` says: states by name, and why workloads are suspended."""
    body = await bridge.jobs(name="", namespace="", user="", queue="", state="")
    return (
        {each["name"]: each["state"] for each in body["jobs"]},
        {each["name"]: each["why"] for each in body["suspended"]},
    )


async def until_shown(bridge, states):
    """Its watches lag behind the cluster."""
    async with asyncio.timeout(30):
        while await shown(bridge) != (states, {}):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_job_that_is_created_suspended_starts_and_outlives_the_draining_of_its_queue(world):
    """Without Kueue's controller nobody resumed it; HoldAndDrain ended it for good: 8 evictions, backoffLimit 6."""
    install(world.cluster, "ClusterQueue", "LocalQueue", "ResourceFlavor")
    declare_team(world)
    bridge = await world.bridge(queue_drain_rate=1000.0)
    found = job("j", 8, seconds=60.0)
    found["metadata"]["labels"] = {LABEL: "lq"}
    found["spec"] |= {"suspend": True, "backoffLimit": 6}
    world.create(found)
    await world.until(lambda: len(world.running("j-")) == 8)

    stop(world, "HoldAndDrain")
    await world.until(lambda: world.jobs()["j"]["spec"]["suspend"] and not world.pods)
    why = "queue team-a is stopped; it is resumed once the queue is open again"
    await world.until(lambda: [e["message"] for e in world.events("NotResumed")] == [f"stays suspended: {why}"])
    assert await shown(bridge) == ({"default/j": "Pending"}, {"default/j": why})
    (queue,) = (await bridge.queues("team-a"))["queues"]
    assert [each["why"] for each in queue["suspended"]] == [why]

    stop(world, "None")
    await world.until(lambda: len(world.running("j-")) == 8)
    assert world.jobs()["j"]["status"].get("failed", 0) == 0
    await until_shown(bridge, {"default/j": "Running"})
