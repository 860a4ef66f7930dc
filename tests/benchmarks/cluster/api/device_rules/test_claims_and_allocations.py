"""What is refused of claims, of templates and of what a scheduler writes into a claim's status."""

from __future__ import annotations

import copy

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import APPLY_PATCHES, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from benchmarks.cluster.store.device_kinds import CLAIM_TEMPLATES, FINALIZER, RESOURCE_CLAIMS
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import PODS
from tests.benchmarks.cluster.builders import Still, pod
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    claim_template,
    consumer,
    pod_with_claim,
    request,
    result,
)

SHARE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def still() -> Still:
    return Still(controllers=False)


def refusal(call, *args, **kwargs) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*args, **kwargs)
    return refused.value


def create(still, manifest):
    return still.cluster.create(manifest)


def first(*alternatives, name="gpu"):
    return {"name": name, "firstAvailable": list(alternatives)}


def alternative(name, **fields):
    return {"name": name, "deviceClassName": "gpu", **fields}


def toleration(**fields):
    return request(tolerations=[fields])


def selector(expression):
    return request(selectors=[{"cel": {"expression": expression}}])


def opaque(**fields):
    return {"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}, **fields}}


def test_defaults(still):
    made = create(
        still, claim("c", request("one"), first(alternative("big", allocationMode="All"), alternative("small")))
    )
    exactly, several = made["spec"]["devices"]["requests"]
    assert exactly["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert [(one["allocationMode"], one.get("count")) for one in several["firstAvailable"]] == [
        ("All", None),
        ("ExactCount", 1),
    ]
    assert made["status"] == {}
    assert "generation" not in made["metadata"]


def test_a_status_that_comes_with_a_new_claim_is_dropped(still):
    assert create(still, claim() | {"status": {"allocation": allocation()}})["status"] == {}


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        pytest.param({"requests": [{"name": "gpu"}]}, "exactly one of `exactly` or", id="neither form"),
        pytest.param(
            {"requests": [request() | first(alternative("a"))]}, "but multiple fields are set", id="both forms"
        ),
        pytest.param({"requests": [request("A")]}, "requests[0].name: Invalid value", id="name in capitals"),
        pytest.param({"requests": [request(), request()]}, 'requests[1]: Duplicate value: "gpu"', id="name twice"),
        pytest.param(
            {"requests": [request(f"r{at}") for at in range(33)]},
            "requests: Too many: 33: must have at most 32 items",
            id="33 requests",
        ),
        pytest.param(
            {"requests": [first(*(alternative(f"a{at}") for at in range(9)))]},
            "firstAvailable: Too many: 9: must have at most 8 items",
            id="9 alternatives",
        ),
        pytest.param(
            {"requests": [request(device_class="")]},
            "exactly.deviceClassName: Required value",
            id="no class",
        ),
        pytest.param(
            {"requests": [request(count=-1)]}, "count: Invalid value: -1: must be greater than zero", id="count"
        ),
        pytest.param(
            {"requests": [request(allocationMode="All", count=2)]},
            "count: Invalid value: 2: must not be specified when allocationMode is 'All'",
            id="All with a count",
        ),
        pytest.param(
            {"requests": [request(allocationMode="Some")]},
            'allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
            id="mode",
        ),
        pytest.param(
            {"requests": [selector("x" * 10241)]}, "Too long: may not be more than 10240 bytes", id="long CEL"
        ),
        pytest.param({"requests": [selector("")]}, "compilation failed", id="empty CEL"),
        pytest.param({"requests": [request(selectors=[{}])]}, "selectors[0].cel: Required value", id="no CEL"),
        pytest.param(
            {"requests": [toleration(key="k", operator="Exists", value="v")]},
            "must be empty for operator `Exists`",
            id="Exists with a value",
        ),
        pytest.param(
            {"requests": [toleration(key="k", operator="Gt")]}, 'operator: Unsupported value: "Gt"', id="operator"
        ),
        pytest.param(
            {"requests": [toleration(key="k", effect="Never")]}, 'effect: Unsupported value: "Never"', id="effect"
        ),
        pytest.param(
            {"requests": [request()], "constraints": [{"requests": ["gpu"]}]},
            'exactly one of "matchAttribute" or "distinctAttribute" is required',
            id="constraint of nothing",
        ),
        pytest.param(
            {"requests": [request()], "constraints": [{"matchAttribute": "model"}]},
            "a fully qualified name must be a domain and a name separated by a slash",
            id="attribute without domain",
        ),
        pytest.param(
            {"requests": [request()], "constraints": [{"requests": ["nic"], "matchAttribute": "a.b/c"}]},
            'constraints[0].requests[0]: Invalid value: "nic": must be the name of a request in the claim',
            id="constraint of an unknown request",
        ),
        pytest.param(
            {"requests": [first(alternative("a"))], "config": [{"requests": ["gpu/b"], **opaque()}]},
            'config[0].requests[0]: Invalid value: "gpu/b"',
            id="configuration of an unknown alternative",
        ),
        pytest.param({"requests": [request()], "config": [{}]}, "config[0].opaque: Required value", id="no opaque"),
        pytest.param(
            {"requests": [request()], "config": [opaque(parameters=None)]}, "parameters: Required", id="no parameters"
        ),
        pytest.param(
            {"requests": [request()], "config": [opaque(parameters={"a": "x" * 10240})]},
            "parameters: Too long",
            id="long parameters",
        ),
    ],
)
def test_refused_specifications(still, devices, why):
    manifest = claim() | {"spec": {"devices": devices}}
    refused = refusal(create, still, manifest)
    assert refused.code == 422
    assert why in refused.message
    assert refused.message.startswith('ResourceClaim.resource.k8s.io "c" is invalid: ')
    template = claim_template() | {"spec": {"spec": {"devices": devices}}}
    assert why in refusal(create, still, template).message


