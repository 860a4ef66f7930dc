"""The HTTP server of the bridge: health, metrics, and its state as JSON.

/livez, /healthz   200 while the process works
/readyz            200 when all objects have been listed and sent to the flow service
/metrics           Prometheus
/identity          API server, scheduler names, identity: JSON
/status            counts, usage, last round: JSON
/explain?pod=NS/NAME   why a pod is pending or on its node: JSON
/rebalance         plans of moves: rebalance_endpoints.py
"""

import json
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.rebalance_endpoints import RebalanceEndpoints
from poseidon_py.feed.client import EngineError
from poseidon_py.util.metrics import Metrics

Json = dict[str, Any]


class HealthAddressError(Exception):
    """The health address or port is not available; the message names the cause and the remedy."""


class Probes:
    """Health and metrics: `start`, `stop`."""

    def __init__(
        self, metrics: Metrics, *, alive: Callable[[], str], ready: Callable[[], str], refresh: Callable[[], None]
    ) -> None:
        """`alive` and `ready` return a problem, empty if there is none. `refresh` updates the gauges."""
        self._measured = metrics
        self._alive = alive
        self._ready = ready
        self._refresh = refresh
        self._runner: web.AppRunner | None = None
        self.port = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self._livez),
            web.get("/livez", self._livez),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
        ]

    async def start(self, address: str, port: int) -> None:
        """Serves. Raises HealthAddressError."""
        app = web.Application()
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, address, port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            unknown = isinstance(error, socket.gaierror)
            reason = error.strerror if unknown or not error.errno else os.strerror(error.errno)
            remedy = "give an IP address or a host name of this machine as --health-address"
            if not unknown:
                remedy = "choose another --health-port, 0 for any free one, -1 for none"
            raise HealthAddressError(f"cannot serve health on {address}:{port}: {reason or error}; {remedy}") from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _livez(self, _: web.Request) -> web.Response:
        return _health(self._alive())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _health(self._ready())

    async def _metrics(self, _: web.Request) -> web.Response:
        self._refresh()
        return web.Response(body=self._measured.exposition(), headers={"Content-Type": "text/plain; version=0.0.4"})


class Health(Probes):
    """The endpoints of the bridge."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        alive: Callable[[], str],
        ready: Callable[[], str],
        refresh: Callable[[], None],
        identity: Callable[[], Json],
        status: Callable[[], Awaitable[Json]],
        explain: Callable[[str, str], Awaitable[Json | None]],
        rebalancer: Callable[[], Rebalancer | None],
    ) -> None:
        """`status` and `explain` may raise EngineError, which becomes a 503. `rebalancer`: None while the bridge
        starts. The others are those of Probes."""
        super().__init__(metrics, alive=alive, ready=ready, refresh=refresh)
        self._identity = identity
        self._status = status
        self._explain = explain
        self._rebalance = RebalanceEndpoints(rebalancer)

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/identity", self._get_identity),
            web.get("/status", self._get_status),
            web.get("/explain", self._get_explain),
            *self._rebalance.routes(),
        ]

    async def _get_identity(self, _: web.Request) -> web.Response:
        return _json(self._identity())

    async def _get_status(self, _: web.Request) -> web.Response:
        try:
            return _json(await self._status())
        except EngineError as error:
            return _json({"error": str(error)}, 503)

    async def _get_explain(self, request: web.Request) -> web.Response:
        namespace, slash, name = request.query.get("pod", "").partition("/")
        if not (namespace and slash and name):
            return _json({"error": "the parameter pod is missing or malformed: /explain?pod=NAMESPACE/NAME"}, 400)
        try:
            answer = await self._explain(namespace, name)
        except EngineError as error:
            return _json({"error": str(error)}, 503)
        if answer is None:
            return _json({"error": f"the scheduler knows no pod {namespace}/{name}"}, 404)
        return _json(answer)


def _health(problem: str) -> web.Response:
    return web.Response(text=f"not ok: {problem}\n" if problem else "ok\n", status=503 if problem else 200)


def _json(body: Json, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=lambda value: json.dumps(value, indent=2) + "\n")
