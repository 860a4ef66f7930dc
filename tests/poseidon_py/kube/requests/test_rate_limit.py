"""The limit on requests: client-go's bucket of tokens."""

import asyncio

import pytest
from aiohttp import web

from poseidon_py.kube import credentials
from poseidon_py.kube.client import LEASES, Kube
from poseidon_py.kube.requests.rate_limit import RateLimit


class Clock:
    """Time that passes only in `sleep`; how long each took."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))


def limit_of(qps: float, burst: int) -> tuple[RateLimit, Clock]:
    clock = Clock()
    return RateLimit(qps, burst, sleep=clock.sleep, monotonic=clock), clock


async def test_a_burst_passes_and_the_next_ones_wait_for_their_tokens():
    limit, clock = limit_of(10, 3)
    for _ in range(5):
        await limit.wait()
    assert clock.slept == [0.1, 0.2]
    clock.now += 1.0  # 10 tokens, of which 2 are owed and 3 fit
    for _ in range(4):
        await limit.wait()
    assert clock.slept == [0.1, 0.2, 0.1]


@pytest.mark.parametrize("qps", [0, -1])
async def test_without_a_limit_nothing_waits(qps):
    limit, clock = limit_of(qps, 1)
    await asyncio.gather(*(limit.wait() for _ in range(100)))
    assert clock.slept == []


class Counting(RateLimit):
    """Counts the requests that asked."""

    def __init__(self) -> None:
        super().__init__(1000, 1000)
        self.asked = 0

    async def wait(self) -> None:
        self.asked += 1


async def test_all_requests_but_those_of_leases_ask(server):
    limit = Counting()
    kube = Kube(credentials.at(server.url), 4, limit)

    async def pods(_: web.Request) -> web.Response:
        return web.Response(text="{}")

    server.answers["/api/v1/pods"] = pods
    await kube.start()
    try:
        await kube.call("GET", "/api/v1/namespaces/default/pods/a")
        await kube.page("/api/v1/pods", {})
        assert [piece async for piece in kube.watch("/api/v1/pods", {}, 5.0)] == [b"{}"]
        assert limit.asked == 3
        await kube.update(f"{LEASES}v1/namespaces/kube-system/leases/poseidon", {})
        assert limit.asked == 3
    finally:
        await kube.close()
