"""Answers to the writes of drivers, users and schedulers in resource.k8s.io: both backends give the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import MERGE, ApiError, Json
from tests.e2e.backends import Backend
from tests.e2e.device_answers.device_requests import (
    CLAIMS,
    CLASSES,
    PREPARED,
    RULES,
    SLICES,
    TEMPLATES,
    Exchange,
    allocation,
    claim,
    consumer,
    request,
)
from tests.e2e.device_answers.older_versions import OLD_CLAIMS, OLDER
from tests.e2e.device_answers.published import SLICES_AND_CLASSES
from tests.e2e.device_answers.specifications import SPECIFICATIONS
from tests.e2e.device_answers.written import WRITES

_COLLECTIONS = (CLAIMS, TEMPLATES, SLICES, CLASSES, RULES)


def clear(server: Backend) -> None:
    for path in _COLLECTIONS:
        for item in server.api("GET", path)["items"]:
            place = f"{path}/{item['metadata']['name']}"
            if item["metadata"].get("finalizers"):
                server.patch(place, {"metadata": {"finalizers": None}})
            server.api.many("DELETE", [(place, None)])


@pytest.fixture
def devices(backend: Backend) -> Iterator[Backend]:
    """A server with the objects that the table starts from."""
    try:
        backend.api("GET", RULES)
    except ApiError:
        pytest.skip("this API server has no DeviceTaintRules")
    clear(backend)
    for method, path, body in PREPARED:
        backend.api(method, path, body, MERGE if method == "PATCH" else "")
    yield backend
    clear(backend)


def answer(server: Backend, exchange: Exchange) -> tuple[int, str]:
    connection = server.api.connect(20.0)
    try:
        found = server.api.send(connection, exchange.method, exchange.path, exchange.body, exchange.kind)
        text = found.read().decode()
    finally:
        connection.close()
    message = json.loads(text).get("message", "") if text.startswith("{") and found.status >= 300 else ""
    return found.status, message


@pytest.mark.parametrize(
    "exchange", [pytest.param(one, id=one.name) for one in (*SPECIFICATIONS, *SLICES_AND_CLASSES, *WRITES, *OLDER)]
)
def test_answer(devices: Backend, exchange: Exchange) -> None:
    code, message = answer(devices, exchange)
    assert code == exchange.code, message
    assert exchange.message in message


def write(server: Backend, body: Json, name: str = "free", kind: str = MERGE) -> Any:
    return server.api("PATCH", f"{CLAIMS}/{name}/status", body, kind)


def test_a_status_is_written_alone(devices: Backend) -> None:
    body = {"metadata": {"labels": {"a": "b"}, "finalizers": ["a.b/c"]}, "status": {"allocation": allocation()}}
    written = write(devices, body)
    assert written["status"]["allocation"] == allocation()
    assert {"labels", "finalizers"} & written["metadata"].keys() == set()
    written = devices.patch(f"{CLAIMS}/free", {"metadata": {"labels": {"a": "b"}}, "status": {"allocation": None}})
    assert written["metadata"]["labels"] == {"a": "b"}
    assert written["status"]["allocation"] == allocation()


def test_defaults(devices: Backend) -> None:
    (made,) = devices.create(claim("x", request(tolerations=[{"key": "k"}])))
    assert made["status"] == {}
    (asked,) = made["spec"]["devices"]["requests"]
    assert asked["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"key": "k", "operator": "Equal"}],
    }
    assert "generation" not in made["metadata"]
    assert devices.api("GET", f"{SLICES}/s")["metadata"]["generation"] == 1
    assert devices.api("GET", f"{RULES}/r")["spec"]["taint"]["timeAdded"]


def test_consumers_come_and_go_by_uid(devices: Backend) -> None:
    kind = "application/strategic-merge-patch+json"
    written = write(devices, {"status": {"reservedFor": [consumer("r", "u3")]}}, "taken", kind)
    assert sorted(one["uid"] for one in written["status"]["reservedFor"]) == ["u1", "u2", "u3"]
    written = write(devices, {"status": {"reservedFor": [{"$patch": "delete", "uid": "u2"}]}}, "taken", kind)
    assert sorted(one["uid"] for one in written["status"]["reservedFor"]) == ["u1", "u3"]


def test_reports_go_with_the_allocation(devices: Backend) -> None:
    report = {"driver": "gpu.example.com", "pool": "pool", "device": "gpu-1"}
    written = write(devices, {"status": {"devices": [report]}}, "taken")
    (stored,) = written["status"]["devices"]
    assert {key: one for key, one in stored.items() if one is not None} == report
    assert write(devices, {"status": {"allocation": None, "reservedFor": None}}, "taken")["status"] == {}


def test_a_write_without_change_keeps_the_version(devices: Backend) -> None:
    before = devices.api("GET", f"{CLAIMS}/taken")
    after = write(devices, {"status": {"reservedFor": before["status"]["reservedFor"]}}, "taken")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_the_form_of_v1beta1(devices: Backend) -> None:
    found = devices.api("GET", f"{OLD_CLAIMS}/taken")
    assert found["apiVersion"] == "resource.k8s.io/v1beta1"
    (asked,) = found["spec"]["devices"]["requests"]
    assert asked == {"name": "gpu", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    (published,) = devices.api("GET", f"{SLICES.replace('/v1/', '/v1beta1/')}/s")["spec"]["devices"]
    assert published == {"name": "gpu-0", "basic": {}}


def test_a_rules_time_is_that_of_its_effect(devices: Backend) -> None:
    old = "2020-01-01T00:00:00Z"
    written = devices.patch(f"{RULES}/r", {"spec": {"taint": {"timeAdded": old}}})
    assert written["spec"]["taint"]["timeAdded"] == old
    written = devices.patch(f"{RULES}/r", {"spec": {"taint": {"effect": "NoExecute"}}})
    assert written["spec"]["taint"]["timeAdded"] > old
    assert written["metadata"]["generation"] == 3
