"""Any hostile bytes are answered with a Status, without a write or a failure inside the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import orjson
import pytest

from benchmarks.cluster import Cluster, ClusterSettings
from benchmarks.cluster.api.schema import MAX_DEPTH
from benchmarks.cluster.store.kinds import NODES
from tests.benchmarks.cluster.builders import pod, replicated

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
NODE = "/api/v1/nodes/node-00000"
JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC, PATCH = (
    f"application/{name}+json" for name in ("merge-patch", "strategic-merge-patch", "json-patch")
)
APPLY = "application/apply-patch+yaml"


def request(
    method: str, path: str, body: bytes = b"", kind: str = JSON, length: object = None, extra: str = ""
) -> bytes:
    """The bytes of a request; the connection ends with its answer."""
    size = len(body) if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {size}\r\n{extra}\r\n".encode("latin-1") + body


def deep(levels: int) -> bytes:
    return b'{"metadata":{"name":"deep"},"x":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


def yaml(text: str) -> bytes:
    return request("POST", MAPS, f"metadata: {{name: c}}\n{text}\n".encode(), YAML)


async def answer(port: int, raw: bytes) -> tuple[int, dict[str, object]]:
    """Code and body of the answer to raw bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        [length] = [line.split(b":")[1] for line in head.splitlines() if line.lower().startswith(b"content-length:")]
        body = await asyncio.wait_for(reader.readexactly(int(length)), 20)  # its end: the server may wait for a body
    finally:
        writer.close()
    return int(head.split()[1]), orjson.loads(body)


