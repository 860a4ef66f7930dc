"""Pods that preempt the users of their claims with access mode ReadWriteOncePod: the bridge with a real flow service.

Nodes are as large as ten pods, so that claims alone are in the way of pods.
"""

import asyncio
from random import Random
from typing import Any

import pytest

from benchmarks.cluster import Rule
from benchmarks.cluster.controllers.volumes import PROVISIONS, SELECTED_NODE
from benchmarks.cluster.store.kinds import CLAIMS, NODES, PODS
from poseidon_py.report.messages import with_nomination
from tests.poseidon_py.app.test_constraints import HOST, Constrained, with_claim
from tests.poseidon_py.world import template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOW, MID, HIGH, HIGHEST, NEVER = PRIORITIES = ("low", "mid", "high", "highest", "never")
"""Priority classes, by increasing value."""
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
WAITS = f"0/3 nodes are available: 3 {IN_USE}."


class Claims(Constrained):
    def prepare(self, count=1):
        """ReadWriteOncePod claims `c0`, `c1`, ..., and priority classes."""
        for value, name in enumerate(PRIORITIES):
            policy = {"preemptionPolicy": "Never"} if name == NEVER else {}
            self.make("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **policy)
        self.storage_class("now", mode="Immediate")
        for at in range(count):
            self.claim(f"c{at}", "now", modes=("ReadWriteOncePod",))

    @property
    def node_names(self):
        return sorted(node["metadata"]["name"] for node in self.cluster.objects(NODES))

    def run(self, count, prefix, *, labels=None, annotations=None, **spec):
        body = template(**spec)
        body["metadata"] = {"labels": labels or {}, "annotations": annotations or {}}
        self.cluster.add_pods(count, body, prefix=f"{prefix}-")

    async def uses(self, prefix, *claims, priority=LOW, on=None, **spec):
        """A bound user of claims; returns its node."""
        wish = {"nodeSelector": {HOST: on}} if on is not None else {}
        self.run(1, prefix, priorityClassName=priority, **with_claim(*claims), **wish, **spec)
        await self.until(lambda: self.placed(prefix, 1))
        return self.nodes_of(prefix)[f"{prefix}-0000"]

    def wants(self, prefix, *claims, priority=HIGH, **spec):
        self.run(1, prefix, priorityClassName=priority, **with_claim(*claims), **spec)

    @property
    def victims(self):
        return sorted(event["involvedObject"]["name"] for event in self.events("Preempted"))

    @property
    def deleted(self):
        return sorted(entry.name for entry in self.cluster.audit.of("delete"))


@pytest.fixture
async def world(tmp_path):
    async with world_of(Claims, tmp_path, nodes=3, zones=3, stop_seconds=0.3) as world:
        yield world
    world.check()


async def test_the_user_of_a_claim_leaves_for_a_pod_of_higher_priority(world):
    await world.bridge()
    world.prepare()
    node = await world.uses("low", "c0")
    states = []
    world.cluster.store.subscribe(PODS, lambda change: states.append(change.record.parse()))
    world.wants("high", "c0")
    await world.until(lambda: world.placed("high", 1))
    await world.until(lambda: world.victims == ["low-0000"])
    mine = [state for state in states if state["metadata"]["name"] == "high-0000"]
    assert {state["status"].get("nominatedNodeName") for state in mine} - {None} == {node}
    # the message is the same before and after the flow service knows the pod, but for its nomination
    conditions = [c for state in mine for c in state["status"].get("conditions", ())]
    messages = {c["message"] for c in conditions if c.get("reason") == "Unschedulable"}
    assert WAITS in messages
    assert messages <= {WAITS, with_nomination(WAITS, node)}
    # a third pod of the lower priority waits for the new user
    world.wants("late", "c0", priority=LOW)
    await world.hears("late-0000", WAITS)
    assert world.deleted == ["low-0000"]


async def test_both_users_of_two_claims_leave_if_they_are_on_one_node(world):
    await world.bridge()
    world.prepare(2)
    node = world.node_names[1]
    for at in range(2):
        await world.uses(f"low{at}", f"c{at}", on=node)
    await world.uses("other", on=node)
    world.wants("high", "c0", "c1")
    await world.until(lambda: world.placed("high", 1))
    await world.until(lambda: world.victims == ["low0-0000", "low1-0000"])
    assert world.deleted == ["low0-0000", "low1-0000"]


async def test_no_pod_leaves_if_users_of_two_claims_are_on_two_nodes(world):
    await world.bridge()
    world.prepare(2)
    for at in range(2):
        await world.uses(f"low{at}", f"c{at}", on=world.node_names[at])
    world.wants("high", "c0", "c1")
    await world.hears("high-0000", WAITS)
    assert world.deleted == []
    world.remove("low0-0000")
    await world.until(lambda: world.placed("high", 1))
    await world.until(lambda: world.victims == ["low1-0000"])


@pytest.mark.parametrize("why", ["equal priority", "never preempts", "in a gang", "off", "a user in a gang"])
async def test_a_pod_that_may_not_preempt_waits(world, why):
    bridge = await world.bridge(**({"own_service": True, "preemption": "off"} if why == "off" else {}))
    gang = {f"pod-group.scheduling.x-k8s.io/{key}": value for key, value in (("name", "g"), ("min-available", "1"))}
    world.prepare()
    await world.uses("low", "c0", **({"labels": gang} if why == "a user in a gang" else {}))
    fields: dict[str, dict[str, Any]] = {
        "equal priority": {"priority": LOW},
        "never preempts": {"priority": NEVER},
        "in a gang": {"labels": gang},
    }
    world.wants("high", "c0", **fields.get(why, {}))
    await world.hears("high-0000", WAITS)
    known = bridge.store.pod_named("default", "high-0000")
    assert known.volumes.blocked
    assert known.sent is None
    assert world.deleted == []
    world.remove("low-0000")
    await world.until(lambda: world.placed("high", 1))
    assert world.victims == []


async def test_a_pod_that_cannot_run_on_the_user_s_node_waits_for_its_end(world):
    await world.bridge()
    world.prepare()
    first, second, _ = world.node_names
    await world.uses("low", "c0", on=first)
    world.wants("high", "c0", nodeSelector={HOST: second})
    selector = "node(s) didn't match Pod's node affinity/selector"
    await world.hears("high-0000", f"0/3 nodes are available: 1 {IN_USE}, 2 {selector}.")
    world.remove("low-0000")
    await world.until(lambda: world.placed("high", 1))
    assert world.victims == []


async def test_a_pod_is_placed_anywhere_once_the_user_has_left(world):
    """Its place is taken before the user is gone."""
    await world.bridge()
    world.prepare()
    first, *_ = world.node_names
    await world.uses("low", "c0", on=first)
    await world.uses("large", on=first, priority=HIGH, cpu="3")
    world.wants("high", "c0", cpu="2")
    await world.hears("high-0000", WAITS)
    assert world.victims == []
    world.remove("low-0000")
    await world.until(lambda: world.placed("high", 1))
    assert world.nodes_of("high")["high-0000"] != first


async def test_the_most_important_of_the_pods_that_wait_gets_the_claim(world):
    await world.bridge()
    world.prepare()
    await world.uses("low", "c0", priority=LOW)
    for name, priority in (("a", HIGH), ("b", HIGHEST), ("c", MID)):
        world.wants(name, "c0", priority=priority)
    await world.until(lambda: world.placed("b", 1))
    assert "b-0000" not in world.deleted
    await world.hears("c-0000", WAITS)
    await world.hears("a-0000", WAITS)


async def test_a_pod_that_replaces_the_victim_does_not_get_the_claim(world):
    await world.bridge()
    world.prepare()
    await world.uses("low", "c0")
    world.wants("high", "c0")
    await world.until(lambda: world.deleted == ["low-0000"])
    world.wants("again", "c0", priority=LOW)
    await world.until(lambda: world.placed("high", 1))
    await world.hears("again-0000", WAITS)
    world.remove("high-0000")
    await world.until(lambda: world.placed("again", 1))


async def test_a_victim_that_cannot_be_deleted_keeps_the_claim(world):
    await world.bridge(bind_patience=1.0)
    world.prepare()
    await world.uses("low", "c0")
    world.cluster.faults.set(Rule(verbs=("delete",), resources=("pods",), rate_500=1.0))
    world.wants("high", "c0")
    await world.until(lambda: any("preempting" in each["message"] for each in world.events("FailedScheduling")))
    assert world.placed("low", 1)
    assert world.placed("high", 0)
    world.cluster.faults.set()
    world.remove("low-0000")
    await world.until(lambda: world.placed("high", 1))


async def test_a_new_bridge_continues_the_preemption(world):
    """Its flow service knows neither the users of claims nor the nomination."""
    bridge = await world.bridge()
    world.prepare()
    node = await world.uses("low", "c0", annotations={"cluster.poseidon.io/stop-seconds": "4"})
    world.wants("high", "c0")
    await world.until(lambda: world.pods["high-0000"]["status"].get("nominatedNodeName") == node)
    await world.stop(bridge)
    await world.bridge()
    await world.until(lambda: world.placed("high", 1))
    assert world.deleted == ["low-0000"]


async def waiting_for_volumes(world, count, *, mates=0, **spec):
    """Pods `low-0`, ... of low priority that are placed, and whose volumes are never provisioned. mates: pods `mate`
    without volumes."""
    world.prepare(0)
    world.run(mates, "mate", priorityClassName=LOW, **spec)
    world.storage_class("stuck", annotations={PROVISIONS: "never"})
    for at in range(count):
        world.claim(f"v{at}", "stuck")
        world.run(1, f"low-{at}", priorityClassName=LOW, **with_claim(f"v{at}"), **spec)
    await world.until(lambda: sum(SELECTED_NODE in str(each) for each in world.cluster.objects(CLAIMS)) == count)


async def test_a_pod_that_waits_for_its_volume_gives_its_place_back_at_once(world):
    """kube-scheduler preempts it in memory (framework/preemption/executor.go, PreemptPod): no pod is deleted."""
    await world.bridge(volume_timeout=600.0)
    await waiting_for_volumes(world, 3, cpu="3")
    world.run(1, "high", priorityClassName=HIGH, cpu="3")
    await world.until(lambda: world.placed("high", 1))
    await world.until(lambda: len(world.victims) == 1)
    assert world.deleted == []
    assert world.placed("low", 0)


async def test_a_gang_that_waits_for_volumes_gives_its_places_back_as_a_whole(world):
    """Two members of three nodes wait, one for the other's volume; the high pods need one of their nodes."""
    await world.bridge(volume_timeout=600.0)
    gang = {f"pod-group.scheduling.x-k8s.io/{key}": value for key, value in (("name", "g"), ("min-available", "2"))}
    await waiting_for_volumes(world, 1, cpu="3", labels=gang, mates=1)
    world.run(2, "high", priorityClassName=HIGH, cpu="3")
    await world.until(lambda: world.placed("high", 2))
    await world.until(lambda: world.victims == ["low-0-0000", "mate-0000"])
    assert world.deleted == []


@pytest.mark.parametrize("seed", range(4))
async def test_no_claim_has_two_users_and_none_of_lower_priority_than_a_pod_that_could_preempt_it(world, seed):
    random = Random(seed)
    bridge = await world.bridge()
    world.prepare(4)
    users: dict[str, set[str]] = {}
    conflicts = []

    def watch(change):
        pod, found = change.record.parse(), set()
        if pod["spec"].get("nodeName") and change.type != "DELETED":
            found = {each["persistentVolumeClaim"]["claimName"] for each in pod["spec"].get("volumes", ())}
        for claim in ("c0", "c1", "c2", "c3"):
            of_claim = users.setdefault(claim, set())
            (of_claim.add if claim in found else of_claim.discard)(pod["metadata"]["name"])
            if len(of_claim) > 1:
                conflicts.append((claim, *of_claim))

    world.cluster.store.subscribe(PODS, watch)
    for at in range(4):
        await world.uses(f"low{at}", f"c{at}")
    for at in range(16):
        claims = random.sample(["c0", "c1", "c2", "c3"], random.choice([1, 1, 2]))
        world.wants(f"p{at}", *claims, priority=random.choice(PRIORITIES))
        await asyncio.sleep(random.choice([0.0, 0.05, 0.4]))
    await world.until(lambda: len(bridge.store.pods) == len(world.pods) and not inversions(bridge.store.pods.values()))
    assert world.deleted
    assert conflicts == []


def inversions(pods):
    """Pending pods that could preempt all users of their claims, and wait for no other pod that is about to."""
    found = []
    for pending in [each for each in pods if not each.node]:
        named = {use.name for use in pending.volumes.claims}
        rivals = [each for each in pods if each is not pending and named & {use.name for use in each.volumes.claims}]
        users = [each for each in rivals if each.node]
        if pending.described.never_preempts and users:
            continue
        lower = all(each.described.priority < pending.described.priority for each in users)
        behind = any(each.sent is not None and not each.node for each in rivals)
        if lower and len({each.node for each in users}) <= 1 and not behind:
            found.append(pending.name)
    return found
