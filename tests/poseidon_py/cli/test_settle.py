"""Garbage collections of `poseidon run`: what the start has made is left out of them."""

import asyncio
import gc

from poseidon_py.cli.run import settle
from poseidon_py.feed.resync import Session
from poseidon_py.state.store import Store
from protos.gen import flow_pb2


class Empty:
    """A flow service without any state."""

    async def hello(self):
        return flow_pb2.HelloReply(epoch=1)

    async def resync(self, updates):
        async for _ in updates:
            pass
        return flow_pb2.UpdateReply(epoch=1)


async def test_nothing_is_frozen_before_the_flow_service_has_the_whole_state(monkeypatch):
    done = []
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: done.append(thresholds))
    monkeypatch.setattr("poseidon_py.cli.run.give_back_freed_memory", lambda: done.append("give back"))
    listed = asyncio.Event()
    session = Session(Empty(), Store(["poseidon"]), listed.wait, on_ready=lambda: None)  # type: ignore[arg-type]
    running, settling = asyncio.create_task(session.run()), asyncio.create_task(settle(session))
    await asyncio.sleep(0.01)
    assert done == []
    listed.set()
    async with asyncio.timeout(10):
        await settling
    assert done == ["freeze", (10_000, 10, 1_000), "give back"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
