"""Which pods count for the minimum of their gang: also those that have succeeded, or that another scheduler has bound.

The same must hold for every convention that names a group, and after a restart of the scheduler.
"""

from typing import Any

import pytest

from poseidon_py.feed.update_rows import target
from poseidon_py.state.gangs.by_owner import JOBS, STATEFUL_SETS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, GODEL, KAI, NATIVE, VOLCANO
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.model import Owner
from tests.poseidon_py.state.gangs.builders import JOB, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

LWS = "leaderworkerset.sigs.k8s.io"
STS = Owner("StatefulSet", "t", "uid-t", "apps")
TASKS = '[{"name": "w", "minMember": 2}]'
CONVENTIONS: dict[str, dict[str, Any]] = {
    "coscheduling": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    "Fluence": {"labels": {"scheduling.x-k8s.io/pod-group": "f", "fluence.group-size": "2"}},
    "labels": {
        "labels": {
            "pod-group.scheduling.x-k8s.io/name": "g",
            "pod-group.scheduling.x-k8s.io/min-available": "2",
        }
    },
    "KAI": {"annotations": {"pod-group-name": "g"}},
    "Volcano": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    "batch": {"annotations": {"scheduling.k8s.io/group-name": "g", "scheduling.k8s.io/group-pod-num": "2"}},
    "Kueue": {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    },
    "YuniKorn": {
        "labels": {"yunikorn.apache.org/app-id": "a"},
        "annotations": {"yunikorn.apache.org/task-group-name": "w", "yunikorn.apache.org/task-groups": TASKS},
    },
    "Godel": {"annotations": {"godel.bytedance.com/pod-group-name": "g"}},
    "LeaderWorkerSet": {"labels": {f"{LWS}/group-key": "k"}, "annotations": {f"{LWS}/size": "2"}},
    "Kubernetes": {"spec": {"schedulingGroup": {"podGroupName": "g"}}},
    "own": {"annotations": {"poseidon.io/gang": "2", "poseidon.io/gang-name": "g"}},
}
OBJECTS = [
    *((each, owner_or_group(each, spec={"minMember": 2})) for each in (COSCHEDULING, KAI, VOLCANO, GODEL)),
    (NATIVE, owner_or_group(NATIVE, spec={"schedulingPolicy": {"gang": {"minCount": 2}}})),
]
RUNS: dict[str, Any] = {"node": "n", "phase": "Running"}
by_convention = pytest.mark.parametrize("declaring", CONVENTIONS.values(), ids=CONVENTIONS)


def gang_of(rig, name) -> Group:
    group: Group | None = rig.registry.group_of(rig.known(name))
    assert group is not None
    return group


def state(rig, name):
    """What the gang of a pod needs beside what has succeeded, what it needs in all, whether it is complete."""
    group = gang_of(rig, name)
    return rig.message(name).minimum, group.minimum, group.complete


@by_convention
def test_a_member_that_has_succeeded_counts(declaring):
    """As in Volcano (job_info.go, ReadyTaskNum) and in coscheduling (core.go, PreFilter: all pods with the label)."""
    rig = Rig(*OBJECTS)
    rig.pod("a", **RUNS, **declaring)
    rig.pod("b", **RUNS, **declaring)
    assert state(rig, "b") == (2, 2, True)
    rig.pod("a", node="n", phase="Succeeded", **declaring)
    assert state(rig, "b") == (1, 2, True)
    rig.gone("b")
    rig.pod("b2", **declaring)
    assert state(rig, "b2") == (1, 2, False)
    assert rig.known("b2").gang.blocked == ""
    rig.pod("b2", **RUNS, **declaring)
    assert state(rig, "b2") == (1, 2, True)
    assert [bound for _, bound in rig.below] == [0]  # when b was deleted, not when a had succeeded


