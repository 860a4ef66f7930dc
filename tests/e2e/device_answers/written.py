"""What schedulers, drivers and users write into claims, and claims of pods."""

from __future__ import annotations

from tests.e2e.api import MERGE
from tests.e2e.device_answers.device_requests import (
    APPLY,
    CLAIMS,
    FINALIZER,
    JSON_PATCH,
    NAMED,
    NO_NAME,
    ONE_TERM,
    PODS,
    REPORT,
    SHARE,
    STRATEGIC,
    TEMPLATES,
    Exchange,
    accepted,
    allocation,
    claim,
    consumer,
    opaque,
    pod,
    refused,
    request,
    result,
    status,
)

WRITES = [
    Exchange(
        "change a specification",
        "PATCH",
        f"{CLAIMS}/free",
        {"spec": {"devices": {"requests": [request("x")]}}},
        422,
        "field is immutable",
        MERGE,
    ),
    Exchange(
        "change a template",
        "PATCH",
        f"{TEMPLATES}/t",
        {"spec": {"spec": {"devices": {"requests": [request("x")]}}}},
        422,
        "field is immutable",
        MERGE,
    ),
    Exchange(
        "empty what is missing", "PATCH", f"{CLAIMS}/free", {"spec": {"devices": {"constraints": []}}}, 200, "", MERGE
    ),
    Exchange("label a claim", "PATCH", f"{CLAIMS}/taken", {"metadata": {"labels": {"a": "b"}}}, 200, "", MERGE),
    Exchange("add the finalizer", "PATCH", f"{CLAIMS}/free", {"metadata": {"finalizers": [FINALIZER]}}, 200, "", MERGE),
    Exchange(
        "add it, stale",
        "PATCH",
        f"{CLAIMS}/free",
        {"metadata": {"finalizers": [FINALIZER], "resourceVersion": "1"}},
        409,
        "the object has been modified",
        MERGE,
    ),
    Exchange(
        "add it to another",
        "PATCH",
        f"{CLAIMS}/free",
        {"metadata": {"finalizers": [FINALIZER], "uid": SHARE}},
        422,
        "metadata.uid: Invalid value",
        MERGE,
    ),
    status("allocate", "free", {"allocation": allocation()}, 200),
    status("allocate and reserve", "free", {"allocation": allocation(), "reservedFor": [consumer()]}, 200),
    status(
        "allocate, strategic", "free", {"allocation": allocation(), "reservedFor": [consumer()]}, 200, "", STRATEGIC
    ),
    status(
        "allocate with everything",
        "free",
        {
            "allocation": allocation(
                result(
                    tolerations=[{"key": "k", "operator": "Exists"}],
                    bindingConditions=["a.b/R"],
                    bindingFailureConditions=["a.b/F"],
                    shareID=SHARE,
                    consumedCapacity={"memory": "1Gi"},
                ),
                config=[{"source": "FromClass", "requests": ["gpu"], **opaque()}],
                nodeSelector={
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                    ]
                },
                allocationTimestamp="2026-01-01T00:00:00Z",
            )
        },
        200,
    ),
    status("allocate nothing", "free", {"allocation": {}}, 200),
    status(
        "reserve only", "free", {"reservedFor": [consumer()]}, 422, "may not be specified when `allocated` is not set"
    ),
    status(
        "allocate an unknown request",
        "free",
        {"allocation": allocation(result(request="x"))},
        422,
        f'request: Invalid value: "x": {NO_NAME}',
    ),
    status(
        "allocate without driver", "free", {"allocation": allocation(result(driver=""))}, 422, "driver: Required value"
    ),
    status("allocate without pool", "free", {"allocation": allocation(result(pool=""))}, 422, "pool: Required value"),
    status("allocate without device", "free", {"allocation": allocation(result(""))}, 422, "results[0].device"),
    status(
        "allocate 33", "free", {"allocation": allocation(*(result(f"d{at}") for at in range(33)))}, 422, "Too many: 33"
    ),
    status(
        "allocate an odd share", "free", {"allocation": allocation(result(shareID="x"))}, 422, "shareID: Invalid value"
    ),
    status(
        "allocate with administrative access",
        "free",
        {"allocation": allocation(result(adminAccess=True))},
        422,
        "admin access to devices requires the",
    ),
    status(
        "allocate an odd source",
        "free",
        {"allocation": allocation(config=[{"source": "X", **opaque()}])},
        422,
        'source: Unsupported value: "X"',
    ),
    status(
        "allocate without source", "free", {"allocation": allocation(config=[opaque()])}, 422, "source: Required value"
    ),
    status(
        "allocate where nobody is",
        "free",
        {"allocation": allocation(nodeSelector={"nodeSelectorTerms": []})},
        422,
        "must have at least one node selector term",
    ),
    status(
        "allocate with half of the conditions",
        "free",
        {"allocation": allocation(result(bindingConditions=["a.b/R"]))},
        422,
        "bindingFailureConditions are required",
    ),
    status(
        "reserve without UID",
        "free",
        {"allocation": allocation(), "reservedFor": [{"resource": "pods", "name": "p"}]},
        422,
        "reservedFor[0].uid: Required value",
    ),
    status(
        "reserve twice",
        "free",
        {"allocation": allocation(), "reservedFor": [consumer("p"), consumer("q")]},
        422,
        "Duplicate value",
    ),
    status("reserve for 256", "taken", {"reservedFor": [consumer(f"p{at}", f"u{at}") for at in range(256)]}, 200),
    status(
        "reserve for 257",
        "taken",
        {"reservedFor": [consumer(f"p{at}", f"u{at}") for at in range(257)]},
        422,
        "Too many: 257: must have at most 256",
    ),
    status("reserve for one more", "taken", {"reservedFor": [consumer("r", "u3")]}, 200, "", STRATEGIC),
    status("release one", "taken", {"reservedFor": [{"$patch": "delete", "uid": "u1"}]}, 200, "", STRATEGIC),
    status("release nobody", "taken", {"reservedFor": [{"$patch": "delete", "uid": "x"}]}, 200, "", STRATEGIC),
    status("allocate again", "taken", {"allocation": allocation()}, 422, "status.allocation: Invalid value"),
    status(
        "add a time",
        "taken",
        {"allocation": {"allocationTimestamp": "2026-01-01T00:00:00Z"}},
        422,
        "field is immutable",
    ),
    status(
        "add a node",
        "taken",
        {"allocation": {"nodeSelector": {"nodeSelectorTerms": [ONE_TERM]}}},
        422,
        "field is immutable",
    ),
    status("add an empty list", "taken", {"allocation": {"devices": {"config": []}}}, 200),
    status("clear under users", "taken", {"allocation": None}, 422, "may not be specified when `allocated` is not set"),
    status("clear", "taken", {"allocation": None, "reservedFor": None}, 200),
    status("an update without change", "taken", {}, 200),
    Exchange(
        "allocate, stale",
        "PATCH",
        f"{CLAIMS}/free/status",
        {"metadata": {"resourceVersion": "1"}, "status": {"allocation": allocation()}},
        409,
        "the object has been modified",
        MERGE,
    ),
    Exchange(
        "allocate, another",
        "PATCH",
        f"{CLAIMS}/free/status",
        {"metadata": {"uid": SHARE}, "status": {"allocation": allocation()}},
        422,
        "metadata.uid: Invalid value",
        STRATEGIC,
    ),
    Exchange(
        "allocate what is not there",
        "PATCH",
        f"{CLAIMS}/none/status",
        {"status": {}},
        404,
        'resourceclaims.resource.k8s.io "none" not found',
        MERGE,
    ),
    Exchange(
        "test and allocate",
        "PATCH",
        f"{CLAIMS}/free/status",
        [
            {"op": "test", "path": "/status/allocation", "value": None},
            {"op": "add", "path": "/status/allocation", "value": allocation()},
        ],
        200,
        "",
        JSON_PATCH,
    ),
    Exchange(
        "test for another allocation",
        "PATCH",
        f"{CLAIMS}/free/status",
        [{"op": "test", "path": "/status/allocation", "value": allocation()}],
        422,
        "",
        JSON_PATCH,
    ),
    Exchange(
        "test for a version",
        "PATCH",
        f"{CLAIMS}/free/status",
        [
            {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
            {"op": "add", "path": "/status/allocation", "value": allocation()},
        ],
        422,
        "",
        JSON_PATCH,
    ),
    Exchange(
        "allocate by JSON patch",
        "PATCH",
        f"{CLAIMS}/free/status",
        [{"op": "add", "path": "/status/allocation", "value": allocation()}],
        200,
        "",
        JSON_PATCH,
    ),
    Exchange(
        "apply an allocation",
        "PATCH",
        f"{CLAIMS}/free/status?fieldManager=m",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "free"},
            "status": {"allocation": allocation()},
        },
        200,
        "",
        APPLY,
    ),
    Exchange("apply a claim", "PATCH", f"{CLAIMS}/x?fieldManager=m", claim("x"), 201, "", APPLY),
    status("report", "taken", {"devices": [REPORT]}, 200),
    status(
        "report of another device",
        "taken",
        {"devices": [REPORT | {"device": "gpu-7"}]},
        422,
        "must be an allocated device in the claim",
    ),
    status("report twice", "taken", {"devices": [REPORT, REPORT]}, 422, "Duplicate value"),
    status(
        "report with a half condition",
        "taken",
        {"devices": [REPORT | {"conditions": [{"type": "R", "status": "True"}]}]},
        422,
        "conditions[0].lastTransitionTime: Required value",
    ),
    status(
        "report with an odd condition",
        "taken",
        {
            "devices": [
                REPORT
                | {
                    "conditions": [
                        {
                            "type": "R",
                            "status": "Yes",
                            "reason": "A",
                            "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            ]
        },
        422,
        'status: Unsupported value: "Yes"',
    ),
    status(
        "report with data",
        "taken",
        {"devices": [REPORT | {"data": {"a": 1}, "networkData": {"interfaceName": "eth1", "ips": ["10.0.0.1/8"]}}]},
        200,
    ),
    status("reserve what is going", "going", {"reservedFor": [consumer()]}, 422, "new entries may not be added"),
    status("release what is going", "going", {"reservedFor": None, "allocation": None}, 200),
    Exchange("end what is going", "PATCH", f"{CLAIMS}/going", {"metadata": {"finalizers": None}}, 200, "", MERGE),
    Exchange(
        "a finalizer for what is going",
        "PATCH",
        f"{CLAIMS}/going",
        {"metadata": {"finalizers": [FINALIZER, "a.b/c"]}},
        422,
        "no new finalizers can be added",
        MERGE,
    ),
    Exchange("delete a claim in use", "DELETE", f"{CLAIMS}/taken", None, 200),
    Exchange(
        "update a claim, wrong UID",
        "PUT",
        f"{CLAIMS}/free",
        claim("free") | {"metadata": {"name": "free", "uid": SHARE}},
        409,
        "Precondition failed: UID",
    ),
    Exchange(
        "update a status, wrong UID",
        "PUT",
        f"{CLAIMS}/free/status",
        claim("free") | {"metadata": {"name": "free", "uid": SHARE}},
        409,
        "Precondition failed: UID",
    ),
    Exchange(
        "update a claim, stale",
        "PUT",
        f"{CLAIMS}/free",
        claim("free") | {"metadata": {"name": "free", "resourceVersion": "1"}},
        409,
        "the object has been modified",
    ),
    Exchange("update a claim, unconditionally", "PUT", f"{CLAIMS}/free", claim("free"), 200),
    Exchange(
        "update a pod, wrong UID",
        "PATCH",
        f"{PODS}/p/status",
        {"metadata": {"uid": SHARE}, "status": {"message": "x"}},
        422,
        "metadata.uid: Invalid value",
        STRATEGIC,
    ),
    Exchange(
        "delete a pod, wrong UID",
        "DELETE",
        f"{PODS}/p",
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": SHARE}},
        409,
        "the UID in the precondition",
    ),
    Exchange(
        "delete a claim, stale",
        "DELETE",
        f"{CLAIMS}/free",
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "1"}},
        409,
        "the ResourceVersion in the precondition",
    ),
    Exchange(
        "delete a claim, wrong UID",
        "DELETE",
        f"{CLAIMS}/free",
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": SHARE}},
        409,
        "the UID in the precondition",
    ),
    accepted("pod", pod("x", NAMED, [{"name": "gpu", "request": "gpu"}, {"name": "own"}])),
    refused("pod without source", pod("x", [{"name": "a"}]), "must specify one of: `resourceClaimName`"),
    refused(
        "pod with two sources",
        pod("x", [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]),
        "at most one of `resourceClaimName`",
    ),
    refused("pod with a claim twice", pod("x", [NAMED[0], NAMED[0]]), 'name: Duplicate value: "gpu"'),
    refused("pod that uses none of its claims", pod("x", NAMED, [{"name": "a"}]), 'claims[0]: Not found: "a"'),
    refused(
        "pod that uses a claim twice",
        pod("x", NAMED, [{"name": "gpu", "request": "a"}, {"name": "gpu"}]),
        "Duplicate value",
    ),
    Exchange(
        "a pod's claim",
        "PATCH",
        f"{PODS}/p/status",
        {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]}},
        200,
        "",
        STRATEGIC,
    ),
    Exchange(
        "a pod's unknown claim",
        "PATCH",
        f"{PODS}/p/status",
        {"status": {"resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "x"}]}},
        422,
        "must match the name of an entry in `spec.resourceClaims`",
        STRATEGIC,
    ),
    Exchange(
        "a pod's extended claim",
        "PATCH",
        f"{PODS}/p/status",
        {
            "status": {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "c",
                    "requestMappings": [{"containerName": "main", "resourceName": "a.b/c", "requestName": "r"}],
                }
            }
        },
        422,
        "must match the extended resource name of an entry",
        STRATEGIC,
    ),
]
