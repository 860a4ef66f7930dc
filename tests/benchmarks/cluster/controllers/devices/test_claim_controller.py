"""Claims from templates, and claims that nobody uses any more. Time is virtual."""

from __future__ import annotations

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.store.device_kinds import FINALIZER, POD_CLAIM_ANNOTATION, RESOURCE_CLAIMS
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import EVENTS, NAMESPACES, PODS
from tests.benchmarks.cluster.builders import Still, pod
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    claim_template,
    consumer,
    pod_with_claim,
    request,
)

UID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def still() -> Still:
    return Still(nodes=2, kubelets=False)


def claims(still: Still, namespace: str = "default"):
    return still.cluster.objects(RESOURCE_CLAIMS, namespace)


def get(still: Still, name: str = "c"):
    return still.cluster.get(RESOURCE_CLAIMS, name)


def create(still: Still, *manifests) -> None:
    for manifest in manifests:
        still.cluster.create(manifest)
        still.pass_time(0)


def allocate(still: Still, name: str, *consumers, finalizer: bool = True) -> None:
    """What a scheduler writes: the finalizer, then allocation and consumers together."""
    if finalizer:
        record = still.api.get(RESOURCE_CLAIMS, "default", name)
        obj = record.parse()
        obj["metadata"]["finalizers"] = [FINALIZER]
        still.api.replace(RESOURCE_CLAIMS, record, obj)
    record = still.api.get(RESOURCE_CLAIMS, "default", name)
    obj = record.parse()
    obj["status"] = {"allocation": allocation(node="node-00000"), "reservedFor": list(consumers)}
    still.api.replace(RESOURCE_CLAIMS, record, obj, "status")
    still.pass_time(0)


def uid_of(still: Still, name: str = "p") -> str:
    return str(still.cluster.get(PODS, name)["metadata"]["uid"])


def set_phase(still: Still, phase: str, name: str = "p") -> None:
    record = still.api.get(PODS, "default", name)
    obj = record.parse()
    obj["status"]["phase"] = phase
    still.api.replace(PODS, record, obj, "status")
    still.pass_time(0)


def test_a_template_becomes_a_claim_of_the_pod(still):
    metadata = {"labels": {"team": "a"}, "annotations": {"note": "x"}}
    create(still, claim_template("t", request(count=2), metadata=metadata), pod_with_claim(template="t"))
    (made,) = claims(still)
    about = made["metadata"]
    assert about["name"].startswith("p-gpu-")
    assert len(about["name"]) == len("p-gpu-") + 5
    assert about["generateName"] == "p-gpu-"
    assert about["labels"] == {"team": "a"}
    assert about["annotations"] == {"note": "x", POD_CLAIM_ANNOTATION: "gpu"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(still), "controller": True}
    assert about["ownerReferences"] == [owner]
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    statuses = still.cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": about["name"]}]


def test_each_entry_has_its_claim_and_a_named_claim_is_left_alone(still):
    pod = pod_with_claim(template="t")
    pod["spec"]["resourceClaims"] += [
        {"name": "more", "resourceClaimTemplateName": "t"},
        {"name": "own", "resourceClaimName": "c"},
    ]
    create(still, claim_template(), claim(), pod)
    statuses = still.cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]
    assert [one["name"] for one in statuses] == ["gpu", "more"]
    assert {one["resourceClaimName"] for one in statuses} | {"c"} == {one["metadata"]["name"] for one in claims(still)}


def test_a_long_name_is_shortened_in_both_parts(still):
    # 60 + 1 + 20 + 1 = 82 characters, of which 57 may stay: 60 * 57 // 82 = 41 and 20 * 57 // 82 = 13
    create(still, claim_template(), pod_with_claim("p" * 60, template="t", entry="e" * 20))
    (made,) = claims(still)
    assert made["metadata"]["name"].startswith("p" * 41 + "-" + "e" * 13)
    assert len(made["metadata"]["name"]) <= 63


def test_a_template_may_come_after_the_pod(still):
    create(still, pod_with_claim(template="t"))
    still.pass_time(1)
    assert claims(still) == []
    (event,) = still.cluster.objects(EVENTS, "default")
    assert (event["reason"], event["type"]) == ("FailedResourceClaimCreation", "Warning")
    assert 'PodResourceClaim gpu: resource claim template "t"' in event["message"]
    create(still, claim_template())
    assert len(claims(still)) == 1
    assert still.cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]


def test_a_template_that_asks_for_what_the_namespace_may_not_have_is_tried_again(still):
    """The template was made while the namespace had its label; claims are refused without it."""
    home = {"metadata": {"name": "admin", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
    still.cluster.create({"apiVersion": "v1", "kind": "Namespace", **home})
    manifest = claim_template("t", request(adminAccess=True))
    manifest["metadata"]["namespace"] = "admin"
    still.cluster.create(manifest)
    record = still.api.get(NAMESPACES, "", "admin")
    obj = record.parse()
    obj["metadata"]["labels"].pop("resource.kubernetes.io/admin-access")
    record = still.api.replace(NAMESPACES, record, obj)
    create(still, pod_with_claim(template="t", namespace="admin"))
    assert claims(still, "admin") == []
    obj = record.parse()
    obj["metadata"]["labels"]["resource.kubernetes.io/admin-access"] = "true"
    still.api.replace(NAMESPACES, record, obj)
    still.pass_time(10)
    assert len(claims(still, "admin")) == 1


def test_a_claim_that_was_deleted_by_mistake_is_made_again(still):
    create(still, claim_template(), pod_with_claim(template="t"))
    (before,) = claims(still)
    delete(still.api, RESOURCE_CLAIMS, "default", before["metadata"]["name"])
    still.pass_time(0)
    (after,) = claims(still)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    (entry,) = still.cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]
    assert entry["resourceClaimName"] == after["metadata"]["name"]


def test_a_claim_whose_name_the_pod_does_not_have_yet_is_used(still):
    """The controller made it, and stopped before it wrote the pod's status."""
    create(still, claim_template(), pod_with_claim(template="t"))
    (made,) = claims(still)
    record = still.api.get(PODS, "default", "p")
    obj = record.parse()
    del obj["status"]["resourceClaimStatuses"]
    still.api.replace(PODS, record, obj, "status")
    still.pass_time(0)
    assert claims(still) == [made]
    (entry,) = still.cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]
    assert entry["resourceClaimName"] == made["metadata"]["name"]


