"""resource.k8s.io over HTTP: discovery, its versions, selectors, watches, tables, and who may bind a claim."""

from __future__ import annotations

import aiohttp
import orjson
import pytest

from benchmarks.cluster import Cluster, ClusterSettings
from tests.benchmarks.cluster.conftest import Http
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    claim_template,
    consumer,
    device,
    device_class,
    request,
    resource_slice,
    taint_rule,
)
from tests.benchmarks.cluster.http.test_accounts import grant, rule, token  # noqa: F401 - a fixture

GROUP = "/apis/resource.k8s.io"
CLAIMS = f"{GROUP}/v1/namespaces/default/resourceclaims"
OLD_CLAIMS = f"{GROUP}/v1beta1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
ALL = ("v1", "v1beta2", "v1beta1", "v1alpha3")


@pytest.fixture
async def serve():
    """Starts a cluster with versions of the group; gives it and a client of it."""
    started = []

    async def start(*versions):
        cluster = Cluster(ClusterSettings(device_versions=versions))
        await cluster.start()
        session = aiohttp.ClientSession()
        started.append((cluster, session))
        return cluster, Http(session, cluster.url)

    yield start
    for cluster, session in started:
        await session.close()
        await cluster.stop()


async def names(http, version):
    code, found = await http("GET", f"{GROUP}/{version}")
    return [one["name"] for one in found["resources"]] if code == 200 else None


