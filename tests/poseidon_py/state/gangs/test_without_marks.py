"""Gangs that nothing declares: `--gangs-from`."""

from typing import Any

import pytest

from poseidon_py.state.gangs import resolve as resolving
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.model import Invalid, Owner, Unknown
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS, OWNER_KINDS
from poseidon_py.state.gangs.without_marks import conventions
from tests.poseidon_py.state.gangs.builders import CREATED_US, JOB, SET, Objects, hints, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

resolve: Any = resolving.resolve  # a result without a declaration fails its test
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
LWS = "leaderworkerset.sigs.k8s.io"
LABELS = {f"{LWS}/name": "s", f"{LWS}/group-index": "1"}
JOBS_OF_SET: dict[str, Any] = {"replicatedJobs": [
    {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
    {"name": "b-c", "template": {"spec": {"parallelism": 4, "completions": 2}}},
]}  # fmt: skip


def one(name, names=None, *, spec, status=None, owner=None, **fields):
    """What is declared for a pod of a single owner of this kind."""
    kind, resource, _ = OWNER_KINDS[name]
    made = owner_or_group(resource, "o", spec=spec, status=status)
    reference = owner or Owner(kind, "o", "uid-o", resource.group)
    return resolve(hints(owner=reference, **fields), Objects((resource, made)), conventions(names or [name]))


def replicas(field, policy=None, **roles):
    specs = {role: {"replicas": count, "template": {"spec": {}}} for role, count in roles.items()}
    return {field: specs, "runPolicy": {"schedulingPolicy": policy} if policy is not None else {}}


SIZES = [
    # kind, spec, status, minimum, left
    ("jobs", {"parallelism": 4}, {}, 4, None),
    ("jobs", {"parallelism": 4}, {"succeeded": 1, "active": 2}, 4, 2),
    ("jobs", {"parallelism": 4, "completions": 3}, {}, 3, 3),
    ("jobs", {"parallelism": 4, "completions": 9}, {"succeeded": 7}, 4, 2),
    ("jobs", {"parallelism": 4, "completions": 9}, {"succeeded": 2, "failedIndexes": "0,3-5"}, 4, 3),
    ("jobs", {"parallelism": 4, "completions": 9}, {"failedIndexes": "x,2-"}, 4, 9),
    ("mpijobs", replicas("mpiReplicaSpecs", Launcher=1, Worker=3), {}, 4, 4),
    (
        "mpijobs",
        replicas("mpiReplicaSpecs", Launcher=1, Worker=3) | {"launcherCreationPolicy": "WaitForWorkersReady"},
        {},
        3,
        3,
    ),
    ("mpijobs", replicas("mpiReplicaSpecs", Launcher=1, Worker=3) | {"waitForWorkers": True}, {}, 3, 3),
    ("mpijobs", replicas("mpiReplicaSpecs", {"minAvailable": 2}, Launcher=1, Worker=3), {}, 2, 4),
    ("pytorchjobs", replicas("pytorchReplicaSpecs", {}, Master=None, Worker=2), {}, 3, 3),
    (
        "pytorchjobs",
        replicas("pytorchReplicaSpecs", Master=1, Worker=4),
        {"replicaStatuses": {"Worker": {"succeeded": 3, "active": 1}, "Master": {}}},
        5,
        2,
    ),
    ("tfjobs", replicas("tfReplicaSpecs", PS=2, Worker=4, Chief=1), {}, 7, 7),
    ("xgboostjobs", replicas("xgbReplicaSpecs", Master=1, Worker=2), {}, 3, 3),
    ("paddlejobs", replicas("paddleReplicaSpecs", Master=1, Worker=2), {}, 3, 3),
    ("jaxjobs", replicas("jaxReplicaSpecs", Worker=2), {}, 2, 2),
    (
        "rayclusters",
        {"workerGroupSpecs": [{"replicas": 3}, {"replicas": 2, "numOfHosts": 4}, {"replicas": 9, "suspend": True}]},
        {},
        12,
        None,
    ),
    (
        "rayclusters",
        {"workerGroupSpecs": [{"replicas": 3, "minReplicas": 1}, {"replicas": 2}], "enableInTreeAutoscaling": True},
        {},
        2,
        None,
    ),
]


@pytest.mark.parametrize(("name", "spec", "status", "minimum", "left"), SIZES)
def test_the_pods_of_an_owner_are_a_gang_of_their_number(name, spec, status, minimum, left):
    found = one(name, spec=spec, status=status).declaration
    assert (found.convention, found.key, found.name) == (OWNER_KINDS[name].kind, "owner/uid-o", "ns/o")
    assert (found.minimum, found.left, found.waits) == (minimum, left, "")
    assert found.created_us == CREATED_US


@pytest.mark.parametrize(("name", "spec", "status", "minimum", "left"), SIZES)
def test_only_kinds_that_are_asked_for_are_gangs(name, spec, status, minimum, left):
    others = [each for each in OWNER_KINDS if each != name]
    assert one(name, others, spec=spec, status=status) == (None, "", "", "", "")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("jobs", {}),
        ("jobs", {"parallelism": 1, "completions": 9}),
        ("jobs", {"parallelism": 9, "completions": 1}),
        ("jobs", {"parallelism": 0}),
        ("mpijobs", replicas("mpiReplicaSpecs", Launcher=1)),
        ("pytorchjobs", replicas("pytorchReplicaSpecs", {"minAvailable": 1}, Master=1, Worker=3)),
        ("rayclusters", {}),
        ("tfjobs", {}),
    ],
)
def test_owners_of_a_single_pod_have_no_gang(name, spec):
    assert one(name, spec=spec).declaration is None


