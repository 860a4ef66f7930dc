"""An object that cannot be described, by a defect or because a number is out of range, affects no other."""

import asyncio

import pytest

from poseidon_py.feed import resync as session
from poseidon_py.feed import update_rows, workers
from poseidon_py.kube.client import ConflictError
from poseidon_py.state.gangs.group import Group
from tests.poseidon_py.builders import pod
from tests.poseidon_py.rig import Rig


def failing_for(monkeypatch, *names):
    """Describing pods of these names fails, as it would by a defect."""
    describe = update_rows.describe_pod

    def describe_pod(store, known):
        if known.name in names:
            raise RuntimeError("a defect")
        describe(store, known)

    for module in (workers, session):
        monkeypatch.setattr(module, "describe_pod", describe_pod)


async def test_a_pod_that_cannot_be_described_affects_no_other(monkeypatch):
    failing_for(monkeypatch, "bad")
    async with Rig() as rig:
        for name in ("a", "bad", "b", "c"):
            rig.pod(name)
        await rig.settle()
        assert rig.bound == ["a", "b", "c"]
        assert rig.problems.invalid_pods == [("bad", "internal error, see the scheduler's log: RuntimeError: a defect")]
        monkeypatch.undo()
        rig.store.observe_pod(pod("bad", labels={"x": "y"}))
        await rig.settle()
        assert "bad" in rig.bound


async def test_nor_in_a_resync(monkeypatch):
    failing_for(monkeypatch, "bad", "worse")
    rig = Rig()
    for name in ("a", "bad", "b", "worse", "c"):
        rig.pod(name)
    async with rig:
        await rig.settle()
        assert rig.bound == ["a", "b", "c"]
        assert sorted(name for name, _ in rig.problems.invalid_pods) == ["bad", "worse"]


async def test_a_node_that_cannot_be_described_affects_no_other(monkeypatch):
    describe = update_rows.node_message

    def node_message(store, known):
        if known.name.startswith("bad"):
            raise RuntimeError("a defect")
        return describe(store, known)

    for module in (workers, session):
        monkeypatch.setattr(module, "node_message", node_message)
    rig = Rig(("bad", "n"))
    async with rig:
        rig.node("bad-too")
        rig.pod("a")
        await rig.settle()
        assert rig.bound == ["a"]
        assert list(rig.engine.nodes) == [rig.store.id_of_node("n")]


MANY, DIGITS = "9" * 20, "9" * 5000
HOSTILE = {
    **{
        f"{key}={value[:3]}({len(value)})": {
            "annotations": {"poseidon.io/gang": "2", "poseidon.io/gang-name": "g", key: value}
        }
        for key in ("poseidon.io/gang", "poseidon.io/gang-min", "poseidon.io/gang-max")
        for value in (MANY, DIGITS)
    },
    "roles": {
        "annotations": {"poseidon.io/gang": "2", "poseidon.io/gang-name": "g", "poseidon.io/gang-role": f"a={MANY}"}
    },
    "group-pod-num": {"annotations": {"scheduling.k8s.io/group-name": "g", "scheduling.k8s.io/group-pod-num": MANY}},
    "min-available": {
        "labels": {
            "pod-group.scheduling.x-k8s.io/name": "g",
            "pod-group.scheduling.x-k8s.io/min-available": MANY,
        }
    },
    "kueue": {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": MANY},
    },
    "leader worker set": {
        "labels": {"leaderworkerset.sigs.k8s.io/name": "g", "leaderworkerset.sigs.k8s.io/group-index": "0"},
        "annotations": {"leaderworkerset.sigs.k8s.io/size": MANY},
    },
    "yunikorn": {
        "labels": {"applicationId": "x"},
        "annotations": {
            "yunikorn.apache.org/task-group-name": "a",
            "yunikorn.apache.org/task-groups": f'[{{"name":"a","minMember":{MANY}}}]',
        },
    },
    "yunikorn, small enough to be read": {
        "labels": {"applicationId": "x"},
        "annotations": {
            "yunikorn.apache.org/task-group-name": "a",
            "yunikorn.apache.org/task-groups": '[{"name":"a","minMember":9000000000000000000}]',
        },
    },
    "firmament": {"annotations": {"firmament-gang-scheduling": DIGITS}, "owner": "o"},
    "data": {"annotations": {"poseidon.io/data": DIGITS}},
    "cpu": {"requests": {"cpu": DIGITS}},
    "expected duration": {"annotations": {"poseidon.io/expected-duration": DIGITS + "h"}},
}


@pytest.mark.parametrize("annotations", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_pod_with_a_number_out_of_range_is_invalid_and_no_defect(annotations, caplog):
    async with Rig() as rig:
        rig.pod("hostile", **annotations)
        await rig.settle()
        rig.pod("later")
        await rig.settle()
        assert "later" in rig.bound
        rig.engine.restart()
        rig.pod("last")
        await rig.settle()
        assert "last" in rig.bound
    assert "cannot describe" not in caplog.text
    assert "cannot tell" not in caplog.text


@pytest.mark.parametrize("resync", [False, True])
async def test_a_gang_that_cannot_be_described_affects_no_other(monkeypatch, resync):
    """The error occurs when the call is made, not when its pods are described."""
    merge = Group.merge

    def failing(group):
        if group.name.endswith("bad"):
            raise RuntimeError("a defect")
        return merge(group)

    monkeypatch.setattr(Group, "merge", failing)
    names = [f"{gang}-{i}" for i in range(2) for gang in ("good", "bad")]

    def make(rig):
        for name in names:
            gang = name.split("-")[0]
            rig.pod(name, annotations={"poseidon.io/gang": "2", "poseidon.io/gang-name": gang})

    rig = Rig()
    if resync:
        make(rig)
    async with rig:
        if not resync:
            make(rig)
        async with asyncio.timeout(10):
            while len(rig.problems.invalid_pods) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await rig.settle()
        assert rig.bound == ["good-0", "good-1"]
        assert sorted(name for name, _ in rig.problems.invalid_pods) == ["bad-0", "bad-1"]


async def test_a_pod_that_can_no_longer_be_described_is_not_placed_by_its_old_description(monkeypatch):
    async with Rig(cpu="1") as rig:
        rig.pod("bad", cpu="2")
        await rig.settle()
        assert rig.state("bad") == "waiting"
        failing_for(monkeypatch, "bad")
        rig.store.observe_pod(pod("bad", cpu="2", labels={"x": "y"}))
        await rig.settle()
        rig.node("n", cpu="4")
        await rig.settle()
        assert rig.bound == []


async def test_nor_does_it_keep_the_capacity_of_a_failed_placement(monkeypatch):
    async with Rig(cpu="1") as rig:
        await rig.bind_in_flight("bad", cpu="1")
        rig.kube.faults = [ConflictError(409, "Conflict", "no")]
        failing_for(monkeypatch, "bad")
        await rig.answered()
        rig.kube.hold = None
        rig.pod("next", cpu="1")
        await rig.settle()
        assert rig.bound == ["next"]
