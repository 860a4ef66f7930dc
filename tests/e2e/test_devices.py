"""Device claims on the synthetic cluster and on a real API server: what is written, and what it accepts.

There is no controller that makes claims of templates or takes back devices: claims are named, and stay allocated.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.e2e.api import MERGE, PATIENCE, Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import SERVED_BY_DEVICES, node, pod
from tests.e2e.processes import Scheduler

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"


def of_kind(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def gpu_class(**spec: str) -> Json:
    expression = f'device.driver == "{DRIVER}"'
    return of_kind("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": expression}}], **spec})


def gpus(on: str, count: int, **fields: object) -> Json:
    devices = [{"name": f"gpu-{at}", "attributes": {"index": {"int": at}}, **fields} for at in range(count)]
    about = {"name": on, "generation": 1, "resourceSliceCount": 1}
    return of_kind(
        "ResourceSlice", f"slice-{on}", {"driver": DRIVER, "pool": about, "nodeName": on, "devices": devices}
    )


def claim(name: str, count: int = 1, **devices: object) -> Json:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}
    return of_kind("ResourceClaim", name, {"devices": {"requests": [request], **devices}})


def with_claim(name: str, of: str) -> Json:
    found = pod(name, cpu="100m", resourceClaims=[{"name": "d", "resourceClaimName": of}])
    found["spec"]["containers"][0]["resources"]["claims"] = [{"name": "d"}]
    return found


def until(backend: Backend, path: str, holds: Callable[[Json], bool]) -> Json:
    end = time.monotonic() + PATIENCE
    while True:
        found: Json = backend.api("GET", path)
        if holds(found):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.05)


def allocated(claim: Json) -> list[str]:
    allocation = claim.get("status", {}).get("allocation", {})
    return [f"{each['pool']}/{each['device']}" for each in allocation.get("devices", {}).get("results", [])]


def test_claims_get_devices_before_their_pods_are_bound(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"), gpu_class(), gpus("a", 1), gpus("b", 2), claim("one"), claim("two", 2))
    backend.create(with_claim("small", "one"), with_claim("large", "two"))
    where = backend.until_bound(2)
    assert where["large"] == "b"
    two = backend.api("GET", f"{CLAIMS}/two")
    assert allocated(two) == ["b/gpu-0", "b/gpu-1"]
    assert FINALIZER in two["metadata"]["finalizers"]
    uid = backend.api("GET", f"{PODS}/large")["metadata"]["uid"]
    assert two["status"]["reservedFor"] == [{"resource": "pods", "name": "large", "uid": uid}]
    (term,) = two["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    backend.create(claim("three", 2), with_claim("waits", "three"))
    assert "2 cannot allocate all claims" in backend.until_unschedulable("waits")


def test_a_claim_in_common_is_written_once_for_all(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"), gpu_class(), gpus("a", 1), gpus("b", 1), claim("shared"))
    backend.create(*(with_claim(f"p{at}", "shared") for at in range(8)))
    assert len(set(backend.until_bound(8).values())) == 1
    found = backend.api("GET", f"{CLAIMS}/shared")
    assert {each["name"] for each in found["status"]["reservedFor"]} == {f"p{at}" for at in range(8)}


def test_an_allocation_without_a_timestamp_takes_further_pods(backend: Backend, scheduler: Scheduler) -> None:
    """As of before Kubernetes 1.36, whose own scheduler adds one: the API server refuses that."""
    backend.create(node("a"), gpu_class(), gpus("a", 1), claim("old"))
    backend.api("PATCH", f"{CLAIMS}/old", {"metadata": {"finalizers": [FINALIZER]}}, MERGE)
    result = {"request": "gpu", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    backend.api("PATCH", f"{CLAIMS}/old/status", {"status": status}, MERGE)
    backend.create(with_claim("p", "old"))
    backend.until_bound(1)
    assert "allocationTimestamp" not in backend.api("GET", f"{CLAIMS}/old")["status"]["allocation"]


def test_an_extended_resource_is_served_by_a_claim_of_the_schedulers_own(
    backend: Backend, scheduler: Scheduler
) -> None:
    backend.create(node("a"), gpu_class(extendedResourceName=SERVED_BY_DEVICES), gpus("a", 2))
    asking = pod("p", cpu="100m")
    for part in ("requests", "limits"):
        asking["spec"]["containers"][0]["resources"].setdefault(part, {})[SERVED_BY_DEVICES] = "2"
    backend.create(asking)
    backend.until_bound(1)
    found = until(backend, f"{PODS}/p", lambda each: "extendedResourceClaimStatus" in each["status"])
    about = found["status"]["extendedResourceClaimStatus"]
    made = backend.api("GET", f"{CLAIMS}/{about['resourceClaimName']}")
    assert about["requestMappings"] == [
        {
            "containerName": found["spec"]["containers"][0]["name"],
            "resourceName": SERVED_BY_DEVICES,
            "requestName": "container-0-request-0",
        }
    ]
    assert made["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [found["metadata"]["uid"]]
    assert allocated(made) == ["a/gpu-0", "a/gpu-1"]


def test_a_shared_device_and_its_capacity(backend: Backend, scheduler: Scheduler) -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"memory": {"value": "10Gi", "requestPolicy": policy}}
    backend.create(node("a"), gpu_class(), gpus("a", 1, allowMultipleAllocations=True, capacity=capacity))
    for name, amount in (("x", "3500Mi"), ("y", "6Gi"), ("z", "1Gi")):
        asked = claim(name)
        asked["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": amount}}
        backend.create(asked, with_claim(f"p-{name}", name))
    backend.until_bound(2)
    consumed = {}
    for name in "xyz":
        results = backend.api("GET", f"{CLAIMS}/{name}").get("status", {}).get("allocation", {})
        for each in results.get("devices", {}).get("results", []):
            assert each["shareID"]
            consumed[name] = each["consumedCapacity"]["memory"]
    assert consumed in ({"x": "4Gi", "y": "6Gi"}, {"x": "4Gi", "z": "1Gi"}, {"y": "6Gi", "z": "1Gi"})


def test_what_is_missing_is_told_at_once(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), gpus("a", 1))
    backend.until_seen_by(scheduler)
    backend.create(with_claim("p", "later"))
    assert 'resourceclaim "later" not found' in backend.until_unschedulable("p")
    backend.create(claim("later"))
    until(
        backend,
        f"{PODS}/p",
        lambda each: "device class gpu does not exist" in str(each["status"].get("conditions")),
    )
    backend.create(gpu_class())
    backend.until_bound(1)
