"""Membership and declarations of gangs, as pods and objects are created, changed and deleted."""

import pytest

from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING
from tests.poseidon_py.state.gangs.builders import CREATED_US, JOB, SECOND_US, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

LIGHT, MIN = "pod-group.scheduling.x-k8s.io/name", "pod-group.scheduling.x-k8s.io/min-available"
CRD = "scheduling.x-k8s.io/pod-group"
BATCH = {"scheduling.k8s.io/group-name": "h", "scheduling.k8s.io/group-pod-num": "5"}


def light(group="g", minimum=2):
    return {LIGHT: group, MIN: str(minimum)}


def own(**hints):
    return {"poseidon.io/gang-name": "x"} | {
        f"poseidon.io/gang{'' if key == 'gang' else f'-{key}'}": value for key, value in hints.items()
    }


def test_pods_without_declarations_are_not_stored():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2})))
    rig.pod("a", labels={"app": "x"})
    rig.pod("b", owner=JOB)
    assert [rig.gang("a"), rig.gang("b")] == [None, None]
    assert not rig.registry.groups
    assert not rig.registry._members


def test_members_of_one_group_share_a_gang():
    rig = Rig()
    rig.pod("a", labels=light())
    rig.pod("b", labels=light())
    rig.pod("c", labels=light("other", 3))
    assert rig.known("a").gang.id == rig.known("b").gang.id != rig.known("c").gang.id
    assert rig.gang("a") == (2, "ns/g")
    assert rig.gang("c") == (3, "ns/other")


def test_pods_wait_for_a_missing_pod_group():
    rig = Rig()
    rig.pod("a", labels={CRD: "g"})
    why = 'pod group "ns/g" not found: there is no such object among podgroups.scheduling.x-k8s.io'
    assert rig.gang("a") == why
    assert rig.blocked == [("a", why)]
    rig.put(COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 3}))
    assert rig.gang("a") == (3, "ns/g")
    rig.put(COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 4}))
    assert rig.gang("a") == (4, "ns/g")
    gone = rig.objects.by_name.pop((COSCHEDULING, "ns", "g"))
    rig.registry.changed(COSCHEDULING, gone, gone=True)
    rig.work()
    assert rig.gang("a") == why


def test_an_unknown_owner_blocks_its_pods():
    rig = Rig()
    rig.objects.unknown.add("uid-j")
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == "waits for the lookup of owner/uid-j"
    assert rig.blocked == []
    rig.objects.unknown.clear()
    rig.objects.put(JOBS, owner_or_group(JOBS, "j", annotations={"poseidon.io/gang": "all"}, spec={"parallelism": 2}))
    rig.registry.resolved("owner/uid-j")
    rig.work()
    assert rig.gang("a") == (2, "ns/j")


def test_an_owner_that_is_annotated_later_makes_its_pods_a_gang():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2})))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    rig.put(JOBS, owner_or_group(JOBS, "j", annotations={"poseidon.io/gang": "all"}, spec={"parallelism": 2}))
    assert rig.gang("a") == (2, "ns/j")
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2}))
    assert rig.gang("a") is None


def test_a_job_that_nears_its_end_needs_fewer():
    gang = {"poseidon.io/gang": "all"}
    rig = Rig((JOBS, owner_or_group(JOBS, "j", annotations=gang, spec={"parallelism": 4, "completions": 6})))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (4, "ns/j")
    spec, status = {"parallelism": 4, "completions": 6}, {"succeeded": 5}
    rig.put(JOBS, owner_or_group(JOBS, "j", annotations=gang, spec=spec, status=status))
    assert rig.gang("a") == (1, "ns/j")


@pytest.mark.parametrize(
    ("pods", "minimum", "warning"),
    [
        (
            [{"labels": light("g", 2)}, {"labels": light("g", 3)}],
            3,
            "pod group ns/g: its members declare different minimums (2, 3); the largest applies",
        ),
        (
            [{"labels": light()}, {"labels": light(), "priority": 10}],
            2,
            "pod group ns/g: its members have different priorities (0, 10); "
            "the highest of the pending ones applies",
        ),
        (
            [{"labels": light() | {"kueue.x-k8s.io/pod-group-name": "k"}}],
            2,
            "annotation kueue.x-k8s.io/pod-group-total-count: is missing; give the number of pods of the group",
        ),
        (
            [{"labels": light(), "annotations": BATCH}],
            2,
            "it is declared to be in ns/g (minimum 2, pod-group labels) and in ns/h (minimum 5, "
            "group-pod-num annotations); the first applies",
        ),
        (
            [{"annotations": {"poseidon.io/gang": "3"}, "owner": JOB}],
            3,
            "pod group ns/j: its minimum of 3 is more than its number of pods, 2",
        ),
        (
            [{"annotations": own(gang="3", max="2")}],
            3,
            "pod group ns/x: its maximum of 2 is less than its minimum of 3; 3 applies",
        ),
        (
            [{"annotations": own(gang="1", max="2", role=role)} for role in ("a=2", "b=2")],
            1,
            "pod group ns/x: its maximum of 2 is less than its minimum of 4; 4 applies",
        ),
        (
            [{"annotations": own(gang="2", max="5")}, {"annotations": own(gang="2", max="4")}],
            2,
            "pod group ns/x: its members declare different maximums (4, 5); the smallest applies",
        ),
    ],
)  # fmt: skip
def test_contradictory_declarations_have_a_defined_result_and_a_warning(pods, minimum, warning):
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2})))
    for number, each in enumerate(pods):
        rig.pod(f"p{number}", **each)
    assert rig.gang("p0")[0] == minimum
    assert warning in {text for _, text in rig.invalid}


