"""What the cache makes of reports: evictions, old reports, pods of others."""

import msgspec
import pytest

from poseidon_py.jobs.cache import Cache
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.objects import JobObject, JobPod
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.world import Eviction
from poseidon_py.jobs.transitions import Transitions
from poseidon_py.metrics.metrics import Metrics
from tests.poseidon_py.jobs.builders import task

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "job", "controller": True}


@pytest.fixture
def cache():
    found = Cache(lambda key, urgent: None, Transitions(JobMetrics(Metrics())), now=lambda: 7.0)
    metadata = {"name": "j", "namespace": "ns", "uid": "job", "resourceVersion": "1"}
    body = {"metadata": metadata, "spec": {"tasks": [task()]}, "status": {"state": {"phase": "Running"}, "version": 1}}
    found.observe_job(_decoded(body, JobObject))
    return found


def _decoded(body, kind):
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def pod(phase="Running", version=5, *, deleting=False, owner=OWNER, job_version=1, uid="p", **annotations):
    texts = {"task-spec": "w", "task-index": "0", "job-version": str(job_version), "job-name": "j"} | annotations
    metadata = {
        "name": "j-w-0", "namespace": "ns", "uid": uid, "resourceVersion": str(version), "ownerReferences": [owner],
        "annotations": {f"volcano.sh/{key.replace('_', '-')}": text for key, text in texts.items()},
    }  # fmt: skip
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return _decoded({"metadata": metadata, "status": {"phase": phase}}, JobPod)


@pytest.mark.parametrize(
    ("reports", "evicted"),
    [
        pytest.param([pod()], True, id="a pod that ran"),
        pytest.param([pod("Pending")], True, id="a pod that was pending"),
        pytest.param([pod("Succeeded")], False, id="a pod that had ended"),
        pytest.param([pod(), pod("Failed", 6, deleting=True)], True, id="it failed because it was deleted"),
        pytest.param([pod(job_version=0)], False, id="a pod of an older version"),
        pytest.param([pod(controller_out_of_sync="true")], False, id="a pod that was to be restarted"),
    ],
)
def test_which_deletions_are_evictions(cache, reports, evicted):
    for each in reports:
        cache.observe_pod(each)
    cache.remove_pod("p")
    assert cache.evictions == ({"job": [Eviction("w", 0, 7.0)]} if evicted else {})


def test_an_own_deletion_is_no_eviction_and_is_not_taken_back(cache):
    cache.observe_pod(pod())
    (replica,) = cache.replicas_of(cache.jobs["ns", "j"])
    cache.deletes(replica)
    cache.deletion_accepted(replica)
    cache.observe_pod(pod(version=6))  # a report from before the deletion
    (replica,) = cache.replicas_of(cache.jobs["ns", "j"])
    assert replica.state == ReplicaState.TERMINATING
    cache.remove_pod("p")
    assert cache.evictions == {}


def test_old_reports_are_ignored(cache):
    cache.observe_pod(pod("Running", 9))
    cache.observe_pod(pod("Pending", 8))
    (replica,) = cache.replicas_of(cache.jobs["ns", "j"])
    assert replica.phase == ReplicaState.RUNNING


def test_a_pod_of_the_same_name_is_another_one(cache):
    cache.observe_pod(pod())
    cache.observe_pod(pod("Pending", 8, uid="q"))
    assert cache.evictions == {"job": [Eviction("w", 0, 7.0)]}
    assert [each.uid for each in cache.replicas_of(cache.jobs["ns", "j"])] == ["q"]


def test_pods_of_others_are_ignored(cache):
    cache.observe_pod(pod(owner=OWNER | {"apiVersion": "batch/v1"}))
    cache.observe_pod(pod(owner=OWNER | {"controller": False}))
    assert cache.replicas == {}


def test_a_list_without_a_pod_is_its_end(cache):
    cache.observe_pod(pod())
    cache.pods_listed(set())
    assert cache.evictions == {"job": [Eviction("w", 0, 7.0)]}
