"""SIGUSR2 and SIGUSR1: the state beside the API server, and what the process does."""

import asyncio

import pytest

from poseidon_py.app.cache_comparison import compare, compare_and_log
from poseidon_py.kube.client import UnreachableError
from poseidon_py.util.process.stacks import stacks
from tests.poseidon_py.world import World, template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world


async def test_a_state_that_agrees_and_one_that_does_not(world, caplog):
    caplog.set_level("INFO")
    bridge = await world.bridge()
    world.cluster.add_pods(3, template())
    world.cluster.add_pods(1, template(scheduler="other"), prefix="other")
    await world.until(lambda: len(world.bound()) == 3 and len(bridge.store.pods) == 4)
    await world.until(lambda: all(pod.node for pod in bridge.store.pods.values() if pod.observed.assigned_to_us))

    def newest() -> bool:
        """Whether no event is on its way that would say again what the test unsays."""
        there = {pod["metadata"]["uid"]: pod for pod in world.pods.values() if pod["spec"].get("nodeName")}
        return all(pod["status"].get("phase") == "Running" for pod in there.values()) and all(
            bridge.store.pods[uid].observed.version == pod["metadata"]["resourceVersion"] for uid, pod in there.items()
        )

    await world.until(newest)
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    assert await compare(bridge.store, bridge.kube, sleep=sleep) == []
    assert slept == []
    assert "the state agrees with the API server: 4 pods, 5 nodes" in caplog.text
    # what no watch has told: a pod that the state has lost, one on another node, one that is not there, a node
    pods = sorted(bridge.store.pods.values(), key=lambda pod: pod.name)
    lost = bridge.store.pods.pop(pods[0].uid)
    moved_from, pods[1].node = pods[1].node, "elsewhere"
    ghost = bridge.store.pods["ghost"] = pods[2]
    node = bridge.store.nodes.pop("node-0") if "node-0" in bridge.store.nodes else bridge.store.nodes.popitem()[1]
    assert await compare(bridge.store, bridge.kube, sleep=sleep) == [
        f"pods that the state lacks: default/{lost.name} ({lost.uid})",
        f"pods that are gone: default/{ghost.name} (ghost)",
        f"pods on another node: default/{pods[1].name} ({pods[1].uid}) is on {moved_from}, not on elsewhere",
        f"nodes that the state lacks: {node.name}",
    ]
    assert slept == [5.0]
    bridge.store.pods[lost.uid] = lost
    del bridge.store.pods["ghost"]
    pods[1].node, bridge.store.nodes[node.name] = moved_from, node


async def test_what_is_on_its_way_is_no_difference(world):
    bridge = await world.bridge()
    await world.until(lambda: len(bridge.store.nodes) == 5)
    lost = bridge.store.nodes.popitem()

    async def arrives(_: float) -> None:
        bridge.store.nodes[lost[0]] = lost[1]

    assert await compare(bridge.store, bridge.kube, sleep=arrives) == []


async def test_an_api_server_that_does_not_answer_is_logged(world, caplog):
    class Unreachable:
        async def page(self, path: str, parameters: object) -> bytes:
            raise UnreachableError("down")

    bridge = await world.bridge()
    await compare_and_log(bridge.store, Unreachable())
    assert "the state cannot be compared with the API server: down" in caplog.text


async def test_the_stacks_name_each_task_and_thread():
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(waits_for_ever(), name="a task of the test")
    await asyncio.sleep(0)
    text = stacks()
    task.cancel()
    assert "thread MainThread\n" in text
    assert "task a task of the test\n" in text
    assert "in waits_for_ever" in text