@by_convention
@pytest.mark.parametrize("first", ["ended", "waiting"])
@pytest.mark.parametrize("looked_up", ["before", "later"])
def test_it_counts_after_a_restart_too(declaring, first, looked_up):
    rig = Rig(*OBJECTS)
    if looked_up == "later":
        rig.objects.unknown |= {(resource, "ns", "g") for resource, _ in OBJECTS}
    pods: list[dict[str, Any]] = [{"name": "a", "node": "n", "phase": "Succeeded"}, {"name": "b2"}]
    for each in pods if first == "ended" else reversed(pods):
        rig.pod(**each, **declaring)
    rig.objects.unknown.clear()
    for resource, _ in OBJECTS:
        rig.registry.resolved(resource.label)
    rig.work()
    assert state(rig, "b2") == (1, 2, False)


@by_convention
def test_it_counts_until_its_pod_is_deleted_which_is_no_loss(declaring):
    rig = Rig(*OBJECTS)
    for name in "ab":
        rig.pod(name, **RUNS, **declaring)
    rig.halves.clear()
    rig.pod("a", node="n", phase="Succeeded", **declaring)
    rig.gone("a")
    assert state(rig, "b") == (2, 2, False)
    assert rig.below == []
    assert rig.halves == []


@by_convention
def test_a_list_shows_which_pods_that_had_ended_are_gone(declaring):
    rig = Rig(*OBJECTS)
    rig.pod("a", node="n", phase="Succeeded", **declaring)
    rig.pod("b", **declaring)
    assert state(rig, "b")[0] == 1
    rig.store.pods_listed({"uid-b"})
    rig.work()
    assert state(rig, "b")[0] == 2


@by_convention
@pytest.mark.parametrize(
    "end",
    [
        {"phase": "Failed"},
        {"phase": "Succeeded", "deleting": True},
        {"phase": "Failed", "status": {"reason": "Evicted"}},
    ],
    ids=["failed", "deleted", "evicted"],
)
def test_a_member_that_has_failed_or_is_deleted_does_not_count(declaring, end):
    rig = Rig(*OBJECTS)
    for name in "ab":
        rig.pod(name, **RUNS, **declaring)
    rig.pod("a", node="n", **end, **declaring)
    assert state(rig, "b") == (2, 2, False)
    assert len(rig.below) == 1
    rig.pod("a2", **declaring)
    assert gang_of(rig, "a2").missing() == (0, {})


@by_convention
def test_members_that_another_scheduler_has_bound_count(declaring):
    """Pods move to this scheduler by a rolling restart. kube-scheduler counts all pods of a PodGroup, too
    (backend/cache/podgroupstate.go, addPod)."""
    rig = Rig(*OBJECTS)
    rig.pod("a", scheduler="default-scheduler", **RUNS, **declaring)
    rig.pod("b", **declaring)
    group = gang_of(rig, "b")
    assert (group.lacking()[0], group.missing()[0], list(group.bound)) == (1, 0, ["uid-a"])
    sent = [target(rig.store, rig.known(name)) for name in "ab"]
    assert [each.gang for each in sent if each is not None] == [group.id, group.id]  # so that the engine counts both
    assert rig.halves == []  # what others have bound is not unwound
    rig.pod("b", **RUNS, **declaring)
    assert group.complete


@by_convention
def test_gangs_of_other_schedulers_are_left_to_them(declaring):
    rig = Rig(*OBJECTS)
    rig.pod("a", scheduler="default-scheduler", **RUNS, **declaring)
    rig.pod("b", scheduler="default-scheduler", **declaring)  # it waits: that scheduler may place it, or not
    group = gang_of(rig, "a")
    assert (group.assigned_to_us, rig.halves, rig.invalid) == (False, [], [])
    rig.pod("c", **declaring)
    assert (group.assigned_to_us, group.missing()[0]) == (True, 0)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_members_that_another_scheduler_has_bound_count_in_the_gang_of_their_owner(order):
    """The template of a StatefulSet gets another schedulerName: its pods are replaced one after the other."""
    annotations = {"poseidon.io/gang": "all"}
    rig = Rig((STATEFUL_SETS, owner_or_group(STATEFUL_SETS, "t", annotations=annotations, spec={"replicas": 2})))
    for name in order:
        rig.pod(name, owner=STS, priority=5, **(RUNS | {"scheduler": "default-scheduler"} if name == "a" else {}))
    group = gang_of(rig, "b")
    assert (group.minimum, group.lacking()[0], list(group.bound)) == (2, 1, ["uid-a"])
    assert rig.invalid == []
    rig.gone("a")
    assert group.lacking()[0] == 2


