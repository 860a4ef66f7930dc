"""A scripted API server for watches, and a handler that records its calls."""

import asyncio
import json
from typing import Any

from poseidon_py.kube.list_watch import Watch, WatchOptions
from poseidon_py.state.watch_set import PODS
from tests.poseidon_py.builders import pod_json


class Item:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def observe(self, item):
        self.log.append(("observe", item.metadata.name))

    def removed(self, item):
        self.log.append(("removed", item.metadata.name))

    def listed(self, uids):
        self.log.append(("listed", sorted(uids)))

    def invalid(self, metadata, problem):
        self.log.append(("invalid", metadata.name, problem))


class Script:
    """An API server that plays scenes in order; the last one should hang forever.

    A scene is (request: "page" or "watch", answer: bytes, pieces, or an error to raise).
    """

    def __init__(self, *scenes) -> None:
        self.scenes = list(scenes)
        self.asked: list[Any] = []
        self.played = asyncio.Event()
        self.path = PODS.path

    def _next(self, kind, parameters):
        self.asked.append((kind, dict(parameters)))
        if not self.scenes:
            self.played.set()
            return None
        expected, answer = self.scenes.pop(0)
        assert kind == expected
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def page(self, path, parameters):
        assert path == self.path
        answer = self._next("page", parameters)
        if answer is None:
            await asyncio.Event().wait()
        return answer

    async def watch(self, path, parameters, silence):
        self.silence = silence
        answer = self._next("watch", parameters)
        if answer is None:
            await asyncio.Event().wait()
        for piece in answer:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def page(*pods, version="10", token=""):
    return json.dumps({"metadata": {"resourceVersion": version, "continue": token}, "items": list(pods)}).encode()


def line(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version):
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


async def play(*scenes, now=lambda: 0.0, **fields):
    script, handler, slept = Script(*scenes), Item(), []

    async def sleep(seconds):
        slept.append(seconds)

    watch = Watch(script, PODS, handler, WatchOptions(**fields), sleep=sleep, monotonic=now, rng=lambda: 0.5)
    running = asyncio.create_task(watch.run())
    finished = asyncio.create_task(script.played.wait())
    await asyncio.wait({running, finished}, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    assert script.played.is_set()
    for task in (running, finished):
        task.cancel()
    await asyncio.gather(running, finished, return_exceptions=True)
    return script, handler.log, slept, watch


A, B, C = (pod_json(name, version=version) for name, version in (("a", 5), ("b", 6), ("c", 7)))
