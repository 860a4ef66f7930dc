"""Kinds of owners whose pods can be a gang without any declaration, and what is decoded of them.

Of each object only counts and progress are decoded here; templates of pods are skipped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple

from msgspec import Raw, Struct, field

from poseidon_py.conventions.group_keys import JOBSET_EXCLUSIVE, JOBSET_SELECTED, KUEUE_PREFERRED, KUEUE_REQUIRED
from poseidon_py.kube.informers.kinds import GroupKind
from poseidon_py.kube.objects import NOTHING, Condition, InvalidField
from poseidon_py.kube.workload_objects import SUSPEND_FIELDS
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS, OWNERS, Part, count_indexes, stages_of, verdict_of
from poseidon_py.state.gangs.model import (
    Counts,
    Invalid,
    Resource,
    number_of,
    number_or,
    ray_replicas,
    role_default,
    spark_executors,
)

LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "leaderworkersets", ("v1",))
RAY_CLUSTERS = Resource("ray.io", "rayclusters", ("v1", "v1beta1"))
RAY_JOBS = Resource("ray.io", "rayjobs", ("v1", "v1beta1"))
TRAIN_JOBS = Resource("trainer.kubeflow.org", "trainjobs", ("v1alpha1",))
SPARK_APPLICATIONS = Resource("sparkoperator.k8s.io", "sparkapplications", ("v1beta2",))
APP_WRAPPERS = Resource("workload.codeflare.dev", "appwrappers", ("v1beta2",))

_REPLICA_SPECS = {
    "mpijobs": ("MPIJob", "mpiReplicaSpecs", ("v2beta1", "v1")),
    "pytorchjobs": ("PyTorchJob", "pytorchReplicaSpecs", ("v1",)),
    "tfjobs": ("TFJob", "tfReplicaSpecs", ("v1",)),
    "xgboostjobs": ("XGBoostJob", "xgbReplicaSpecs", ("v1",)),
    "paddlejobs": ("PaddleJob", "paddleReplicaSpecs", ("v1",)),
    "jaxjobs": ("JAXJob", "jaxReplicaSpecs", ("v1",)),
}
"""Kinds of kubeflow.org by plural: kind, field with the replicas by role, versions."""


class OwnerKind(NamedTuple):
    """A kind that `--gangs-from` names by its plural."""

    kind: str
    resource: Resource
    replica_specs: str = ""
    """Kinds of kubeflow.org: the field with the replicas by role."""


OWNER_KINDS: Mapping[str, OwnerKind] = {
    "jobs": OwnerKind("Job", JOBS),
    "jobsets": OwnerKind("JobSet", JOB_SETS),
    "leaderworkersets": OwnerKind("LeaderWorkerSet", LEADER_WORKER_SETS),
    **{
        plural: OwnerKind(kind, Resource("kubeflow.org", plural, versions), specs)
        for plural, (kind, specs, versions) in _REPLICA_SPECS.items()
    },
    "rayclusters": OwnerKind("RayCluster", RAY_CLUSTERS),
}
"""By the name in the flag."""

KNOWN_KINDS: Mapping[GroupKind, Resource] = {
    **{GroupKind(*kind): resource for kind, resource in OWNERS.items()},
    **{GroupKind(each.resource.group, each.kind): each.resource for each in OWNER_KINDS.values()},
    GroupKind("ray.io", "RayJob"): RAY_JOBS,
    GroupKind("trainer.kubeflow.org", "TrainJob"): TRAIN_JOBS,
    GroupKind("sparkoperator.k8s.io", "SparkApplication"): SPARK_APPLICATIONS,
    GroupKind("workload.codeflare.dev", "AppWrapper"): APP_WRAPPERS,
}
"""Owners whose specs are read; of others only metadata."""

KIND_OF: Mapping[Resource, str] = {resource: kind.kind for kind, resource in KNOWN_KINDS.items()}

SUSPENDABLE = tuple(each for each in KIND_OF if (each.group, each.plural) in SUSPEND_FIELDS)

_OF_KUBEFLOW = {kind.resource: kind.replica_specs for kind in OWNER_KINDS.values() if kind.replica_specs}

_HEAD = "headgroup"
"""The group of the head of a RayCluster, as the label of its pod has it."""

Decode = Callable[[type[Any]], Any]
"""Reads a part of an object as a type. Raises InvalidField."""


class _Job(Struct):
    parallelism: int | None = None
    completions: int | None = None

    @property
    def at_once(self) -> int:
        """Number of pods that the Job runs at the same time at its start."""
        parallelism = 1 if self.parallelism is None else self.parallelism
        return parallelism if self.completions is None else min(parallelism, self.completions)


class _JobStatus(Struct):
    conditions: list[Condition] | None = None
    succeeded: int | None = None
    active: int | None = None
    failed_indexes: str | None = field(default=None, name="failedIndexes")


class _TemplateMetadata(Struct):
    annotations: dict[str, object] | None = None


class _PodTemplate(Struct):
    metadata: _TemplateMetadata = field(default_factory=_TemplateMetadata)
    spec: Raw = NOTHING

    @property
    def requests_topology(self) -> bool:
        """Whether its pods are a gang of their own, in one domain."""
        annotations = self.metadata.annotations or {}
        return bool(annotations.get(KUEUE_REQUIRED) or annotations.get(KUEUE_PREFERRED))


class _JobOfSet(_Job):
    template: _PodTemplate = field(default_factory=_PodTemplate)


class _JobTemplate(Struct):
    spec: _JobOfSet = field(default_factory=_JobOfSet)
    metadata: _TemplateMetadata = field(default_factory=_TemplateMetadata)

    @property
    def is_placed_exclusively(self) -> bool:
        """Whether each Job of it is a gang of its own."""
        annotations = self.metadata.annotations or {}
        return JOBSET_EXCLUSIVE in annotations and JOBSET_SELECTED not in annotations


class _ReplicatedJob(Struct):
    name: str
    replicas: int | None = None
    template: _JobTemplate = field(default_factory=_JobTemplate)
    depends: Raw = field(default=NOTHING, name="dependsOn")


class _StartupPolicy(Struct):
    order: str = field(default="", name="startupPolicyOrder")


class _JobSet(Struct):
    jobs: list[_ReplicatedJob] | None = field(default=None, name="replicatedJobs")
    startup: _StartupPolicy | None = field(default=None, name="startupPolicy")


class _ReplicatedJobStatus(Struct):
    name: str
    succeeded: int | None = None


class _JobSetStatus(Struct):
    conditions: list[Condition] | None = None
    jobs: list[_ReplicatedJobStatus] | None = field(default=None, name="replicatedJobsStatus")


class _Replicas(Struct):
    replicas: object = None
    template: _PodTemplate = field(default_factory=_PodTemplate)


class _SchedulingPolicy(Struct):
    minimum: object = field(default=None, name="minAvailable")


class _RunPolicy(Struct):
    policy: _SchedulingPolicy | None = field(default=None, name="schedulingPolicy")


class _Kubeflow(Struct):
    """The spec of all kinds of kubeflow.org; of the replicas by role, one field is present."""

    run: _RunPolicy | None = field(default=None, name="runPolicy")
    waits: bool | None = field(default=None, name="waitForWorkers")
    launcher: str | None = field(default=None, name="launcherCreationPolicy")
    mpi: dict[str, _Replicas] | None = field(default=None, name="mpiReplicaSpecs")
    pytorch: dict[str, _Replicas] | None = field(default=None, name="pytorchReplicaSpecs")
    tf: dict[str, _Replicas] | None = field(default=None, name="tfReplicaSpecs")
    xgb: dict[str, _Replicas] | None = field(default=None, name="xgbReplicaSpecs")
    paddle: dict[str, _Replicas] | None = field(default=None, name="paddleReplicaSpecs")
    jax: dict[str, _Replicas] | None = field(default=None, name="jaxReplicaSpecs")


class _Succeeded(Struct):
    succeeded: int | None = None


class _KubeflowStatus(Struct):
    conditions: list[Condition] | None = None
    replicas: dict[str, _Succeeded] | None = field(default=None, name="replicaStatuses")


class _Group(Struct):
    name: str = field(default="", name="groupName")
    template: _PodTemplate = field(default_factory=_PodTemplate)
    replicas: object = None
    least: object = field(default=None, name="minReplicas")
    maximum: object = field(default=None, name="maxReplicas")
    hosts: object = field(default=None, name="numOfHosts")
    suspend: bool | None = None


class _RayCluster(Struct):
    head: _Group = field(default_factory=_Group, name="headGroupSpec")
    groups: list[_Group] | None = field(default=None, name="workerGroupSpecs")
    autoscaling: bool | None = field(default=None, name="enableInTreeAutoscaling")


class _RayJob(Struct):
    cluster: _RayCluster | None = field(default=None, name="rayClusterSpec")


class _Trainer(Struct):
    nodes: object = field(default=None, name="numNodes")


class _TrainJob(Struct):
    trainer: _Trainer | None = None


class _Executor(Struct):
    instances: object = None


class _DynamicAllocation(Struct):
    enabled: bool | None = None
    initial: object = field(default=None, name="initialExecutors")
    least: object = field(default=None, name="minExecutors")


class _Spark(Struct):
    executor: _Executor | None = None
    dynamic: _DynamicAllocation | None = field(default=None, name="dynamicAllocation")


class _Component(Struct):
    sets: list[_Replicas] | None = field(default=None, name="podSets")


class _AppWrapper(Struct):
    components: list[_Component] | None = None


class _LeaderWorkerTemplate(Struct):
    size: object = None
    leader: _PodTemplate | None = field(default=None, name="leaderTemplate")
    worker: _PodTemplate = field(default_factory=_PodTemplate, name="workerTemplate")


class _LeaderWorkerSet(Struct):
    template: _LeaderWorkerTemplate = field(default_factory=_LeaderWorkerTemplate, name="leaderWorkerTemplate")
    startup: str | None = field(default=None, name="startupPolicy")


def counts_of(resource: Resource, spec: Decode, status: Decode, *, exclusive: bool = False) -> Counts | None:
    """The pods of an owner of a kind of this module; None: another kind. exclusive: a JobSet says so of its Jobs.

    Raises InvalidField if a Job or JobSet does not have the form of its kind. Of other kinds, which only gangs without
    marks read, that is the problem of the result.
    """
    if resource == JOBS:
        return _job(spec(_Job), status(_JobStatus))
    if resource == JOB_SETS:
        return _job_set(spec(_JobSet), status(_JobSetStatus), exclusive=exclusive)
    try:
        return _of_custom(resource, spec, status)
    except (Invalid, InvalidField) as problem:
        return Counts(problem=str(problem))


def _job(spec: _Job, status: _JobStatus) -> Counts:
    done, left = status.succeeded or 0, None
    if spec.completions is not None:
        left = max(spec.completions - done - count_indexes(status.failed_indexes), 0)
    elif done:
        left = status.active or 0  # without completions, nothing is started once a pod has succeeded
    return Counts(spec.at_once, left, verdict=verdict_of(status.conditions))


def _job_set(spec: _JobSet, status: _JobSetStatus, *, exclusive: bool) -> Counts:
    done = {each.name: each.succeeded or 0 for each in status.jobs or ()}
    alone = {each.name for each in spec.jobs or () if exclusive or each.template.is_placed_exclusively}
    jobs = [each for each in spec.jobs or () if each.name not in alone]
    replicas = {each.name: 1 if each.replicas is None else each.replicas for each in jobs}
    roles = tuple((each.name, replicas[each.name] * each.template.spec.at_once) for each in jobs)
    left = tuple(
        (each.name, max(replicas[each.name] - done.get(each.name, 0), 0) * each.template.spec.at_once) for each in jobs
    )
    apart = {each.name for each in jobs if each.template.spec.template.requests_topology}
    in_order = spec.startup is not None and spec.startup.order == "InOrder" and len(jobs) > 1
    in_order |= any(bytes(each.depends) not in (b"", b"null", b"[]") for each in jobs)
    return Counts(
        sum(count for _, count in roles),
        sum(count for _, count in left),
        roles,
        left,
        apart=tuple((name, count) for name, count in roles if name in apart),
        apart_left=tuple((name, count) for name, count in left if name in apart),
        staged=in_order,
        stages=stages_of(_parts(spec.jobs or (), done, alone)) if alone or in_order else (),
        verdict=verdict_of(status.conditions),
    )


def _parts(jobs: Iterable[_ReplicatedJob], done: Mapping[str, int], exclusive: Set[str]) -> Iterator[Part]:
    """Name, pods needed together, pods yet to succeed and template of each part: the replicated jobs, and the followers
    of each exclusive Job. Of exclusive Jobs one leader is needed to start: there may be fewer domains than Jobs."""
    for each in jobs:
        left = max((1 if each.replicas is None else each.replicas) - done.get(each.name, 0), 0)
        size, template = each.template.spec.at_once, each.template.spec.template.spec
        alone = each.name in exclusive
        yield each.name, min(left, 1) if alone else left * size, left * size, template
        for job in range(each.replicas or 1) if alone else ():
            yield f"{each.name}/{job}", size - 1, 0, template


def _of_custom(resource: Resource, spec: Decode, status: Decode) -> Counts | None:
    if resource in _OF_KUBEFLOW:
        return _kubeflow(spec(_Kubeflow), status(_KubeflowStatus), _OF_KUBEFLOW[resource])
    if resource == RAY_CLUSTERS:
        return _ray_cluster(spec(_RayCluster))
    if resource == RAY_JOBS:
        job: _RayJob = spec(_RayJob)
        return _ray_cluster(job.cluster or _RayCluster())
    if resource == TRAIN_JOBS:
        train: _TrainJob = spec(_TrainJob)
        return Counts(number_or((train.trainer or _Trainer()).nodes, "spec.trainer.numNodes", 1))
    if resource == SPARK_APPLICATIONS:
        spark: _Spark = spec(_Spark)
        dynamic = spark.dynamic or _DynamicAllocation()
        instances = (spark.executor or _Executor()).instances
        found = spark_executors(instances, dynamic.initial, dynamic.least, dynamic=bool(dynamic.enabled))
        return Counts(1 + found)
    if resource == APP_WRAPPERS:
        return _app_wrapper(spec(_AppWrapper))
    if resource == LEADER_WORKER_SETS:
        replica: _LeaderWorkerSet = spec(_LeaderWorkerSet)
        size = number_or(replica.template.size, "spec.leaderWorkerTemplate.size", 1)
        worker, leader = replica.template.worker, replica.template.leader or replica.template.worker
        parts = ("leader", 1, 1, leader.spec), ("worker", size - 1, size - 1, worker.spec)
        return Counts(size, staged=replica.startup == "LeaderReady", stages=stages_of(parts))
    return None


def _kubeflow(spec: _Kubeflow, status: _KubeflowStatus, field_name: str) -> Counts:
    specs = spec.mpi or spec.pytorch or spec.tf or spec.xgb or spec.paddle or spec.jax or {}
    launcher_later = bool(spec.waits) or spec.launcher == "WaitForWorkersReady"
    roles = [role for role in specs if not (launcher_later and role == "Launcher")]
    counts = {
        role: number_or(specs[role].replicas, f"spec.{field_name}.{role}.replicas", role_default(field_name, role))
        for role in roles
    }
    size, done = sum(counts.values()), _done(status.replicas or {}, roles)
    apart = [role for role in roles if specs[role].template.requests_topology]
    left_of = {role: max(counts[role] - _done(status.replicas or {}, [role]), 0) for role in apart}
    run = spec.run or _RunPolicy()
    least = run.policy.minimum if run.policy is not None else None
    if least is not None:
        least = number_of(least, "spec.runPolicy.schedulingPolicy.minAvailable", 1)
    return Counts(
        size,
        max(size - done, 0),
        apart=tuple((role.lower(), counts[role]) for role in apart),  # as the labels of pods have it
        apart_left=tuple((role.lower(), left_of[role]) for role in apart),
        least=least,
        verdict=verdict_of(status.conditions),
    )


def _done(replicas: Mapping[str, _Succeeded], roles: Iterable[str]) -> int:
    return sum(replicas[role].succeeded or 0 for role in roles if role in replicas)


def _ray_cluster(spec: _RayCluster) -> Counts:
    size, apart = 1, [(_HEAD, 1)] if spec.head.template.requests_topology else []
    for index, group in enumerate(spec.groups or ()):
        place = f"spec.workerGroupSpecs[{index}]"
        if spec.autoscaling:  # an autoscaler adds and removes the workers above the minimum
            count = number_or(group.least, f"{place}.minReplicas", 0)
        else:
            count = ray_replicas(group.replicas, group.least, group.maximum, place)
        count *= number_or(group.hosts, f"{place}.numOfHosts", 1)
        size += 0 if group.suspend else count
        if group.template.requests_topology and not group.suspend:
            apart.append((group.name, count))
    return Counts(size, apart=tuple(apart))


def _app_wrapper(spec: _AppWrapper) -> Counts:
    size = 0
    for at, component in enumerate(spec.components or ()):
        for number, each in enumerate(component.sets or ()):
            size += number_or(each.replicas, f"spec.components[{at}].podSets[{number}].replicas", 1)
    return Counts(size or None)