REFUSED = [
    pytest.param(request("POST", PODS, b'{"metadata":{"name":"\xff\xfe"}}'), 400, id="not UTF-8"),
    pytest.param(request("POST", PODS, deep(5000)), 400, id="5000 deep"),
    pytest.param(request("POST", MAPS, deep(900)), 400, id="900 deep"),
    pytest.param(request("POST", MAPS, deep(MAX_DEPTH)), 400, id="one level too deep"),
    pytest.param(request("PATCH", NODE, deep(900), MERGE), 400, id="deep merge patch"),
    pytest.param(request("PATCH", NODE, deep(900), STRATEGIC), 400, id="deep strategic patch"),
    pytest.param(request("PATCH", f"{NODE}?fieldManager=x", deep(900), APPLY), 400, id="deep apply"),
    pytest.param(request("POST", MAPS, b"[" * 5000, YAML), 400, id="deep YAML"),
    pytest.param(request("POST", MAPS, b"- " * 5000, YAML), 400, id="deep YAML list"),
    pytest.param(request("POST", MAPS, b"\xff\xfe\xfa", YAML), 400, id="YAML not UTF-16"),
    pytest.param(yaml("x: !!set {a}"), 400, id="YAML set"),
    pytest.param(yaml("x: !!binary aGVsbG8="), 400, id="YAML bytes"),
    pytest.param(yaml("x: 99999999999999999999999"), 400, id="YAML integer too large"),
    pytest.param(yaml('x: "\\ud800"'), 400, id="YAML half a character"),
    pytest.param(yaml("x: &a [1]\ny: *a"), 400, id="YAML alias"),
    pytest.param(yaml("---\nb: 1"), 400, id="two YAML documents"),
    pytest.param(request("POST", PODS, b"{}", length=-5), 400, id="negative length"),
    pytest.param(request("POST", PODS, b"{}", length="+2"), 400, id="signed length"),
    pytest.param(request("POST", PODS, b"{}", length="abc"), 400, id="length that is no number"),
    pytest.param(request("POST", PODS, b"{}", extra="Content-Length: 7\r\n"), 400, id="two lengths"),
    pytest.param(request("POST", PODS, b"{}", length=10**12), 413, id="length beyond the limit"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\n", 400, id="negative chunk"),
    pytest.param(request("POST", PODS, b"{}", "application/\xff\xfe"), 415, id="type of strange bytes"),
    pytest.param(request("PATCH", NODE, b"{}", "application/\xff\xfe"), 415, id="patch type of strange bytes"),
    pytest.param(request("POST", PODS, b"{}", "text/plain"), 415, id="text"),
    pytest.param(request("POST", PODS, b"{}", "application/cbor"), 415, id="CBOR"),
    pytest.param(request("POST", PODS, b"junk", extra="Content-Encoding: gzip\r\n"), 400, id="not gzip"),
    pytest.param(b"GET /api/v1/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400, id="path of strange bytes"),
    pytest.param(b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", 400, id="unknown method"),
    pytest.param(b"\x16\x03\x01\x02\x00\r\n\r\n", 400, id="TLS"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 400, id="header too long"),
    pytest.param(request("GET", f"{PODS}?limit=-1"), 400, id="negative limit"),
    pytest.param(request("GET", f"{PODS}?limit=%C2%B2"), 400, id="limit of no ASCII digit"),
    pytest.param(request("GET", f"{PODS}?limit={'9' * 5000}"), 400, id="limit of 5000 digits"),
    pytest.param(request("GET", f"{PODS}?resourceVersion=%C2%B2"), 422, id="version of no ASCII digit"),
    pytest.param(request("GET", f"{PODS}?resourceVersion={'9' * 5000}"), 422, id="version of 5000 digits"),
    pytest.param(request("GET", f"{PODS}?watch=1&resourceVersion={'9' * 5000}"), 422, id="watch from such a version"),
    pytest.param(request("GET", f"{PODS}?watch=1&timeoutSeconds={'9' * 30}"), 400, id="timeout of 30 digits"),
    pytest.param(request("GET", f"{PODS}?continue=%ff"), 400, id="continue of strange bytes"),
    pytest.param(request("GET", f"{PODS}?continue=W10"), 400, id="continue of a list"),
    pytest.param(request("POST", PODS, b"[]"), 400, id="list"),
    pytest.param(request("PUT", NODE, b'"x"'), 400, id="string"),
    pytest.param(request("DELETE", NODE, b"[1]"), 400, id="delete with a list"),
    pytest.param(request("POST", "/api/v1/namespaces/default/bindings", b"[]"), 400, id="binding list"),
    pytest.param(request("POST", "/api/v1/namespaces/default/bindings", b'{"metadata":"x"}'), 400, id="binding"),
    pytest.param(
        request("PUT", "/api/v1/namespaces/default/finalize", b'{"spec":{"finalizers":5}}'), 400, id="finalizers"
    ),
    pytest.param(
        request("PATCH", "/apis/apps/v1/namespaces/default/deployments/web/scale", b'{"metadata":[1]}', MERGE),
        400,
        id="scale",
    ),
    pytest.param(request("PATCH", NODE, b'[{"op":"add","path":5,"value":1}]', PATCH), 400, id="JSON patch"),
    pytest.param(
        request(
            "PATCH",
            NODE,
            b'[{"op":"add","path":"/status/conditions/0/x","value":' + b"[" * 97 + b"]" * 97 + b"}]",
            PATCH,
        ),
        400,
        id="JSON patch that deepens too much",
    ),
    pytest.param(request("POST", "/_faults", b'{"rules":[{"verbs":5}]}'), 400, id="fault verbs"),
    pytest.param(request("POST", "/_faults", b'{"rules":[{"first":true}]}'), 400, id="fault count"),
    pytest.param(request("POST", "/_faults", b'{"rules":[{"retry_after_s":0.5}]}'), 400, id="fault fraction"),
    pytest.param(request("POST", "/_nodes", b'{"fail":5}'), 400, id="nodes that fail"),
    pytest.param(request("POST", "/_nodes", b'{"fail":[[]]}'), 400, id="node that is a list"),
    pytest.param(request("POST", "/_nodes", b'{"add":[]}'), 400, id="count that is a list"),
    pytest.param(request("POST", "/_nodes", b'{"add":-1}'), 400, id="negative count"),
    pytest.param(request("POST", "/_nodes", b'{"add":1e30}'), 400, id="huge count"),
]


@pytest.fixture
async def idle() -> AsyncIterator[Cluster]:
    """A cluster that only handles requests."""
    async with Cluster(ClusterSettings(nodes=1, controllers=False, kubelets=False)) as running:
        running.create(replicated("Deployment"))
        yield running


@pytest.mark.parametrize(("raw", "code"), REFUSED)
async def test_hostile_requests_get_a_status_and_change_nothing(idle, caplog, raw, code):
    version = idle.store.version
    with caplog.at_level(logging.ERROR):
        got, status = await answer(idle.port, raw)
    assert (got, status["kind"], status["status"], status["code"]) == (code, "Status", "Failure", code)
    assert caplog.records == []
    assert (idle.store.version, idle.faults.rules, len(idle.objects(NODES))) == (version, [], 1)


async def test_yaml_is_read_as_json_values(cluster):
    code, made = await answer(cluster.port, yaml("x: 2020-01-01\n1: {y: 2}\nz: [true, null, 1.5]"))
    assert code == 201
    assert (made["x"], made["1"], made["z"]) == ("2020-01-01", {"y": 2}, [True, None, 1.5])


async def test_the_deepest_accepted_object_can_be_updated_and_deleted(cluster):
    levels = MAX_DEPTH - 1  # below the object itself
    code, _ = await answer(cluster.port, request("POST", MAPS, deep(levels)))
    assert code == 201
    for kind in (MERGE, STRATEGIC):
        code, _ = await answer(cluster.port, request("PATCH", f"{MAPS}/deep", deep(levels), kind))
        assert code == 200
    cluster.create(pod("p"))
    assert (await answer(cluster.port, request("DELETE", f"{MAPS}/deep")))[0] == 200
    assert cluster.agenda.failures == 0