def test_references_to_alternatives_are_accepted(still):
    manifest = claim(
        "c",
        first(alternative("a"), alternative("b")),
        request("nic"),
        constraints=[
            {"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"},
            {"distinctAttribute": "example.com/rail"},
        ],
        config=[{"requests": ["gpu/b"], **opaque()}],
    )
    assert create(still, manifest)["spec"]["devices"]["constraints"][1] == {"distinctAttribute": "example.com/rail"}


@pytest.mark.parametrize("kind", [RESOURCE_CLAIMS, CLAIM_TEMPLATES], ids=["claim", "template"])
def test_a_specification_does_not_change(still, kind):
    name = "c" if kind is RESOURCE_CLAIMS else "t"
    made = create(still, claim() if kind is RESOURCE_CLAIMS else claim_template())
    spec = {"devices": {"requests": [request("other")]}}
    patch = {"spec": spec if kind is RESOURCE_CLAIMS else {"spec": spec}}
    refused = refusal(still.api.patch, kind, "default", name, patch, MERGE_PATCH)
    assert refused.code == 422
    assert "spec: Invalid value: " in refused.message
    assert refused.message.endswith(": field is immutable")
    # the defaults are those of the first write, and what is empty is like what is not there
    written = copy.deepcopy(made)
    inner = written["spec"] if kind is RESOURCE_CLAIMS else written["spec"]["spec"]
    del inner["devices"]["requests"][0]["exactly"]["count"]
    inner["devices"]["constraints"] = []
    written["metadata"]["labels"] = {"a": "b"}
    assert still.api.update(kind, "default", name, written).labels == {"a": "b"}


def allocated(still, *requests, finalizer=True, **status):
    create(still, claim("c", *requests, finalizers=(FINALIZER,) if finalizer else ()))
    return write(still, {"allocation": allocation(), **status})


def write(still, status, *, kind=MERGE_PATCH, **metadata):
    patch = {"status": status, **({"metadata": metadata} if metadata else {})}
    return still.api.patch(RESOURCE_CLAIMS, "default", "c", patch, kind, "status")[0].parse()


