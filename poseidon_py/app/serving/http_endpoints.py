"""The HTTP server: its ports, health and metrics.

/livez, /healthz   200 while the process works
/readyz            200 when all objects have been listed and sent to the flow service; ?verbose lists the checks
/configz           the configuration: JSON
/debug/flags/v     the level of the log; PUT changes it
/metrics           Prometheus

There are two ports. The health port answers requests from its own machine or pod, which are those that `kubectl
port-forward` and `kubectl exec` make; to others it answers the probes alone, and no more than whether all is well. The
secure port speaks HTTPS, and answers those whom the API server permits the path (access_review.py).
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import ssl
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from poseidon_py.app.serving.access_review import ASKER, AccessReviewer, Asker, Refused, ReviewApi, review_client
from poseidon_py.app.serving.certificate import ServingCertificate
from poseidon_py.app.serving.origin import PERMITTED, from_own_machine, is_secure
from poseidon_py.app.serving.port import Port
from poseidon_py.config.document import document_of
from poseidon_py.config.settings import Settings
from poseidon_py.kube.credentials import Access
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util import logs
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
"""Of a manifest: more than the API server takes for one object. A plan of MAX_MOVES moves has less."""
_REQUEST_SECONDS = 30.0
"""Within which the head of a request has to come after the connection, or the answer before; and its body after it."""


def _worth_a_line(record: logging.LogRecord) -> bool:
    """What cannot be read as HTTP is no error of ours, and anybody can send any number of it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


_requests_log = logging.getLogger(f"{__name__}.requests")
_requests_log.addFilter(_worth_a_line)


class HealthAddressError(Exception):
    """The health address or port is not available; the message names the cause and the remedy."""


class Probed(Protocol):
    """What has probes and metrics."""

    settings: Settings

    @property
    def metrics(self) -> ProcessMetrics: ...

    def alive(self) -> str:
        """A problem that only a restart ends; empty: there is none."""

    def checks(self) -> Mapping[str, str]:
        """What has to be there for readiness -> what is missing, empty: nothing."""

    def refresh(self) -> None:
        """Updates the gauges."""


class Pages(Protocol):
    """What is served beside health and metrics, for people."""

    @property
    def public(self) -> Container[str]:
        """Paths that the secure port answers without a token, as browsers ask for them: they say nothing of a
        cluster."""

    def routes(self) -> list[web.RouteDef]: ...

    async def start(self) -> None:
        """Before the first request."""

    async def stop(self) -> None:
        """Ends requests that would not end by themselves."""


