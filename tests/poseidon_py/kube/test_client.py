"""The client of the API server: its requests, and its types of errors."""

import asyncio
import json

import pytest
from aiohttp import web

from poseidon_py.kube import credentials
from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    ConflictError,
    GoneError,
    Kube,
    LostAnswerError,
    NotFoundError,
    UnreachableError,
    api_error,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, ApiError),
        (403, ApiError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (422, ApiError),
        (429, BusyError),
        (500, BusyError),
        (503, BusyError),
        (504, BusyError),
    ],
)
def test_each_code_has_its_kind(code, kind):
    error = api_error(code, b'{"kind":"Status","reason":"R","message":"m","details":{"retryAfterSeconds":3}}')
    assert type(error) is kind
    assert (error.code, error.reason, error.message, error.retry_after) == (code, "R", "m", 3.0)


def test_a_patch_for_another_object_of_the_name_is_a_conflict():
    """As a real API server answers: a UID in a patch is a field, which does not change."""
    message = 'Pod "p" is invalid: metadata.uid: Invalid value: "u": field is immutable'
    status = '{"reason": "Invalid", "message": "%s"}'
    assert isinstance(api_error(422, (status % message).encode()), ConflictError)
    assert not isinstance(api_error(422, (status % "spec.nodeName: Invalid value").encode()), ConflictError)


