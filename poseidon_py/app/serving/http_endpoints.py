"""The HTTP server of the bridge: health, metrics, and its state as JSON.

/livez, /healthz   200 while the process works
/readyz            200 when all objects have been listed and sent to the flow service; ?verbose lists the checks
/configz           the configuration: JSON
/debug/flags/v     the level of the log; PUT changes it
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

There are two ports. The health port answers requests from its own machine or pod, which are those that `kubectl
port-forward` and `kubectl exec` make; to others it answers the probes alone, and no more than whether all is well. The
secure port speaks HTTPS, and answers those whom the API server permits the path (access_review.py).
"""

import asyncio
import json
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.serving.access_review import AccessReviewer, Refused, ReviewApi
from poseidon_py.app.serving.certificate import ServingCertificate
from poseidon_py.app.serving.origin import PERMITTED, from_own_machine, is_secure
from poseidon_py.app.serving.rebalance_endpoints import RebalanceEndpoints
from poseidon_py.config.document import document_of
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.client import KubeError
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.util import logs
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

Json = dict[str, Any]
LEVEL = "/debug/flags/v"
PROBES = ("/livez", "/healthz", "/readyz")
ONLY_PROBES = (
    "other machines get nothing but the probes from this port; use kubectl port-forward or kubectl exec, or a token at "
    "the secure port (--secure-port)"
)
_MAX_BODY_BYTES = 4 << 20
"""Of a manifest: more than the API server takes for one object."""


_JOB_PARAMETERS = ("name", "namespace", "user", "queue", "state")


