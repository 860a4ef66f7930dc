"""Owners of pods: JobSet, LeaderWorkerSet, the kinds of kubeflow.org, RayCluster. Their pods are gangs without a
declaration."""

from poseidon_py.state.gangs.by_owner import JOB_SETS
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS, OWNER_KINDS, RAY_CLUSTERS
from tests.poseidon_py.conventions.case import ABSENT, Case, changed, key_case
from tests.poseidon_py.conventions.outcomes import JOB, Json, World, a_job, a_pod, an_object, owned_by

CONVENTIONS = ("jobset", "lws", "kubeflow-training", "kuberay")

ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LWS = "leaderworkerset.sigs.k8s.io/"
SET = owned_by("JobSet", "s", "jobset.x-k8s.io")
TWO_JOBS = {
    "replicatedJobs": [
        {"name": "driver", "replicas": 1, "template": {"spec": {"parallelism": 2, "completions": 2}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
    ]
}


def _job_set(body: Json) -> World:
    """A pod of the first replicated job."""
    pods = (a_pod("a", owner=JOB, labels={ROLE: "driver"}),)
    objects = ((JOB_SETS, an_object("s", **body)), a_job(owner=SET))
    return World(objects=objects, pods=pods, gangs_from=("jobsets",))


def _in_set(labels: Json) -> World:
    spec = {**TWO_JOBS, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    objects = ((JOB_SETS, an_object("s", spec=spec)), a_job(owner=SET))
    return World(objects=objects, pods=(a_pod("a", owner=JOB, labels=labels),), gangs_from=("jobsets",))


def _in_exclusive_set(annotations: Json) -> World:
    """Pods of one Job of a set."""
    index = "batch.kubernetes.io/job-completion-index"
    pods = tuple(
        a_pod(name, owner=JOB, labels={ROLE: "driver"}, annotations={index: str(at), **annotations})
        for at, name in enumerate("ab")
    )
    objects = ((JOB_SETS, an_object("s", spec=TWO_JOBS)), a_job(owner=SET))
    return World(objects=objects, pods=pods, gangs_from=("jobsets",))


def _of_job_set(path: str, one: object, other: object) -> Case:
    base = {"spec": TWO_JOBS}
    return Case(_job_set(changed(base, path, one)), _job_set(changed(base, path, other)))


def _lws(body: Json) -> World:
    pods = tuple(a_pod(name, labels={LWS + "name": "s", LWS + "group-index": "0"}) for name in "ab")
    objects = ((LEADER_WORKER_SETS, an_object("s", **body)),)
    return World(objects=objects, pods=pods, gangs_from=("leaderworkersets",))


def _of_lws(path: str, one: object, other: object) -> Case:
    base = {"spec": {"leaderWorkerTemplate": {"size": 2}}}
    return Case(_lws(changed(base, path, one)), _lws(changed(base, path, other)))


def _lws_pods(labels: Json) -> World:
    return World(pods=tuple(a_pod(name, labels=labels, annotations={LWS + "size": "2"}) for name in "ab"))


def _lws_annotated(annotations: Json) -> World:
    labels = {LWS + "name": "s", LWS + "group-index": "0"}
    return World(pods=tuple(a_pod(name, labels=labels, annotations=annotations) for name in "ab"))


def _custom(plural: str):
    """A world of an owner of a kind with pods."""
    kind, resource, _ = OWNER_KINDS[plural]

    def world(body: Json) -> World:
        owner = owned_by(kind, "o", resource.group)
        return World(
            objects=((resource, an_object("o", **body)),),
            pods=tuple(a_pod(name, owner=owner) for name in "ab"),
            gangs_from=(plural,),
        )

    return world


def _of(plural: str, base: Json, path: str, one: object, other: object) -> Case:
    world = _custom(plural)
    return Case(world(changed({"spec": base}, path, one)), world(changed({"spec": base}, path, other)))


def _kubeflow(plural: str) -> dict[tuple[str, str], Case]:
    kind, _, replicas = OWNER_KINDS[plural]
    base = {replicas: {"Worker": {"replicas": 3}}}
    path = f"spec.{replicas}{{}}.replicas"
    policy = "spec.runPolicy.schedulingPolicy.minAvailable"
    return {
        (kind, path): _of(plural, base, path, 3, 4),
        (kind, policy): _of(plural, base, policy, 2, 3),
        (kind, "spec.runPolicy.suspend"): _of(plural, base, "spec.runPolicy.suspend", False, True),
    }


_WORKERS = {"workerGroupSpecs": [{"groupName": "w", "replicas": 3, "minReplicas": 2}]}
_FIRST = "spec.workerGroupSpecs[]"


def _ray(path: str, one: object, other: object, **spec: object) -> Case:
    return _of("rayclusters", {**_WORKERS, **spec}, path, one, other)


def _ray_cluster(labels: Json) -> World:
    owner = owned_by("RayCluster", "r", "ray.io")
    cluster = (RAY_CLUSTERS, an_object("r", labels=labels, spec=_WORKERS))
    return World(objects=(cluster,), pods=tuple(a_pod(name, owner=owner) for name in "ab"))


_TEMPLATE = "spec.replicatedJobs[].template.spec"

FIELDS = {
    ("JobSet", "spec.replicatedJobs[].replicas"): _of_job_set("spec.replicatedJobs[].replicas", 1, 2),
    ("JobSet", f"{_TEMPLATE}.parallelism"): _of_job_set(f"{_TEMPLATE}.parallelism", 1, 2),
    ("JobSet", f"{_TEMPLATE}.completions"): _of_job_set(f"{_TEMPLATE}.completions", 1, 2),
    ("JobSet", "spec.replicatedJobs[].dependsOn[].name"): _of_job_set(
        "spec.replicatedJobs[].dependsOn", ABSENT, [{"name": "workers"}]
    ),
    ("JobSet", "spec.startupPolicy.startupPolicyOrder"): _of_job_set(
        "spec.startupPolicy.startupPolicyOrder", "AnyOrder", "InOrder"
    ),
    ("JobSet", "spec.suspend"): _of_job_set("spec.suspend", False, True),
    ("LeaderWorkerSet", "spec.leaderWorkerTemplate.size"): _of_lws("spec.leaderWorkerTemplate.size", 2, 3),
    ("LeaderWorkerSet", "spec.startupPolicy"): _of_lws("spec.startupPolicy", "LeaderCreated", "LeaderReady"),
    **{
        key: case
        for plural in ("mpijobs", "pytorchjobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs")
        for key, case in _kubeflow(plural).items()
    },
    ("RayCluster", f"{_FIRST}.replicas"): _ray(f"{_FIRST}.replicas", 3, 4),
    ("RayCluster", f"{_FIRST}.minReplicas"): _ray(f"{_FIRST}.minReplicas", 2, 3, enableInTreeAutoscaling=True),
    ("RayCluster", f"{_FIRST}.numOfHosts"): _ray(f"{_FIRST}.numOfHosts", 1, 2),
    ("RayCluster", f"{_FIRST}.suspend"): _ray(f"{_FIRST}.suspend", False, True),
    ("RayCluster", "spec.enableInTreeAutoscaling"): _ray("spec.enableInTreeAutoscaling", False, True),
    ("RayCluster", "spec.suspend"): _ray("spec.suspend", False, True),
}

ANNOTATIONS = {
    LWS + "exclusive-topology": key_case(
        _lws_annotated, LWS + "exclusive-topology", ABSENT, "rack", **{LWS + "size": "2"}
    ),
    EXCLUSIVE: key_case(_in_exclusive_set, EXCLUSIVE, ABSENT, "rack"),
    LWS + "size": key_case(_lws_annotated, LWS + "size", "2", "3"),
}

LABELS = {
    ROLE: key_case(_in_set, ROLE, "driver", "workers"),
    LWS + "name": key_case(_lws_pods, LWS + "name", "s", "t", **{LWS + "group-index": "0"}),
    LWS + "group-index": key_case(_lws_pods, LWS + "group-index", "0", "1", **{LWS + "name": "s"}),
    LWS + "group-key": key_case(_lws_pods, LWS + "group-key", "k", "l"),
    "ray.io/gang-scheduling-enabled": key_case(_ray_cluster, "ray.io/gang-scheduling-enabled", ABSENT, "true"),
    "ray.io/group": key_case(lambda labels: World(pods=(a_pod("a", labels=labels),)), "ray.io/group", "g", "h"),
    "ray.io/node-type": key_case(
        lambda labels: World(pods=(a_pod("a", labels=labels),)), "ray.io/node-type", "head", "worker"
    ),
}
