"""A migration that the bridge carries out on an API server. The decisions are those of the test."""

from typing import Any

import pytest

from benchmarks.cluster import Rule
from benchmarks.cluster.store.kinds import NAMESPACES, NODES
from poseidon_py.preempt.decisions import Decisions, MigratingPod
from tests.poseidon_py.world import World, template, world_of

MOVABLE = "poseidon.io/movable"
LABELS = {"app": "a"}


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=2, stop_seconds=0.01) as world:
        yield world


def replica_set(world, replicas=1, **metadata):
    pods = template(cpu="1") | {"metadata": {"labels": LABELS} | metadata}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": pods}
    world.cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec})


def budget(world, unavailable):
    spec = {"maxUnavailable": unavailable, "selector": {"matchLabels": LABELS}}
    world.cluster.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    )


async def running(world, bridge):
    """The record of the one pod, once it runs and the engine knows that it does."""
    await world.until(lambda: any(pod["status"]["phase"] == "Running" for pod in world.pods.values()))
    (name,) = world.pods
    await world.until(lambda: (known := bridge.store.pod_named("default", name)) and known.sent and known.sent.node)
    return bridge.store.pod_named("default", name)


def decide(world, bridge, known):
    """A round decides that the pod costs less on the other node, whose name is returned."""
    (target,) = {node["metadata"]["name"] for node in world.cluster.objects(NODES)} - {known.node}
    bridge.runtime.preemptor.take(Decisions(migrations=[MigratingPod(known, target)]))
    return target


def migrations(bridge):
    """Number of migrations by outcome."""
    samples = [sample for metric in bridge.metrics.migrations.collect() for sample in metric.samples]
    return {s.labels["outcome"]: s.value for s in samples if s.name.endswith("_total") and s.value}


@pytest.mark.parametrize("opts_in", ["pod", "namespace"])
@pytest.mark.parametrize("fault", ["", "rate_500", "rate_reset"])
async def test_a_pod_leaves_and_its_successor_is_scheduled(world, opts_in, fault):
    replica_set(world, annotations={MOVABLE: "true"} if opts_in == "pod" else {})
    bridge = await world.bridge()
    known = await running(world, bridge)
    if opts_in == "namespace":
        assert not known.sent.movable
        change = {"metadata": {"labels": {MOVABLE: "true"}}}
        world.cluster.api.patch(NAMESPACES, "", "default", change, "application/merge-patch+json")
    await world.until(lambda: known.sent.movable)
    if fault:
        each: dict[str, Any] = {"resources": ("pods/eviction",), "retry_after_s": 0, "first": 3, fault: 1.0}
        world.cluster.faults.set(Rule(verbs=("create",), **each))
    node = known.node
    target = decide(world, bridge, known)
    assert known.migrating
    await world.until(lambda: world.bound() - {known.name})
    await world.until(lambda: known.name not in world.pods)
    await world.until(lambda: world.events("Migrated"))
    (event,) = world.events("Migrated")
    assert (event["type"], event["involvedObject"]["name"]) == ("Normal", known.name)
    assert event["message"] == f"poseidon: evicted from node {node}, because node {target} costs less"
    assert [entry.name for entry in world.cluster.audit.of("evict")] == [known.name]
    assert migrations(bridge) == {"evicted": 1}
    world.check()


async def test_a_budget_that_allows_no_eviction_holds(world):
    replica_set(world, annotations={MOVABLE: "true"})
    budget(world, 0)
    bridge = await world.bridge()
    known = await running(world, bridge)
    await world.until(lambda: known.sent.movable)
    decide(world, bridge, known)
    await world.until(lambda: migrations(bridge) == {"refused": 1})
    await world.until(lambda: known.sent.movable is False)
    assert (known.leaving, known.sent.leaving) == (False, False)
    assert world.cluster.audit.of("evict") == []
    assert world.events("Migrated") == []
    assert known.name in world.bound()


async def test_with_migration_budgets_are_watched_even_without_preemption(world):
    bridge = await world.bridge(preemption="off", migrate="always")
    assert "poddisruptionbudgets" in [watch.name for watch in bridge.runtime.watches]
