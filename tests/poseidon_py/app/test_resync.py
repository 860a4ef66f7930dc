"""What happens around a resync: binds that fail, classes that are refused, members that are deleted."""

import asyncio

from poseidon_py.feed import resync
from poseidon_py.kube.client import ConflictError
from tests.poseidon_py.builders import pod
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.rig import Rig


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
