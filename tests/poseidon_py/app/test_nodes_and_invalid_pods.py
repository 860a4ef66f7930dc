"""From the store to binds and back: nodes, and pods or classes that are invalid."""

import pytest

from poseidon_py.describe.pod_class import describe_class
from poseidon_py.describe.task_classes import Classes
from poseidon_py.feed import resync
from poseidon_py.state.handlers import PodHandler
from tests.poseidon_py.builders import pod
from tests.poseidon_py.rig import Rig

# -- nodes ----------------------------------------------------------------------------------------------------------


async def test_a_cordoned_node_and_a_deleted_node():
    async with Rig(nodes=("n", "m")) as rig:
        rig.node("n", unschedulable=True)
        await rig.settle()
        ident = rig.store.id_of_node("n")
        assert [t.key for t in rig.engine.nodes[ident].taints] == ["node.kubernetes.io/unschedulable"]
        rig.store.remove_node("n")
        await rig.settle()
        assert set(rig.engine.nodes) == {rig.store.id_of_node("m")}


async def test_pods_on_an_unknown_node_count_once_it_is_observed():
    async with Rig(nodes=()) as rig:
        rig.pod("early", node="n", cpu="4")
        await rig.settle()
        rig.node("n", cpu="4")
        rig.pod("late")
        await rig.settle()
        assert rig.bound == []
        assert rig.agrees()


async def test_a_recreated_node_is_a_new_node_with_its_pods():
    async with Rig(nodes=()) as rig:
        rig.node("n", uid="first", cpu="1")
        rig.pod("a", node="n", cpu="1")
        await rig.settle()
        first = rig.store.id_of_node("n")
        rig.node("n", uid="second", cpu="1")
        rig.pod("b", cpu="1")
        await rig.settle()
        assert rig.store.id_of_node("n") != first
        assert rig.bound == []
        assert rig.agrees()


async def test_a_node_without_allocatable_is_kept_without_capacity(caplog):
    async with Rig(nodes=()) as rig:
        rig.node("bare", allocatable={})
        rig.pod("a")
        await rig.settle()
        assert dict(rig.engine.nodes[rig.store.id_of_node("bare")].allocatable) == {}
        assert "status.allocatable" in caplog.text
        rig.node("bare")
        await rig.settle()
        assert rig.bound == ["a"]


async def test_a_placement_on_a_node_deleted_during_the_round_is_rejected():
    async with Rig(nodes=("n", "m")) as rig:

        def delete_node(reply):
            if reply.placed.task_uid:
                rig.store.remove_node("n")
                rig.engine.after_round = lambda reply: None

        rig.engine.after_round = delete_node
        rig.pod("a")
        await rig.settle()
        assert rig.kube.binds == [("uid-a", "m")]


@pytest.mark.parametrize("blocked", ["", "its claim is in use"])
async def test_a_round_does_not_report_on_a_pod_that_was_blocked_while_it_ran(blocked):
    """The reason was reported already, and users see the latest report."""
    async with Rig(pods="0") as rig:

        def block(reply):
            for known in rig.store.pods.values():
                known.volumes.blocked = blocked

        rig.engine.after_round = block
        rig.pod("a")
        await rig.settle()
        assert [name for name, _ in rig.unscheduled] == ([] if blocked else ["a"])


# -- invalid pods -------------------------------------------------------------------------------------------------


async def test_an_invalid_pod_is_skipped_reported_once_and_delays_no_other(caplog):
    async with Rig() as rig:
        rig.pod("good")
        for _ in range(3):
            rig.pod("bad", requests={"cpu": "ten"})
            await rig.settle()
        assert rig.bound == ["good"]
        assert len(rig.problems.invalid_pods) == 1
        assert rig.problems.invalid_pods[0][0] == "bad"
        assert "requests[cpu]" in rig.problems.invalid_pods[0][1]
        assert caplog.text.count("requests[cpu]") == 1
        rig.pod("bad")  # mended
        await rig.settle()
        assert rig.bound == ["good", "bad"]


