"""Workloads, budgets, garbage, namespaces, definitions, volumes. Time is virtual."""

from __future__ import annotations

import pytest

from benchmarks.cluster import RunTime
from benchmarks.cluster.api.binding import evict
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import (
    BUDGETS,
    CLAIMS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    VOLUMES,
)
from tests.benchmarks.cluster.builders import Still, budget, job, pod, replicated


def run(still: Still, seconds: float) -> None:
    """A scheduler that binds all pending pods, for some time."""
    for _ in range(round(seconds * 2)):
        still.bind_all()
        still.pass_time(0.5)


@pytest.fixture
def still() -> Still:
    return Still(nodes=3, run_time=RunTime("fixed", 2))


def conditions(obj) -> dict[str, str]:
    return {
        one["type"]: one.get("reason", "") for one in obj["status"].get("conditions", ()) if one["status"] == "True"
    }


def test_a_job_runs_as_many_pods_as_asked(still):
    still.cluster.create(job(completions=5, parallelism=2))
    still.pass_time(0)
    assert len(still.pods()) == 2
    run(still, 20)
    done = still.cluster.get(JOBS, "j")
    assert done["status"]["succeeded"] == 5
    assert set(conditions(done)) == {"SuccessCriteriaMet", "Complete"}
    assert "active" not in done["status"]
    assert still.phases() == {"Succeeded": 5}


def test_failed_pods_of_a_job_are_replaced_after_a_pause(still):
    still.cluster.create(job(annotations={"cluster.poseidon.io/fail-first": "2"}))
    run(still, 20)
    done = still.cluster.get(JOBS, "j")
    assert (done["status"]["failed"], done["status"]["succeeded"]) == (2, 1)
    assert "Complete" in conditions(done)
    assert still.phases() == {"Failed": 2, "Succeeded": 1}


def test_a_job_gives_up_beyond_its_backoff_limit(still):
    still.cluster.create(job(backoffLimit=1, annotations={"cluster.poseidon.io/exit-code": "1"}))
    run(still, 30)
    done = still.cluster.get(JOBS, "j")
    assert conditions(done)["Failed"] == "BackoffLimitExceeded"
    assert still.phases() == {"Failed": 2}


def test_an_indexed_job_has_one_pod_per_index(still):
    annotations = {"cluster.poseidon.io/fail-first": "1"}
    still.cluster.create(job(completions=4, parallelism=3, completionMode="Indexed", annotations=annotations))
    run(still, 20)
    done = still.cluster.get(JOBS, "j")
    assert done["status"]["completedIndexes"] == "0-3"
    key = "batch.kubernetes.io/job-completion-index"
    good = [o["metadata"]["annotations"][key] for o in still.pods() if o["status"]["phase"] == "Succeeded"]
    assert sorted(good) == ["0", "1", "2", "3"]


def test_a_job_is_suspended_resumed_and_stopped_by_its_deadline(still):
    still.cluster.create(job(suspend=True, activeDeadlineSeconds=1))
    run(still, 2)
    assert not still.pods()
    still.api.patch(JOBS, "default", "j", {"spec": {"suspend": False}}, MERGE_PATCH)
    still.pass_time(0)
    assert len(still.pods()) == 1
    still.pass_time(2)
    assert conditions(still.cluster.get(JOBS, "j"))["Failed"] == "DeadlineExceeded"


@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "deleted"])
def test_pods_of_a_job_count_as_failed_if_somebody_else_deletes_them(still, suspended):
    """Kubernetes, pkg/controller/job/job_controller.go: isPodFailed counts deleted pods; deleteJobPods takes the
    finalizer first, without which nothing counts."""
    still.cluster.create(job(parallelism=8, completions=8, backoffLimit=6))
    run(still, 3)
    if suspended:
        still.api.patch(JOBS, "default", "j", {"spec": {"suspend": True}}, MERGE_PATCH)
        run(still, 3)
        assert not still.pods()
        still.api.patch(JOBS, "default", "j", {"spec": {"suspend": False}}, MERGE_PATCH)
    else:
        for pod in still.pods():
            delete(still.api, PODS, "default", pod["metadata"]["name"])
    run(still, 3)
    found = still.cluster.get(JOBS, "j")
    assert found["status"].get("failed", 0) == (0 if suspended else 8)
    assert ("Failed" in conditions(found)) is not suspended
    assert len(still.pods()) == (8 if suspended else 0)


