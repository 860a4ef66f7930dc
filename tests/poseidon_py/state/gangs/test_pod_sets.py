"""The pod sets of Kueue: the pods that a requested topology places together."""

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS, OWNER_KINDS
from poseidon_py.state.gangs.resolve import resolve
from poseidon_py.state.gangs.without_marks import conventions
from tests.poseidon_py.state.gangs.builders import JOB, SET, Objects, hints, owner_or_group

LWS = "leaderworkerset.sigs.k8s.io"
RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
LEADERS, WORKERS = Owner("StatefulSet", "l", "uid-l", "apps"), Owner("StatefulSet", "l-1", "uid-l-1", "apps")


def of_lws(index, worker, owner, annotations=RACK):
    labels = {f"{LWS}/name": "l", f"{LWS}/group-index": str(index), f"{LWS}/worker-index": str(worker)}
    return hints(labels, {f"{LWS}/size": "3"} | annotations, owner=owner)


def leader_worker_set(startup="LeaderCreated"):
    """A LeaderWorkerSet of 4 replicas: the leaders are in one StatefulSet, the workers of each replica in another."""
    spec = {"leaderWorkerTemplate": {"size": 3}, "replicas": 4, "startupPolicy": startup}
    return Objects(
        (LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "l", spec=spec, uid="uid-lws")),
        (STATEFUL_SETS, owner_or_group(STATEFUL_SETS, "l", spec={"replicas": 4})),
        (STATEFUL_SETS, owner_or_group(STATEFUL_SETS, "l-1", spec={"replicas": 2})),
    )


def declared(pod, objects, without_marks=()):
    """Key, minimum and topology; None: it is placed on its own."""
    found = resolve(pod, objects, without_marks)
    assert (found.invalid, found.warning, found.unknown) == ("", "", "")
    declaration = found.declaration
    if declaration is None or not declaration.key:
        return None
    return declaration.key, declaration.minimum, declaration.topology_key


@pytest.mark.parametrize(("worker", "owner"), [(0, LEADERS), (1, WORKERS)], ids=["leader", "worker"])
def test_a_replica_of_a_leader_worker_set_is_placed_together(worker, owner):
    """The leaders of all replicas were one gang, which had to fit into one rack."""
    assert declared(of_lws(1, worker, owner), leader_worker_set()) == ("lws/ns/l-1", 3, "rack")


def test_leaders_of_other_replicas_are_in_gangs_of_their_own():
    objects = leader_worker_set()
    keys = {declared(of_lws(index, 0, LEADERS), objects)[0] for index in range(4)}
    assert len(keys) == 4


def test_a_leader_without_a_wish_joins_its_workers():
    assert declared(of_lws(1, 0, LEADERS, {}), leader_worker_set()) == ("lws/ns/l-1", 3, "")


def test_workers_that_are_created_later_are_placed_together_without_their_leader():
    objects = leader_worker_set("LeaderReady")
    assert declared(of_lws(1, 0, LEADERS), objects) is None
    assert declared(of_lws(1, 2, WORKERS), objects) == ("followers/lws/ns/l-1", 2, "rack")


def test_a_leader_worker_set_of_unknown_size_has_no_gang():
    labels = {f"{LWS}/name": "l", f"{LWS}/group-index": "1"}
    assert declared(hints(labels, RACK, owner=LEADERS), leader_worker_set()) is None


def job_set(**fields):
    jobs = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 3}}},
    ]
    return Objects(
        (JOB_SETS, owner_or_group(JOB_SETS, "s", spec={"replicatedJobs": jobs} | fields)),
        (JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3, "completions": 3}, owner=SET)),
    )


@pytest.mark.parametrize(
    "fields", [{}, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}], ids=["at once", "staged"]
)
def test_the_jobs_of_a_replicated_job_are_placed_together(fields):
    """Kueue: pkg/controller/jobs/jobset/jobset_controller.go, podsCount."""
    assert declared(hints({ROLE: "w"}, RACK, owner=JOB), job_set(**fields)) == ("kueue/uid-s/w", 6, "rack")


def test_what_is_left_of_a_replicated_job_is_known():
    found = resolve(hints({ROLE: "w"}, RACK, owner=JOB), job_set()).declaration
    assert found is not None
    assert (found.name, found.size, found.left) == ("ns/s-w", 6, 6)


@pytest.mark.parametrize(("launchers", "expected"), [(1, None), (2, ("owner/uid-s", 2, ""))])
def test_the_other_pods_of_a_job_set_do_not_wait_for_those_with_a_topology(launchers, expected):
    """They are another gang: the pods of the JobSet would never be complete."""
    workers = {"parallelism": 3, "template": {"metadata": {"annotations": RACK}}}
    jobs = [
        {"name": "launcher", "template": {"spec": {"parallelism": launchers}}},
        {"name": "w", "replicas": 2, "template": {"spec": workers}},
    ]
    objects = Objects(
        (JOB_SETS, owner_or_group(JOB_SETS, "s", spec={"replicatedJobs": jobs})),
        (JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, owner=SET)),
    )
    for labels in ({}, {ROLE: "launcher"}):
        assert declared(hints(labels, owner=JOB), objects, conventions(["jobsets"])) == expected
    assert declared(hints({ROLE: "w"}, RACK, owner=JOB), objects) == ("kueue/uid-s/w", 6, "rack")


