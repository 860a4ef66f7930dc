"""A cancellation in the same turn of the event loop as a time limit ends the request, and is not taken for the limit.

aiohttp's own total limit loses it (3.14: `TimerContext` is entered twice by a request, and takes back two cancellations
of the task although its timer has made one). A loop that handles the TimeoutError then goes on for ever.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from benchmarks.demo import evidence
from poseidon_py.kube import client, credentials
from poseidon_py.kube.client import Kube
from tests.paths import ROOT

LIMIT = 50.0
"""Seconds by the virtual clock."""


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that reads requests and never answers: its URL, and whether one has come."""
    asked = asyncio.Event()
    writers = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        asked.set()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for writer in writers:
            writer.close()


async def cancelled_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, request: Callable[[str], Coroutine[Any, Any, object]]
) -> bool:
    """Whether a request that is cancelled in the turn in which its limit expires ends as cancelled."""
    loop = asyncio.get_running_loop()
    async with silent_server() as (url, asked):
        task = asyncio.create_task(request(url))
        await asked.wait()
        loop.call_later(LIMIT + 1, task.cancel)  # expires after the limit, which began earlier
        now, ahead = loop.time, 2 * LIMIT
        monkeypatch.setattr(loop, "time", lambda: now() + ahead)
        await asyncio.wait({task})
        monkeypatch.undo()
        if not task.cancelled():
            task.exception()
        return task.cancelled()


async def of_kube(url: str, ask: Callable[[Kube], Coroutine[Any, Any, object]]) -> None:
    kube = Kube(credentials.at(url))
    await kube.start()
    try:
        await ask(kube)
    finally:
        await kube.close()


async def test_a_page(monkeypatch):
    monkeypatch.setattr(client, "_PAGE_TIMEOUT", LIMIT)
    assert await cancelled_at_its_limit(monkeypatch, lambda url: of_kube(url, lambda kube: kube.page("/api", {})))


async def test_a_request_through_a_proxy(monkeypatch):
    def ask(kube: Kube) -> Coroutine[Any, Any, object]:
        return kube._send_by_proxy("GET", "/api", b"", "", LIMIT)

    assert await cancelled_at_its_limit(monkeypatch, lambda url: of_kube(url, ask))


async def test_a_question_of_the_demo(monkeypatch):
    assert await cancelled_at_its_limit(monkeypatch, lambda url: evidence.get(url, LIMIT))


def test_no_request_has_the_limit_that_loses_cancellations():
    limited = re.compile(r"ClientTimeout\((?!total=None)")
    for package in ("poseidon_py", "benchmarks"):
        for module in (ROOT / package).rglob("*.py"):
            assert not limited.search(module.read_text()), f"{module}: use asyncio.timeout"
