"""Numbers of pods that objects do not state: those that the API server, the webhook or the controller of their kind
sets. Each row has the source in the kind's own repository."""

from typing import Any

import pytest

from poseidon_py.app.queries.manifests import manifest
from poseidon_py.state.gangs.by_owner import DEPLOYMENTS, JOB_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, GODEL, GROVE, KAI, VOLCANO
from poseidon_py.state.gangs.model import Owner, Resource
from poseidon_py.state.gangs.owner_kinds import (
    APP_WRAPPERS,
    LEADER_WORKER_SETS,
    OWNER_KINDS,
    RAY_CLUSTERS,
    RAY_JOBS,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
)
from poseidon_py.state.gangs.resolve import resolve
from tests.poseidon_py.jobs.builders import job, task
from tests.poseidon_py.jobs.builders import template as volcano_template
from tests.poseidon_py.state.gangs.builders import Objects, hints, owner_or_group

TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
PART: dict[str, Any] = {"template": TEMPLATE}
MPI, PYTORCH, TF, JAX = (OWNER_KINDS[each].resource for each in ("mpijobs", "pytorchjobs", "tfjobs", "jaxjobs"))


def ray(**group):
    return {"headGroupSpec": PART, "workerGroupSpecs": [{"groupName": "w", **PART, **group}]}