def test_a_retry_after_header_takes_precedence():
    assert api_error(429, b'{"details":{"retryAfterSeconds":3}}', b"7").retry_after == 7.0
    assert api_error(429, b"", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


def test_an_answer_that_is_no_status_is_quoted():
    assert "upstream" in str(api_error(502, b"<html>upstream is down</html>"))


@pytest.fixture
async def kube(server):
    kube = Kube(credentials.at(server.url, token="secret"), 4)
    await kube.start()
    yield kube
    await kube.close()


async def test_a_bind_carries_the_uid_and_the_token(server, kube):
    await kube.bind("ns", "pod", "u-1", "node-1", 5)
    [(method, path, headers, body)] = server.requests
    assert (method, path) == ("POST", "/api/v1/namespaces/ns/pods/pod/binding")
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Content-Type"] == "application/json"
    assert b'"uid":"u-1"' in body
    assert b'"target":{"apiVersion":"v1","kind":"Node","name":"node-1"}' in body


async def test_names_are_quoted_in_paths(server, kube):
    await kube.bind("a/b", "c?d", "u", "n", 5)
    assert server.requests[0][1] == "/api/v1/namespaces/a%2Fb/pods/c%3Fd/binding"


async def test_patches_have_their_content_type(server, kube):
    await kube.patch_pod_status("ns", "p", {"status": {}})
    await kube.merge("/x", {})
    kinds = [headers["Content-Type"] for _, _, headers, _ in server.requests]
    assert kinds == ["application/strategic-merge-patch+json", "application/merge-patch+json"]


async def test_only_the_pod_of_that_uid_is_evicted(server, kube):
    await kube.evict_pod("ns", "p", "u-1")
    ((method, path, _, body),) = server.requests
    assert (method, path.rsplit("/", 1)[1]) == ("POST", "eviction")
    assert b'"preconditions":{"uid":"u-1"}' in body


async def test_only_the_pod_of_that_uid_is_deleted_with_its_own_grace_period(server, kube):
    await kube.delete_pod("ns", "p", "u-1")
    ((method, path, headers, body),) = server.requests
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/p")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}}


@pytest.mark.parametrize(("node", "value"), [("n", "n"), ("", None)])
async def test_only_the_pod_of_that_uid_is_nominated(server, kube, node, value):
    async def patch(request):
        return web.json_response({"metadata": {"resourceVersion": "12"}})

    server.answers["/api/v1/namespaces/ns/pods/p/status"] = patch
    assert await kube.nominate_pod("ns", "p", "u-1", node) == "12"
    ((method, _, headers, body),) = server.requests
    assert (method, headers["Content-Type"]) == ("PATCH", "application/strategic-merge-patch+json")
    assert json.loads(body) == {"metadata": {"uid": "u-1"}, "status": {"nominatedNodeName": value}}


async def test_a_rejected_token_is_renewed_once_and_the_request_repeated(server, kube):
    async def refuse(request):
        good = request.headers["Authorization"] == "Bearer fresh"
        return web.Response(status=201 if good else 401, text="{}")

    async def renew():
        kube._access.headers = {"Authorization": "Bearer fresh"}
        return True

    server.answers["/api/v1/namespaces/ns/pods/p/binding"] = refuse
    kube._access = type(
        "A",
        (),
        {
            "refresh": staticmethod(renew),
            **{
                name: getattr(kube._access, name)
                for name in ("host_header", "headers", "prefix", "proxy", "tls_name", "url")
            },
        },
    )()
    await kube.bind("ns", "p", "u", "n", 5)
    assert len(server.requests) == 2


async def test_a_watch_comes_in_pieces_and_ends_with_the_server(server, kube):
    async def stream(request):
        assert dict(request.query) == {"watch": "true", "resourceVersion": "5"}
        answer = web.StreamResponse()
        await answer.prepare(request)
        for piece in (b"one\n", b"two\n"):
            await answer.write(piece)
        return answer

    server.answers["/api/v1/pods"] = stream
    pieces = [piece async for piece in kube.watch("/api/v1/pods", {"resourceVersion": "5"}, 5)]
    assert b"".join(pieces) == b"one\ntwo\n"


async def test_a_silent_watch_is_given_up(server, kube):
    async def stream(request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"one\n")
        await silent.wait()
        return answer

    silent = asyncio.Event()
    server.answers["/api/v1/pods"] = stream
    with pytest.raises(LostAnswerError):
        async for _ in kube.watch("/api/v1/pods", {}, 0.02):
            pass
    silent.set()


async def test_a_watch_of_a_compacted_version(server, kube):
    server.answers["/api/v1/pods"] = web.Response(status=410, text='{"reason":"Expired"}')
    with pytest.raises(GoneError):
        async for _ in kube.watch("/api/v1/pods", {}, 5):
            pass


async def test_an_unreachable_server():
    kube = Kube(credentials.at("http://127.0.0.1:9"))
    await kube.start()
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9"):
        await kube.bind("a", "b", "c", "d", 5)
    with pytest.raises(UnreachableError):
        await kube.page("/api/v1/pods", {})
    await kube.close()


CONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: one, context: {{cluster: c, user: u}}}}, {{name: two, context: {{cluster: c, user: u}}}}]
current-context: one
"""


async def test_a_kubeconfig_with_a_path_and_a_token(tmp_path):
    file = tmp_path / "config"
    file.write_text(CONFIG.format(server="http://h:81/sub/", user="{token: abc}"))
    access = await credentials.load(file, "two")
    assert (access.url, access.host_header, access.headers) == (
        "http://h:81/sub",
        "h:81",
        {"Authorization": "Bearer abc"},
    )
    assert not access.in_cluster


async def test_a_token_that_would_break_a_header_is_refused(tmp_path):
    file = tmp_path / "config"
    file.write_text(CONFIG.format(server="http://h", user='{token: "a\\r\\nX-Y: z"}'))
    with pytest.raises(credentials.CredentialsError, match="not a single line of text"):
        await credentials.load(file, None)


@pytest.mark.slow
async def test_an_exec_plugin_is_run_and_run_again(tmp_path):
    plugin = tmp_path / "plugin"
    count = tmp_path / "count"
    plugin.write_text(
        f"#!/bin/sh\necho x >> {count}\n"
        'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",'
        f'\\"status\\":{{\\"token\\":\\"t$(wc -l < {count} | tr -d " ")\\",'
        '\\"expirationTimestamp\\":\\"2020-01-01T00:00:00Z\\"}}"\n'
    )
    plugin.chmod(0o755)
    user = f'{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: "{plugin}", interactiveMode: Never}}}}'
    file = tmp_path / "config"
    file.write_text(CONFIG.format(server="http://h", user=user))
    access = await credentials.load(file, None)
    first = access.headers["Authorization"]
    assert first.startswith("Bearer t")
    assert await access.refresh()
    assert access.headers["Authorization"] != first


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "cannot use"),
        ("kind: Config", "current-context"),
        (None, "there is no kubeconfig"),
        (":", "cannot use"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used(tmp_path, content, says):
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    with pytest.raises(credentials.CredentialsError, match=says) as caught:
        await credentials.load(file, None)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_neither_a_kubeconfig_nor_a_cluster(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(credentials.CredentialsError, match="--kubeconfig"):
        await credentials.load(None, None)