def test_an_invalid_declaration_blocks_its_pod_alone():
    rig = Rig()
    rig.pod("a", labels={LIGHT: "g", MIN: "many"})
    rig.pod("b", labels=light("h", 1))
    assert rig.gang("a") == f"label {MIN}: 'many' is not valid; give a whole number from 1 to 2147483647"
    assert rig.invalid == [("a", f"label {MIN}: 'many' is not valid; give a whole number from 1 to 2147483647")]
    assert rig.gang("b") == (1, "ns/h")
    rig.pod("a", labels=light("g", 1))
    assert rig.gang("a") == (1, "ns/g")


def test_a_pod_can_be_kept_out_of_gangs():
    rig = Rig()
    rig.pod("a", labels=light(), annotations={"poseidon.io/gang": "none"})
    assert rig.gang("a") is None


def test_one_pod_describes_the_task_groups_of_all():
    app, name = {"yunikorn.apache.org/app-id": "a"}, "yunikorn.apache.org/task-group-name"
    groups = '[{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 4}]'
    rig = Rig()
    rig.pod("x1", labels=app, annotations={name: "executor"})
    assert (
        rig.gang("x1")
        == "task group ns/a/executor: no pod of its application has the annotation yunikorn.apache.org/task-groups yet"
    )
    rig.pod("d", labels=app, annotations={name: "driver", "yunikorn.apache.org/task-groups": groups})
    assert rig.gang("d") == (1, "ns/a/driver")
    assert rig.gang("x1") == (4, "ns/a/executor")
    rig.gone("d")
    assert rig.gang("x1") == (4, "ns/a/executor")


def test_the_age_of_a_gang():
    early = "2025-12-31T23:59:59Z"
    rig = Rig((COSCHEDULING, owner_or_group(COSCHEDULING, created=early)))
    rig.pod("a", labels={CRD: "g"})
    rig.pod("b", labels=light(), created="2026-01-01T00:00:05Z")
    rig.pod("c", labels=light(), created="2026-01-01T00:00:03Z")

    def age(name):
        return (rig.message(name).created_us - CREATED_US) // SECOND_US

    assert [age("a"), age("b")] == [-1, 3]
    rig.gone("c")  # what replaces it does not make the gang younger
    rig.pod("d", labels=light(), created="2026-01-01T00:00:09Z")
    assert age("d") == 3


def test_gangs_created_in_one_second_have_a_fixed_order():
    def ages(names):
        rig = Rig()
        for name in names:
            rig.pod(name, labels=light(name))
        return {name: rig.message(name).created_us for name in names}

    names = [f"g{number}" for number in range(20)]
    assert ages(names) == ages(names[::-1])
    assert len({*ages(names).values()}) == 20


def test_a_group_exists_as_long_as_a_member_or_its_object():
    rig = Rig()
    rig.pod("a", labels=light())
    gang = rig.known("a").gang.id
    rig.gone("a")
    assert rig.registry.removed == {gang}
    assert not rig.registry.groups
    rig.pod("b", labels=light())
    assert not rig.registry.removed

    rig = Rig((JOBS, owner_or_group(JOBS, "j", annotations={"poseidon.io/gang": "all"}, spec={"parallelism": 2})))
    rig.pod("a", owner=JOB)
    rig.gone("a")
    assert rig.registry.groups
    assert not rig.registry.removed
    job = rig.objects.by_uid.pop("uid-j")
    rig.registry.changed(JOBS, job, gone=True)
    assert rig.registry.removed
    assert not rig.registry.groups


def test_a_gang_that_falls_below_its_minimum_is_reported():
    rig = Rig()
    for name in ("a", "b"):
        rig.pod(name, labels=light(), node="n")
    assert rig.below == []
    rig.gone("a")
    assert rig.below == [("ns/g", 1)]


@pytest.mark.parametrize(
    ("declared", "maximum"),
    [
        ([own(gang="2", max="4")], 4),
        ([own(gang="2")], 0),
        ([own(gang="2", max="4"), own(gang="2", max="3")], 3),
        ([own(gang="2", max="4"), own(gang="2")], 4),
        ([own(gang="4", max="3")], 4),
        ([own(gang="1", max="2", role="a=2"), own(gang="1", max="2", role="b=1")], 3),
    ],
)
def test_the_maximum_of_a_gang(declared, maximum):
    rig = Rig()
    for number, annotations in enumerate(declared):
        rig.pod(f"p{number}", annotations=annotations)
    assert rig.message("p0").maximum == maximum


def test_a_bound_pod_is_never_blocked_by_its_gang():
    rig = Rig()
    rig.pod("a", labels={CRD: "g"}, node="n")
    assert rig.gang("a") is None
    rig.put(COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 1}))
    assert rig.gang("a") == (1, "ns/g")


def test_roles_keep_their_numbers():
    rig = Rig()

    def worker(name, role):
        rig.pod(
            name,
            annotations={"poseidon.io/gang": "3", "poseidon.io/gang-name": "x", "poseidon.io/gang-role": role},
        )

    worker("a", "worker=2")
    worker("b", "ps=1")
    message = rig.message("a")
    assert [(role.name, role.minimum) for role in message.roles] == [("worker", 2), ("ps", 1)]
    assert (rig.known("a").gang.role, rig.known("b").gang.role) == (0, 1)
    rig.gone("a")
    message = rig.message("b")
    assert [(role.name, role.minimum) for role in message.roles] == [("worker", 0), ("ps", 1)]
