"""A workload keeps its place in a queue of Kueue's when its pods are created anew: its own age counts, not theirs."""

import pytest

from poseidon_py.feed.rows import Rows
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS, STATEFUL_SETS
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.poseidon_py.state.gangs.builders import SET, owner_or_group
from tests.poseidon_py.state.queues.kueue_objects import LABEL, kueue_rig, simple

SECOND_US = 1_000_000
BEGAN = 1_767_225_600  # 2026-01-01T00:00:00Z
QUEUE = {LABEL: "lq"}


@pytest.fixture
def rig():
    rig = kueue_rig()
    simple(rig)
    rig.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    return rig


def put(rig, resource, name, second=0, **fields):
    """An owner that was created so many seconds after the beginning."""
    entry = owner_or_group(resource, name, namespace="default", created=at(second), **fields)
    rig.objects.put(resource, entry)
    rig.queues.object_changed(resource, entry)
    rig.work()


def at(second):
    return f"2026-01-01T00:00:{second:02}Z"


def new_pod(rig, name, owner, second, **fields):
    rig.pod(name, owner=f"uid-{owner}", created=at(second), **fields)


def age(rig, name):
    """Seconds after the beginning."""
    return rig.known(name).age_us // SECOND_US - BEGAN


def test_a_job_of_one_pod_keeps_its_place(rig):
    put(rig, JOBS, "old", 1, labels=QUEUE)
    put(rig, JOBS, "young", 2, labels=QUEUE)
    new_pod(rig, "young-0", "young", 3)
    new_pod(rig, "old-0", "old", 9)
    assert (age(rig, "old-0"), age(rig, "young-0")) == (1, 2)
    first = rig.known("old-0").age_us
    rig.store.remove_pod("uid-old-0")
    put(rig, JOBS, "old", 1, labels=QUEUE, spec={"suspend": True})
    new_pod(rig, "old-1", "old", 20)
    assert rig.known("old-1").age_us == first


def test_the_engine_learns_the_age_of_the_workload(rig):
    put(rig, JOBS, "j", 1, labels=QUEUE)
    new_pod(rig, "p", "j", 9)
    rows, known = Rows(), rig.known("p")
    rows.add(known, rig.sent("p"))
    update = rows.finish(rig.store, set(), set())
    assert [each // SECOND_US - BEGAN for each in update.tasks.created_us] == [1]


def test_workloads_of_one_second_come_in_the_order_of_their_pods(rig):
    for name in "abc":
        put(rig, JOBS, name, 1, labels=QUEUE)
    for name, second in (("b", 2), ("a", 2), ("c", 1)):  # their controller took longer for some
        new_pod(rig, f"{name}-0", name, second)
    assert sorted("abc", key=lambda name: rig.known(f"{name}-0").age_us) == ["b", "a", "c"]
    assert [age(rig, f"{name}-0") for name in "abc"] == [1, 1, 1]


@pytest.mark.parametrize("labelled", ["set", "job"])
def test_the_owner_counts_whose_pods_are_admitted_together(rig, labelled):
    put(rig, JOB_SETS, "s", 1, labels=QUEUE if labelled == "set" else None)
    put(rig, JOBS, "j", 2, owner=SET, labels=QUEUE if labelled == "job" else None)
    new_pod(rig, "p", "j", 9)
    assert age(rig, "p") == (1 if labelled == "set" else 2)


def test_below_an_owner_of_an_unknown_kind_the_uppermost_known_one_counts(rig):
    wrappers = Resource("workload.codeflare.dev", "appwrappers", ("v1beta2",))
    put(rig, wrappers, "t", 1, labels=QUEUE)
    put(rig, JOBS, "j", 2, owner=Owner("AppWrapper", "t", "uid-t", "workload.codeflare.dev"))
    new_pod(rig, "p", "j", 9)
    assert age(rig, "p") == 2


@pytest.mark.parametrize("kind", ["rayclusters", "pytorchjobs"])
def test_workloads_of_other_kinds_keep_their_place_too(rig, kind):
    put(rig, OWNER_KINDS[kind].resource, "w", 1, labels=QUEUE)
    new_pod(rig, "p", "w", 9)
    assert age(rig, "p") == 1


def test_pods_that_are_admitted_one_by_one_have_their_own_age(rig):
    put(rig, STATEFUL_SETS, "s", 1, labels=QUEUE)
    new_pod(rig, "p", "s", 9)
    rig.pod("bare", created=at(8), labels=QUEUE)
    put(rig, JOBS, "plain", 1)
    new_pod(rig, "labelled", "plain", 7, labels=QUEUE)
    assert [age(rig, name) for name in ("p", "bare", "labelled")] == [9, 8, 7]


def test_with_pods_as_units_their_own_age_counts(rig):
    rig.queues.by_workload = False
    put(rig, JOBS, "j", 1, labels=QUEUE)
    new_pod(rig, "p", "j", 9)
    assert age(rig, "p") == 9


def test_outside_of_queues_the_age_of_pods_counts(rig):
    put(rig, JOBS, "j", 1)
    new_pod(rig, "p", "j", 9)
    assert age(rig, "p") == 9


def test_a_default_queue_makes_workloads_of_owners_without_a_label(rig):
    put(rig, JOBS, "j", 1)
    new_pod(rig, "p", "j", 9)
    rig.put("LocalQueue", "default", {"clusterQueue": "team-a"}, namespace="default")
    assert age(rig, "p") == 1
