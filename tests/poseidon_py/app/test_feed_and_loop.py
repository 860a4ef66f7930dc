"""From the store to binds and back."""

import asyncio

import pytest

from poseidon_py.feed import resync
from poseidon_py.kube.client import ConflictError
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod
from tests.poseidon_py.fakes import unavailable
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


# -- which pods count, which are placed ---------------------------------------------------------------------------


async def test_only_our_pods_are_placed_and_all_bound_pods_count():
    async with Rig(cpu="1") as rig:
        rig.pod("foreign", scheduler="default-scheduler")
        rig.pod("theirs", scheduler="default-scheduler", node="n", cpu="600m")
        await rig.settle()
        assert rig.task("foreign") is None
        assert rig.state("theirs") == "bound"
        rig.pod("ours", cpu="600m")
        await rig.settle()
        assert rig.bound == []
        assert rig.unscheduled == [("ours", "0/1 nodes are available: 1 Insufficient cpu.")]
        rig.gone("theirs")
        await rig.settle()
        assert rig.bound == ["ours"]


async def test_a_terminating_pod_holds_its_node_until_it_is_gone():
    async with Rig(cpu="1") as rig:
        rig.pod("old", node="n", cpu="1")
        rig.pod("old", node="n", cpu="1", deleting=True)
        rig.pod("new", cpu="1")
        await rig.settle()
        assert rig.bound == []
        rig.gone("old")
        await rig.settle()
        assert rig.bound == ["new"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_terminal_pod_holds_nothing(phase):
    async with Rig(cpu="1") as rig:
        rig.pod("old", node="n", cpu="1", phase="Running")
        rig.pod("new", cpu="1")
        await rig.settle()
        rig.store.observe_pod(pod("old", node="n", cpu="1", phase=phase))
        await rig.settle()
        assert rig.bound == ["new"]


async def test_gated_and_terminating_pods_are_not_placed():
    async with Rig() as rig:
        rig.pod("gated", gates=True)
        rig.pod("dying", deleting=True)
        await rig.settle()
        assert rig.engine.tasks == {}
        rig.pod("gated")
        await rig.settle()
        assert rig.bound == ["gated"]
        assert rig.agrees()


async def test_a_pending_pod_that_is_being_deleted_is_removed_from_the_engine():
    async with Rig(cpu="1") as rig:
        rig.pod("big", cpu="9")
        await rig.settle()
        assert rig.state("big") == "waiting"
        rig.pod("big", cpu="9", deleting=True)
        await rig.settle()
        assert rig.task("big") is None


async def test_a_changed_pod_is_sent_again():
    async with Rig(cpu="1") as rig:
        rig.pod("a", cpu="9")
        await rig.settle()
        rig.pod("a", cpu="1")  # as gates allow, or a resize
        await rig.settle()
        assert rig.bound == ["a"]


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


async def test_the_job_of_a_pod_is_its_controller():
    async with Rig() as rig:
        for name, owner in (("a", "job"), ("b", "job"), ("c", "")):
            rig.pod(name, owner=owner)
        await rig.settle()
        rows = {n: j for u in rig.engine.updates for n, j in zip(u.tasks.name, u.tasks.job_id, strict=True)}
        assert rows["default/a"] == rows["default/b"] != 0
        assert rows["default/c"] == 0


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


# -- faults of the Go original that were never fixed ----------------------------------------------------------------


@pytest.mark.slow
async def test_300_pods_on_full_nodes_none_is_stuck_and_no_node_gets_too_many():
    """In the original, 125 of 300 pods stayed pending until a restart, and pods were bound to full nodes."""
    async with Rig(nodes=[f"n{i}" for i in range(3)], cpu="1000", memory="1Ti", pods="60") as rig:
        for number in range(300):
            rig.pod(f"p{number}")
        await rig.settle()
        assert len(rig.bound) == 180
        assert rig.agrees()
        nodes = [node for _, node in rig.kube.binds]
        assert {node: nodes.count(node) for node in set(nodes)} == {"n0": 60, "n1": 60, "n2": 60}
        rig.node("n3", cpu="1000", memory="1Ti", pods="200")  # capacity for all, without a restart
        await rig.settle()
        assert len(set(rig.bound)) == len(rig.bound) == 300


async def test_the_replacement_of_a_failed_pod_of_a_job_is_scheduled():
    """In the original, the pod with which a Job replaced a failed one was never scheduled."""
    async with Rig(cpu="1") as rig:
        rig.pod("job-1", owner="job", cpu="1")
        await rig.settle()
        rig.pod("job-2", owner="job", cpu="1")
        rig.store.observe_pod(pod("job-1", owner="job", node="n", cpu="1", phase="Failed"))
        await rig.settle()
        assert rig.bound == ["job-1", "job-2"]
        rig.store.remove_pod("uid-job-1")  # deleted at last: nothing more to send
        await rig.settle()
        assert rig.agrees()


async def test_a_batch_that_fits_is_placed_by_one_round():
    """In the original, a batch was split without a reason."""
    async with Rig(nodes=("n", "m"), cpu="5", pods="50") as rig:
        for number in range(100):
            rig.pod(f"p{number}", cpu="100m")
        await rig.settle()
        assert len(rig.bound) == 100
        assert rig.engine.rounds == 1


async def test_not_found_and_already_known_replies_do_not_stop_the_bridge():
    """In the original, the bridge exited on such replies."""
    async with Rig() as rig:
        rig.pod("a")
        rig.pod("a")
        await rig.settle()
        rig.engine.tasks.clear()  # it has lost them, and refuses each
        rig.gone("a")
        rig.gone("a")
        await rig.settle()
        rig.engine.tasks[rig.store._tasks.add("uid-b")] = {"state": "bound", "node": "?", "cls": 0, "name": "default/b"}
        rig.engine.classes[0] = flow_pb2.TaskClass()
        rig.store.pod_queue._call_later = lambda seconds, call: call()
        rig.pod("b")  # waiting, while the engine believes it bound: refused, removed, sent again
        await rig.settle()
        assert rig.bound == ["a", "b"]
        assert rig.agrees()


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


async def test_a_rejection_from_before_a_resync_does_not_affect_a_later_placement():
    async with Rig(pods="1") as rig:  # the node takes one pod
        await rig.bind_in_flight("a")
        rig.engine.restart()
        back, hello = asyncio.Event(), rig.engine.hello

        async def hello_when_back():
            await back.wait()
            return await hello()

        rig.engine.hello = hello_when_back
        rig.session.lost()
        rig.kube.faults = [ConflictError(409, "Conflict", "a hook objects")]
        await rig.answered()  # given back while the service is out of reach
        rig.kube.hold = asyncio.Event()
        back.set()
        await rig.settle()
        assert (rig.kube.in_flight, rig.state("a")) == (1, "assumed")  # there again, and its bind on its way
        rig.store.observe_pod(pod("a", labels={"x": "y"}))
        await rig.settle()
        assert rig.state("a") == "assumed"
        rig.pod("b")
        await rig.settle()
        await rig.answered()
        assert rig.bound == ["a"]


async def test_nor_does_one_that_could_not_be_sent_to_a_failed_service():
    async with Rig(pods="1") as rig:
        await rig.bind_in_flight("a")
        rig.kube.faults = [ConflictError(409, "Conflict", "a hook objects")]
        rig.engine.restart()
        rig.engine.fail["apply"] = [unavailable()]
        answered, rig.kube.hold = rig.kube.hold, asyncio.Event()
        assert answered is not None
        answered.set()
        await rig.settle()
        assert (rig.kube.in_flight, rig.state("a")) == (1, "assumed")
        rig.store.observe_pod(pod("a", labels={"x": "y"}))
        await rig.settle()
        assert rig.state("a") == "assumed"


async def test_a_class_that_is_refused_in_a_resync_is_reported_on_its_pods_too():
    async with Rig() as rig:
        rig.pod("a")
        await rig.settle()
        rig.engine.refuse_classes = {rig.task("a")["cls"]: "no such resource"}
        rig.kube.hold = asyncio.Event()
        rig.engine.restart()
        rig.pod("b")
        await rig.settle()
        assert "b" in {name for name, problem in rig.problems.invalid_pods if "no such resource" in problem}


async def test_no_round_runs_for_a_lease_acquired_after_stop():
    async with Rig(leads=False) as rig:
        rig.loop.stop()
        rig.loop.lead()
        rig.pod("a")
        await rig.settle()
        assert rig.engine.calls["round"] == 0


async def test_a_gang_does_not_keep_members_deleted_during_a_resync(monkeypatch):
    monkeypatch.setattr(resync, "_CHUNK", 1)

    def annotations(minimum):
        name = "pod-group.scheduling.x-k8s.io"
        return {"labels": {f"{name}/name": "g", f"{name}/min-available": str(minimum)}}

    rig = Rig()
    rig.pod("a")
    for name in ("m0", "m1", "m2"):
        rig.pod(name, **annotations(3))

    async def sleep(seconds):
        for name in ("m0", "m1", "m2"):
            if f"uid-{name}" in rig.store.pods:
                rig.gone(name)  # while the first chunk is on its way
        await asyncio.sleep(0)

    rig.session._sleep = sleep
    async with rig:
        await rig.settle()
        assert not rig.store.gangs.groups
        for name in ("k0", "k1"):  # made again, and smaller
            rig.pod(name, **annotations(2))
        await rig.settle()
        assert rig.bound == ["a", "k0", "k1"]