TEMPLATE = {"metadata": {"annotations": RACK}}
PYTORCH = OWNER_KINDS["pytorchjobs"].resource
REPLICAS = "training.kubeflow.org/replica-type"


def pytorch_job(*apart, **status):
    """A master and three workers; the roles in `apart` request a topology."""
    roles = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    spec = {
        "pytorchReplicaSpecs": {
            key: each | ({"template": TEMPLATE} if key in apart else {}) for key, each in roles.items()
        }
    }
    return Objects((PYTORCH, owner_or_group(PYTORCH, "t", spec=spec, status=status)))


@pytest.mark.parametrize(
    ("apart", "worker", "master"),
    [
        pytest.param(("Worker",), ("kueue/uid-t/worker", 3, "rack"), None, id="workers"),
        pytest.param(
            ("Master", "Worker"), ("kueue/uid-t/worker", 3, "rack"), ("kueue/uid-t/master", 1, "rack"), id="both"
        ),
        pytest.param((), ("owner/uid-t", 4, ""), ("owner/uid-t", 4, ""), id="none"),
    ],
)
def test_the_roles_of_a_training_job_are_pod_sets(apart, worker, master):
    owner = Owner("PyTorchJob", "t", "uid-t", "kubeflow.org")
    for role, expected in (("Worker", worker), ("Master", master)):
        pod = hints({REPLICAS: role.lower()}, RACK if role in apart else {}, owner=owner)
        assert declared(pod, pytorch_job(*apart), conventions(["pytorchjobs"])) == expected


def test_what_is_left_of_a_role_is_known():
    objects = pytorch_job("Worker", replicaStatuses={"Worker": {"succeeded": 2}})
    owner = Owner("PyTorchJob", "t", "uid-t", "kubeflow.org")
    found = resolve(hints({REPLICAS: "worker"}, RACK, owner=owner), objects).declaration
    assert found is not None
    assert (found.size, found.left) == (3, 1)


def test_the_groups_of_a_ray_cluster_are_pod_sets():
    groups = [
        {"groupName": "gpu", "replicas": 2, "numOfHosts": 2, "template": TEMPLATE},
        {"groupName": "cpu", "replicas": 3},
        {"groupName": "idle", "replicas": 3, "suspend": True, "template": TEMPLATE},
    ]
    ray = OWNER_KINDS["rayclusters"].resource
    spec = {"headGroupSpec": {"template": {}}, "workerGroupSpecs": groups}
    objects = Objects((ray, owner_or_group(ray, "r", spec=spec)))
    owner, of_owners = Owner("RayCluster", "r", "uid-r", "ray.io"), conventions(["rayclusters"])
    assert declared(hints({"ray.io/group": "gpu"}, RACK, owner=owner), objects, of_owners) == (
        "kueue/uid-r/gpu",
        4,
        "rack",
    )
    for group in ("headgroup", "cpu"):
        pod = hints({"ray.io/group": group}, owner=owner)
        assert declared(pod, objects, of_owners) == ("owner/uid-r", 4, "")


def test_a_job_whose_job_set_cannot_be_read_is_a_pod_set():
    objects = Objects((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, owner=SET)))
    assert declared(hints({ROLE: "w"}, RACK, owner=JOB), objects) == ("kueue/uid-j", 3, "rack")


def test_pods_of_a_deployment_are_placed_one_by_one():
    objects = Objects((REPLICA_SETS, owner_or_group(REPLICA_SETS, "r", spec={"replicas": 3})))
    assert declared(hints({}, RACK, owner=Owner("ReplicaSet", "r", "uid-r", "apps")), objects) is None


def test_pods_of_a_stateful_set_are_placed_together():
    objects = Objects((STATEFUL_SETS, owner_or_group(STATEFUL_SETS, "t", spec={"replicas": 3})))
    pod = hints({}, RACK, owner=Owner("StatefulSet", "t", "uid-t", "apps"))
    assert declared(pod, objects) == ("kueue/uid-t", 3, "rack")


@pytest.mark.parametrize(("least", "minimum"), [("2", 2), ("9", 4), (None, 4)])
def test_the_least_parallelism_of_a_job_is_the_minimum_of_its_pod_set(least, minimum):
    """It counted for Jobs without a topology alone."""
    annotations = {"kueue.x-k8s.io/job-min-parallelism": least} if least else {}
    spec = {"parallelism": 4, "completions": 4}
    job = owner_or_group(JOBS, "j", spec=spec, annotations=annotations)
    assert declared(hints({}, RACK, owner=JOB), Objects((JOBS, job))) == ("kueue/uid-j", minimum, "rack")
