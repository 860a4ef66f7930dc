"""Gangs through the whole bridge with a real flow service, against the synthetic cluster, with faults."""

import asyncio
import contextlib
import os
import random
import signal

import pytest

from benchmarks.cluster import Rule, WatchFaults
from benchmarks.cluster.store.kinds import NODES
from tests.effort import seeds
from tests.poseidon_py.gang_world import World, job, template
from tests.poseidon_py.state.gangs.discovery import recheck
from tests.poseidon_py.world import world_of


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world


pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def test_two_gangs_that_each_need_most_of_the_cluster_run_one_after_the_other(world):
    # 5 nodes of 4 cores
    await world.bridge()
    world.create(job("a", 12, gang="all", seconds=0.5), job("b", 12, gang="true", seconds=0.5, on_template=True))
    await world.until(lambda: len(world.cluster.audit.of("bind")) == 24)
    await world.until(lambda: not world.pods or all(p["status"]["phase"] == "Succeeded" for p in world.pods.values()))
    assert world.never_half({"a": 12, "b": 12})
    world.check()


async def test_a_gang_that_does_not_fit_holds_no_capacity_and_others_use_it(world):
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


async def test_a_gang_of_100_on_99_gpus_leaves_them_to_others(world):
    gpus = {"nvidia.com/gpu": "33"}
    for number in range(3):
        world.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"gpu{number}"},
                "status": {"allocatable": {"cpu": "100", "memory": "1Ti", "pods": "110", **gpus}},
            }
        )
    each = {"requests": {"cpu": "1m"}, "limits": {"nvidia.com/gpu": "1"}}
    await world.bridge()
    large, single = job("large", 100, gang="all"), template()
    for pod in (large["spec"]["template"], single):
        pod["spec"]["containers"][0]["resources"] = each
    world.create(large)
    await world.until(lambda: len(world.events("FailedScheduling")) == 100)
    world.cluster.add_pods(60, single, prefix="single-")
    await world.until(lambda: len(world.bound("single")) == 60)
    assert world.bound("large") == set()
    for name in world.bound("single"):
        world.delete(name)
    world.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "gpu3"},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9", "nvidia.com/gpu": "1"}},
        }
    )
    await world.until(lambda: len(world.bound("large")) == 100)
    assert world.never_half({"large": 100}, seconds=5.0)
    world.check()


async def test_members_beyond_the_maximum_wait_until_another_ends(world):
    bridge = await world.bridge()
    annotations = {"poseidon.io/gang": "2", "poseidon.io/gang-max": "3"}
    marked = template(annotations=annotations | {"poseidon.io/gang-name": "g"})
    world.cluster.add_pods(5, marked, prefix="g-")
    await world.until(lambda: len(world.bound("g")) == 3)
    await world.until(lambda: len(world.events("FailedScheduling")) == 2)
    message = "pod group default/g: 3 of its members are placed, and it has 3 at most"
    assert {event["message"] for event in world.events("FailedScheduling")} == {message}
    waiting = sorted(set(world.pods) - world.bound())

    def reason():
        conditions = world.pods[waiting[0]]["status"].get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "PodScheduled"), "")

    await world.until(lambda: reason() == "WaitingForGang")
    body = await bridge.explain("default", waiting[0])
    assert (body["gang"]["maximum"], body["message"]) == (3, message)
    world.delete(sorted(world.bound())[0])
    await world.until(lambda: len(world.bound("g")) == 3)
    assert len(world.pods) == 4
    world.check()


async def test_a_group_that_is_disrupted_as_a_whole_is_evicted_with_a_member_that_cannot_be_replaced(world):
    await install(world, ("scheduling.k8s.io", "v1alpha2", "PodGroup"))
    spec = {"schedulingPolicy": {"gang": {"minCount": 16}}, "disruptionMode": "PodGroup"}
    metadata = {"name": "pg"}
    world.create({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec})
    bridge = await world.bridge(gang_timeout=1.0)
    world.create(job("g", 16, schedulingGroup={"podGroupName": "pg"}))
    await world.until(lambda: len(world.bound("g")) == 16)
    lost = sorted(world.bound("g"))[0]
    group = bridge.store.gangs.group_of(bridge.store.pod_named("default", lost))
    await world.until(lambda: group.started)  # until the bridge has seen it whole, it is one that was never bound whole
    body = await bridge.explain("default", lost)
    assert body["gang"]["disruption"] == "whole"
    for name in (each["metadata"]["name"] for each in world.cluster.objects(NODES)):
        world.cordon(name)
    world.evict(lost)
    await world.until(lambda: len(world.events("GangUnwound")) >= 1)
    assert "it can only be disrupted as a whole; its workload is suspended" in world.events("GangUnwound")[0]["message"]
    world.cluster.add_nodes(4)
    await world.until(lambda: len(world.bound("g")) == 16)
    assert lost not in world.pods


