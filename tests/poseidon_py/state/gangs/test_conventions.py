"""What each convention declares, by the labels and annotations of a pod and the objects that they name."""

import msgspec
import pytest
from msgspec import Raw

from poseidon_py.conventions import group_keys
from poseidon_py.state.gangs import keys
from poseidon_py.state.gangs.by_annotation import BatchAnnotations, Kueue, LeaderWorkerSet, LightLabels, YuniKorn
from poseidon_py.state.gangs.by_owner import DEPLOYMENTS, JOB_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS, Own, Percent
from poseidon_py.state.gangs.by_pod_group import (
    COSCHEDULING,
    GODEL,
    KAI,
    NATIVE,
    VOLCANO,
    Coscheduling,
    Godel,
    Kai,
    Native,
    Volcano,
)
from poseidon_py.state.gangs.model import Owner, Unknown
from poseidon_py.state.gangs.resolve import resolve
from tests.poseidon_py.state.gangs.builders import CREATED_US, JOB, SET, Objects, hints, owner_or_group

LIGHT, MIN = "pod-group.scheduling.x-k8s.io/name", "pod-group.scheduling.x-k8s.io/min-available"
NAME, NUMBER = "scheduling.k8s.io/group-name", "scheduling.k8s.io/group-pod-num"
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
KUEUE, COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
TASK, TASKS = "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"
APP = "yunikorn.apache.org/app-id"
LWS = "leaderworkerset.sigs.k8s.io"
GROUPS = '[{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 4, "minResource": {"cpu": 1}}]'
RS = Owner("ReplicaSet", "r", "uid-r", "apps")
STS = Owner("StatefulSet", "t", "uid-t", "apps")
DEPLOYMENT = Owner("Deployment", "d", "uid-d", "apps")


def fields(declaration, *names):
    return {name: getattr(declaration, name) for name in names}