@pytest.mark.parametrize(
    ("status", "why"),
    [
        pytest.param(
            {"allocation": allocation(result(request="nic"))},
            'allocation.devices.results[0].request: Invalid value: "nic"',
            id="unknown request",
        ),
        pytest.param({"allocation": allocation(result(driver=""))}, "driver: Required value", id="no driver"),
        pytest.param({"allocation": allocation(result(pool=""))}, "pool: Required value", id="no pool"),
        pytest.param({"allocation": allocation(result("GPU"))}, "device: Invalid value", id="device in capitals"),
        pytest.param({"allocation": allocation(result(shareID="x"))}, "shareID: Invalid value", id="share"),
        pytest.param(
            {"allocation": allocation(*(result(f"gpu-{at}") for at in range(33)))},
            "results: Too many: 33: must have at most 32 items",
            id="33 results",
        ),
        pytest.param(
            {"allocation": allocation(result(bindingConditions=["a.b/Ready"]))},
            "bindingFailureConditions are required to use bindingConditions",
            id="no failure conditions",
        ),
        pytest.param(
            {"allocation": allocation() | {"nodeSelector": {"nodeSelectorTerms": []}}},
            "must have at least one node selector term",
            id="empty node selector",
        ),
        pytest.param(
            {"reservedFor": [consumer()]},
            "reservedFor: Forbidden: may not be specified when `allocated` is not set",
            id="reserved only",
        ),
        pytest.param(
            {"allocation": allocation(), "reservedFor": [{"resource": "pods", "name": "p"}]},
            "reservedFor[0].uid: Required value",
            id="consumer without UID",
        ),
        pytest.param(
            {"allocation": allocation(), "reservedFor": [consumer("p"), consumer("q")]},
            'reservedFor[1]: Duplicate value: "u"',
            id="UID twice",
        ),
        pytest.param(
            {"allocation": allocation(), "reservedFor": [consumer(f"p{at}", f"u{at}") for at in range(257)]},
            "reservedFor: Too many: 257: must have at most 256 items",
            id="257 consumers",
        ),
        pytest.param(
            {"allocation": allocation(), "devices": [{"driver": "gpu.example.com", "pool": "pool", "device": "gpu-1"}]},
            "must be an allocated device in the claim",
            id="report of another device",
        ),
        pytest.param(
            {
                "allocation": allocation(),
                "devices": [
                    {
                        "driver": "gpu.example.com",
                        "pool": "pool",
                        "device": "gpu-0",
                        "conditions": [{"type": "Ready", "status": "Yes"}],
                    }
                ],
            },
            'devices[0].conditions[0].status: Unsupported value: "Yes"',
            id="condition",
        ),
    ],
)
def test_refused_statuses(still, status, why):
    create(still, claim())
    refused = refusal(write, still, status)
    assert refused.code == 422
    assert why in refused.message
    assert still.cluster.get(RESOURCE_CLAIMS, "c")["status"] == {}


def test_256_consumers_are_accepted(still):
    written = allocated(still, reservedFor=[consumer(f"p{at}", f"u{at}") for at in range(256)])
    assert len(written["status"]["reservedFor"]) == 256


def test_an_allocation_does_not_change_but_can_be_cleared(still):
    allocated(still, reservedFor=[consumer()])
    for changed in (
        allocation(result("gpu-1")),
        allocation(node="node-00000"),
        allocation(allocationTimestamp="2026-01-01T00:00:00Z"),
    ):
        refused = refusal(write, still, {"allocation": changed})
        assert refused.code == 422
        assert "status.allocation: Invalid value: " in refused.message
        assert refused.message.endswith("field is immutable")
    assert "status.reservedFor: Forbidden" in refusal(write, still, {"allocation": None}).message
    assert write(still, {"allocation": None, "reservedFor": None})["status"] == {}
    assert write(still, {"allocation": allocation(result("gpu-1"))})["status"]["allocation"]


def test_an_allocation_without_timestamp_gets_more_consumers(still):
    """Nothing is added to what an older scheduler has written."""
    allocated(still, reservedFor=[consumer("p", "u1")])
    written = write(still, {"reservedFor": [consumer("p", "u1"), consumer("q", "u2")]})
    assert [one["uid"] for one in written["status"]["reservedFor"]] == ["u1", "u2"]


def test_a_strategic_patch_adds_and_deletes_consumers_by_uid(still):
    allocated(still, reservedFor=[consumer("p", "u1"), consumer("q", "u2")])
    written = write(still, {"reservedFor": [consumer("r", "u3")]}, kind=STRATEGIC_PATCH)
    assert [one["uid"] for one in written["status"]["reservedFor"]] == ["u1", "u2", "u3"]
    gone = {"reservedFor": [{"$patch": "delete", "uid": "u2"}]}
    written = write(still, gone, kind=STRATEGIC_PATCH)
    assert [one["uid"] for one in written["status"]["reservedFor"]] == ["u1", "u3"]


def test_patches_are_conditional_on_uid_and_version(still):
    made = create(still, claim())
    version, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    assert refusal(write, still, {}, uid=SHARE).code == 422
    written = write(still, {"allocation": allocation()}, uid=uid, resourceVersion=version)
    refused = refusal(write, still, {"reservedFor": [consumer()]}, resourceVersion=version)
    assert refused.code == 409
    assert "the object has been modified" in refused.message
    test = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": written["metadata"]["resourceVersion"]},
        {"op": "add", "path": "/status/reservedFor", "value": [consumer()]},
    ]
    patched = still.api.patch(RESOURCE_CLAIMS, "default", "c", test, JSON_PATCH, "status")[0].parse()
    assert patched["status"]["reservedFor"] == [consumer()]


def test_a_status_is_written_alone(still):
    """The finalizer therefore takes a write of its own."""
    create(still, claim())
    written = write(still, {"allocation": allocation()}, finalizers=[FINALIZER], labels={"a": "b"})
    assert written["status"]["allocation"]
    assert "finalizers" not in written["metadata"]
    assert "labels" not in written["metadata"]
    patch = {"metadata": {"finalizers": [FINALIZER]}, "status": {"allocation": None}}
    written = still.api.patch(RESOURCE_CLAIMS, "default", "c", patch, MERGE_PATCH)[0].parse()
    assert written["metadata"]["finalizers"] == [FINALIZER]
    assert written["status"]["allocation"]