async def test_a_gang_waits_for_missing_members_and_reports_them(world):
    await world.bridge()
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "5"}
    world.cluster.add_pods(3, template(labels=labels), prefix="g-")
    await world.until(lambda: len(world.events("FailedScheduling")) == 3)
    event = world.events("FailedScheduling")[0]
    assert event["message"] == "pod group default/g: 2 more members are needed before it can be scheduled (3/5)"

    def condition():
        found = world.pods[event["involvedObject"]["name"]]["status"].get("conditions", [])
        return next((c for c in found if c["type"] == "PodScheduled"), {})

    await world.until(lambda: condition().get("reason") == "WaitingForGang")
    world.cluster.add_pods(2, template(labels=labels), prefix="g-x")
    await world.until(lambda: len(world.bound()) == 5)
    assert world.never_half({"g": 5}, gang_of=lambda name: "g")


async def test_a_replaced_member_joins_those_that_have_succeeded_and_those_of_another_scheduler(world):
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "4"}
    foreign = template(labels=labels, nodeName=world.cluster.objects(NODES)[0]["metadata"]["name"])
    foreign["spec"]["schedulerName"] = "other"
    world.cluster.add_pods(1, foreign, prefix="g-other-")
    first = await world.bridge()
    world.cluster.add_pods(3, template(labels=labels), prefix="g-")
    await world.until(lambda: len(world.running("g")) == 4)
    done, lost, _ = sorted(world.bound("g") - world.bound("g-other"))
    world.finish(done)
    await world.until(lambda: world.pods[done]["status"]["phase"] == "Succeeded")
    await world.stop(first)
    world.delete(lost)
    await world.bridge()
    world.cluster.add_pods(1, template(labels=labels), prefix="g-again-")
    await world.until(lambda: len(world.bound("g-again")) == 1)
    assert world.events("GangBelowMinimum") == []
    assert world.events("GangUnwound") == []


async def test_failing_binds_never_leave_a_gang_partly_bound(world):
    # 6 gangs of 6 on 20 cores: two or three at a time, each for a moment
    gangs = {f"g{number}": 6 for number in range(6)}
    bind = Rule(
        ("create",), ("pods/binding",), rate_429=0.1, rate_500=0.15, rate_reset=0.1, rate_lost=0.15, retry_after_s=0
    )
    world.cluster.faults.set(bind, watch=WatchFaults(drop_every_s=0.5))
    await world.bridge()
    for name, size in gangs.items():
        world.create(job(name, size, gang="all", seconds=0.3))
        await asyncio.sleep(0.05)
    await world.until(lambda: all(each["status"].get("succeeded") == 6 for each in world.jobs().values()), 40)
    assert world.never_half(gangs)
    world.check()


@seeds(2)
async def test_members_deleted_while_their_gang_is_bound_are_replaced_and_complete_it(world, seed):
    rng = random.Random(seed)
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), latency_ms=30))
    await world.bridge(bind_concurrency=2, gang_timeout=5.0)
    gangs = {f"g{number}": 5 for number in range(3)}
    for name, size in gangs.items():
        world.create(job(name, size, gang="all"))
    for _ in range(6):
        await asyncio.sleep(rng.uniform(0.02, 0.15))
        victim = rng.choice([*world.pods])
        world.delete(victim)
    await world.until(lambda: all(len(world.bound(name)) == 5 for name in gangs))
    assert world.never_half(gangs, seconds=10.0)
    world.check()


async def leave_half_bound(world, size):
    """Places gang g with a bridge that is stopped while it binds."""
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), latency_ms=60))
    bridge = await world.bridge(bind_concurrency=1, shutdown_timeout=0.0)
    world.create(job("g", size, gang="all"))
    await world.until(lambda: len(world.bound()) >= 3)
    await world.stop(bridge)


async def test_a_bridge_that_is_replaced_while_it_binds_leaves_a_gang_that_the_next_one_completes(world):
    await leave_half_bound(world, 12)
    assert 0 < len(world.bound()) < 12
    await world.bridge()
    await world.until(lambda: len(world.bound()) == 12)
    assert world.never_half({"g": 12})
    world.check()