async def test_the_problem_of_a_pod_is_its_last_one_until_it_is_valid():
    async with Rig() as rig:
        handler, invalid = PodHandler(rig.store), rig.store.problems.invalid

        async def now(problem=None, **fields):
            if problem is not None:
                handler.invalid(pod("odd").metadata, problem)
            else:
                rig.pod("odd", **fields)
            await rig.settle()

        await now("spec.priority: is odd")
        assert invalid["uid-odd"] == ("default", "odd", "spec.priority: is odd")
        await now(requests={"cpu": "ten"})
        assert "requests[cpu]" in invalid["uid-odd"][2]
        await now()
        assert invalid == {}
        await now("spec.priority: is odd")
        await now(scheduler="another")
        assert invalid == {}
        assert [problem.split(":")[0] for _, problem in rig.problems.invalid_pods] == [
            "spec.priority",
            "spec.containers[0].resources.requests[cpu]",
            "spec.priority",
        ]


async def test_a_rejected_class_is_the_problem_of_a_changed_pod_and_not_reported_again():
    async with Rig() as rig:
        rig.engine.refuse_classes[describe_class(pod("bad", cpu="7m")).id] = "is beyond me"
        for labels in ({"x": "1"}, {"x": "2"}):
            rig.pod("bad", cpu="7m", labels=labels)
            await rig.settle()
            assert rig.store.problems.invalid == {"uid-bad": ("default", "bad", "x: is beyond me")}
        assert rig.problems.invalid_pods == [("bad", "x: is beyond me")]


async def test_an_invalid_running_pod_holds_a_slot():
    async with Rig(pods="1") as rig:
        rig.pod("odd", node="n", requests={"cpu": "ten"})
        rig.pod("a")
        await rig.settle()
        assert rig.bound == []


async def test_a_rejected_class_is_reported_on_its_pods_and_sent_once():
    async with Rig() as rig:
        rig.engine.refuse_classes[describe_class(pod("bad", cpu="7m")).id] = "is beyond me"
        rig.pod("bad", cpu="7m")
        rig.pod("good")
        await rig.settle()
        assert rig.bound == ["good"]
        assert rig.problems.invalid_pods == [("bad", "x: is beyond me")]
        calls = rig.engine.calls["apply"]
        await rig.settle()
        assert rig.engine.calls["apply"] == calls


async def test_the_number_of_remembered_rejected_classes_is_bounded(monkeypatch):
    monkeypatch.setattr(resync, "_REFUSED_KEPT", 2)
    async with Rig() as rig:
        for i in range(4):
            rig.engine.refuse_classes[describe_class(pod("bad", cpu=f"{i}m")).id] = f"no {i}"
            rig.pod(f"bad{i}", cpu=f"{i}m")
            await rig.settle()
        assert len(rig.session.refused) == 2
        rig.pod("again", cpu="0m")
        await rig.settle()
        assert rig.problems.invalid_pods[-1] == ("again", "x: no 0")
        assert rig.bound == []


TOLERANT = {"cpu": "7m", "node": "a", "spec": {"tolerations": [{"operator": "Exists"}]}}


async def test_a_running_pod_of_a_rejected_class_occupies_its_requests():
    async with Rig(nodes=["a"]) as rig:
        wide = describe_class(pod("bad", **TOLERANT))
        rig.engine.refuse_classes[wide.id] = "is beyond me"
        rig.pod("bad", **TOLERANT)
        await rig.settle()
        assert rig.state("bad") == "bound"
        counted = rig.engine.classes[rig.task("bad")["cls"]]
        assert dict(counted.requests) == dict(wide.requests)
        assert not counted.tolerations
        assert rig.problems.invalid_pods == [("bad", "x: is beyond me")]
        calls = rig.engine.calls["apply"]
        await rig.settle()
        assert rig.engine.calls["apply"] == calls


async def test_a_running_pod_with_rejected_amounts_occupies_a_slot():
    classes = Classes()
    wide = classes.of(pod("bad", **TOLERANT))
    async with Rig(nodes=["a"]) as rig:
        rig.engine.refuse_classes = dict.fromkeys((wide, classes.of_amounts(wide)), "is beyond me")
        rig.pod("bad", **TOLERANT)
        await rig.settle()
        assert rig.state("bad") == "bound"
        assert dict(rig.engine.classes[rig.task("bad")["cls"]].requests) == {"pods": 1}
        assert rig.problems.invalid_pods == [("bad", "x: is beyond me")]
