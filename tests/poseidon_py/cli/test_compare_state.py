"""SIGUSR2 of `poseidon run`: when the state is compared with the API server."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from poseidon_py.cli.run import compare_state
from poseidon_py.state.store import Store


class SlowApi:
    """An API server with one node, which answers once `answers` is set."""

    def __init__(self):
        self.answers = asyncio.Event()
        self.asked = list[str]()

    async def page(self, path, parameters):
        self.asked.append(path)
        await self.answers.wait()
        items = [{"metadata": {"name": "a"}}] if path.endswith("nodes") else []
        return msgspec.json.encode({"metadata": {}, "items": items})


@pytest.fixture
def bridge(monkeypatch):
    monkeypatch.setattr("poseidon_py.app.cache_comparison._SETTLING_SECONDS", 0.0)
    return SimpleNamespace(checks=lambda: {"watches": ""}, store=Store(["poseidon"]), kube=SlowApi())


async def test_one_comparison_at_a_time_says_what_differs(bridge, caplog):
    caplog.set_level("INFO")
    running = set[asyncio.Task[None]]()
    compare_state(bridge, running)
    compare_state(bridge, running)  # the first one will tell it all
    (comparison,) = running
    await asyncio.sleep(0)
    bridge.kube.answers.set()
    await comparison
    assert bridge.kube.asked == ["/api/v1/pods", "/api/v1/nodes"] * 2  # what differs is looked at twice
    assert "the state differs from the API server: nodes that the state lacks: a" in caplog.text
    assert running == set()


async def test_what_is_not_listed_yet_is_not_compared(bridge, caplog):
    caplog.set_level("INFO")
    bridge.checks = lambda: {"leader": "", "watches": "pods are not listed yet"}
    running = set[asyncio.Task[None]]()
    compare_state(bridge, running)
    assert (running, bridge.kube.asked) == (set(), [])
    assert "the state is not compared, because pods are not listed yet" in caplog.text