async def test_a_killed_flow_service_does_not_affect_gangs(world):
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), latency_ms=40))
    bridge = await world.bridge(own_service=True, bind_concurrency=1)
    gangs = {"a": 9, "b": 9}
    world.create(job("a", 9, gang="all"), job("b", 9, gang="all"))
    await world.until(lambda: len(world.bound()) >= 3)
    os.kill(bridge.supervisor.pid, signal.SIGKILL)
    await world.until(lambda: len(world.bound()) == 18)
    assert world.never_half(gangs, seconds=10.0)
    world.check()


async def test_a_gang_that_a_restart_leaves_partly_bound_is_unwound_if_the_rest_no_longer_fits(world):
    await leave_half_bound(world, 16)
    world.cluster.faults.clear()
    for node in world.cluster.objects(NODES):
        name = node["metadata"]["name"]
        free = 4 - sum(pod["spec"].get("nodeName") == name for pod in world.pods.values())
        foreign = template(str(free), nodeName=name)
        foreign["spec"]["schedulerName"] = "other"
        world.cluster.add_pods(1, foreign, prefix=f"foreign-{name}-")
    await world.bridge(gang_timeout=1.0)
    await world.until(lambda: len(world.events("GangUnwound")) >= 1)
    await world.until(lambda: not world.bound("g"))
    [event, *_] = world.events("GangUnwound")
    assert "members could be bound in time; its workload is suspended, and starts again" in event["message"]
    world.cluster.add_nodes(4)
    await world.until(lambda: len(world.bound("g")) == 16)
    assert world.never_half({"g": 16})


async def test_members_that_their_nodes_reject_are_replaced_and_rejoin(world):
    """Pods of another scheduler take capacity while binds are in flight: kubelets reject some of ours permanently."""
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), latency_ms=300))
    bridge = await world.bridge()
    world.create(job("g", 15, gang="all"))
    await world.until(lambda: bridge.runtime.binder.in_flight == 15)
    for node in world.cluster.objects(NODES)[:2]:
        foreign = template("2", nodeName=node["metadata"]["name"])
        foreign["spec"]["schedulerName"] = "other"
        world.cluster.add_pods(1, foreign, prefix=f"foreign-{node['metadata']['name']}-")
    await world.until(lambda: sum(world.cluster.rejected.values()) == 2)
    await world.until(lambda: len(world.running("g")) == 15)
    assert len(world.cluster.audit.of("bind")) == 15 + 2 + 2
    assert world.never_half({"g": 15})


async def install(world, *resources, subresources=("status",)):
    for group, version, kind in resources:
        world.create(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"podgroups.{group}"},
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"plural": "podgroups", "singular": "podgroup", "kind": kind, "listKind": f"{kind}List"},
                    "versions": [
                        {
                            "name": version,
                            "served": True,
                            "storage": True,
                            "subresources": {name: {} for name in subresources},
                            "schema": {
                                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                            },
                        }
                    ],
                },
            }
        )


def group(world, api_version, name="pg"):
    one, version = api_version.split("/")
    return world.cluster.get(world.cluster.kinds.find(one, version, "podgroups"), name)


async def test_a_pod_group_of_scheduler_plugins_whose_definition_appears_late_and_its_status(world):
    await world.bridge()
    world.cluster.add_pods(4, template(labels={"scheduling.x-k8s.io/pod-group": "pg"}), prefix="pg-")
    await world.until(lambda: len(world.events("FailedScheduling")) == 4)
    message = 'pod group "default/pg" not found: there is no such object among podgroups.scheduling.x-k8s.io'
    assert {event["message"] for event in world.events("FailedScheduling")} == {message}
    await install(world, ("scheduling.x-k8s.io", "v1alpha1", "PodGroup"))
    world.create(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "pg"},
            "spec": {"minMember": 4, "scheduleTimeoutSeconds": 10},
        }
    )
    recheck(world.bridges[0].runtime.gangs._objects)
    await world.until(lambda: len(world.bound("pg")) == 4)

    def status():
        return group(world, "scheduling.x-k8s.io/v1alpha1").get("status") or {}

    await world.until(lambda: status().get("phase") == "Running")
    assert status()["running"] == 4
    assert world.never_half({"pg": 4})
    for name in sorted(world.bound("pg")):
        world.finish(name)
    await world.until(lambda: status().get("phase") == "Finished")
    assert (status()["running"], status()["succeeded"]) == (0, 4)


