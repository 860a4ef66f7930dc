"""The HTTP server of the API: dispatches each request to its verb.

One function dispatches every request and parses only what it needs, because the usual routing would cost more than a
bind. `bodies` reads the other parts of requests, `answers` writes the responses.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import APPLY_PATCHES, PATCH_TYPES
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.http import subresources
from benchmarks.cluster.http.accounts import Accounts
from benchmarks.cluster.http.answers import (
    SUCCESS,
    about,
    bytes_answer,
    internal_error,
    json_answer,
    refusal,
    send_list,
)
from benchmarks.cluster.http.bodies import (
    Query,
    is_dry_run,
    parse_delete_options,
    parse_number,
    parse_selection,
    read_body,
)
from benchmarks.cluster.http.faults import NO_FAULT, Fate, Faults
from benchmarks.cluster.http.metrics_api import Usage
from benchmarks.cluster.http.paths import Target, parse_path, split_query
from benchmarks.cluster.http.port_forward import forward_ports
from benchmarks.cluster.http.watches import Watches, WatchOptions
from benchmarks.cluster.store.errors import (
    ApiError,
    bad_request,
    forbidden_field,
    invalid,
    method_not_allowed,
    no_such_path,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)
from benchmarks.cluster.store.kinds import REVIEWS, Kind, Kinds
from benchmarks.cluster.store.lists import ListOptions, Lists, parse_version
from benchmarks.cluster.store.store import Record
from benchmarks.cluster.views.forms import metadata_only, shown_form, stored_form, view_of
from benchmarks.cluster.views.tables import Tables

log = logging.getLogger(__name__)

Admin = Callable[[str, str, Any], Any]

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
PROMETHEUS_QUERY = "/_prometheus/api/v1/query"
"""The path below which the simulated Prometheus answers."""
_LONGEST_WATCH_S = 7 * 86400
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
        self._accounts = Accounts(api)
        self._usage = Usage(api.store, seed)
        self._tables = Tables()
        self._bookmark_every_s = bookmark_every_s
        self._authorization = f"Bearer {token}" if token else ""
        self._admin = admin

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; every error is a Status."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return refusal(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("%s %s failed inside the server", request.method, request.raw_path)
            return refusal(internal_error())

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path, query = split_query(request.raw_path)
        if self._authorization and request.headers.get("Authorization") != self._authorization:
            raise unauthorized()
        if path == PROMETHEUS_QUERY and request.method == "GET":
            status, answer = await self._usage.query(query.get("query", ""))
            return json_answer(answer, status)
        if path.startswith("/_"):
            return await self._administer(request, path)
        if path.count("/") < 3 or not path.startswith("/api"):
            found = about(request, path, self.kinds)
            if found is not None:
                return found
        if request.method == "POST" and path.endswith("/bindings") and path.startswith("/api/v1/namespaces/"):
            target = self._legacy_binding(path)
            body = await read_body(request)
            target = target._replace(name=subresources.name_of(body))
        else:
            try:
                target = parse_path(self.kinds, path)
            except ApiError:
                found = about(request, path, self.kinds)
                if found is not None:
                    return found
                raise
            body = None
        verb = self._verb(request, target, query)
        user = self._accounts.user_of(request.headers.get("Authorization", ""))
        if user:
            self._accounts.permit(user, verb, target, query.get("fieldSelector", ""))
            if target.subresource == "portforward":
                self._accounts.permit(user, "create", target)  # whatever the method, from 1.35 on
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
        if target.subresource == "portforward":
            pod = self.api.get(target.kind, target.namespace, target.name).parse()
            return await forward_ports(request, pod, query)
        if body is None and request.method != "GET":
            body = await read_body(request, target.subresource)
        response = await self._serve(request, verb, target, query, body, user)
        if fate.lost and request.transport is not None:
            request.transport.abort()  # executed, but the client gets no response
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

    # the verbs

    async def _serve(
        self, request: web.BaseRequest, verb: str, target: Target, query: Query, body: Any, user: str
    ) -> web.StreamResponse:
        kind, subresource = target.kind, target.subresource
        if subresource == "token" and verb == "create":
            return json_answer(self._accounts.issue(target.namespace, target.name), 201)
        if subresource not in ("", "status", "finalize") or (subresource == "finalize"):
            status, answer = subresources.serve(self.api, verb, target, body, is_dry_run(query, body))
            return json_answer(answer, status) if answer is not None else bytes_answer(SUCCESS, status)
        if verb not in kind.verbs:
            raise method_not_allowed(kind.plural, kind.group, verb)
        if kind.group == "metrics.k8s.io":
            return json_answer(await self._usage.answer(target, parse_selection(target, query)))
        if kind in REVIEWS:
            return json_answer(subresources.review(kind, body, self._accounts.review), 201)
        if verb == "list":
            return await self._list(request, target, query)
        if verb == "get":
            return self._one(request, kind, self.api.get(kind, target.namespace, target.name))
        if verb == "delete":
            return self._delete(request, target, query, body)
        if verb == "deletecollection":
            return self._delete_all(target, query, body)
        dry_run = is_dry_run(query, None)
        if user:
            self._accounts.permit_binding(
                user,
                verb,
                target,
                lambda: self._write(request, verb, target, query, copy.deepcopy(body), dry_run=True)[0],
            )
        record, status = self._write(request, verb, target, query, body, dry_run=dry_run)
        return self._one(request, kind, record, status)

    def _write(
        self, request: web.BaseRequest, verb: str, target: Target, query: Query, body: Any, *, dry_run: bool
    ) -> tuple[Record, int]:
        """Create, update or patch an object: the record, and the code of the answer."""
        kind, namespace, name = target.kind, target.namespace, target.name
        stored = kind.stored_as or kind
        if verb != "patch":
            if not isinstance(body, dict):
                raise bad_request("the body of the request must be an object")
            if (verb == "create") is bool(name):
                raise method_not_allowed(kind.plural, kind.group, verb)
            body = stored_form(kind, body)
            if verb == "create":
                return self.api.create(stored, namespace, body, dry_run=dry_run), 201
            return self.api.update(stored, namespace, name, body, target.subresource, dry_run=dry_run), 200
        patch_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
        if patch_type not in PATCH_TYPES:
            raise unsupported_media_type(patch_type, ", ".join(PATCH_TYPES))
        if patch_type in APPLY_PATCHES and not query.get("fieldManager"):
            causes = [forbidden_field("fieldManager", "is required for apply patch")]
            raise invalid("PatchOptions", "meta.k8s.io", "", causes)
        record, created = self.api.patch(
            stored,
            namespace,
            name,
            body,
            patch_type,
            target.subresource,
            dry_run=dry_run,
            shown=lambda obj: shown_form(kind, obj),
            read=lambda obj: stored_form(kind, obj),
        )
        return record, 201 if created else 200

    def _one(self, request: web.BaseRequest, kind: Kind, record: Record, status: int = 200) -> web.StreamResponse:
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            return json_answer(self._tables.table(kind, [record], {"resourceVersion": str(record.version)}), status)
        if "as=PartialObjectMetadata" in accept:
            return bytes_answer(metadata_only(record), status)
        view = view_of(kind)
        return bytes_answer(record.raw if view is None else view(record), status)

    async def _list(self, request: web.BaseRequest, target: Target, query: Query) -> web.StreamResponse:
        kind = target.kind
        options = ListOptions(
            parse_selection(target, query),
            parse_number(query, "limit"),
            query.get("continue", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
        )
        page = self.lists.answer(kind, options)
        accept = request.headers.get("Accept", "")
        if "as=Table" in accept:
            include = query.get("includeObject", "Metadata")
            return json_answer(self._tables.table(kind, page.records, page.metadata(), include))
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
        view = view_of(kind)
        if "as=PartialObjectMetadataList" in accept:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            view = metadata_only
        return await send_list(request, head, page, view)

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
        timeout = parse_number(query, "timeoutSeconds")
        options = WatchOptions(
            parse_selection(target, query),
            from_version=version or self.api.store.version,
            initial=wants_initial or (version == 0 and send_initial is None),
            mark_initial_end=wants_initial,
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            timeout_s=float(min(timeout, _LONGEST_WATCH_S) or 1800 + self.api.random.randrange(1800)),
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
        options = parse_delete_options(query, body)
        record, gone = delete(
            self.api, kind.stored_as or kind, target.namespace, target.name, options, dry_run=is_dry_run(query, body)
        )
        if not gone or kind.kind == "Pod":
            return self._one(request, kind, record)
        details = {"name": target.name, "kind": kind.plural, "uid": record.uid}
        if kind.group:
            details["group"] = kind.group
        return json_answer(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    def _delete_all(self, target: Target, query: Query, body: Any) -> web.StreamResponse:
        kind = target.kind
        options = parse_delete_options(query, body)
        stored = kind.stored_as or kind
        found = list(self.api.store.select(stored, parse_selection(target, query)))
        for record in found:
            delete(self.api, stored, record.namespace, record.name, options, dry_run=is_dry_run(query, body))
        view = view_of(kind)
        raws = b",".join(record.raw if view is None else view(record) for record in found)
        meta = orjson.dumps({"resourceVersion": str(self.api.store.version)})
        head = f'{{"kind":"{kind.kind}List","apiVersion":"{kind.api_version}","metadata":'.encode()
        return bytes_answer(head + meta + b',"items":[' + raws + b"]}")

    def _legacy_binding(self, path: str) -> Target:
        pods = self.kinds.find("", "v1", "pods")
        parts = path.split("/")
        if pods is None or len(parts) != 6:
            raise no_such_path()
        return Target(pods, parts[4], "", "binding")

    # everything that is not a resource

    async def _administer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if self._admin is None:
            raise no_such_path()
        body = await read_body(request, any_type=True) if request.method != "GET" else None
        try:
            return json_answer(self._admin(request.method, path, body))
        except ValueError as error:
            raise bad_request(str(error)) from error