@pytest.mark.parametrize(
    ("name", "spec", "problem"),
    [
        (
            "mpijobs",
            replicas("mpiReplicaSpecs", {"minAvailable": 0}, Worker=3),
            "MPIJob ns/o: spec.runPolicy.schedulingPolicy.minAvailable: 0 is not valid; "
            "give a whole number from 1 to 2147483647",
        ),
        (
            "tfjobs",
            replicas("tfReplicaSpecs", Worker="many"),
            "TFJob ns/o: spec.tfReplicaSpecs.Worker.replicas: 'many' is not valid; "
            "give a whole number from 0 to 2147483647",
        ),
        (
            "rayclusters",
            {"workerGroupSpecs": [{"replicas": 1}, {"replicas": 1, "numOfHosts": -1}]},
            "RayCluster ns/o: spec.workerGroupSpecs[1].numOfHosts: -1 is not valid; "
            "give a whole number from 0 to 2147483647",
        ),
        ("jaxjobs", {"jaxReplicaSpecs": [1]}, "JAXJob ns/o: spec: Expected `object | null`, got `array`"),
    ],
)
def test_an_invalid_owner_is_named_with_field_and_remedy(name, spec, problem):
    found = one(name, spec=spec)
    assert found.declaration is None
    assert found.invalid.startswith(problem)


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("jobs", {"parallelism": 2, "suspend": True}),
        ("mpijobs", {"runPolicy": {"suspend": True}, "mpiReplicaSpecs": {"Worker": {"replicas": 2}}}),
        ("rayclusters", {"suspend": True, "workerGroupSpecs": [{"replicas": 1}]}),
        ("jobsets", JOBS_OF_SET | {"suspend": True}),
    ],
)
def test_pods_of_a_suspended_owner_wait(name, spec):
    found = one(name, spec=spec).declaration
    kind = OWNER_KINDS[name].kind
    assert (found.minimum, found.waits) == (0, f"{kind} ns/o is suspended; its pods are placed once it is resumed")


@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        ({"poseidon.io/gang": "2"}, {}, ("ns/j", 2)),
        ({"poseidon.io/gang": "none"}, {}, ("", 0)),
        (
            {},
            {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "3"},
            ("ns/g", 3),
        ),
        ({}, {"app": "x"}, ("ns/j", 4)),
    ],
)
def test_explicit_marks_take_precedence_without_a_warning(annotations, labels, expected):
    job = owner_or_group(JOBS, "j", spec={"parallelism": 4})
    found = resolve(hints(labels, annotations, owner=JOB), Objects((JOBS, job)), conventions(["jobs"]))
    assert (found.declaration.name, found.declaration.minimum) == expected
    assert (found.invalid, found.warning) == ("", "")


def test_an_invalid_mark_gives_way_to_the_owner_and_is_reported():
    job = owner_or_group(JOBS, "j", spec={"parallelism": 4})
    found = resolve(hints({}, {"poseidon.io/gang": "x"}, owner=JOB), Objects((JOBS, job)), conventions(["jobs"]))
    assert found.declaration.minimum == 4
    assert found.invalid.startswith("annotation poseidon.io/gang: 'x' is not valid")


def two_levels(*, set_spec, job_spec=None, names=("jobs", "jobsets"), labels=None, job="s-a-0", **status):
    job_set = owner_or_group(JOB_SETS, "s", spec=set_spec, status=status)
    objects = Objects((JOB_SETS, job_set), (JOBS, owner_or_group(JOBS, job, spec=job_spec or {}, owner=SET)))
    return hints(labels, owner=Owner("Job", job, f"uid-{job}", "batch")), objects, conventions(names)