def test_drivers_apply_their_reports_side_by_side_and_they_go_with_the_allocation(still):
    create(still, claim("c", request(count=2)))
    write(still, {"allocation": allocation(result("gpu-0"), result("gpu-1"))})
    for name in ("gpu-0", "gpu-1", "gpu-0"):
        report = {"driver": "gpu.example.com", "pool": "pool", "device": name, "data": {"seen": name}}
        written = write(still, {"devices": [report]}, kind=APPLY_PATCHES[0])
    assert [one["device"] for one in written["status"]["devices"]] == ["gpu-0", "gpu-1"]
    assert write(still, {"allocation": None})["status"] == {}


def test_a_deleted_claim_gets_no_further_consumer_and_stays_for_those_it_has(still):
    allocated(still, reservedFor=[consumer("p", "u1"), consumer("q", "u2")])
    delete(still.api, RESOURCE_CLAIMS, "default", "c")
    refused = refusal(write, still, {"reservedFor": [consumer("p", "u1"), consumer("r", "u3")]})
    assert "status.reservedFor: Forbidden: new entries may not be added" in refused.message
    assert write(still, {"reservedFor": [consumer("p", "u1")]})["status"]["reservedFor"] == [consumer("p", "u1")]
    still.api.patch(RESOURCE_CLAIMS, "default", "c", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert still.store.get(RESOURCE_CLAIMS, "default", "c") is None


def test_administrative_access_needs_the_label_of_the_namespace(still):
    why = (
        "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the "
        "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    )
    asking = (request(), request("admin", adminAccess=True))
    for manifest in (claim("c", *asking), claim_template("t", *asking)):
        refused = refusal(create, still, manifest)
        assert refused.code == 422
        assert why in refused.message
    home = {"metadata": {"name": "ops", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
    create(still, {"apiVersion": "v1", "kind": "Namespace", **home})
    manifest = claim("c", *asking)
    manifest["metadata"]["namespace"] = "ops"
    assert create(still, manifest)
    create(still, claim())
    refused = refusal(write, still, {"allocation": allocation(result(adminAccess=True))})
    assert "status.allocation.devices.results[0].adminAccess: Forbidden" in refused.message


def test_a_quantity_that_cannot_be_read_is_a_bad_request(still):
    manifest = claim("c", request(capacity={"requests": {"memory": "much"}}))
    assert refusal(create, still, manifest).code == 400


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"resourceClaims": [{"name": "a"}]}, "must specify one of", id="no source"),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]},
            "at most one of",
            id="two sources",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}, {"name": "a", "resourceClaimName": "c"}]},
            'resourceClaims[1].name: Duplicate value: "a"',
            id="twice",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": "a"}]}},
            'spec.containers[0].resources.claims[0]: Not found: "a"',
            id="unknown claim of a container",
        ),
    ],
)
def test_refused_pods(still, spec, why):
    refused = refusal(create, still, pod("p", **spec))
    assert refused.code == 422
    assert why in refused.message


def test_a_pods_status_names_its_own_claims_only(still):
    create(still, pod_with_claim(template="t"))
    patch = {"status": {"resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "x"}]}}
    refused = refusal(still.api.patch, PODS, "default", "p", patch, STRATEGIC_PATCH, "status")
    assert "must match the name of an entry in `spec.resourceClaims`" in refused.message
    for entry, name in (("gpu", "x"), ("gpu", "y")):
        patch = {"status": {"resourceClaimStatuses": [{"name": entry, "resourceClaimName": name}]}}
        written = still.api.patch(PODS, "default", "p", patch, STRATEGIC_PATCH, "status")[0].parse()
    assert written["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": "y"}]


def test_a_pods_claim_for_extended_resources_maps_its_containers(still):
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    create(still, pod("p", resources=resources))

    def status(container="main", resource="example.com/gpu"):
        mapping = {"containerName": container, "resourceName": resource, "requestName": "container-0-request-0"}
        return {"status": {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": "c"}}}

    for wrong, why in (
        (status(container="other"), "must match the name of an entry in spec.initContainers.name"),
        (status(resource="example.com/nic"), "must match the extended resource name of an entry"),
    ):
        assert why in refusal(still.api.patch, PODS, "default", "p", wrong, STRATEGIC_PATCH, "status").message
    written = still.api.patch(PODS, "default", "p", status(), STRATEGIC_PATCH, "status")[0].parse()
    assert written["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == "c"