def test_a_replica_set_keeps_its_number(still):
    still.cluster.create(replicated("ReplicaSet", replicas=3))
    run(still, 3)
    assert still.cluster.get(REPLICA_SETS, "web")["status"]["readyReplicas"] == 3
    victim = still.pods()[0]["metadata"]["name"]
    delete(still.api, PODS, "default", victim)
    run(still, 5)
    assert len(still.pods()) == 3
    assert victim not in {obj["metadata"]["name"] for obj in still.pods()}
    still.api.patch(REPLICA_SETS, "default", "web", {"spec": {"replicas": 1}}, MERGE_PATCH)
    run(still, 3)
    assert len(still.pods()) == 1


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Job"])
def test_the_name_of_a_template_is_ignored(still, kind):
    """kube-controller-manager's GetPodFromTemplate copies labels, annotations and finalizers."""
    made = job(completions=3, parallelism=3) if kind == "Job" else replicated(kind, replicas=3)
    made["spec"]["template"]["metadata"] |= {"name": "same", "annotations": {"a": "b"}, "generateName": "x-"}
    still.cluster.create(made)
    run(still, 1.5)
    names = [one["metadata"]["name"] for one in still.pods()]
    assert len(names) > 1
    assert not any(name.startswith(("same", "x-")) for name in names)
    assert {one["metadata"]["annotations"]["a"] for one in still.pods()} == {"b"}


def test_a_rejected_pod_is_replaced_by_its_replica_set(still):
    manifest = replicated("ReplicaSet", replicas=1)
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "999"}}
    still.cluster.create(manifest)
    run(still, 1)
    assert still.phases()["Failed"] >= 1
    assert still.phases()["Pending"] == 1


def test_a_deployment_rolls_to_a_new_template(still):
    still.cluster.create(replicated("Deployment", replicas=4))
    run(still, 4)
    assert still.cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 4
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
    still.api.patch(DEPLOYMENTS, "default", "web", image, MERGE_PATCH)
    least = 4
    for _ in range(40):
        run(still, 0.5)
        least = min(least, sum(o["status"]["phase"] == "Running" for o in still.pods()))
    status = still.cluster.get(DEPLOYMENTS, "web")["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (4, 4, 4)
    assert {o["spec"]["containers"][0]["image"] for o in still.pods()} == {"app:2"}
    assert least >= 3  # maxUnavailable is 25%


def test_a_stateful_set_creates_its_pods_one_by_one(still):
    still.cluster.create(replicated("StatefulSet", "db", 3, serviceName="db"))
    still.pass_time(0)
    assert [o["metadata"]["name"] for o in still.pods()] == ["db-0"]
    run(still, 6)
    assert [o["metadata"]["name"] for o in still.pods()] == ["db-0", "db-1", "db-2"]
    assert still.cluster.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3


def test_budgets_limit_evictions(still):
    still.cluster.create(replicated("ReplicaSet", replicas=3))
    still.cluster.create(budget("b", "web", minAvailable=2))
    run(still, 3)
    assert still.cluster.get(BUDGETS, "b")["status"]["disruptionsAllowed"] == 1
    names = [o["metadata"]["name"] for o in still.pods()]
    evict(still.api, "default", names[0], {})
    with pytest.raises(ApiError) as refused:
        evict(still.api, "default", names[1], {})
    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    assert "disruption budget" in refused.value.message
    run(still, 6)
    evict(still.api, "default", names[1], {})
    assert len(still.cluster.audit.of("evict")) == 2


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"minAvailable": "75%"}, 1),
        ({"minAvailable": 4}, 0),
    ],
)
def test_what_budgets_allow(still, spec, allowed):
    still.cluster.create(replicated("ReplicaSet", replicas=4))
    still.cluster.create(budget("b", "web", **spec))
    run(still, 3)
    assert still.cluster.get(BUDGETS, "b")["status"]["disruptionsAllowed"] == allowed