def test_a_job_set_is_one_gang_of_all_its_jobs():
    found = resolve(*two_levels(set_spec=JOBS_OF_SET, job_spec={"parallelism": 3})).declaration
    assert (found.convention, found.name, found.minimum, found.left) == ("JobSet", "ns/s", 8, 8)
    done = {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}, {"name": "x", "succeeded": 9}]}
    assert resolve(*two_levels(set_spec=JOBS_OF_SET, **done)).declaration.left == 5


@pytest.mark.parametrize(
    "staged",
    [
        {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
        {
            "replicatedJobs": [
                JOBS_OF_SET["replicatedJobs"][0] | {"dependsOn": [{"name": "b-c"}]},
                JOBS_OF_SET["replicatedJobs"][1],
            ]
        },
    ],
)
def test_parts_of_a_job_set_that_start_after_each_other_are_gangs_of_their_own(staged):
    for job, labels in (("s-b-c-0", {}), ("whatever", {ROLE: "b-c"})):
        found = resolve(*two_levels(set_spec=JOBS_OF_SET | staged, job=job, labels=labels)).declaration
        assert (found.key, found.name, found.minimum, found.left) == ("owner/uid-s/b-c", "ns/s-b-c", 2, 2)
    found = resolve(*two_levels(set_spec=JOBS_OF_SET | staged, replicatedJobsStatus=[{"name": "a", "succeeded": 1}]))
    assert (found.declaration.name, found.declaration.minimum, found.declaration.left) == ("ns/s-a", 6, 3)


def test_of_a_job_set_only_its_jobs_are_gangs_if_only_these_are_asked_for():
    found = resolve(*two_levels(set_spec=JOBS_OF_SET, job_spec={"parallelism": 3}, names=["jobs"])).declaration
    assert (found.convention, found.name, found.minimum) == ("Job", "ns/s-a-0", 3)


def test_jobs_below_a_kind_that_cannot_be_read_are_gangs_of_their_own():
    pod, objects, given = two_levels(set_spec=JOBS_OF_SET, job_spec={"parallelism": 3})
    objects.delete(JOB_SETS, objects.by_uid["uid-s"])
    assert resolve(pod, objects, given).declaration.waits.startswith("JobSet ns/s does not exist any more")
    objects.unserved.add(JOB_SETS)
    assert resolve(pod, objects, given).declaration.minimum == 3


@pytest.mark.parametrize(("names", "labels", "waits"), [
    (["jobs"], {}, True), (["jobsets"], {}, False), (["jobsets"], {ROLE: "a"}, True), (["tfjobs"], {ROLE: "a"}, False),
])  # fmt: skip
def test_pods_of_a_deleted_job_wait_for_the_garbage_collector(names, labels, waits):
    found = resolve(hints(labels, owner=JOB), Objects(), conventions(names)).declaration
    assert (found is not None) == waits
    assert found is None or found.waits == "Job ns/j does not exist any more, so that its pods are about to be deleted"


@pytest.mark.parametrize(
    ("spec", "minimum"),
    [
        ({"leaderWorkerTemplate": {"size": 4}}, 4),
        ({"leaderWorkerTemplate": {"size": 4}, "startupPolicy": "LeaderReady"}, 3),
        ({"leaderWorkerTemplate": {}}, None),
    ],
)
def test_each_replica_of_a_leader_worker_set_is_a_gang(spec, minimum):
    made = owner_or_group(LEADER_WORKER_SETS, "s", spec=spec)
    found = resolve(hints(LABELS), Objects((LEADER_WORKER_SETS, made)), conventions(["leaderworkersets"])).declaration
    name = "ns/s-1 without its leader" if minimum == 3 else "ns/s-1"
    assert (found and (found.name, found.minimum)) == (minimum and (name, minimum))


def test_a_leader_worker_set_that_is_not_observed_yet_is_waited_for():
    rig = Rig()
    rig.registry.form_gangs_from(["leaderworkersets"])
    rig.pod("a", labels=LABELS)
    assert rig.gang("a") == 'LeaderWorkerSet "ns/s" not found'
    rig.put(LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "s", spec={"leaderWorkerTemplate": {"size": 2}}))
    assert rig.gang("a") == (2, "ns/s-1")
    found = resolve(hints(LABELS), Objects(), conventions(["leaderworkersets"]))
    assert found.declaration.minimum == 0
    unserved = Objects()
    unserved.unserved.add(LEADER_WORKER_SETS)
    assert resolve(hints(LABELS), unserved, conventions(["leaderworkersets"])).declaration is None


