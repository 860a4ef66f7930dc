"""A pod that was bound before its claims are ready stays pending, with an event, until they are."""

from __future__ import annotations

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from benchmarks.cluster.store.kinds import EVENTS, PODS
from tests.benchmarks.cluster.builders import Still, pod
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    claim_template,
    consumer,
    device,
    pod_with_claim,
    resource_slice,
    result,
)

NODE = "node-00000"


@pytest.fixture
def still() -> Still:
    still = Still(nodes=2)
    still.cluster.create(resource_slice("s", device("gpu-0"), node=NODE))
    return still


def uid_of(still, name="p"):
    return still.cluster.get(PODS, name)["metadata"]["uid"]


def write(still, name="c", **status):
    still.api.patch(RESOURCE_CLAIMS, "default", name, {"status": status}, MERGE_PATCH, "status")


def start(still, node=NODE):
    still.bind("p", node)
    still.pass_time(2)
    return still.cluster.get(PODS, "p")["status"]["phase"]


def messages(still):
    return [
        event["message"].removeprefix("Failed to prepare dynamic resources: prepare dynamic resources: ")
        for event in still.cluster.objects(EVENTS)
        if event["reason"] == "FailedPrepareDynamicResources"
    ]


def test_with_its_claim_a_pod_runs(still):
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    write(still, allocation=allocation(node=NODE), reservedFor=[consumer("p", uid_of(still))])
    assert start(still) == "Running"
    assert still.cluster.unprepared == {}
    assert messages(still) == []


def test_without_an_allocation_it_waits(still):
    """The controller reserves the claim as soon as it is allocated, since the pod is bound."""
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    assert start(still) == "Pending"
    assert f"pod p ({uid_of(still)}) is not allowed to use ResourceClaim c" in messages(still)[0]
    assert still.cluster.unprepared == {"default/p": messages(still)[0]}
    write(still, allocation=allocation(node=NODE))
    still.pass_time(2)
    assert still.cluster.get(PODS, "p")["status"]["phase"] == "Running"
    (event,) = [one for one in still.cluster.objects(EVENTS) if one["reason"] == "FailedPrepareDynamicResources"]
    assert event["count"] == 2
    assert event["type"] == "Warning"


def test_a_claim_of_another_pod_is_refused():
    still = Still(nodes=1, controllers=False)
    still.cluster.create(resource_slice("s", device("gpu-0"), node=NODE))
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    write(still, allocation=allocation(node=NODE), reservedFor=[consumer("q", "u")])
    assert start(still) == "Pending"
    assert "is not allowed to use ResourceClaim c" in messages(still)[0]
    write(still, allocation=allocation(node=NODE), reservedFor=[consumer("q", "u"), consumer("p", uid_of(still))])
    still.pass_time(2)
    assert still.cluster.get(PODS, "p")["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(allocation(node="node-00001"), "it is allocated for other nodes than node-00000", id="selector"),
        pytest.param(
            allocation(result("gpu-7"), node=NODE), "there is no device gpu.example.com/pool/gpu-7", id="none"
        ),
        pytest.param(
            allocation(result("gpu-0", pool="far"), node=NODE),
            "no device gpu.example.com/far/gpu-0 on node-0",
            id="far",
        ),
    ],
)
def test_a_claim_that_is_not_for_the_node_is_refused(still, given, problem):
    still.cluster.create(resource_slice("t", device("gpu-0"), pool="far", node="node-00001"))
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    write(still, allocation=given, reservedFor=[consumer("p", uid_of(still))])
    assert start(still) == "Pending"
    assert problem in messages(still)[0]


def test_a_claim_that_is_not_there_is_waited_for(still):
    still.cluster.create(pod_with_claim(claim_name="c"))
    assert start(still) == "Pending"
    assert messages(still) == ['fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found']


def test_a_generated_claim_that_is_not_there_yet_is_waited_for(still):
    still.cluster.create(pod_with_claim(template="t"))
    assert start(still) == "Pending"
    assert messages(still) == ['pod "default/p": ResourceClaim not created yet']
    still.cluster.create(claim_template())
    still.pass_time(2)
    (made,) = still.cluster.objects(RESOURCE_CLAIMS)
    write(still, made["metadata"]["name"], allocation=allocation(node=NODE))
    still.pass_time(2)
    assert still.cluster.get(PODS, "p")["status"]["phase"] == "Running"


def test_devices_of_the_network_suit_the_nodes_that_reach_them(still):
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    still.cluster.create(resource_slice("t", device("port-0"), pool="net", nodeSelector=selector))
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    given = allocation(result("port-0", pool="net")) | {"nodeSelector": selector}
    write(still, allocation=given, reservedFor=[consumer("p", uid_of(still))])
    assert start(still, "node-00001") == "Running"


def test_a_pod_that_is_deleted_while_it_waits_is_forgotten(still):
    still.cluster.create(pod_with_claim(claim_name="c"))
    start(still)
    delete(still.api, PODS, "default", "p")
    still.pass_time(60)
    assert still.pods() == []
    assert still.cluster.agenda.failures == 0


def test_extended_resources_that_a_claim_serves_are_not_those_of_the_node(still):
    """The node has no device plugin; without the claim the pod does not fit."""
    amount = {"example.com/gpu": "1"}
    for name in ("p", "q"):
        still.cluster.create(pod(name, resources={"requests": amount, "limits": amount}))
    manifest = claim("extended")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(still), "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    still.cluster.create(manifest)
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    status = {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": "extended"}}
    still.api.patch(PODS, "default", "p", {"status": status}, MERGE_PATCH, "status")
    still.bind("q", NODE)
    assert start(still) == "Pending"
    assert "is not allowed to use ResourceClaim extended" in messages(still)[0]
    write(still, "extended", allocation=allocation(node=NODE), reservedFor=[consumer("p", uid_of(still))])
    still.pass_time(2)
    assert still.cluster.get(PODS, "p")["status"]["phase"] == "Running"
    assert still.cluster.rejected == {"OutOfexample.com/gpu": 1}


def test_a_slice_that_comes_later_makes_it_run(still):
    still.cluster.create(claim())
    still.cluster.create(pod_with_claim(claim_name="c"))
    write(still, allocation=allocation(result("gpu-1"), node=NODE), reservedFor=[consumer("p", uid_of(still))])
    assert start(still) == "Pending"
    still.api.patch(RESOURCE_SLICES, "", "s", {"spec": {"devices": [device("gpu-0"), device("gpu-1")]}}, MERGE_PATCH)
    still.pass_time(2)
    assert still.cluster.get(PODS, "p")["status"]["phase"] == "Running"
