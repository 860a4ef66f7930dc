"""A reporter of events between a fake API server, a store and timers of the test."""

import asyncio
from typing import Any

from poseidon_py.report.events import Reporter
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.settling import settle


class Api:
    def __init__(self) -> None:
        self.created: list[Any] = []
        self.merged: list[Any] = []
        self.patched: list[Any] = []
        self.faults: list[Exception] = []
        self.merge_faults: list[Exception] = []
        self.patch_faults: list[Exception] = []

    def _maybe(self, faults):
        if faults:
            raise faults.pop(0)

    async def create(self, path, body, timeout=30.0):
        await asyncio.sleep(0)
        self._maybe(self.faults)
        self.created.append((path, body))
        return b""

    async def merge(self, path, patch):
        self._maybe(self.merge_faults)
        self.merged.append((path, patch))
        return b""

    async def patch_pod_status(self, namespace, name, patch):
        self._maybe(self.patch_faults)
        self.patched.append((name, patch))


class Timer:
    def __init__(self, at, call):
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self):
        self.cancelled = True


class Bench:
    def __init__(self, rate=0.0, concurrency=2) -> None:
        self.api, self.store = Api(), Store(["poseidon"])
        self.now, self.busy, self.saturated = 50.0, False, False
        self.reporter = Reporter(
            self.api,
            self.store,
            self,
            rate=rate,
            concurrency=concurrency,
            sleep=self.sleep,
            call_later=self.call_later,
            monotonic=lambda: self.now,
            now=lambda: 1_767_225_600.0 + self.now,
        )
        self.store.subscribe(self.reporter)
        self.timers: list[Timer] = []

    def call_later(self, seconds, call):
        self.timers.append(Timer(self.now + seconds, call))
        return self.timers[-1]

    async def later(self):
        """Time passes until no timer is left."""
        await settle()
        while self.timers:
            timer = min(self.timers, key=lambda timer: timer.at)
            self.timers.remove(timer)
            if not timer.cancelled:
                self.now = max(self.now, timer.at)
                timer.call()
            await settle()

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.reporter.start()
        return self

    async def __aexit__(self, *_):
        await self.reporter.stop()

    def pod(self, name="a", **fields):
        self.store.observe_pod(pod(name, **fields))
        return self.store.pods[f"uid-{name}"]

    @property
    def messages(self):
        return [body["message"] for _, body in self.api.created]