def test_a_slow_lookup_is_reported_and_then_ends():
    class Slow(Objects):
        why = ""

        def owner(self, owner, namespace):
            if owner.uid in self.unknown:
                raise Unknown(f"owner/{owner.uid}", self.why)
            return super().owner(owner, namespace)

    rig = Rig()
    rig.registry.form_gangs_from(["jobs"])
    objects = rig.objects = rig.registry.objects = Slow()
    objects.unknown.add("uid-j")
    rig.pod("a", owner=JOB)
    assert rig.blocked == []
    objects.why = "cannot look up its owner, Job ns/j: refused"
    rig.registry.resolved("owner/uid-j")
    rig.work()
    assert rig.blocked == [("a", objects.why)]
    objects.unknown.clear()
    objects.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2}))
    rig.registry.resolved("owner/uid-j")
    rig.work()
    assert rig.gang("a") == (2, "ns/j")


def test_a_corrected_owner_releases_its_pods():
    kind, resource, _ = OWNER_KINDS["tfjobs"]
    rig = Rig((resource, owner_or_group(resource, "t", spec=replicas("tfReplicaSpecs", Worker=-1))))
    rig.registry.form_gangs_from(["tfjobs"])
    rig.pod("a", owner=Owner(kind, "t", "uid-t", resource.group))
    assert rig.gang("a").startswith("TFJob ns/t: spec.tfReplicaSpecs.Worker.replicas: -1 is not valid")
    assert [name for name, _ in rig.invalid] == ["a"]
    rig.put(resource, owner_or_group(resource, "t", spec=replicas("tfReplicaSpecs", Worker=2)))
    assert rig.gang("a") == (2, "ns/t")


def test_a_job_set_that_is_partly_done_needs_what_is_left():
    spec = {
        "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 4}}}]
    }
    rig = Rig((JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec)))
    rig.registry.form_gangs_from(["jobsets"])
    jobs = [Owner("Job", f"s-w-{at}", f"uid-s-w-{at}", "batch") for at in range(2)]
    for job in jobs:
        made = owner_or_group(JOBS, job.name, spec={"parallelism": 4, "completions": 4}, owner=SET)
        rig.put(JOBS, made)
        rig.pod(job.name, owner=job)
        assert rig.gang(job.name) == (8, "ns/s")  # also while the first job is the only one
    half = owner_or_group(JOBS, "s-w-0", spec={"parallelism": 4, "completions": 4}, status={"succeeded": 3}, owner=SET)
    rig.put(JOBS, half)
    assert rig.gang("s-w-1") == (5, "ns/s")
    status = {"replicatedJobsStatus": [{"name": "w", "succeeded": 1}]}
    rig.gone("s-w-0")
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec, status=status))
    assert rig.gang("s-w-1") == (4, "ns/s")


def test_a_job_that_grows_from_one_pod_becomes_a_gang():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 1})))
    rig.registry.form_gangs_from(["jobs"])
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    assert not rig.registry._members
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    assert rig.gang("a") == (3, "ns/j")
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 1}))
    assert rig.gang("a") is None
    assert rig.below == []


def test_pods_of_single_jobs_are_not_resolved_again_as_these_progress():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 1, "completions": 9})))
    rig.registry.form_gangs_from(["jobs"])
    rig.pod("a", owner=JOB)
    job = owner_or_group(JOBS, "j", spec={"parallelism": 1, "completions": 9}, status={"succeeded": 3})
    rig.objects.put(JOBS, job)
    rig.registry.changed(JOBS, job)
    assert not rig.known("a").dirty


def test_a_pod_whose_job_could_not_be_read_is_resolved_when_it_can():
    rig = Rig()
    rig.registry.form_gangs_from(["jobsets"])
    rig.objects.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=JOBS_OF_SET))
    rig.pod("a", owner=Owner("Job", "s-a-0", "uid-s-a-0", "batch"))
    assert rig.gang("a") is None
    rig.put(JOBS, owner_or_group(JOBS, "s-a-0", spec={"parallelism": 3}, owner=SET))
    assert rig.gang("a") == (8, "ns/s")


def test_conventions_raise_what_the_registry_reports():
    (given,) = conventions(["tfjobs"])
    kind, resource, _ = OWNER_KINDS["tfjobs"]
    objects = Objects((resource, owner_or_group(resource, "o", spec={"tfReplicaSpecs": 1})))
    with pytest.raises(Invalid, match="TFJob ns/o: spec"):
        given.read(hints(owner=Owner(kind, "o", "uid-o", resource.group)), objects)


def test_a_pod_that_is_deleted_while_its_owner_is_looked_up_is_forgotten():
    rig = Rig()
    rig.registry.form_gangs_from(["jobs"])
    rig.objects.unknown.add("uid-j")
    rig.pod("a", owner=JOB)
    rig.pod("b", owner=JOB)
    rig.gone("a")
    assert set(rig.registry._index.take_waiting("owner/uid-j")) == {"uid-b"}