OWNERS: list[tuple[Resource, str, dict[str, Any], int]] = [
    # pkg/apis/batch/v1/defaults.go: both missing are 1; completions alone leave parallelism at 1
    (JOBS, "Job", {**PART}, 1),
    (JOBS, "Job", {"completions": 5, **PART}, 1),
    (JOBS, "Job", {"parallelism": 5, **PART}, 5),
    # pkg/apis/apps/v1/defaults.go
    (DEPLOYMENTS, "Deployment", {**PART}, 1),
    (REPLICA_SETS, "ReplicaSet", {**PART}, 1),
    (STATEFUL_SETS, "StatefulSet", {**PART}, 1),
    # jobset: api/jobset/v1alpha2/jobset_types.go, default=1
    (JOB_SETS, "JobSet", {"replicatedJobs": [{"name": "a", "template": {"spec": PART}}]}, 1),
    # lws: api/leaderworkerset/v1/leaderworkerset_types.go, size and replicas default=1
    (LEADER_WORKER_SETS, "LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}, 1),
    # mpi-operator: pkg/apis/kubeflow/v2beta1/default.go, setDefaultsTypeLauncher and setDefaultsTypeWorker
    (MPI, "MPIJob", {"mpiReplicaSpecs": {"Launcher": PART, "Worker": PART}}, 1),
    # training-operator: pkg/apis/kubeflow.org/v1/defaults.go, setDefaultReplicas(spec, 1)
    (PYTORCH, "PyTorchJob", {"pytorchReplicaSpecs": {"Master": PART, "Worker": PART}}, 2),
    (TF, "TFJob", {"tfReplicaSpecs": {"PS": PART, "Worker": PART}}, 2),
    (JAX, "JAXJob", {"jaxReplicaSpecs": {"Worker": PART}}, 1),
    # kuberay: ray-operator/apis/ray/v1/raycluster_types.go (replicas and minReplicas 0, numOfHosts 1) and
    # GetWorkerGroupDesiredReplicas (replicas are within minReplicas and maxReplicas); the head is one more
    (RAY_CLUSTERS, "RayCluster", ray(), 1),
    (RAY_CLUSTERS, "RayCluster", ray(replicas=2), 3),
    (RAY_CLUSTERS, "RayCluster", ray(minReplicas=3), 4),
    (RAY_CLUSTERS, "RayCluster", ray(replicas=1, minReplicas=3, numOfHosts=2), 7),
    (RAY_CLUSTERS, "RayCluster", ray(replicas=9, maxReplicas=4), 5),
    (RAY_CLUSTERS, "RayCluster", ray(replicas=2, minReplicas=5, maxReplicas=4), 6),
]
ONLY_READ: list[tuple[Resource, dict[str, Any], int]] = [
    (RAY_JOBS, {"rayClusterSpec": ray(minReplicas=3)}, 4),
    # trainer: MLPolicy.numNodes of the runtime, which is 1 by default
    (TRAIN_JOBS, {}, 1),
    # spark-operator: api/v1beta2/defaults.go, setExecutorSpecDefaults; the driver is one more
    (SPARK_APPLICATIONS, {}, 2),
    (SPARK_APPLICATIONS, {"executor": {"instances": 4}}, 5),
    (SPARK_APPLICATIONS, {"dynamicAllocation": {"enabled": True}}, 1),
    (SPARK_APPLICATIONS, {"dynamicAllocation": {"enabled": True, "initialExecutors": 2, "minExecutors": 3}}, 4),
    (SPARK_APPLICATIONS, {"dynamicAllocation": {"enabled": False, "minExecutors": 3}}, 2),
    # appwrapper: pkg/utils/utils.go, Replicas
    (APP_WRAPPERS, {"components": [{"podSets": [{}, {"replicas": 2}]}]}, 3),
]


@pytest.mark.parametrize(
    ("resource", "spec", "size"), [(resource, spec, size) for resource, _, spec, size in OWNERS] + ONLY_READ
)
def test_counts_that_an_owner_does_not_state(resource, spec, size):
    assert owner_or_group(resource, spec=spec).counts.size == size


@pytest.mark.parametrize(("resource", "kind", "spec", "size"), OWNERS)
def test_a_manifest_has_as_many_pods_as_its_owner_counts(resource, kind, spec, size):
    version = f"{resource.group}/{resource.versions[0]}"
    found = manifest([{"apiVersion": version, "kind": kind, "metadata": {"name": "o"}, "spec": spec}], "ns", None)
    assert sum(each.number for each in found.templates) == size


def test_a_task_of_a_volcano_job_without_replicas_has_none():
    """Volcano: neither the definition of the kind nor pkg/webhooks/admission/jobs/mutate sets them, so they are
    zero; minAvailable of a task is its replicas, that of a job the sum of its tasks'."""
    spec = job({"name": "a", "template": volcano_template()}, task("b", 2))
    assert [(each.replicas, each.min_available) for each in spec.tasks] == [(0, 0), (2, 2)]
    assert (spec.replicas, spec.min_available) == (2, 2)


GROUP = {"scheduling.k8s.io/group-name": "g"}
GROUPS: list[tuple[Resource, dict[str, Any], dict[str, Any], int, tuple[tuple[str, int], ...]]] = [
    # volcano: pkg/scheduler/api/job_info.go takes spec.minMember as it is: 0, which minTaskMember exceeds
    (VOLCANO, {"annotations": GROUP}, {}, 0, ()),
    (VOLCANO, {"annotations": GROUP}, {"minTaskMember": {"a": 1}}, 0, ()),
    # scheduler-plugins and Godel: at least 1 by the definition of the kind
    (COSCHEDULING, {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}, 1, ()),
    (GODEL, {"annotations": {"godel.bytedance.com/pod-group-name": "g"}}, {}, 1, ()),
    # kai: pkg/scheduler/api/podgroup_info/job_info.go; subgroups by FromPodGroup of releases whose webhook does not
    # demand it; the API server leaves a null in place
    (KAI, {"annotations": {"pod-group-name": "g"}}, {}, 1, ()),
    (KAI, {"annotations": {"pod-group-name": "g"}}, {"minMember": None, "subGroups": [{"name": "a"}]}, 1, (("a", 1),)),
    (KAI, {"annotations": {"pod-group-name": "g"}}, {"subGroups": [{"name": "a", "minMember": None}]}, 1, (("a", 1),)),
    (KAI, {"annotations": {"pod-group-name": "g"}}, {"subGroups": [{"name": "a", "minMember": 0}]}, 1, (("a", 0),)),
    # grove: scheduler/api/core/v1alpha1/podgang.go: minReplicas is required
    (GROVE, {"labels": {"grove.io/podgang": "g"}}, {"podgroups": [{"name": "a"}]}, 1, (("a", 0),)),
]


@pytest.mark.parametrize(("resource", "keys", "spec", "minimum", "roles"), GROUPS)
def test_minimums_that_a_pod_group_does_not_state(resource, keys, spec, minimum, roles):
    found = resolve(
        hints(**keys, owner=Owner("X", "x", "uid-x", "")), Objects((resource, owner_or_group(resource, spec=spec)))
    )
    assert found.declaration is not None
    assert (found.declaration.minimum, found.declaration.roles) == (minimum, roles)