def test_a_claim_stays_while_one_of_its_pods_runs_and_is_freed_after_the_last(still):
    create(still, claim(), pod_with_claim("p", claim_name="c"), pod_with_claim("q", claim_name="c"))
    allocate(still, "c", consumer("p", uid_of(still, "p")), consumer("q", uid_of(still, "q")))
    set_phase(still, "Succeeded", "p")
    assert get(still)["status"]["reservedFor"] == [consumer("q", uid_of(still, "q"))]
    assert get(still)["status"]["allocation"]["devices"]["results"]
    delete(still.api, PODS, "default", "q", {"gracePeriodSeconds": 0})
    still.pass_time(0)
    freed = get(still)
    assert freed["status"] == {}
    assert "finalizers" not in freed["metadata"]


def test_a_claim_that_nobody_has_used_stays_allocated(still):
    create(still, claim())
    allocate(still, "c")
    still.pass_time(100)
    assert get(still)["status"]["allocation"]
    assert get(still)["metadata"]["finalizers"] == [FINALIZER]


def test_a_consumer_that_is_another_pod_of_the_name_or_that_never_was_is_removed(still):
    create(still, claim(), pod_with_claim("p", claim_name="c"))
    allocate(still, "c", consumer("p", UID), consumer("nobody", "22222222-2222-4333-8444-555555555555"))
    assert get(still)["status"] == {}


def test_a_consumer_that_is_no_pod_is_kept(still):
    create(still, claim())
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": UID}
    allocate(still, "c", group)
    assert get(still)["status"]["reservedFor"] == [group]


def test_without_the_finalizer_only_the_consumer_goes(still):
    create(still, claim())
    allocate(still, "c", consumer("nobody", UID), finalizer=False)
    assert "reservedFor" not in get(still)["status"]
    assert get(still)["status"]["allocation"]


def test_a_claim_in_use_is_deleted_after_its_last_pod(still):
    create(still, claim(), pod_with_claim("p", claim_name="c"))
    allocate(still, "c", consumer("p", uid_of(still)))
    delete(still.api, RESOURCE_CLAIMS, "default", "c")
    still.pass_time(10)
    assert "deletionTimestamp" in get(still)["metadata"]
    assert get(still)["status"]["allocation"]
    set_phase(still, "Failed")
    with pytest.raises(ApiError, match="not found"):
        get(still)


def test_a_deleted_claim_that_was_never_used_loses_its_allocation(still):
    create(still, claim())
    allocate(still, "c")
    delete(still.api, RESOURCE_CLAIMS, "default", "c")
    still.pass_time(0)
    assert claims(still) == []


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_generated_claim_goes_when_its_pod_has_ended_and_the_pod_stays(still, end):
    create(still, claim_template(), pod_with_claim(template="t"))
    name = claims(still)[0]["metadata"]["name"]
    allocate(still, name, consumer("p", uid_of(still)))
    set_phase(still, end)
    assert claims(still) == []
    assert still.cluster.get(PODS, "p")["status"]["phase"] == end


def test_a_generated_claim_stays_while_its_pod_restarts(still):
    create(still, claim_template(), pod_with_claim(template="t"))
    (made,) = claims(still)
    set_phase(still, "Running")
    set_phase(still, "Pending")
    assert claims(still) == [made]


def test_a_generated_claim_goes_with_its_pod(still):
    create(still, claim_template(), pod_with_claim(template="t"))
    allocate(still, claims(still)[0]["metadata"]["name"], consumer("p", uid_of(still)))
    delete(still.api, PODS, "default", "p", {"gracePeriodSeconds": 0})
    still.pass_time(0)
    assert claims(still) == []


def test_a_pod_that_was_bound_without_a_scheduler_gets_its_reservation(still):
    create(still, claim())
    allocate(still, "c")
    create(still, pod_with_claim("p", claim_name="c", nodeName="node-00000"))
    assert get(still)["status"]["reservedFor"] == [consumer("p", uid_of(still))]


def test_it_is_not_reserved_before_it_is_allocated(still):
    create(still, claim(), pod_with_claim("p", claim_name="c", nodeName="node-00000"))
    assert get(still)["status"] == {}
    allocate(still, "c")
    assert get(still)["status"]["reservedFor"] == [consumer("p", uid_of(still))]


def test_the_claim_for_extended_resources_goes_with_its_pod(still):
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    create(still, pod("p", resources=resources))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(still), "controller": True}
    manifest = claim("p-extended-resources-x")
    manifest["metadata"]["ownerReferences"] = [owner]
    create(still, manifest)
    record = still.api.get(PODS, "default", "p")
    obj = record.parse()
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    obj["status"]["extendedResourceClaimStatus"] = {
        "requestMappings": [mapping],
        "resourceClaimName": "p-extended-resources-x",
    }
    still.api.replace(PODS, record, obj, "status")
    allocate(still, "p-extended-resources-x", consumer("p", uid_of(still)))
    set_phase(still, "Succeeded")
    assert claims(still) == []
