"""Responses: objects, lists, errors, discovery and health."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from benchmarks.cluster.http import discovery
from benchmarks.cluster.store.errors import ApiError, Json, bad_request, no_such_path, not_acceptable
from benchmarks.cluster.store.kinds import Kinds
from benchmarks.cluster.store.lists import Page
from benchmarks.cluster.store.store import Record
from benchmarks.cluster.views.forms import View

log = logging.getLogger(__name__)

SUCCESS = orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_STREAM_ABOVE_BYTES = 4 * 2**20
_PATHS = ("/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class _Connection(web.RequestHandler):
    """One connection; malformed HTTP is refused with a Status, like everything else."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that could not be read (or failed beyond `HttpApi.handle`); ends the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun, so it cannot become a refusal")
        if status < 500:
            answer = refusal(bad_request(f"malformed HTTP request: {message or exc}"))
        else:
            log.error("a request failed inside the server", exc_info=exc)
            answer = refusal(internal_error())
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Log an exception, unless it is an unreadable body, whose request has been refused already."""
        if not isinstance(sys.exception(), web.RequestPayloadError):
            super().log_exception(*args, **kwargs)


class Server(web.Server):
    """An HTTP server of such connections."""

    def __call__(self) -> web.RequestHandler:
        """A handler for a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)


def about(request: web.BaseRequest, path: str, kinds: Kinds) -> web.StreamResponse | None:
    """Discovery, health and OpenAPI; None if the path is something else."""
    if request.method != "GET":
        return None
    accept = request.headers.get("Accept", "")
    parts = [part for part in path.split("/") if part]
    match parts:
        case []:
            return json_answer({"paths": list(_PATHS)})
        case ["healthz" | "livez" | "readyz", *_]:
            return web.Response(text="ok")
        case ["version"]:
            return json_answer(discovery.VERSION)
        case ["api" | "apis" as root] if "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
            body = discovery.aggregated(kinds, core=root == "api")
            version = "v2beta1" if "v=v2;" not in accept + ";" else "v2"
            body["apiVersion"] = f"apidiscovery.k8s.io/{version}"
            return web.Response(
                body=orjson.dumps(body),
                headers={"Content-Type": discovery.AGGREGATED.replace("v=v2", f"v={version}")},
            )
        case ["api"]:
            return json_answer(discovery.api_versions())
        case ["apis"]:
            return json_answer(discovery.groups(kinds))
        case ["api", version]:
            found = discovery.resources(kinds, "", version)
        case ["apis", group]:
            found = discovery.group(kinds, group)
        case ["apis", group, version]:
            found = discovery.resources(kinds, group, version)
        case ["openapi", "v2"]:
            if "protobuf" in accept and "json" not in accept:
                raise not_acceptable("application/json")
            found = discovery.openapi_v2(kinds)
        case ["openapi", "v3"]:
            found = discovery.openapi_v3_index(kinds)
        case ["openapi", "v3", "api", version]:
            found = discovery.openapi_v3(kinds, "", version)
        case ["openapi", "v3", "apis", group, version]:
            found = discovery.openapi_v3(kinds, group, version)
        case _:
            return None
    if found is None:
        raise no_such_path()
    return json_answer(found)


def json_answer(obj: Any, status: int = 200) -> web.Response:
    """An object as JSON."""
    return web.Response(body=orjson.dumps(obj), status=status, headers=_JSON)


def bytes_answer(raw: bytes, status: int = 200) -> web.Response:
    """A response of serialised JSON."""
    return web.Response(body=raw, status=status, headers=_JSON)


def refusal(error: ApiError) -> web.Response:
    """A refusal as its Status object."""
    headers = dict(_JSON)
    if error.retry_after is not None and error.code in (429, 503, 504):
        headers["Retry-After"] = str(error.retry_after)
    return web.Response(body=error.body(), status=error.code, headers=headers)


def internal_error() -> ApiError:
    """500: a defect of this server; its log has the traceback."""
    return ApiError(500, "InternalError", "Internal error occurred: see the server's log")


async def send_list(request: web.BaseRequest, head: Json, page: Page, view: View | None) -> web.StreamResponse:
    """A page of a list; a large one is sent in slices."""
    start = orjson.dumps({**head, "metadata": page.metadata()})[:-1] + b',"items":['
    records: Sequence[Record] = page.records
    raws = [record.raw if view is None else view(record) for record in records]
    size = len(start) + sum(map(len, raws)) + max(len(raws) - 1, 0) + 2
    if size < _STREAM_ABOVE_BYTES:
        return bytes_answer(start + b",".join(raws) + b"]}")
    # In slices, so that a large list never exists a second time in one piece.
    response = web.StreamResponse(headers={**_JSON, "Content-Length": str(size)})
    await response.prepare(request)
    await response.write(start)
    for at in range(0, len(raws), 500):
        await response.write((b"," if at else b"") + b",".join(raws[at : at + 500]))
    await response.write(b"]}")
    await response.write_eof()
    return response
