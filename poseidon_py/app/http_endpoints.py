"""The HTTP server of the bridge: health, metrics, and its state as JSON.

/livez, /healthz   200 while the process works
/readyz            200 when all objects have been listed and sent to the flow service
/metrics           Prometheus
/identity          API server, scheduler names, identity: JSON
/status            counts, usage, last round: JSON
/explain?pod=NS/NAME   why a pod is pending or on its node: JSON
/gangs?name=NAME&namespace=NS   gangs, both parameters are optional: JSON (queries/gang_list.py)
/queues?name=NAME  queues, the parameter is optional: JSON (queries/queue_list.py)
/jobs?name=NAME&namespace=NS&user=USER&queue=QUEUE&state=STATE   jobs, all parameters are optional: JSON
                   (queries/job_list.py); /jobs/NS/NAME is one of them
/fits              POST: whether the pods of a manifest would fit: JSON (queries/would_fit.py)
/rebalance         plans of moves: rebalance_endpoints.py
"""

import json
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.rebalance_endpoints import RebalanceEndpoints
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.client import KubeError
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.util.metrics import Metrics

Json = dict[str, Any]
_MAX_BODY_BYTES = 4 << 20
"""Of a manifest: more than the API server takes for one object."""


_JOB_PARAMETERS = ("name", "namespace", "user", "queue", "state")


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
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
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
        gangs: Callable[[str, str], Awaitable[Json]],
        queues: Callable[[str], Awaitable[Json]],
        jobs: Callable[..., Awaitable[Json]],
        fits: Callable[[Json], Awaitable[Json]],
        rebalancer: Callable[[], Rebalancer | None],
    ) -> None:
        """`status`, `explain`, `gangs`, `queues` and `jobs` may raise EngineError, `explain` KubeError,
        too; both become a 503. `gangs`, of a
        name and a namespace, may raise UnknownGang; `queues`, of a name, UnknownQueue; `jobs`, of _JOB_PARAMETERS by
        name, UnknownJob. `fits` answers POST /fits, may raise EngineError, InvalidField and Unknown.
        `rebalancer`: None while the bridge starts. The others are those of Probes."""
        super().__init__(metrics, alive=alive, ready=ready, refresh=refresh)
        self._identity = identity
        self._status = status
        self._explain = explain
        self._gangs = gangs
        self._queues = queues
        self._jobs = jobs
        self._fits = fits
        self._rebalance = RebalanceEndpoints(rebalancer)

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/identity", self._get_identity),
            web.get("/status", self._get_status),
            web.get("/explain", self._get_explain),
            web.get("/gangs", self._get_gangs),
            web.get("/queues", self._get_queues),
            web.get("/jobs", self._get_jobs),
            web.get("/jobs/{namespace}/{name}", self._get_job),
            web.post("/fits", self._post_fits),
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
        except (EngineError, KubeError) as error:
            return _json({"error": str(error)}, 503)
        if answer is None:
            return _json({"error": f"pod {namespace}/{name} not found"}, 404)
        return _json(answer)

    async def _get_gangs(self, request: web.Request) -> web.Response:
        return await _listed(request, self._gangs, "name", "namespace")

    async def _get_queues(self, request: web.Request) -> web.Response:
        return await _listed(request, self._queues, "name")

    async def _get_jobs(self, request: web.Request) -> web.Response:
        async def listing(*values: str) -> Json:
            return await self._jobs(**dict(zip(_JOB_PARAMETERS, values, strict=True)))

        return await _listed(request, listing, *_JOB_PARAMETERS)

    async def _get_job(self, request: web.Request) -> web.Response:
        found = request.match_info
        return await _listed(request, lambda: self._jobs(name=found["name"], namespace=found["namespace"]))

    async def _post_fits(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":  # which web pages cannot send without asking
            return _json({"error": f"the content type is {request.content_type}; send application/json"}, 415)
        try:
            body = await request.json()
            if not isinstance(body, dict):
                raise InvalidField("the question", "is not a mapping; give one with the key objects")
            return _json(await self._fits(body))
        except InvalidField as error:
            return _json({"error": str(error)}, 400)
        except (ValueError, RecursionError) as error:
            return _json({"error": f"the question is not JSON: {error}"}, 400)
        except Unknown as error:
            return _json({"error": f"{error.what} is being looked up; try again in a few seconds"}, 503)
        except EngineError as error:
            refused = error.code == "INVALID_ARGUMENT"
            return _json({"error": error.details if refused else str(error)}, 400 if refused else 503)


async def _listed(request: web.Request, listing: Callable[..., Awaitable[Json]], *parameters: str) -> web.Response:
    """The answer of a listing, called with the values of its parameters, each of which is optional."""
    query = request.query
    if unknown := next((key for key in query if key not in parameters), ""):
        there_are = f"there {'is' if len(parameters) == 1 else 'are'} {' and '.join(parameters) or 'none'}"
        return _json({"error": f"{unknown[:64]!r} is not a parameter; {there_are}"}, 400)
    try:
        return _json(await listing(*(query.get(each, "") for each in parameters)))
    except (UnknownGang, UnknownQueue, UnknownJob) as error:
        return _json({"error": str(error)}, 404)
    except EngineError as error:
        return _json({"error": str(error)}, 503)


def _health(problem: str) -> web.Response:
    return web.Response(text=f"not ok: {problem}\n" if problem else "ok\n", status=503 if problem else 200)


def _json(body: Json, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=lambda value: json.dumps(value, indent=2) + "\n")