def test_pods_of_other_schedulers_without_marks_are_not_looked_up():
    rig = Rig()
    rig.objects.unknown.add("uid-j")
    rig.pod("a", owner=JOB, scheduler="default-scheduler", **RUNS)
    assert rig.known("a").gang.blocked == ""
    assert not rig.registry._members
    rig.gone("a")
    assert not rig.registry._index._others


def test_others_follow_those_that_have_succeeded_where_the_owner_runs_more():
    """A Job of 9 pods, 2 at a time: the two that run need each other until the end."""
    gang = {"poseidon.io/gang": "all"}
    spec = {"parallelism": 2, "completions": 9}
    rig = Rig((JOBS, owner_or_group(JOBS, "j", annotations=gang, spec=spec)))
    rig.pod("a", owner=JOB, node="n", phase="Succeeded")
    rig.pod("b", owner=JOB, **RUNS)
    rig.pod("b", owner=JOB, node="n", phase="Succeeded")
    rig.pod("c", owner=JOB)
    assert state(rig, "c") == (2, 2, False)


def test_each_role_counts_those_of_its_own_that_have_succeeded():
    spec = {"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}}
    rig = Rig((VOLCANO, owner_or_group(VOLCANO, spec=spec)))

    def pod(name, **fields):
        task = {"volcano.sh/task-spec": name.rstrip("123")}
        rig.pod(name, annotations={"scheduling.k8s.io/group-name": "g"} | task, **fields)

    pod("worker1", node="n", phase="Succeeded")
    pod("worker2")
    message = rig.message("worker2")
    assert (message.minimum, {role.name: role.minimum for role in message.roles}) == (2, {"ps": 1, "worker": 1})
    group = gang_of(rig, "worker2")
    assert group.missing() == (1, {"ps": 1})


def test_a_pod_that_has_ended_still_describes_the_task_groups_of_others():
    """The driver of a YuniKorn application, before and after a restart."""
    app = {"yunikorn.apache.org/app-id": "a"}
    groups = '[{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 4}]'
    driver = {"yunikorn.apache.org/task-group-name": "driver", "yunikorn.apache.org/task-groups": groups}
    executor = {"yunikorn.apache.org/task-group-name": "executor"}
    for phases in (["Running", "Succeeded"], ["Succeeded"]):
        rig = Rig()
        for phase in phases:
            rig.pod("driver", labels=app, annotations=driver, node="n", phase=phase)
        rig.pod("e", labels=app, annotations=executor)
        assert rig.gang("e") == (4, "ns/a/executor")


def test_a_gang_with_ended_members_only_exists_until_they_are_deleted():
    rig = Rig()
    rig.pod("a", node="n", phase="Succeeded", **CONVENTIONS["labels"])
    (group,) = rig.registry.groups.values()
    assert (group.minimum, group.complete, group.tally().succeeded) == (2, False, 1)
    rig.gone("a")
    assert not rig.registry.groups
    assert not rig.registry._ended


def test_how_members_are_counted():
    rig = Rig()
    declaring = CONVENTIONS["labels"]
    rig.pod("waits", **declaring)
    rig.pod("gated", gates=True, **declaring)
    rig.pod("nominated", **declaring)
    rig.known("nominated").nominated = "n"
    rig.pod("assumed", **declaring)
    rig.store.assume(rig.known("assumed"), "n")
    rig.pod("bound", node="n", **declaring)
    rig.pod("runs", **RUNS, **declaring)
    rig.pod("elsewhere", scheduler="default-scheduler", **RUNS, **declaring)
    rig.pod("leaves", deleting=True, **RUNS, **declaring)
    rig.pod("done", node="n", phase="Succeeded", **declaring)
    rig.pod("failed", node="n", phase="Failed", **declaring)
    (group,) = rig.registry.groups.values()
    assert group.tally()._asdict() == {
        "waiting": 2,
        "nominated": 1,
        "assumed": 1,
        "bound": 3,
        "running": 2,
        "succeeded": 1,
        "failed": 1,
    }
    assert (group.tally().placed, group.tally().present) == (4, 6)