def _worth_a_line(record: logging.LogRecord) -> bool:
    """What cannot be read as HTTP is no error of ours, and anybody can send any number of it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


_requests_log = logging.getLogger(f"{__name__}.requests")
_requests_log.addFilter(_worth_a_line)


class HealthAddressError(Exception):
    """The health address or port is not available; the message names the cause and the remedy."""


class Probes:
    """Health and metrics: `start`, `start_secure`, `stop`."""

    def __init__(
        self,
        metrics: Metrics,
        settings: Settings,
        *,
        alive: Callable[[], str],
        checks: Callable[[], Mapping[str, str]],
        refresh: Callable[[], None],
    ) -> None:
        """`alive` returns a problem, empty if there is none; `checks` those of what has to be there for readiness, by
        name. `refresh` updates the gauges."""
        self._measured = metrics
        self._settings = settings
        self._alive = alive
        self._checks = checks
        self._refresh = refresh
        self._runner: web.AppRunner | None = None
        self._reviewer: AccessReviewer | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.port = self.secure_port = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self._livez),
            web.get("/livez", self._livez),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
            web.get("/configz", self._configz),
            web.get(LEVEL, self._level),
            web.put(LEVEL, self._set_level),
        ]

    async def start(self) -> None:
        """Serves the health port, if there is one. Raises HealthAddressError."""
        address, port = self._settings.health_address, self._settings.health_port
        if port >= 0:
            self.port = await self._listen(address, port, "health")
            log.info("health and metrics on http://%s:%d", address, self.port)

    async def start_secure(self, api: ReviewApi) -> None:
        """Serves the secure port, if there is one. Raises HealthAddressError."""
        settings = self._settings
        if settings.secure_port < 0:
            return
        try:
            certificate = ServingCertificate(settings.tls_cert_file, settings.tls_private_key_file)
        except OSError as error:
            raise HealthAddressError(f"cannot use the certificate of --tls-cert-file: {error}") from error
        self._reviewer = AccessReviewer(api)
        self._renewal = asyncio.create_task(certificate.run(), name="certificate")
        self.secure_port = await self._listen(
            settings.bind_address, settings.secure_port, "secure", certificate.context
        )
        log.info("metrics and state on https://%s:%d", settings.bind_address, self.secure_port)

    async def _listen(self, address: str, port: int, name: str, tls: ssl.SSLContext | None = None) -> int:
        """The port that is bound. `name`: that of the port in its flag."""
        if self._runner is None:
            app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._guard])
            app.add_routes(self.routes())
            self._runner = web.AppRunner(
                app, access_log=None, logger=_requests_log, handle_signals=False, shutdown_timeout=1.0
            )
            await self._runner.setup()
        site = web.TCPSite(self._runner, address, port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            unknown = isinstance(error, socket.gaierror)
            reason = error.strerror if unknown or not error.errno else os.strerror(error.errno)
            of_address = "health-address" if tls is None else "bind-address"
            remedy = f"give an IP address or a host name of this machine as --{of_address}"
            if not unknown:
                remedy = f"choose another --{name}-port, 0 for any free one, -1 for none"
            raise HealthAddressError(f"cannot serve {name} on {address}:{port}: {reason or error}; {remedy}") from error
        bound: int = self._runner.addresses[-1][1]
        return bound

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets through what may be answered."""
        try:
            request[PERMITTED] = await self._permitted(request)
        except Refused as refused:
            if request.path not in PROBES:
                return _json({"error": str(refused)}, refused.code)
            request[PERMITTED] = False
        return await handler(request)

    async def _permitted(self, request: web.Request) -> bool:
        """True. Raises Refused."""
        if is_secure(request):
            assert self._reviewer is not None
            await self._reviewer.permit(request.headers.get("Authorization", ""), request.method.lower(), request.path)
        elif not from_own_machine(request):
            raise Refused(403, ONLY_PROBES)
        return True

    async def stop(self) -> None:
        if self._renewal is not None:
            await end_tasks(self._renewal)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _livez(self, request: web.Request) -> web.Response:
        return _health(request, {"ping": self._alive()})

    async def _readyz(self, request: web.Request) -> web.Response:
        return _health(request, self._checks())

    async def _configz(self, _: web.Request) -> web.Response:
        return _json(document_of(self._settings))

    async def _level(self, _: web.Request) -> web.Response:
        return web.Response(text=f"{logs.level()}\n")

    async def _set_level(self, request: web.Request) -> web.Response:
        """As kube-scheduler's: a number of klog; or a word."""
        try:
            text = (await request.text()).strip()
        except (LookupError, UnicodeDecodeError) as error:  # an unknown charset, or not of it
            return _json({"error": f"the body is no text: {error}"}, 400)
        word = logs.level_of(text)
        if word is None:
            return _json(
                {"error": f"{text[:64]!r} is no level; give one of {', '.join(logs.LEVELS)}, or a number"}, 400
            )
        logs.set_level(word)
        log.info("the log has level %s from now on", word)
        return web.Response(text=f"successfully set log level to {word}\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        self._refresh()
        return web.Response(body=self._measured.exposition(), headers={"Content-Type": "text/plain; version=0.0.4"})


class Health(Probes):
    """The endpoints of the bridge."""

    def __init__(
        self,
        metrics: Metrics,
        settings: Settings,
        *,
        alive: Callable[[], str],
        checks: Callable[[], Mapping[str, str]],
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
        super().__init__(metrics, settings, alive=alive, checks=checks, refresh=refresh)
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
        except (ValueError, RecursionError, LookupError) as error:  # the last: an unknown charset
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


def first_problem(checks: Mapping[str, str]) -> str:
    """Empty: there is none."""
    return next((problem for problem in checks.values() if problem), "")


def _health(request: web.Request, checks: Mapping[str, str]) -> web.Response:
    problem, permitted = first_problem(checks), request[PERMITTED]
    text = "ok\n" if not problem else f"not ok: {problem}\n" if permitted else "not ok\n"
    if permitted and "verbose" in request.query:
        lines = [f"[-]{name}: {found}" if found else f"[+]{name} ok" for name, found in checks.items()]
        text = "\n".join([*lines, f"{request.path[1:]} check {'failed' if problem else 'passed'}", ""])
    return web.Response(text=text, status=503 if problem else 200)


def _json(body: Json, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=lambda value: json.dumps(value, indent=2) + "\n")
