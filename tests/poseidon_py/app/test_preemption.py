"""A preemption that the bridge carries out on an API server, and budgets on their way to the engine. The decisions are
those of the test."""

from typing import Any

import pytest

from benchmarks.cluster import Rule
from benchmarks.cluster.store.kinds import BUDGETS, PODS
from poseidon_py.preempt.decisions import Decisions, NominatedPod, VictimPod
from tests.poseidon_py.world import World, template, world_of


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=1, stop_seconds=0.2) as world:
        yield world


async def decided(world, bridge):
    """A running victim and a pending pod that does not fit, with the decision of a round on them."""
    world.cluster.add_pods(1, template(cpu="3"), prefix="victim")
    await world.until(lambda: any(pod["status"]["phase"] == "Running" for pod in world.pods.values()))
    (victim,) = world.pods
    world.cluster.add_pods(1, template(cpu="2"), prefix="pending")
    (pending,) = set(world.pods) - {victim}
    await world.until(lambda: world.events("FailedScheduling"))
    first, second = (bridge.store.pod_named("default", name) for name in (victim, pending))
    bridge.runtime.preemptor.take(Decisions([NominatedPod(second, first.node)], [VictimPod(first, second)]))
    return victim, pending, first.node


def nominated(world, name):
    return world.pods[name]["status"].get("nominatedNodeName")


@pytest.mark.parametrize("faults", [(), ("rate_429",), ("rate_500",), ("rate_reset",), ("rate_lost",)])
async def test_a_victim_leaves_and_its_preemptor_takes_its_place(world, faults):
    bridge = await world.bridge()
    states: list[dict[str, Any]] = []
    world.cluster.store.subscribe(PODS, lambda change: states.append(change.record.parse()))
    if faults:
        each: dict[str, Any] = {"resources": ("pods", "pods/status"), "retry_after_s": 0, "first": 3, faults[0]: 1.0}
        world.cluster.faults.set(Rule(verbs=("delete", "patch"), **each))
    victim, pending, node = await decided(world, bridge)
    await world.until(lambda: world.bound("pending"))
    assert victim not in world.pods
    assert any(state["metadata"]["name"] == pending and nominated_in(state) == node for state in states)
    last = [state for state in states if state["metadata"]["name"] == victim][-1]
    assert ("DisruptionTarget", "PreemptionByScheduler") in {
        (each["type"], each.get("reason")) for each in last["status"]["conditions"]
    }
    await world.until(lambda: world.events("Preempted"))
    (event,) = world.events("Preempted")
    assert (event["type"], event["related"]["name"], event["involvedObject"]["name"]) == ("Normal", pending, victim)
    known = bridge.store.pod_named("default", pending)
    await world.until(lambda: known.nominated == "")
    deletions = [entry for entry in world.cluster.audit.of("delete") if entry.name == victim]
    assert [entry.detail for entry in deletions] == ["grace=30"]
    world.check()


def nominated_in(state):
    return state["status"].get("nominatedNodeName")


async def test_disruption_budgets_are_listed_before_the_first_round_and_followed(world):
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    world.cluster.create(body)
    bridge = await world.bridge()
    budgets = bridge.store.budgets
    await world.until(lambda: bridge.runtime.session.ready)
    assert [each.name for each in budgets.messages.values()] == ["default/b"]
    world.cluster.api.remove(BUDGETS, world.cluster.api.get(BUDGETS, "default", "b"))
    await world.until(lambda: not budgets.messages and not budgets.removed)


async def test_even_without_preemption_and_migration_budgets_are_watched_for_plans_of_moves(world):
    bridge = await world.bridge(own_service=True, preemption="off", migrate="never")
    assert "poddisruptionbudgets" in [watch.name for watch in bridge.runtime.watches]


async def test_the_next_leader_deletes_the_members_of_a_gang_that_its_predecessor_has_not_deleted(world):
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "4"}
    bridge = await world.bridge()
    world.cluster.add_pods(4, template(cpu="1") | {"metadata": {"labels": labels}}, prefix="member-")
    await world.until(lambda: len(world.bound("member")) == 4)
    world.cluster.add_pods(1, template(cpu="1"), prefix="pending")
    await world.until(lambda: world.events("FailedScheduling"))
    (preemptor,) = [known for known in bridge.store.pods.values() if known.name.startswith("pending")]
    members = [known for known in bridge.store.pods.values() if known is not preemptor]
    deletions: dict[str, Any] = {"verbs": ("delete",), "resources": ("pods",)}
    world.cluster.faults.set(
        Rule(**deletions, latency_ms=1, first=1), Rule(**deletions, rate_429=1.0, retry_after_s=20)
    )
    nominated = NominatedPod(preemptor, members[0].node)
    bridge.runtime.preemptor.take(Decisions([nominated], [VictimPod(known, preemptor) for known in members]))
    await world.until(lambda: len(world.bound("member")) == 3)
    await world.stop(bridge)
    world.cluster.faults.set()
    await world.bridge()
    await world.until(lambda: world.bound("pending") and not world.bound("member"))
    await world.until(lambda: len(world.events("Preempted")) == 4)
    by = [event["message"].split(" on node ")[0] for event in world.events("Preempted")]
    assert sorted(by) == ["Preempted by a pod of higher priority"] * 3 + [f"Preempted by pod {preemptor.uid}"]
    world.check()
