"""Whatever a broken server, proxy or webhook answers, a request ends, with an answer or with one of our errors."""

import asyncio
import contextlib
from unittest.mock import AsyncMock, Mock

import pytest
from aiohttp import web
from hypothesis import given

from poseidon_py.kube import credentials
from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    Kube,
    KubeError,
    LostAnswerError,
    MalformedAnswerError,
    QuietError,
    TooLargeError,
    api_error,
)
from poseidon_py.report.pod_groups import StatusWriter
from tests.poseidon_py.kube.mutations import cut, mutated

DEEP = b"[" * 100_000 + b"]" * 100_000  # more than the stack of any version of Python
NO_OBJECTS = [
    pytest.param(b"<html>Sign in</html>", id="HTML"),
    pytest.param(b"", id="nothing"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b'{"gitVersion": 5, "metadata": 5}', id="other types"),
    pytest.param(b'{"gitVersion": "\xff", "metadata": {"name": "\xff"}}', id="not UTF-8"),
    pytest.param(b'{"x": ' + DEEP + b"}", id="nested too deeply"),
]


@pytest.fixture
async def kube(server):
    kube = Kube(credentials.at(server.url), 4)
    await kube.start()
    yield kube
    await kube.close()


@pytest.mark.parametrize("body", NO_OBJECTS)
async def test_an_answer_that_is_not_an_object_is_an_error_that_names_the_request(server, kube, body):
    for path in ("/version", "/api/v1/namespaces/ns/pods/p"):
        server.answers[path] = web.Response(body=body)
    with pytest.raises(MalformedAnswerError, match="is malformed: /version: "):
        await kube.server_version()
    with pytest.raises(MalformedAnswerError, match="is malformed: pod ns/p: "):
        await kube.pod("ns", "p")


@pytest.mark.parametrize("status", [b"5", b'{"conditions": 5}', b'{"conditions": ["x"]}', DEEP])
async def test_a_pod_group_with_invalid_conditions_is_not_updated(server, kube, status):
    server.answers["/group"] = web.Response(body=b'{"status": ' + status + b"}")
    writer = StatusWriter(kube, Mock(), Mock(), lambda: True, [], AsyncMock())
    with pytest.raises(MalformedAnswerError, match="/group: "):
        await writer._present("/group")


@pytest.mark.parametrize("body", NO_OBJECTS)
def test_an_error_with_any_body_is_that_error(body):
    error = api_error(503, body)
    assert type(error) is BusyError
    assert len(str(error)) < 300


@pytest.mark.parametrize("what", ["page", "watch"])
async def test_only_the_first_bytes_of_an_error_body_are_read(server, kube, what):
    sent = 0

    async def endless(request):
        nonlocal sent
        answer = web.StreamResponse(status=403)
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            while sent < 1 << 26:
                await answer.write(b"no " * 20_000)
                sent += 60_000
        return answer

    server.answers["/x"] = endless
    request = kube.page("/x", {}) if what == "page" else anext(kube.watch("/x", {}, 5))
    with pytest.raises(ApiError, match="403: no no no"):
        await request
    assert sent < 1 << 26


async def test_a_page_that_is_too_large_is_given_up(server, kube, monkeypatch):
    monkeypatch.setattr("poseidon_py.kube.client.MAX_PAGE", 1000)
    server.answers["/x"] = web.Response(body=b"x" * 1000)
    assert len(await kube.page("/x", {})) == 1000
    server.answers["/y"] = web.Response(body=b"x" * 1001)
    with pytest.raises(TooLargeError, match="more than 1000 bytes"):
        await kube.page("/y", {})


async def test_a_watch_without_an_answer_is_lost_and_a_silent_one_is_quiet(server, kube):
    async def answer(request):
        answer = web.StreamResponse()
        if request.path == "/quiet":
            await answer.prepare(request)
            await answer.write(b"{}\n")
        await over.wait()
        return answer

    over = asyncio.Event()
    server.answers["/quiet"] = server.answers["/silent"] = answer
    with pytest.raises(QuietError, match=r"nothing came for 0.02 s"):
        async for _ in kube.watch("/quiet", {}, 0.02):
            pass
    with pytest.raises(LostAnswerError) as caught:
        await anext(kube.watch("/silent", {}, 0.02))
    assert not isinstance(caught.value, QuietError)
    over.set()


ANSWERS = [
    b'HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n{"metadata": {"name": "p"}, "items": [5]} \n',
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}\n{}\r\n3\r\n{}\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 307 Go\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
    b'HTTP/1.1 429 Wait\r\nRetry-After: 3\r\nContent-Length: 16\r\n\r\n{"reason": "Too"}',
]
TOKENS = [
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":", b" ", b"-6", b"+5", b"1_0", b"ffffffffffffffffff", b"\xff", b"\x00"),
    *(
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Content-Encoding: br\r\n",
    ),
    *(
        b"Set-Cookie: a=\x01\r\n",
        b"Location: http://[::1\r\n",
        b"Location: //\xff:99999/\r\n",
        b"HTTP/1.1 101 x\r\n\r\n",
    ),
]


class Broken:
    """Answers each connection's first bytes with the same pieces, and closes."""

    def __init__(self, pieces) -> None:
        self.pieces = pieces
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(ConnectionError):
            await reader.read(1 << 16)
            for piece in self.pieces:
                writer.write(piece)
                await writer.drain()
            writer.close()
            await writer.wait_closed()


async def drain(stream):
    async for _ in stream:
        pass


@pytest.mark.slow
@given(cut(mutated(ANSWERS, TOKENS)))
def test_whatever_a_server_answers_a_request_ends(pieces):
    async def run():
        broken = Broken(pieces)
        server = await asyncio.start_server(broken.serve, "127.0.0.1", 0)
        kube = Kube(credentials.at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), 4)
        await kube.start()
        requests = [
            lambda: kube.server_version(),
            lambda: kube.bind("ns", "p", "uid", "node", 30),
            lambda: kube.page("/api/v1/pods", {}),
            lambda: drain(kube.watch("/api/v1/pods", {}, 30)),
        ]
        for request in requests:
            before = broken.connections
            with contextlib.suppress(KubeError):
                await asyncio.wait_for(request(), 20)
            assert broken.connections - before <= 12  # a redirect is followed ten times
        await kube.close()
        server.close()
        await server.wait_closed()

    asyncio.run(run())
