"""HTTP in front of the API: what a request asks for, and what the answer looks like.

One function dispatches every request. It parses the little that it needs itself, since the usual routing
would cost more than a bind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import yaml
from aiohttp import web

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.verbs import APPLY_PATCHES, PATCH_TYPES, Api
from benchmarks.cluster.http import discovery, protobuf, subresources
from benchmarks.cluster.http.faults import NO_FAULT, Fate, Faults
from benchmarks.cluster.http.metrics_api import Usage
from benchmarks.cluster.http.paths import Target, parse_path, split_query
from benchmarks.cluster.http.watches import Watches, WatchOptions
from benchmarks.cluster.store.errors import (
    ApiError,
    Json,
    bad_request,
    forbidden_field,
    invalid,
    method_not_allowed,
    no_such_path,
    not_acceptable,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)
from benchmarks.cluster.store.kinds import REVIEWS, Kind, Kinds
from benchmarks.cluster.store.lists import ListOptions, Lists, Page, parse_version
from benchmarks.cluster.store.selectors import parse_fields, parse_labels
from benchmarks.cluster.store.store import Record, Selection
from benchmarks.cluster.views.forms import View, metadata_only, stored_form, view_of
from benchmarks.cluster.views.tables import Tables

log = logging.getLogger(__name__)

Query = Mapping[str, str]
Admin = Callable[[str, str, Any], Any]

_JSON = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_SUCCESS = orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_STREAM_ABOVE_BYTES = 4 * 2**20
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
PROMETHEUS_QUERY = "/_prometheus/api/v1/query"
"""Where a stand-in for Prometheus answers: its address is ours and /_prometheus."""
_TRUE = ("1", "true", "True", "TRUE", "t")


class HttpApi:
    """The request handler."""

    def __init__(
        self,
        api: Api,
        kinds: Kinds,
        faults: Faults,
        *,
        bookmark_every_s: float = 60.0,
        token: str = "",
        seed: int = 0,
        admin: Admin | None = None,
    ) -> None:
        self.api = api
        self.kinds = kinds
        self.faults = faults
        self.lists = Lists(api.store)
        self.watches = Watches(api.store)
        self.requests: dict[str, int] = {}
        self._usage = Usage(api.store, seed)
        self._tables = Tables()
        self._bookmark_every_s = bookmark_every_s
        self._authorization = f"Bearer {token}" if token else ""
        self._admin = admin

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; a refusal is a Status, whatever goes wrong."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return _refusal(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("%s %s failed inside the server", request.method, request.raw_path)
            return _refusal(ApiError(500, "InternalError", "Internal error occurred: see the server's log"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path, query = split_query(request.raw_path)
        if self._authorization and request.headers.get("Authorization") != self._authorization:
            raise unauthorized()
        if path == PROMETHEUS_QUERY and request.method == "GET":
            status, answer = await self._usage.query(query.get("query", ""))
            return _json(answer, status)
        if path.startswith("/_"):
            return await self._administer(request, path)
        if path.count("/") < 3 or not path.startswith("/api"):
            found = self._about(request, path)
            if found is not None:
                return found
        if request.method == "POST" and path.endswith("/bindings") and path.startswith("/api/v1/namespaces/"):
            target = self._legacy_binding(path)
            body = await self._body(request)
            target = target._replace(name=str((body.get("metadata") or {}).get("name") or ""))
        else:
            try:
                target = parse_path(self.kinds, path)
            except ApiError:
                found = self._about(request, path)
                if found is not None:
                    return found
                raise
            body = None
        verb = self._verb(request, target, query)
        fate = NO_FAULT
        if self.faults.rules:
            resource = target.kind.plural
            fate = self.faults.fate(verb, f"{resource}/{target.subresource}" if target.subresource else resource)
            if fate is not NO_FAULT:
                await self._suffer(request, fate)
        counted = f"{verb} {target.kind.plural}"
        self.requests[counted] = self.requests.get(counted, 0) + 1
        if verb == "watch":
            return await self._watch(request, target, query)
        if body is None and request.method != "GET":
            body = await self._body(request, target.subresource)
        response = await self._serve(request, verb, target, query, body)
        if fate.lost and request.transport is not None:
            request.transport.abort()  # it was done, but nobody will hear
        return response

    def _verb(self, request: web.BaseRequest, target: Target, query: Query) -> str:
        if request.method == "GET":
            if target.name:
                return "get"
            return "watch" if query.get("watch") in _TRUE else "list"
        verb = _VERBS.get(request.method)
        if verb is None:
            raise method_not_allowed(target.kind.plural, target.kind.group, request.method.lower())
        return "deletecollection" if verb == "delete" and not target.name else verb

    async def _suffer(self, request: web.BaseRequest, fate: Fate) -> None:
        if fate.latency_s:
            await asyncio.sleep(fate.latency_s)
        if fate.reset:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("fault: connection reset")
        if fate.code == 429:
            message = "too many requests, please try again later"
            raise too_many_requests(message, fate.retry_after_s)
        if fate.code == 500:
            raise ApiError(500, "InternalError", "Internal error occurred: injected fault")
        if fate.code:
            message = "the server is currently unable to handle the request"
            raise ApiError(fate.code, "ServiceUnavailable", message, retry_after=fate.retry_after_s)

    async def _body(self, request: web.BaseRequest, subresource: str = "") -> Any:
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {error.text}") from error
        if not raw:
            return {}
        kind = request.headers.get("Content-Type", "application/json")
        if kind.startswith(protobuf.MEDIA_TYPE):
            return protobuf.decode(raw, subresource)
        if "cbor" in kind:
            raise unsupported_media_type(kind, "application/json, application/yaml")
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            if "yaml" not in kind:
                raise bad_request(f"couldn't decode the request body as JSON: {error}") from error
        try:
            return yaml.safe_load(raw)
        except yaml.YAMLError as error:
            raise bad_request(f"couldn't decode the request body as YAML: {error}") from error

    # the verbs

    async def _serve(
        self, request: web.BaseRequest, verb: str, target: Target, query: Query, body: Any
    ) -> web.StreamResponse:
        kind, subresource = target.kind, target.subresource
        if subresource not in ("", "status", "finalize") or (subresource == "finalize"):
            status, answer = subresources.serve(self.api, verb, target, body, _dry_run(query, body))
            return _json(answer, status) if answer is not None else _json_bytes(_SUCCESS, status)
        if verb not in kind.verbs:
            raise method_not_allowed(kind.plural, kind.group, verb)
        if kind.group == "metrics.k8s.io":
            return _json(await self._usage.answer(target, _selection(target, query)))
        if kind in REVIEWS:
            return _json(subresources.review(kind, body), 201)
        if verb == "list":
            return await self._list(request, target, query)
        status = 200
        if verb == "get":
            record = self.api.get(kind, target.namespace, target.name)
        elif verb == "delete":
            return self._delete(request, target, query, body)
        elif verb == "deletecollection":
            return self._delete_all(target, query, body)
        else:
            dry_run = _dry_run(query, None)
            body = stored_form(kind, body)
            if verb != "patch" and not isinstance(body, dict):
                raise bad_request("the body of the request must be an object")
            stored = kind.stored_as or kind
            if verb == "create":
                if target.name:
                    raise method_not_allowed(kind.plural, kind.group, "create")
                status = 201
                record = self.api.create(stored, target.namespace, body, dry_run=dry_run)
            elif verb == "update":
                if not target.name:
                    raise method_not_allowed(kind.plural, kind.group, "update")
                record = self.api.update(stored, target.namespace, target.name, body, subresource, dry_run=dry_run)
            else:
                patch_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
                if patch_type not in PATCH_TYPES:
                    raise unsupported_media_type(patch_type, ", ".join(PATCH_TYPES))
                if patch_type in APPLY_PATCHES and not query.get("fieldManager"):
                    causes = [forbidden_field("fieldManager", "is required for apply patch")]
                    raise invalid("PatchOptions", "meta.k8s.io", "", causes)
                record, created = self.api.patch(
                    stored, target.namespace, target.name, body, patch_type, subresource, dry_run=dry_run
                )
                status = 201 if created else 200
        return self._one(request, kind, record, status)

    def _one(self, request: web.BaseRequest, kind: Kind, record: Record, status: int = 200) -> web.StreamResponse:
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            return _json(self._tables.table(kind, [record], {"resourceVersion": str(record.version)}), status)
        if "as=PartialObjectMetadata" in accept:
            return _json_bytes(metadata_only(record), status)
        view = view_of(kind)
        return _json_bytes(record.raw if view is None else view(record), status)

    async def _list(self, request: web.BaseRequest, target: Target, query: Query) -> web.StreamResponse:
        kind = target.kind
        options = ListOptions(
            _selection(target, query),
            _number(query, "limit"),
            query.get("continue", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
        )
        page = self.lists.answer(kind, options)
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            include = query.get("includeObject", "Metadata")
            return _json(self._tables.table(kind, page.records, page.metadata(), include))
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
        view = view_of(kind)
        if "as=PartialObjectMetadataList" in accept:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            view = metadata_only
        return await _send_list(request, head, page, view)

    async def _watch(self, request: web.BaseRequest, target: Target, query: Query) -> web.StreamResponse:
        kind = target.kind
        if "watch" not in kind.verbs:
            raise method_not_allowed(kind.plural, kind.group, "watch")
        version = parse_version(query.get("resourceVersion", ""))
        send_initial = query.get("sendInitialEvents")
        match = query.get("resourceVersionMatch", "")
        problem = ""
        if send_initial is not None and match != "NotOlderThan":
            problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        elif send_initial is None and match:
            problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        if problem:
            raise invalid("ListOptions", "meta.k8s.io", "", [forbidden_field("resourceVersionMatch", problem)])
        wants_initial = send_initial in _TRUE
        timeout = _number(query, "timeoutSeconds")
        options = WatchOptions(
            _selection(target, query),
            from_version=version or self.api.store.version,
            initial=wants_initial or (version == 0 and send_initial is None),
            mark_initial_end=wants_initial,
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            timeout_s=float(timeout or 1800 + self.api.random.randrange(1800)),
            bookmark_every_s=self._bookmark_every_s,
        )
        accept = request.headers.get("Accept", "")
        view = view_of(kind)
        if "as=Table" in accept:
            view = self._tables.row_view(kind, query.get("includeObject", "Metadata"))
        elif "as=PartialObjectMetadata" in accept:
            view = metadata_only
        return await self.watches.serve(request, kind, options, view, self.faults)

    def _delete(self, request: web.BaseRequest, target: Target, query: Query, body: Any) -> web.StreamResponse:
        kind = target.kind
        options = _delete_options(query, body)
        record, gone = delete(
            self.api, kind.stored_as or kind, target.namespace, target.name, options, dry_run=_dry_run(query, body)
        )
        if not gone or kind.kind == "Pod":
            return self._one(request, kind, record)
        details = {"name": target.name, "kind": kind.plural, "uid": record.uid}
        if kind.group:
            details["group"] = kind.group
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    def _delete_all(self, target: Target, query: Query, body: Any) -> web.StreamResponse:
        kind = target.kind
        options = _delete_options(query, body)
        stored = kind.stored_as or kind
        found = list(self.api.store.select(stored, _selection(target, query)))
        for record in found:
            delete(self.api, stored, record.namespace, record.name, options, dry_run=_dry_run(query, body))
        raws = b",".join(record.raw for record in found)
        meta = orjson.dumps({"resourceVersion": str(self.api.store.version)})
        head = f'{{"kind":"{kind.kind}List","apiVersion":"{kind.api_version}","metadata":'.encode()
        return _json_bytes(head + meta + b',"items":[' + raws + b"]}")

    def _legacy_binding(self, path: str) -> Target:
        pods = self.kinds.find("", "v1", "pods")
        parts = path.split("/")
        if pods is None or len(parts) != 6:
            raise no_such_path()
        return Target(pods, parts[4], "", "binding")

    # everything that is not a resource

    def _about(self, request: web.BaseRequest, path: str) -> web.StreamResponse | None:
        """Discovery, health and OpenAPI; None if the path is something else."""
        if request.method != "GET":
            return None
        accept = request.headers.get("Accept", "")
        parts = [part for part in path.split("/") if part]
        match parts:
            case []:
                return _json(
                    {
                        "paths": [
                            "/api",
                            "/apis",
                            "/healthz",
                            "/livez",
                            "/openapi/v2",
                            "/openapi/v3",
                            "/readyz",
                            "/version",
                        ]
                    }
                )
            case ["healthz" | "livez" | "readyz", *_]:
                return web.Response(text="ok")
            case ["version"]:
                return _json(discovery.VERSION)
            case ["api" | "apis" as root] if "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
                body = discovery.aggregated(self.kinds, core=root == "api")
                version = "v2beta1" if "v=v2;" not in accept + ";" else "v2"
                body["apiVersion"] = f"apidiscovery.k8s.io/{version}"
                return web.Response(
                    body=orjson.dumps(body),
                    headers={"Content-Type": discovery.AGGREGATED.replace("v=v2", f"v={version}")},
                )
            case ["api"]:
                return _json(discovery.api_versions())
            case ["apis"]:
                return _json(discovery.groups(self.kinds))
            case ["api", version]:
                found = discovery.resources(self.kinds, "", version)
            case ["apis", group]:
                found = discovery.group(self.kinds, group)
            case ["apis", group, version]:
                found = discovery.resources(self.kinds, group, version)
            case ["openapi", "v2"]:
                if "protobuf" in accept and "json" not in accept:
                    raise not_acceptable("application/json")
                found = discovery.openapi_v2(self.kinds)
            case ["openapi", "v3"]:
                found = discovery.openapi_v3_index(self.kinds)
            case ["openapi", "v3", "api", version]:
                found = discovery.openapi_v3(self.kinds, "", version)
            case ["openapi", "v3", "apis", group, version]:
                found = discovery.openapi_v3(self.kinds, group, version)
            case _:
                return None
        if found is None:
            raise no_such_path()
        return _json(found)

    async def _administer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if self._admin is None:
            raise no_such_path()
        body = await self._body(request) if request.method != "GET" else None
        try:
            return _json(self._admin(request.method, path, body))
        except ValueError as error:
            raise bad_request(str(error)) from error


def _selection(target: Target, query: Query) -> Selection:
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return Selection(
        target.namespace,
        parse_labels(labels) if labels else None,
        parse_fields(target.kind.stored_as or target.kind, fields) if fields else (),
    )


def _number(query: Query, name: str) -> int:
    text = query.get(name) or "0"
    if not text.isdigit():
        raise bad_request(f"{name} must be a non-negative integer, not {text!r}")
    return int(text)


def _dry_run(query: Query, body: Any) -> bool:
    asked = query.get("dryRun")
    if asked is None and isinstance(body, dict):
        stated = body.get("dryRun")
        asked = stated[0] if isinstance(stated, list) and stated else None
    if asked not in (None, "", "All"):
        raise bad_request(f'dryRun: Unsupported value: {asked!r}: supported values: "All"')
    return asked == "All"


def _delete_options(query: Query, body: Any) -> Json:
    options = dict(body) if isinstance(body, dict) else {}
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = _number(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    return options


def _json(obj: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(obj), status=status, headers=_JSON)


def _json_bytes(raw: bytes, status: int = 200) -> web.Response:
    return web.Response(body=raw, status=status, headers=_JSON)


def _refusal(error: ApiError) -> web.Response:
    headers = dict(_JSON)
    if error.retry_after is not None and error.code in (429, 503, 504):
        headers["Retry-After"] = str(error.retry_after)
    return web.Response(body=error.body(), status=error.code, headers=headers)


async def _send_list(request: web.BaseRequest, head: Json, page: Page, view: View | None) -> web.StreamResponse:
    start = orjson.dumps({**head, "metadata": page.metadata()})[:-1] + b',"items":['
    records: Sequence[Record] = page.records
    raws = [record.raw if view is None else view(record) for record in records]
    size = len(start) + sum(map(len, raws)) + max(len(raws) - 1, 0) + 2
    if size < _STREAM_ABOVE_BYTES:
        return _json_bytes(start + b",".join(raws) + b"]}")
    # In slices, so that a large list never exists a second time in one piece.
    response = web.StreamResponse(headers={**_JSON, "Content-Length": str(size)})
    await response.prepare(request)
    await response.write(start)
    for at in range(0, len(raws), 500):
        await response.write((b"," if at else b"") + b",".join(raws[at : at + 500]))
    await response.write(b"]}")
    await response.write_eof()
    return response