async def test_discovery_names_what_each_version_has(serve):
    _, http = await serve(*reversed(ALL))
    _, group = await http("GET", GROUP)
    assert [one["version"] for one in group["versions"]] == list(ALL)
    assert group["preferredVersion"]["version"] == "v1"
    four = ["resourceslices", "deviceclasses", "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]
    rules = ["devicetaintrules", "devicetaintrules/status"]
    assert await names(http, "v1") == four + rules
    assert await names(http, "v1beta2") == four + rules
    assert await names(http, "v1beta1") == four
    assert await names(http, "v1alpha3") == rules


@pytest.mark.parametrize("versions", [("v1",), ("v1beta1",), ("v1beta2", "v1beta1"), ()])
async def test_only_the_versions_of_the_settings_are_served(serve, versions):
    _, http = await serve(*versions)
    _, groups = await http("GET", "/apis")
    found = [one for one in groups["groups"] if one["name"] == "resource.k8s.io"]
    assert [one["version"] for each in found for one in each["versions"]] == list(versions)
    for version in ALL:
        assert (await names(http, version) is not None) is (version in versions)


async def test_v1beta1_alone_keeps_claims_in_its_own_form(serve):
    """Requests are flat there, devices have their fields in `basic`."""
    _, http = await serve("v1beta1")
    flat = {"name": "gpu", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}]}
    several = {"name": "nic", "firstAvailable": [{"name": "a", "deviceClassName": "nic"}]}
    manifest = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [flat, several]}}}
    code, made = await http("POST", OLD_CLAIMS, manifest)
    assert code == 201, made
    assert made["apiVersion"] == "resource.k8s.io/v1beta1"
    one, other = made["spec"]["devices"]["requests"]
    assert one == flat | {"allocationMode": "ExactCount", "count": 1}
    assert other["firstAvailable"] == [
        {"name": "a", "deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1}
    ]
    _, listed = await http("GET", OLD_CLAIMS)
    assert listed["items"][0] == made
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [flat]}}}}
    _, made = await http("POST", OLD_CLAIMS.replace("claims", "claimtemplates"), template)
    assert made["spec"]["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"
    basic = {"attributes": {"model": {"string": "A100"}}, "capacity": {"memory": {"value": "40Gi"}}}
    spec = {**resource_slice()["spec"], "devices": [{"name": "gpu-0", "basic": basic}]}
    code, made = await http("POST", f"{GROUP}/v1beta1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    assert (code, made["spec"]["devices"]) == (201, [{"name": "gpu-0", "basic": basic}])


async def test_versions_show_the_same_objects(serve):
    cluster, http = await serve(*ALL)
    cluster.create(claim("c", request(count=2)))
    cluster.create(resource_slice("s", device("gpu-0", attributes={"model": {"string": "A100"}}), node="n"))
    cluster.create(taint_rule(driver="gpu.example.com"))
    _, old = await http("GET", f"{OLD_CLAIMS}/c")
    assert old["spec"]["devices"]["requests"] == [
        {"name": "gpu", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    ]
    _, newer = await http("GET", f"{CLAIMS.replace('/v1/', '/v1beta2/')}/c")
    assert newer["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    _, slices = await http("GET", f"{GROUP}/v1beta1/resourceslices?fieldSelector=spec.nodeName%3Dn")
    assert slices["items"][0]["spec"]["devices"] == [
        {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "A100"}}}}
    ]
    for version in ("v1alpha3", "v1beta2", "v1"):
        _, found = await http("GET", f"{GROUP}/{version}/devicetaintrules/r")
        assert found["apiVersion"] == f"resource.k8s.io/{version}"


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(MERGE, {"metadata": {"labels": {"a": "b"}}}, id="merge"),
        pytest.param(STRATEGIC, {"metadata": {"labels": {"a": "b"}}}, id="strategic"),
        pytest.param(
            JSON_PATCH,
            [
                {"op": "test", "path": "/spec/devices/requests/0/count", "value": 2},
                {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
            ],
            id="JSON",
        ),
        pytest.param(
            APPLY,
            {
                "apiVersion": "resource.k8s.io/v1beta1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "labels": {"a": "b"}},
                "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu", "count": 2}]}},
            },
            id="apply",
        ),
    ],
)
async def test_a_patch_is_of_the_version_of_its_path(serve, kind, patch):
    cluster, http = await serve(*ALL)
    cluster.create(claim("c", request(count=2)))
    code, patched = await http("PATCH", f"{OLD_CLAIMS}/c?fieldManager=m", patch, kind=kind)
    assert code == 200, patched
    assert patched["apiVersion"] == "resource.k8s.io/v1beta1"
    assert patched["metadata"]["labels"] == {"a": "b"}
    _, stored = await http("GET", f"{CLAIMS}/c")
    assert stored["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    wrong = {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "nic"}]}}}
    code, refused = await http("PATCH", f"{OLD_CLAIMS}/c", wrong, kind=MERGE)
    assert (code, refused["reason"]) == (422, "Invalid")


async def test_the_version_of_the_body_is_that_of_the_path(serve):
    _, http = await serve(*ALL)
    code, refused = await http("POST", OLD_CLAIMS, claim())
    assert code == 400
    assert "does not match the expected API version (resource.k8s.io/v1beta1)" in refused["message"]


async def test_slices_are_selected_by_node_driver_and_pool(serve):
    cluster, http = await serve("v1")
    for name, node, pool in (("a", "n", "pool"), ("b", "m", "pool"), ("net", "", "fabric")):
        cluster.create(resource_slice(name, device(), node=node, pool=pool))

    async def selected(selector):
        _, found = await http("GET", f"{GROUP}/v1/resourceslices?fieldSelector={selector}")
        return [one["metadata"]["name"] for one in found["items"]]

    assert await selected("spec.nodeName=n") == ["a"]
    assert await selected("spec.nodeName=") == ["net"]
    assert await selected("spec.driver=gpu.example.com,spec.pool.name!=fabric") == ["a", "b"]
    assert (await http("GET", f"{GROUP}/v1/resourceslices?fieldSelector=spec.allNodes%3Dtrue"))[0] == 400


async def test_a_watch_of_an_older_version_sees_its_form(serve):
    cluster, http = await serve(*ALL)
    cluster.create(claim())
    async with http.watch(f"{OLD_CLAIMS}?watch=1&resourceVersion=0") as response:
        event = orjson.loads(await response.content.readline())
        assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", "resource.k8s.io/v1beta1")
        assert event["object"]["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"
        await http("PATCH", f"{CLAIMS}/c/status", {"status": {"allocation": allocation()}}, kind=MERGE)
        event = orjson.loads(await response.content.readline())
        assert event["object"]["status"]["allocation"] == allocation()


async def test_columns(serve):
    cluster, http = await serve("v1")
    for manifest in (
        claim(),
        claim_template(),
        device_class(),
        resource_slice("s", device(), node="n"),
        taint_rule(),
    ):
        cluster.create(manifest)
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    async def row(path):
        _, found = await http("GET", f"{GROUP}/v1/{path}", **table)
        return dict(zip((one["name"] for one in found["columnDefinitions"]), found["rows"][0]["cells"], strict=True))

    assert {**await row("resourceslices"), "Age": ""} == {
        "Name": "s", "Node": "n", "Driver": "gpu.example.com", "Pool": "pool", "Age": "",
    }  # fmt: skip
    assert list(await row("deviceclasses")) == ["Name", "Age"]
    assert list(await row("resourceclaimtemplates")) == ["Name", "Age"]
    shown = await row("devicetaintrules")
    assert (shown["Key"], shown["Value"], shown["Effect"]) == ("example.com/broken", "", "NoExecute")
    assert (await row("resourceclaims"))["State"] == "pending"
    for status, state in (
        ({"allocation": allocation()}, "allocated"),
        ({"reservedFor": [{"resource": "things", "name": "p", "uid": "u"}]}, "allocated,reserved"),
    ):
        await http("PATCH", f"{CLAIMS}/c/status", {"status": status}, kind=MERGE)
        assert (await row("resourceclaims"))["State"] == state
    await http("PATCH", f"{CLAIMS}/c", {"metadata": {"finalizers": ["example.com/keep"]}}, kind=MERGE)
    await http("DELETE", f"{CLAIMS}/c")
    assert (await row("resourceclaims"))["State"] == "deleted,allocated,reserved"


async def test_fields_of_the_wrong_type_are_bad_requests(serve):
    _, http = await serve("v1", "v1beta1")
    for path, spec, why in (
        (CLAIMS, {"devices": {"requests": {}}}, "field spec.devices.requests"),
        (OLD_CLAIMS, {"devices": {"requests": [{"name": "a", "deviceClassName": 5}]}}, "deviceClassName"),
        (f"{GROUP}/v1beta1/resourceslices", {"devices": [{"name": "a", "basic": 5}]}, ""),
    ):
        code, refused = await http("POST", path, {"metadata": {"name": "x"}, "spec": spec})
        assert code in ((400,) if why else (400, 422)), refused
        assert why in refused["message"]


async def test_a_counter_may_be_a_number(serve):
    _, http = await serve("v1")
    counters = [{"name": "gpu-0", "counters": {"slices": {"value": 7}}}]
    code, made = await http("POST", f"{GROUP}/v1/resourceslices", resource_slice("s", sharedCounters=counters))
    assert code == 201, made


async def test_a_service_account_needs_the_right_to_bind_a_claim(cluster, http, token):  # noqa: F811
    grant(cluster, rule(["resourceclaims", "resourceclaims/status"], ["get", "patch", "update"], "resource.k8s.io"))
    cluster.create(claim())
    who = {"Authorization": f"Bearer {token}"}
    status = {"status": {"allocation": allocation(), "reservedFor": [consumer()]}}
    code, refused = await http("PATCH", f"{CLAIMS}/c/status", status, kind=MERGE, **who)
    assert code == 422
    assert 'requires resource="resourceclaims/binding", verb="patch" permission' in refused["message"]
    _, found = await http("GET", f"{CLAIMS}/c")
    assert found["status"] == {}
    # what is not about the allocation needs no such right
    assert (await http("PATCH", f"{CLAIMS}/c/status", {"status": {}}, kind=MERGE, **who))[0] == 200
    assert (await http("PATCH", f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}}, kind=MERGE, **who))[0] == 200
    role = {"metadata": {"name": "binder"}, "rules": [rule(["resourceclaims/binding"], ["patch"], "resource.k8s.io")]}
    cluster.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **role})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "binder"}
    binding = {"metadata": {"name": "binder"}, "roleRef": reference, "subjects": [subject]}
    cluster.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", **binding})
    code, bound = await http("PATCH", f"{CLAIMS}/c/status", status, kind=MERGE, **who)
    assert (code, bound["status"]["reservedFor"]) == (200, [consumer()])