CASES = [
    # convention, labels, annotations, other marks, objects, what is declared
    (LightLabels, {LIGHT: "g", MIN: "2"}, {}, {}, [], {"name": "ns/g", "minimum": 2, "size": None}),
    (BatchAnnotations, {}, {NAME: "qj-1", NUMBER: "3"}, {}, [], {"name": "ns/qj-1", "minimum": 3, "size": 3}),
    (Kueue, {KUEUE: "k"}, {COUNT: "4"}, {}, [], {"name": "ns/k", "minimum": 4, "maximum": 4}),
    (
        Kueue,
        {KUEUE: "k"},
        {COUNT: "4", REQUIRED: "rack"},
        {},
        [],
        {"minimum": 4, "topology_key": "rack", "topology_required": True},
    ),
    (
        Kueue,
        {},
        {PREFERRED: "rack"},
        {"owner": STS},
        [(STATEFUL_SETS, owner_or_group(STATEFUL_SETS, "t", spec={"replicas": 3}))],
        {"key": "kueue/uid-t", "minimum": 3, "topology_key": "rack", "topology_required": False},
    ),
    (
        Own,
        {},
        {"poseidon.io/gang": "2", "poseidon.io/gang-max": "5", "poseidon.io/gang-name": "x"},
        {},
        [],
        {"minimum": 2, "maximum": 5},
    ),
    (
        Own,
        {},
        {},
        {"owner": STS},
        [
            (
                STATEFUL_SETS,
                owner_or_group(
                    STATEFUL_SETS,
                    "t",
                    annotations={"poseidon.io/gang": "2", "poseidon.io/gang-max": "4"},
                    spec={"replicas": 9},
                ),
            )
        ],
        {"minimum": 2, "maximum": 4, "size": 9},
    ),
    (
        LeaderWorkerSet,
        {f"{LWS}/name": "l", f"{LWS}/group-index": "2", f"{LWS}/worker-index": "0"},
        {f"{LWS}/size": "5"},
        {},
        [],
        {"name": "ns/l-2", "minimum": 5},
    ),
    (LeaderWorkerSet, {f"{LWS}/group-key": "abc"}, {f"{LWS}/size": "2"}, {}, [], {"name": "ns/abc", "minimum": 2}),
    (
        YuniKorn,
        {APP: "a"},
        {TASK: "driver", TASKS: GROUPS},
        {},
        [],
        {"name": "ns/a/driver", "minimum": 1, "announced": (("yunikorn/ns/a/executor", 4),)},
    ),
    (YuniKorn, {"applicationId": "a"}, {TASK: "x", TASKS: '[{"name": "x", "minMember": 7}]'}, {}, [], {"minimum": 7}),
    (
        YuniKorn,
        {APP: "a"},
        {TASK: "executor"},
        {},
        [],
        {
            "minimum": 0,
            "waits": f"task group ns/a/executor: no pod of its application has the annotation {TASKS} yet",
        },
    ),
    (
        Coscheduling,
        {"scheduling.x-k8s.io/pod-group": "g"},
        {},
        {},
        [(COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 3, "scheduleTimeoutSeconds": 30}))],
        {"name": "ns/g", "minimum": 3, "timeout": 30.0, "created_us": CREATED_US, "waits": ""},
    ),
    (
        Coscheduling,
        {"scheduling.x-k8s.io/pod-group": "g"},
        {},
        {},
        [],
        {
            "minimum": 0,
            "waits": 'pod group "ns/g" not found: there is no such object among podgroups.scheduling.x-k8s.io',
        },
    ),
    (
        Coscheduling,
        {"scheduling.x-k8s.io/pod-group": "g", "fluence.group-size": "6"},
        {},
        {},
        [],
        {"convention": "Fluence", "minimum": 6, "maximum": 6, "waits": ""},
    ),
    (
        Volcano,
        {},
        {NAME: "g", "volcano.sh/task-spec": "worker"},
        {},
        [(VOLCANO, owner_or_group(VOLCANO, spec={"minMember": 5, "minTaskMember": {"worker": 4, "ps": 1}}))],
        {"minimum": 5, "roles": (("ps", 1), ("worker", 4)), "role": "worker"},
    ),
    (
        Coscheduling,
        {"scheduling.x-k8s.io/pod-group": "g"},
        {},
        {},
        [(COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 1, "minResources": {"cpu": "11", "pods": 2}}))],
        {"minimum": 1, "start_amounts": (("cpu", 11000), ("pods", 2))},
    ),
    (  # as Volcano's controller writes them; NewResource in resource_info.go ignores those of quotas
        Volcano,
        {},
        {NAME: "g"},
        {},
        [
            (
                VOLCANO,
                owner_or_group(
                    VOLCANO,
                    spec={
                        "minMember": 0,
                        "minResources": {
                            "cpu": "500m",
                            "memory": "1Gi",
                            "nvidia.com/gpu": 2,
                            "requests.cpu": "500m",
                            "limits.nvidia.com/gpu": "2",
                            "requests.nvidia.com/gpu": "2",
                            "count/pods": "3",
                            "ephemeral-storage": "0",
                        },
                    },
                ),
            )
        ],
        {"minimum": 1, "start_amounts": (("cpu", 500), ("memory", 2**30), ("nvidia.com/gpu", 2))},
    ),
    (  # Volcano: job_info.go, CheckTaskValid: "if job minAvailable is less than sum of(task minAvailable), skip"
        Volcano,
        {},
        {NAME: "g", "volcano.sh/task-spec": "worker"},
        {},
        [(VOLCANO, owner_or_group(VOLCANO, spec={"minMember": 3, "minTaskMember": {"worker": 9, "ps": 1}}))],
        {"minimum": 3, "roles": (), "role": "worker"},
    ),
    (
        Kai,
        {"kai.scheduler/subgroup-name": "decode"},
        {"pod-group-name": "g"},
        {},
        [
            (
                KAI,
                owner_or_group(
                    KAI,
                    spec={
                        "minMember": 2,
                        "subGroups": [
                            {"name": "all"},
                            {"name": "prefill", "minMember": 2, "parent": "all"},
                            {"name": "decode", "minMember": 3, "parent": "all"},
                        ],
                        "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"},
                    },
                ),
            )
        ],
        {
            "minimum": 5,
            "roles": (("prefill", 2), ("decode", 3)),
            "role": "decode",
            "topology_key": "rack",
            "topology_required": True,
        },
    ),
    (
        Kai,
        {},
        {"pod-group-name": "g"},
        {},
        [(KAI, owner_or_group(KAI, spec={"minMember": 2, "topologyConstraint": {"preferredTopologyLevel": "zone"}}))],
        {"minimum": 2, "roles": (), "topology_key": "zone", "topology_required": False, "narrower_keys": ()},
    ),
    (
        Kai,
        {},
        {"pod-group-name": "g"},
        {},
        [
            (
                KAI,
                owner_or_group(
                    KAI,
                    spec={"topologyConstraint": {"requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"}},
                ),
            )
        ],
        {"topology_key": "zone", "topology_required": True, "narrower_keys": ("rack",)},
    ),
    (
        Kai,
        {},
        {"pod-group-name": "g"},
        {},
        [
            (
                KAI,
                owner_or_group(
                    KAI,
                    spec={"topologyConstraint": {"requiredTopologyLevel": "rack", "preferredTopologyLevel": "rack"}},
                ),
            )
        ],
        {"topology_key": "rack", "topology_required": True, "narrower_keys": ()},
    ),
    (
        Godel,
        {"godel.bytedance.com/pod-group-name": "g"},
        {},
        {},
        [(GODEL, owner_or_group(GODEL, spec={"minMember": 9}))],
        {"minimum": 9},
    ),
    (
        Native,
        {},
        {},
        {"group": "g"},
        [
            (
                NATIVE,
                owner_or_group(
                    NATIVE,
                    spec={
                        "schedulingPolicy": {"gang": {"minCount": 4}},
                        "schedulingConstraints": {"topology": [{"key": "rack"}]},
                        "disruptionMode": "PodGroup",
                    },
                ),
            )
        ],
        {
            "minimum": 4,
            "topology_key": "rack",
            "topology_required": True,
            "created_us": CREATED_US,
            "disrupted_whole": True,
        },
    ),
    (
        Native,
        {},
        {},
        {"group": "g"},
        [(NATIVE, owner_or_group(NATIVE, spec={"schedulingPolicy": {"basic": {}}}))],
        {"minimum": 0, "waits": ""},
    ),
    (
        Percent,
        {},
        {"firmament-gang-scheduling": "60"},
        {"owner": RS},
        [(REPLICA_SETS, owner_or_group(REPLICA_SETS, "r", spec={"replicas": 4}))],
        {"minimum": 3, "size": 4},  # 2.4 rounded up
    ),
    (
        Percent,
        {},
        {"firmament-gang-scheduling": "100%"},
        {"owner": JOB},
        [(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4, "completions": 3}))],
        {"minimum": 3},
    ),
    (
        Own,
        {},
        {"poseidon.io/gang": "all"},
        {"owner": JOB},
        [(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}))],
        {"name": "ns/j", "minimum": 4, "created_us": CREATED_US},
    ),
    (
        Own,
        {},
        {},
        {"owner": STS},
        [
            (
                STATEFUL_SETS,
                owner_or_group(STATEFUL_SETS, "t", annotations={"poseidon.io/gang": "2"}, spec={"replicas": 3}),
            )
        ],
        {"name": "ns/t", "minimum": 2, "size": 3},
    ),
    (
        Own,
        {},
        {"poseidon.io/gang": "true", "poseidon.io/gang-min": "2", "poseidon.io/gang-topology": "rack"},
        {"owner": JOB},
        [(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}))],
        {"minimum": 2, "topology_key": "rack", "topology_required": True},
    ),
    (
        Own,
        {},
        {
            "poseidon.io/gang": "3",
            "poseidon.io/gang-name": "x",
            "poseidon.io/gang-role": "ps=1",
            "poseidon.io/gang-topology": "rack",
            "poseidon.io/gang-topology-mode": "preferred",
        },
        {},
        [],
        {"name": "ns/x", "minimum": 3, "role": "ps", "roles": (("ps", 1),), "topology_required": False},
    ),
    (
        Own,
        {},
        {},
        {"owner": RS},
        [
            (REPLICA_SETS, owner_or_group(REPLICA_SETS, "r", owner=DEPLOYMENT, spec={"replicas": 5})),
            (
                DEPLOYMENTS,
                owner_or_group(DEPLOYMENTS, "d", annotations={"poseidon.io/gang": "all"}, spec={"replicas": 6}),
            ),
        ],
        {"name": "ns/r", "minimum": 5},  # each ReplicaSet of a Deployment is a gang
    ),
    (
        Own,
        {"jobset.sigs.k8s.io/replicatedjob-name": "workers"},
        {},
        {"owner": JOB},
        [
            (JOBS, owner_or_group(JOBS, "j", owner=SET, spec={"parallelism": 3})),
            (
                JOB_SETS,
                owner_or_group(
                    JOB_SETS,
                    "s",
                    annotations={"poseidon.io/gang": "all"},
                    spec={
                        "replicatedJobs": [
                            {"name": "driver", "template": {"spec": {}}},
                            {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
                        ]
                    },
                ),
            ),
        ],
        {"name": "ns/s", "minimum": 7, "role": "workers", "roles": (("driver", 1), ("workers", 6))},
    ),
    (Own, {}, {"poseidon.io/gang": "false"}, {"owner": JOB}, [], {"key": "", "minimum": 0}),
]


