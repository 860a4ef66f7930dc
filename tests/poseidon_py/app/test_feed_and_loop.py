"""From the store to binds and back: when updates are sent, and when rounds run."""

import asyncio

import pytest

from tests.poseidon_py.builders import pod
from tests.poseidon_py.rig import Rig


async def test_a_pod_is_placed_bound_and_confirmed():
    async with Rig() as rig:
        rig.pod("a")
        await rig.settle()
        assert rig.bound == ["a"]
        assert rig.state("a") == "bound"
        assert rig.agrees()


async def test_no_round_starts_before_all_objects_are_listed_and_sent():
    rig = Rig()
    rig.listed.set = lambda: None  # type: ignore[method-assign]
    async with rig:
        rig.pod("a")
        await rig.settle()
        assert rig.engine.calls == {}
        asyncio.Event.set(rig.listed)
        await rig.settle()
        assert rig.engine.calls["resync"] == 1
        assert rig.bound == ["a"]


@pytest.mark.parametrize(("quiet", "rounds"), [(True, 0), (False, 1)])
async def test_a_change_without_an_effect_starts_no_round(quiet, rounds):
    async with Rig() as rig:
        rig.pod("a")
        await rig.settle()
        before = rig.engine.calls["round"]
        rig.engine.quiet = quiet
        rig.node("m")
        await rig.settle()
        assert rig.agrees()
        assert rig.engine.calls["round"] == before + rounds


async def test_changes_without_effect_on_the_engine_are_not_sent():
    async with Rig() as rig:
        rig.pod("a", node="n", phase="Running")
        rig.node("n")
        await rig.settle()
        calls = rig.engine.calls["apply"]
        for _ in range(3):
            rig.store.observe_pod(pod("a", node="n", phase="Running", status={"conditions": [{"type": "Ready"}]}))
            rig.node("n")
            await rig.settle()
        assert rig.engine.calls["apply"] == calls


# -- batches ----------------------------------------------------------------------------------------------------------


async def test_a_drained_queue_is_one_call():
    async with Rig() as rig:
        before = rig.engine.calls["apply"]
        for number in range(50):
            rig.pod(f"p{number}", node="n")
        await rig.settle()
        assert rig.engine.calls["apply"] == before + 1
        assert len(rig.engine.classes) == 1


async def test_batches_have_a_maximum_size():
    async with Rig(batch_size=10) as rig:
        before = rig.engine.calls["apply"]
        for number in range(50):
            rig.pod(f"p{number}", node="n")
        await rig.settle()
        assert rig.engine.calls["apply"] >= before + 5
        assert all(len(update.tasks.uid) <= 10 for update in rig.engine.updates)


# -- leadership -----------------------------------------------------------------------------------------------------


async def test_a_standby_keeps_the_engine_synchronised_and_neither_places_nor_binds():
    async with Rig(leads=False) as rig:
        rig.pod("a")
        await rig.settle()
        assert (rig.state("a"), rig.engine.calls["round"], rig.kube.asked) == ("waiting", 0, [])
        rig.loop.lead()
        await rig.settle()
        assert rig.bound == ["a"]


async def test_a_standby_with_pending_pods_runs_no_rounds():
    async with Rig(leads=False) as rig:
        turns = []

        async def wait():
            turns.append(1)
            await asyncio.sleep(0)

        rig.loop._gather_changes = wait
        rig.pod("a")
        await rig.settle()
        assert turns == []


async def test_placements_of_a_round_that_ends_after_the_lease_is_lost_are_given_back():
    async with Rig() as rig:

        def lose_lease(reply):
            rig.loop.stand_by()
            rig.binder.halt()

        rig.engine.after_round = lose_lease
        rig.pod("a")
        await rig.settle()
        assert rig.kube.asked == []
        assert rig.state("a") == "waiting"


async def test_no_round_runs_for_a_lease_acquired_after_stop():
    async with Rig(leads=False) as rig:
        rig.loop.stop()
        rig.loop.lead()
        rig.pod("a")
        await rig.settle()
        assert rig.engine.calls["round"] == 0


# -- what is sent at once ---------------------------------------------------------------------------------------------


async def test_updates_without_effect_on_the_engine_are_sent_with_the_next_that_has_one():
    """A confirmed bind, and kubelets' updates of running pods."""
    async with Rig(defer_seconds=1.0) as rig:
        timers = []
        rig.store.pod_queue._call_later = lambda seconds, call: timers.append(call)
        rig.pod("a")
        await rig.settle()
        calls = rig.engine.calls["apply"]
        assert (rig.bound, rig.state("a")) == (["a"], "assumed")
        rig.pod("a", node="n", version=7)
        await rig.settle()
        assert rig.engine.calls["apply"] == calls
        rig.pod("b")
        await rig.settle()
        assert rig.engine.calls["apply"] == calls + 1
        assert (rig.bound, rig.state("a")) == (["a", "b"], "bound")
        [fire] = timers
        fire()
        await rig.settle()
        assert rig.agrees()


@pytest.mark.parametrize(
    ("change", "urgent"),
    [
        ({"phase": "Running", "status": {"podIP": "10.0.0.1"}}, False),
        ({"annotations": {"cni/networks": "[]"}}, False),
        ({"labels": {"app": "b"}}, True),
        ({"cpu": "200m"}, True),
        ({"spec": {"resources": {"requests": {"cpu": "1"}}}}, True),
        ({"spec": {"initContainers": [{"name": "sidecar", "resources": {"requests": {"cpu": "1"}}}]}}, True),
        ({"deleting": True}, True),
        ({"node": "m"}, True),
    ],
)
async def test_only_updates_that_affect_the_description_of_a_pod_are_urgent(change, urgent):
    async with Rig(nodes=("n", "m"), defer_seconds=1.0) as rig:
        rig.store.pod_queue._call_later = lambda seconds, call: None
        rig.confirm = False
        rig.pod("a", labels={"app": "a"})
        await rig.settle()
        labels = {"app": "a", "topology.kubernetes.io/zone": "z"}  # the server adds the zone as it binds
        rig.pod("a", labels=labels, node="n")
        assert rig.store.pod_queue.urgent == 0
        rig.pod("a", **{"labels": labels, "node": "n"} | change)
        assert rig.store.pod_queue.urgent == urgent


@pytest.mark.parametrize("node", ["n", "m"])
async def test_a_pod_bound_by_another_scheduler_is_sent_at_once(node):
    async with Rig(nodes=("n", "m"), defer_seconds=1.0) as rig:
        rig.store.pod_queue._call_later = lambda seconds, call: None
        rig.pod("other", scheduler="default-scheduler")
        await rig.settle()
        assert rig.task("other") is None
        rig.pod("other", scheduler="default-scheduler", node=node)
        await rig.settle()
        assert rig.state("other") == "bound"