class Probes:
    """Health and metrics: `start`, `start_secure`, `stop`."""

    def __init__(
        self, asked: Probed, reviews: Callable[[Access], ReviewApi] = review_client, pages: Pages | None = None
    ) -> None:
        self._asked = asked
        self._pages = pages
        self._new_reviews = reviews
        self._runner: web.AppRunner | None = None
        self._ports: list[Port] = []
        self._reviews: ReviewApi | None = None
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
        address, port = self._asked.settings.health_address, self._asked.settings.health_port
        if port >= 0:
            self.port = await self._listen("health", address, port)
            log.info("health and metrics on http://%s", _host_port(address, self.port))

    async def start_secure(self, access: Access) -> None:
        """Serves the secure port, if there is one. `access`: to the API server, which is asked who may do what. Raises
        HealthAddressError."""
        settings = self._asked.settings
        if settings.secure_port < 0:
            return
        try:
            certificate = ServingCertificate(settings.tls_cert_file, settings.tls_private_key_file)
        except OSError as error:
            raise HealthAddressError(f"cannot use the certificate of --tls-cert-file: {error}") from error
        self._reviews = self._new_reviews(access)
        await self._reviews.start()
        self._reviewer = AccessReviewer(self._reviews)
        self._renewal = asyncio.create_task(certificate.run(), name="certificate")
        self.secure_port = await self._listen(
            "secure", settings.bind_address, settings.secure_port, certificate.context
        )
        log.info("metrics and state on https://%s", _host_port(settings.bind_address, self.secure_port))

    async def _listen(self, name: str, address: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """The port that is bound. `name`: that of the port in its flag."""
        if self._runner is None:
            app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._guard])
            app.add_routes(self.routes())
            if self._pages is not None:
                app.add_routes(self._pages.routes())
                await self._pages.start()
            self._runner = web.AppRunner(
                app,
                access_log=None,
                logger=_requests_log,
                handle_signals=False,
                shutdown_timeout=1.0,
                keepalive_timeout=_REQUEST_SECONDS,
            )
            await self._runner.setup()
        assert self._runner.server is not None
        found = Port(self._runner.server, tls)
        try:
            bound = await found.listen(address, port)
        except OSError as error:
            await self.stop()
            raise HealthAddressError(_cannot_listen(error, name, address, port)) from error
        self._ports.append(found)
        return bound

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets through what may be answered, with its whole body."""
        with contextlib.ExitStack() as answering:
            for port in self._ports:
                answering.enter_context(port.answering(request.protocol))
            try:
                request[ASKER] = await self._asker(request)
                request[PERMITTED] = True
                await _receive(request)
            except Refused as refused:
                if request.path not in PROBES:
                    return json_answer({"error": str(refused)}, refused.code)
                request[PERMITTED] = False
            return await handler(request)

    async def _asker(self, request: web.Request) -> Asker | None:
        """Who may have what the path answers. Raises Refused."""
        if not is_secure(request):
            if not from_own_machine(request):
                raise Refused(403, ONLY_PROBES)
            return None
        if self._pages is not None and request.path in self._pages.public:
            return None
        assert self._reviewer is not None
        authorization = request.headers.get("Authorization", "")
        return Asker(await self._reviewer.permit(authorization, request.method.lower(), request.path), self._reviewer)

    async def stop(self) -> None:
        if self._renewal is not None:
            await end_tasks(self._renewal)
        for port in self._ports:
            await port.close()
        self._ports.clear()
        if self._reviews is not None:
            await self._reviews.close()
        if self._pages is not None:
            await self._pages.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _livez(self, request: web.Request) -> web.Response:
        return _health(request, {"ping": self._asked.alive()})

    async def _readyz(self, request: web.Request) -> web.Response:
        return _health(request, self._asked.checks())

    async def _configz(self, _: web.Request) -> web.Response:
        return json_answer(document_of(self._asked.settings))

    async def _level(self, _: web.Request) -> web.Response:
        return web.Response(text=f"{logs.level()}\n")

    async def _set_level(self, request: web.Request) -> web.Response:
        """As kube-scheduler's: a number of klog; or a word."""
        try:
            text = (await request.text()).strip()
        except (LookupError, UnicodeDecodeError) as error:  # an unknown charset, or not of it
            return json_answer({"error": f"the body is no text: {error}"}, 400)
        word = logs.level_of(text)
        if word is None:
            return json_answer(
                {"error": f"{text[:64]!r} is no level; give one of {', '.join(logs.LEVELS)}, or a number"}, 400
            )
        logs.set_level(word)
        log.info("the log has level %s from now on", word)
        return web.Response(text=f"successfully set log level to {word}\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        self._asked.refresh()
        return web.Response(
            body=self._asked.metrics.exposition(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )


async def _receive(request: web.Request) -> None:
    """Reads the whole body, which handlers then have without waiting. Raises Refused."""
    if not request.body_exists:
        return
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            await request.read()
    except TimeoutError as error:
        raise Refused(408, f"the body did not come within {_REQUEST_SECONDS:g} s") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise Refused(
            413,
            f"the body has more than {_MAX_BODY_BYTES} bytes; send fewer objects, or carry out fewer moves at a time",
        ) from error


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if address.count(":") > 1 else f"{address}:{port}"


def _cannot_listen(error: OSError, name: str, address: str, port: int) -> str:
    """One line. `name`: that of the port in its flag."""
    own = f"give an IP address or a host name of this machine as --{'health' if name == 'health' else 'bind'}-address"
    others = f"choose another --{name}-port, 0 for any free one, -1 for none"
    if isinstance(error, socket.gaierror):
        reason, remedy = error.strerror or str(error), own
    else:
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = own if error.errno == errno.EADDRNOTAVAIL else others
        if error.errno == errno.EACCES:
            remedy = f"ports below 1024 need privileges: {others}"
    return f"cannot serve {name} on {_host_port(address, port)}: {reason}; {remedy}"


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


def json_answer(body: Json, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=lambda value: json.dumps(value, indent=2) + "\n")