@pytest.mark.parametrize(("convention", "labels", "annotations", "extra", "objects", "expected"), CASES)
def test_what_is_declared(convention, labels, annotations, extra, objects, expected):
    declaration = convention().read(hints(labels, annotations, **extra), Objects(*objects))
    assert fields(declaration, *expected) == expected


@pytest.mark.parametrize("convention", dict.fromkeys(case[0] for case in CASES), ids=lambda c: c.__name__)
def test_a_pod_without_the_convention_declares_nothing(convention):
    assert convention().read(hints({"app": "x"}, {"note": "y"}), Objects()) is None


@pytest.mark.parametrize("number", ["0", " 0 ", "00"])
def test_a_batch_task_of_0_pods_is_a_single_pod(number):
    declaration = resolve(hints({}, {NAME: "g", NUMBER: number}), Objects())
    assert (declaration.declaration, declaration.invalid, declaration.unknown) == (None, "", "")


def test_an_unknown_owner_makes_the_declaration_unknown():
    objects = Objects()
    objects.unknown.add(JOB.uid)
    with pytest.raises(Unknown):
        Own().read(hints(owner=JOB), objects)


@pytest.mark.parametrize(
    ("spec", "status", "size", "left"),
    [
        ({}, {}, 1, None),
        ({"parallelism": 4}, {}, 4, None),
        ({"parallelism": 4, "completions": 10}, {}, 4, 10),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 8}, 4, 2),
        ({"parallelism": 4, "completions": 2}, {"succeeded": 3}, 2, 0),
    ],
)
def test_how_many_pods_a_job_has(spec, status, size, left):
    job = owner_or_group(JOBS, spec=spec, status=status)
    assert (job.counts.size, job.counts.left) == (size, left)