@pytest.mark.parametrize(("policy", "left"), [("Background", 0), ("Foreground", 0), ("Orphan", 2)])
def test_dependents_follow_the_deletion_of_their_owner(still, policy, left):
    still.cluster.create(replicated("Deployment", replicas=2))
    run(still, 3)
    delete(still.api, DEPLOYMENTS, "default", "web", {"propagationPolicy": policy})
    still.pass_time(0)
    if policy == "Foreground":  # the owner waits for its dependents
        assert still.store.get(DEPLOYMENTS, "default", "web") is not None
    still.pass_time(5)
    assert still.store.get(DEPLOYMENTS, "default", "web") is None
    assert len(still.cluster.objects(REPLICA_SETS)) == (1 if left else 0)
    assert len(still.pods()) == left


def test_a_deleted_namespace_deletes_its_contents(still):
    still.api.create(NAMESPACES, "", {"metadata": {"name": "team"}})
    still.api.create(PODS, "team", pod())
    still.bind("p", "node-00000", "team")
    still.pass_time(2)
    delete(still.api, NAMESPACES, "", "team")
    with pytest.raises(ApiError, match="because it is being terminated"):
        still.api.create(PODS, "team", pod("q"))
    still.pass_time(5)
    assert not still.pods()
    assert still.store.get(NAMESPACES, "", "team") is None


def test_a_definition_serves_its_resource_until_it_is_deleted(still):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "kind": "PodGroup"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
                {"name": "v1beta1", "served": True, "storage": False, "subresources": {"status": {}}},
            ],
        },
    }
    still.cluster.create(definition)
    labelled = {"name": "g", "labels": {"a": "b"}}
    group = {"apiVersion": "x.io/v1", "kind": "PodGroup", "metadata": labelled, "spec": {"minMember": 2}}
    made = still.cluster.create({**group, "status": {"phase": "x"}})
    assert "status" not in made
    kind = still.cluster.kinds.find("x.io", "v1", "podgroups")
    assert kind is not None
    changed = still.api.update(kind, "default", "g", {**made, "status": {"phase": "y"}}, "status").parse()
    assert (changed["status"], changed["metadata"]["generation"]) == ({"phase": "y"}, 1)
    bare = {**made, "metadata": {"name": "g"}, "status": {"phase": "z"}}
    changed = still.api.update(kind, "default", "g", bare, "status").parse()
    assert (changed["status"], changed["metadata"].get("labels")) == ({"phase": "z"}, {"a": "b"})
    changed["spec"]["minMember"] = 3
    assert still.api.update(kind, "default", "g", changed).parse()["metadata"]["generation"] == 2
    still.pass_time(0)
    from benchmarks.cluster.store.kinds import DEFINITIONS

    assert set(conditions(still.cluster.get(DEFINITIONS, "podgroups.x.io"))) == {"NamesAccepted", "Established"}
    delete(still.api, DEFINITIONS, "", "podgroups.x.io")
    still.pass_time(0)
    assert still.cluster.kinds.find("x.io", "v1", "podgroups") is None


def claim(name: str, storage_class: str, **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
            **spec,
        },
    }


def test_claims_are_bound_or_wait_for_their_consumer(still):
    for name, mode in (("fast", "Immediate"), ("late", "WaitForFirstConsumer")):
        still.cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": "sim.example.com",
                "volumeBindingMode": mode,
            }
        )
    still.cluster.create(claim("a", "fast"))
    still.cluster.create(claim("b", "late"))
    still.pass_time(0)
    assert still.cluster.get(CLAIMS, "a")["status"]["phase"] == "Bound"
    assert still.cluster.get(CLAIMS, "b")["status"]["phase"] == "Pending"
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-00001"}}}
    still.api.patch(CLAIMS, "default", "b", selected, MERGE_PATCH)
    still.pass_time(0)
    bound = still.cluster.get(CLAIMS, "b")
    volume = still.cluster.get(VOLUMES, bound["spec"]["volumeName"])
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["zone-1"]
    delete(still.api, CLAIMS, "default", "b")
    still.pass_time(0)
    assert still.store.get(VOLUMES, "", bound["spec"]["volumeName"]) is None