@pytest.mark.parametrize("subresources", [(), ("status",)])  # Volcano's own definition has none
async def test_a_pod_group_of_volcano_has_the_phases_that_its_controllers_wait_for(world, monkeypatch, subresources):
    monkeypatch.setattr("poseidon_py.report.volcano_groups._AGAIN", 0.1)
    version = "scheduling.volcano.sh/v1beta1"
    await install(world, (*version.split("/"), "PodGroup"), subresources=subresources)
    spec = {"minMember": 2, "minResources": {"cpu": "22"}}
    world.create({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "pg"}, "spec": spec})
    await world.bridge(scheduler_name=["volcano"])

    def status():
        return group(world, version).get("status") or {}

    await world.until(lambda: status().get("phase") == "Pending")  # 20 are free
    world.cluster.add_nodes(1)
    await world.until(lambda: status()["phase"] == "Inqueue")
    member = template(annotations={"scheduling.k8s.io/group-name": "pg"}, schedulerName="volcano")
    world.cluster.add_pods(2, member, prefix="pg-")
    await world.until(lambda: status()["phase"] == "Running" and status()["running"] == 2)
    assert [each["type"] for each in status()["conditions"]][-1] == "Scheduled"
    for name in sorted(world.bound("pg")):
        world.finish(name)
    await world.until(lambda: status()["phase"] == "Completed")
    assert (status()["running"], status()["succeeded"], status()["failed"]) == (0, 2, 0)


async def test_pods_in_kubernetes_pod_groups_of_an_unknown_version_wait(world):
    """Its minimum may mean something else there."""
    await install(world, ("scheduling.k8s.io", "v7", "PodGroup"))
    await world.bridge()
    world.cluster.add_pods(3, template(schedulingGroup={"podGroupName": "pg"}), prefix="pg-")
    world.cluster.add_pods(1, template(), prefix="single-")
    await world.until(lambda: len(world.events("FailedScheduling")) == 3 and world.bound("single-"))
    assert {event["message"] for event in world.events("FailedScheduling")} == {
        "podgroups.scheduling.k8s.io is served in v7, not in v1 or v1beta1 or v1alpha3 or v1alpha2, which are "
        "supported; serve one of these, or upgrade the scheduler"
    }
    assert not world.bound("pg-")


async def test_explaining_a_gang_that_waits(world):
    bridge = await world.bridge()
    labels = {"pod-group.scheduling.x-k8s.io/name": "few", "pod-group.scheduling.x-k8s.io/min-available": "3"}
    world.create(job("large", 25, gang="all"))
    world.cluster.add_pods(2, template(labels=labels), prefix="few-")
    await world.until(lambda: len(world.events("FailedScheduling")) == 27)
    large = next(name for name in world.pods if name.startswith("large"))
    body = await bridge.explain("default", large)
    assert body["gang"] == {
        "name": "default/large", "minimum": 25, "maximum": None, "present": 25, "placed": 0, "missing": 0, "fits": 20,
        "lacks": {}, "succeeded": 0, "reserves": False, "starts": None, "disruption": "single",
    }  # fmt: skip
    few = next(name for name in world.pods if name.startswith("few"))
    gang = (await bridge.explain("default", few))["gang"]
    assert (gang["present"], gang["missing"], gang["fits"]) == (2, 1, None)


@seeds(2)
async def test_gangs_with_faults_restarts_and_lost_nodes_combined(world, seed):
    rng = random.Random(seed)
    bind = Rule(
        ("create",), ("pods/binding",), latency_ms=10, rate_429=0.05, rate_500=0.05, rate_reset=0.05, rate_lost=0.1,
        retry_after_s=0,
    )  # fmt: skip
    world.cluster.faults.set(bind, watch=WatchFaults(drop_every_s=0.5))
    settings = {"own_service": True, "bind_concurrency": 5, "gang_timeout": 3.0, "shutdown_timeout": 0.2}
    bridge = await world.bridge(**settings)
    gangs = {f"g{number}": rng.randint(2, 9) for number in range(8)}
    for name, size in gangs.items():
        world.create(job(name, size, gang="all", seconds=rng.uniform(0.2, 0.6), on_template=rng.random() < 0.5))
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        match rng.randrange(4):
            case 0:
                with contextlib.suppress(ProcessLookupError):  # the one before may be dead already, the next not begun
                    os.kill(bridge.supervisor.pid, signal.SIGKILL)
            case 1:
                await world.stop(bridge)
                bridge = await world.bridge(**settings)
            case 2 if world.pods:
                world.delete(rng.choice([*world.pods]))
    done = lambda: all(world.jobs()[name]["status"].get("succeeded") == size for name, size in gangs.items())  # noqa: E731
    await world.until(done, 40)
    assert world.never_half(gangs)
    world.check()
