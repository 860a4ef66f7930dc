"""GET and POST /_devices: what is published, what was given away wrongly, drivers that restart and taint."""

from __future__ import annotations

import pytest

from benchmarks.cluster import NodeShape

POOL = {"driver": "gpu.nvidia.com", "pool": "gpu-00003"}


@pytest.fixture
def equipped(cluster):
    cluster.add_nodes(1, NodeShape(devices=(("a100", 2),)), prefix="gpu-")
    return cluster


async def test_pools_and_violations(equipped, http):
    code, found = await http("GET", "/_devices")
    assert (code, found["violations"]) == (200, [])
    assert found["pools"] == [{**POOL, "generation": 1, "complete": True, "devices": 2}]
    assert (await http("GET", "/_stats"))[1]["deviceViolations"] == 0


async def test_a_driver_restarts_and_taints(equipped, http):
    assert await http("POST", "/_devices", POOL) == (200, {"generation": 2})
    taint = {"key": "example.com/hot", "effect": "NoSchedule"}
    assert await http("POST", "/_devices", {**POOL, "device": "gpu-1", "taints": [taint]}) == (200, {"generation": 3})
    _, found = await http("GET", "/apis/resource.k8s.io/v1/resourceslices")
    (published,) = found["items"]
    assert [len(one.get("taints", ())) for one in published["spec"]["devices"]] == [0, 1]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param([], "expected an object with driver and pool", id="list"),
        pytest.param({"pool": "gpu-00003"}, "expected an object with driver and pool", id="no driver"),
        pytest.param({**POOL, "device": "gpu-1"}, "with device and taints", id="no taints"),
        pytest.param({**POOL, "device": "gpu-1", "taints": {}}, "taints must be a list", id="taints"),
        pytest.param({**POOL, "device": "gpu-9", "taints": []}, "has no device 'gpu-9'", id="device"),
        pytest.param({**POOL, "pool": "x"}, "there is no pool 'x' of gpu.nvidia.com", id="pool"),
    ],
)
async def test_a_wrong_body_is_refused(equipped, http, body, problem):
    code, refused = await http("POST", "/_devices", body)
    assert (code, problem in refused["message"]) == (400, True), refused


async def test_a_taint_that_the_server_refuses_changes_nothing(equipped, http):
    body = {**POOL, "device": "gpu-1", "taints": [{"key": "example.com/hot", "effect": "Never"}]}
    code, refused = await http("POST", "/_devices", body)
    assert (code, refused["reason"]) == (422, "Invalid")
    assert (await http("GET", "/_devices"))[1]["pools"][0]["generation"] == 1
