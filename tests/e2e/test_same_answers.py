"""Answers to unusual requests of schedulers: both backends must give the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.api import MERGE, ApiError, Json
from tests.e2e.backends import NODES, PODS, Backend
from tests.e2e.objects import container, node, pod, taint

STRATEGIC = "application/strategic-merge-patch+json"
WAITS: Json = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}


def binding(name: str, target: str = "a", **metadata: str) -> Json:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}}
    return body | {"target": {"kind": "Node", "name": target}}


def answer(backend: Backend, method: str, path: str, body: Any = None, kind: str = "") -> int:
    try:
        backend.api(method, path, body, kind)
    except ApiError as error:
        return error.code
    return 200


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "code"),
    [
        pytest.param("POST", f"{PODS}/free/binding", binding("free"), "", 200, id="bind"),
        pytest.param("POST", f"{PODS}/free/binding", binding("free", "nowhere"), "", 200, id="bind to no node"),
        pytest.param("POST", f"{PODS}/free/binding", binding("free", uid="x"), "", 409, id="bind, wrong UID"),
        pytest.param("POST", f"{PODS}/free/binding", binding("free", resourceVersion="1"), "", 409, id="bind, stale"),
        pytest.param("POST", f"{PODS}/nobody/binding", binding("nobody"), "", 404, id="bind nobody"),
        pytest.param("POST", f"{PODS}/bound/binding", binding("bound"), "", 409, id="bind again, the same node"),
        pytest.param("POST", f"{PODS}/bound/binding", binding("bound", "b"), "", 409, id="bind again, another node"),
        pytest.param("POST", f"{PODS}/gated/binding", binding("gated"), "", 409, id="bind a gated pod"),
        pytest.param("PATCH", f"{PODS}/free/status", WAITS, STRATEGIC, 200, id="condition"),
        pytest.param(
            "PATCH",
            f"{PODS}/free/status",
            WAITS | {"metadata": {"resourceVersion": "1"}},
            STRATEGIC,
            409,
            id="condition, stale",
        ),
        pytest.param(
            "PATCH",
            f"{PODS}/free/status",
            WAITS | {"metadata": {"uid": "x"}},
            STRATEGIC,
            422,
            id="condition, wrong UID",
        ),
        pytest.param("PATCH", f"{PODS}/bound", {"spec": {"nodeName": "b"}}, MERGE, 422, id="move a bound pod"),
        pytest.param("PATCH", f"{PODS}/free", {"spec": {"nodeName": "b"}}, MERGE, 422, id="place without binding"),
        pytest.param("POST", PODS, pod("free"), "", 409, id="pod that exists"),
        pytest.param("POST", NODES, node("a"), "", 409, id="node that exists"),
        pytest.param("POST", PODS, pod("x", containers=[]), "", 422, id="pod without containers"),
        pytest.param("POST", PODS, pod("x", containers=[container(cpu="-1")]), "", 422, id="negative request"),
        pytest.param("POST", PODS, pod("x", priorityClassName="none"), "", 403, id="priority class that is not there"),
        pytest.param("POST", NODES, node("x", taints=[taint("a", effect="Never")]), "", 422, id="effect"),
        pytest.param("POST", NODES, node("x", taints=[taint("a"), taint("a")]), "", 422, id="taint twice"),
        pytest.param(
            "PATCH", f"{NODES}/a/status", {"status": {"allocatable": {"cpu": "-1"}}}, MERGE, 422, id="negative node"
        ),
        pytest.param(
            "DELETE",
            f"{PODS}/free",
            {"kind": "DeleteOptions", "preconditions": {"uid": "x"}},
            "",
            409,
            id="delete, UID",
        ),
        pytest.param("DELETE", f"{PODS}/nobody", None, "", 404, id="delete nobody"),
        pytest.param("GET", f"{PODS}?fieldSelector=spec.nonsense%3Dx", None, "", 400, id="field selector"),
        pytest.param("GET", f"{PODS}?limit=1&continue=nonsense", None, "", 400, id="continue token"),
        pytest.param("GET", f"{PODS}?resourceVersion=99999999&resourceVersionMatch=Exact", None, "", 504, id="future"),
    ],
)
def test_code(backend: Backend, method: str, path: str, body: Any, kind: str, code: int) -> None:
    gates = [{"name": "example.com/gate"}]
    backend.create(node("a"), pod("free"), pod("bound"), pod("gated", schedulingGates=gates))
    backend.bind("bound", "a")
    assert answer(backend, method, path, body, kind) == code


def test_capacity_is_allocatable_by_default(backend: Backend) -> None:
    (made,) = backend.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}}
    )
    assert made["status"]["allocatable"] == {"cpu": "2"}


def test_defaults_of_a_pod(backend: Backend) -> None:
    backend.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "e2e"}, "value": 7}
    )
    limits = {"name": "main", "image": "x", "resources": {"limits": {"cpu": "2"}}}
    (made,) = backend.create(pod("p", scheduler=None, containers=[limits], priorityClassName="e2e"))
    spec = made["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priority"] == 7
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert made["status"]["phase"] == "Pending"
    assert {(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]} == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


def test_a_pod_after_its_binding(backend: Backend) -> None:
    backend.create(node("a"), pod("p"))
    backend.bind("p", "a")
    found = backend.api("GET", f"{PODS}/p")
    assert found["spec"]["nodeName"] == "a"
    message = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert message["PodScheduled"] == "True"
