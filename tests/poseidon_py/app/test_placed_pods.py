"""Which pods count, and which of them are placed."""

import pytest

from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod
from tests.poseidon_py.rig import Rig


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


async def test_the_job_of_a_pod_is_its_controller():
    async with Rig() as rig:
        for name, owner in (("a", "job"), ("b", "job"), ("c", "")):
            rig.pod(name, owner=owner)
        await rig.settle()
        rows = {n: j for u in rig.engine.updates for n, j in zip(u.tasks.name, u.tasks.job_id, strict=True)}
        assert rows["default/a"] == rows["default/b"] != 0
        assert rows["default/c"] == 0


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
