"""When what waits is expected to start, through the whole bridge and a flow service."""

import asyncio

import pytest

from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.queries.start_list import NO_END
from tests.poseidon_py.world import World, template, world_of

GROUP = "pod-group.scheduling.x-k8s.io"


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=2) as found:
        yield found


def pods(world, prefix, count, seconds=0, labels=None):
    """Pods of a whole node each, of which two run at a time."""
    annotations = {"poseidon.io/expected-duration": f"{seconds}s"} if seconds else {}
    metadata = {"annotations": annotations, "labels": labels or {}}
    world.cluster.add_pods(count, {"metadata": metadata, **template(cpu="3")}, prefix=prefix)


async def forecast(bridge, waiting):
    """The first one with so many gangs and pods, none of which is newer than it."""
    async with asyncio.timeout(30):
        while True:
            body = await bridge.queue("", "", "start")
            listed = body["waiting"]
            if len(listed) == waiting and all("newer" not in each["why"] for each in listed) and body["made"]:
                return body
            await asyncio.sleep(0.05)


async def test_what_waits_starts_when_what_runs_ends(world):
    """Two run for an hour, and a gang of both nodes follows, if the engine takes what they declare."""
    bridge = await world.bridge(preemption="off")
    pods(world, "running", 2, 3600)
    await world.until(lambda: len(world.bound("running")) == 2)
    pods(world, "member", 2, 3600, {f"{GROUP}/name": "g", f"{GROUP}/min-available": "2"})
    [gang] = (await forecast(bridge, 1))["waiting"]
    assert (gang["name"], gang["kind"], gang["pods"], gang["why"]) == ("default/g", "gang", 2, "")
    assert 3500 < gang["start"]["in_seconds"] <= 3600
    assert gang["nodes"] == sorted(world.pods[name]["spec"]["nodeName"] for name in world.bound("running"))
    member = next(name for name in world.pods if name.startswith("member"))
    expected = (await bridge.explain("default", member))["expected"]
    assert expected["start"]["likely"] == gang["start"]["likely"]
    assert (await bridge.explain("default", next(iter(world.bound("running")))))["expected"] is None


async def test_nothing_is_forecast_without_an_expected_end(world):
    bridge = await world.bridge(preemption="off")
    pods(world, "running", 2)
    await world.until(lambda: len(world.bound("running")) == 2)
    pods(world, "waiting", 1)
    [waiting] = (await forecast(bridge, 1))["waiting"]
    assert (waiting["start"], waiting["why"]) == (None, NO_END)
    with pytest.raises(UnknownQueue, match="queue research not found"):
        await bridge.queue("", "research", "")
