"""From the kubelets' load to placements: the bridge, a real flow service, the synthetic cluster over HTTP."""

import asyncio
import json
import urllib.request
from collections import Counter

import pytest

from benchmarks.cluster.store.kinds import NODE_METRICS, POD_METRICS, PODS
from tests.poseidon_py.world import World, template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=2, start_seconds=0.0, stop_seconds=0.0) as world:
        yield world


def loaded(requested, **loads):
    """A pod with this request, of which it uses this share."""
    made = template(cpu=requested)
    made["metadata"] = {"annotations": {f"poseidon.io/load-{name}": value for name, value in loads.items()}}
    return made


async def usage(bridge):
    return (await bridge.status())["usage"]


async def measured(world, bridge, pods):
    """Waits until this many pods are measured, and all nodes."""
    for _ in range(200):
        found = await usage(bridge)
        if found["pods"]["measured"] >= pods and found["nodes"]["measured"] == 2:
            return found
        before = bridge.usage.polls
        await world.until(lambda before=before: bridge.usage.polls > before)
    raise AssertionError(found)


def per_node(world, prefix):
    nodes = [p["spec"].get("nodeName") for name, p in world.pods.items() if name.startswith(prefix)]
    return Counter(node for node in nodes if node)


@pytest.mark.parametrize(
    ("basis", "expected"),
    [
        pytest.param("used", {"node-00000": 1}, id="by-use-the-idle-node-is-empty"),
        pytest.param("requests", {"node-00001": 1}, id="by-requests-it-is-full"),
    ],
)
async def test_costs_follow_measured_usage(world, basis, expected):
    """node-00000 has a pod that requests much and uses nothing, node-00001 one that does the opposite."""
    idle, busy = loaded("3", cpu="0.01", memory="0.01"), loaded("500m", cpu="5", memory="0.5")
    for name, made, node in (("idle", idle, "node-00000"), ("busy", busy, "node-00001")):
        made["spec"]["nodeName"] = node
        world.cluster.create(
            {"apiVersion": "v1", "kind": "Pod", **made, "metadata": {**made["metadata"], "name": name}}
        )
    bridge = await world.bridge(policy="cpu-memory", usage=basis, usage_interval=1.0)
    found = await measured(world, bridge, 2)
    assert found["basis"] == basis
    world.cluster.add_pods(1, template(cpu="100m"), prefix="next-")
    await world.until(lambda: per_node(world, "next-"))
    assert per_node(world, "next-") == expected
    last = (await usage(bridge))["last_round"]
    assert last == {"measured": 2 if basis == "used" else 0, "missing": 0, "stale": 0}
    world.check()


async def test_prometheus_adds_traffic(world):
    world.cluster.add_pods(3, loaded("100m", rx="5M", tx="1M"))
    bridge = await world.bridge(usage="larger", usage_interval=1.0, prometheus_url=f"{world.cluster.url}/_prometheus")
    await world.until(lambda: len(world.bound()) == 3)
    found = await measured(world, bridge, 3)
    assert (found["samples"]["refused"], found["problems"]) == (0, {})
    assert bridge.metrics.usage_polls.labels("prometheus", "answered")._value.get() > 0


async def test_a_cluster_without_metrics_is_scheduled(world, caplog):
    for kind in (POD_METRICS, NODE_METRICS):
        world.cluster.kinds.remove(kind)
    bridge = await world.bridge(usage="larger", usage_interval=1.0, log_level="warning")
    world.cluster.add_pods(10, template())
    await world.until(lambda: len(world.bound()) == 10)
    await world.until(lambda: bridge.usage.polls >= 2)
    found = await usage(bridge)
    assert "install metrics-server" in found["problems"]["metrics.k8s.io"]
    assert found["samples"]["taken"] == 0
    assert caplog.text.count("install metrics-server") == 1
    world.check()


async def test_usage_is_not_polled_when_nothing_uses_it(world):
    bridge = await world.bridge()
    world.cluster.add_pods(5, template())
    await world.until(lambda: len(world.bound()) == 5)
    found = await usage(bridge)
    assert (found["basis"], found["polling"], found["polls"]) == ("requests", False, 0)
    assert "list pods" in world.cluster.http.requests
    assert bridge.usage is not None
    assert world.cluster.http.requests.get("list nodes", 0) == 1, "the watch's list, and no metrics"


async def test_status_and_metrics_report_measured_usage(world):
    bridge = await world.bridge(usage="larger", usage_interval=1.0)
    world.cluster.add_pods(4, template())
    await world.until(lambda: len(world.bound()) == 4)
    await measured(world, bridge, 4)
    world.cluster.add_pods(1, template(), prefix="last-")
    await world.until(lambda: len(world.bound()) == 5)

    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{bridge.health.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    body = json.loads(await asyncio.to_thread(ask, "/status"))
    assert body["usage"]["samples"]["taken"] >= 6
    assert body["usage"]["last_poll_age_seconds"] is not None
    metrics = await asyncio.to_thread(ask, "/metrics")
    assert 'poseidon_usage_priced_pods{by="measured"} 4.0' in metrics
    assert 'poseidon_usage_samples_total{result="taken"}' in metrics
    assert len(world.cluster.objects(PODS)) == 5