def test_pods_that_request_a_topology_and_have_no_owner_are_single():
    assert Kueue().read(hints({}, {REQUIRED: "rack"}), Objects()) is None
    assert keys.mentions_gangs(Raw(b'{"kueue.x-k8s.io/podset-required-topology": "rack"}'))


@pytest.mark.parametrize(
    ("replicas", "of_set", "minimum"),
    [
        pytest.param(3, 1, 1, id="a-rolling-update-begins"),
        pytest.param(3, 2, 2, id="and-goes-on"),
        pytest.param(3, 3, 2, id="and-ends"),
        pytest.param(1, 1, 2, id="the-deployment-is-too-small"),
    ],
)
@pytest.mark.parametrize("on", ["pod", "replica set", "deployment"])
def test_a_number_of_pods_of_a_deployment_does_not_stop_a_rolling_update(replicas, of_set, minimum, on):
    gang = {"poseidon.io/gang": "2"}
    above = owner_or_group(
        DEPLOYMENTS, "d", spec={"replicas": replicas}, annotations=gang if on == "deployment" else {}
    )
    made = owner_or_group(
        REPLICA_SETS, "r", spec={"replicas": of_set}, owner=DEPLOYMENT, annotations=gang if on == "replica set" else {}
    )
    pod = hints(annotations=gang if on == "pod" else {}, owner=RS)
    found = resolve(pod, Objects((DEPLOYMENTS, above), (REPLICA_SETS, made))).declaration
    assert found is not None
    assert (found.name, found.minimum) == ("ns/r", minimum)


def test_every_key_that_declares_a_gang_is_found_without_decoding():
    for key in group_keys.KEYS - group_keys.COMPANIONS:
        assert keys.mentions_gangs(Raw(msgspec.json.encode({key: "1"}))), key


def test_every_name_of_a_group_and_every_role_is_read():
    assert {*group_keys.GROUPS, *group_keys.ROLES} <= group_keys.KEYS
