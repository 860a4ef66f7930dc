"""Gangs through the whole bridge with a real flow service, against the synthetic cluster, while things go wrong."""

import asyncio

import pytest

from tests.bridge.gangs.world import job, template

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def test_two_gangs_that_each_need_most_of_the_cluster_run_one_after_the_other(world):
    # 5 nodes of 4 cores
    await world.bridge()
    world.create(job("a", 12, gang="all", seconds=0.5), job("b", 12, gang="true", seconds=0.5, on_template=True))
    await world.until(lambda: len(world.cluster.audit.of("bind")) == 24)
    await world.until(lambda: not world.pods or all(p["status"]["phase"] == "Succeeded" for p in world.pods.values()))
    assert world.never_half({"a": 12, "b": 12})
    world.check()


async def test_a_gang_that_does_not_fit_gets_nothing_and_others_use_the_room(world):
    await world.bridge()
    world.create(job("large", 21, gang="all"), job("small", 3, gang="all"))
    world.cluster.add_pods(10, template(), prefix="single-")
    await world.until(lambda: len(world.bound()) == 13)
    await world.until(lambda: len(world.events("FailedScheduling")) >= 21)
    assert world.bound("large") == set()
    message = world.events("FailedScheduling")[-1]["message"]
    assert message.startswith("0/5 nodes are available: gang default/large needs 21 members placed together, ")
    assert world.never_half({"large": 21, "small": 3})
    world.cluster.add_nodes(4)
    await world.until(lambda: len(world.bound("large")) == 21)
    assert world.never_half({"large": 21, "small": 3})
    world.check()


async def test_members_that_are_missing_are_waited_for_and_said_so(world):
    await world.bridge()
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "5"}
    world.cluster.add_pods(3, template(labels=labels), prefix="g-")
    await world.until(lambda: len(world.events("FailedScheduling")) == 3)
    event = world.events("FailedScheduling")[0]
    assert event["message"] == "pod group default/g: 2 more members are needed before it can be scheduled (3/5)"

    def condition(name):
        found = world.pods[name]["status"].get("conditions", [])
        return next((c for c in found if c["type"] == "PodScheduled"), {})

    await world.until(lambda: condition("g-0").get("reason") == "WaitingForGang")
    world.cluster.add_pods(2, template(labels=labels), prefix="g-x")
    await world.until(lambda: len(world.bound()) == 5)
    assert world.never_half({"g": 5}, gang_of=lambda name: "g")
