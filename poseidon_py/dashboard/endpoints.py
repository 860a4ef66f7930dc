"""The routes under /dashboard/api/. All are GET, and change nothing.

/overview?label=LABEL               use, what waits and why, evictions, rounds (overview.py)
/history?span=hour|week&prefix=P    totals over time (history.py)
/rounds?limit=N&before=NUMBER       the last rounds, the newest first: {"count", "rounds": [...]}
/jobs, /gangs, /pods                lists: text, namespace, state, queue, user, node, waits, offset, limit (work.py)
/job, /gang, /pod?name=NAMESPACE/NAME     one of them
/queues, /queue?name=NAME           queues (queue_tree.py)
/nodes?label=L&resource=R&shape=S   all nodes in groups, and how many pods of a shape fit (node_map.py)
/node?name=NAME                     one node
/network?round=N&class=C&pod=P&node=NODE&limit=N     the flow network of a round (networks.py)
/stream                             server-sent events (stream.py)
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.queries.round_network import UnknownNetwork
from poseidon_py.app.serving.access_review import Refused
from poseidon_py.dashboard.assets import HEADERS, PREFIX
from poseidon_py.dashboard.history import ROUNDS, RoundHistory, Series
from poseidon_py.dashboard.networks import network_scoped
from poseidon_py.dashboard.node_map import node_json, nodes_json, shape_of
from poseidon_py.dashboard.overview import overview_json
from poseidon_py.dashboard.queue_tree import queues_scoped
from poseidon_py.dashboard.scope import Scope, Scopes
from poseidon_py.dashboard.stream import Stream
from poseidon_py.dashboard.survey import Surveys
from poseidon_py.dashboard.watched import Shared, Watched
from poseidon_py.dashboard.work import LARGEST_LIMIT, LIMIT, ListQuery, WorkLists
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.client import KubeError
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.quantity import CPU

Json = dict[str, Any]
API = f"{PREFIX}api"
_PACK_FROM = 16_384
"""Bytes from which an answer is compressed."""
_ROUNDS = 100
_SELECTION = frozenset(ListQuery._fields)
_NETWORK = ("round", "class", "pod", "node", "limit")


class NotFound(Exception):
    """There is nothing of the name."""


class DashboardEndpoints:
    """The routes, over one scheduler."""

    def __init__(
        self,
        watched: Watched,
        surveys: Surveys,
        rounds: RoundHistory,
        series: Series,
        scopes: Scopes,
        shared: Shared,
        stream: Stream,
    ) -> None:
        self._watched = watched
        self._surveys = surveys
        self._rounds = rounds
        self._series = series
        self._scopes = scopes
        self._shared = shared
        self._stream = stream
        self._work = WorkLists(watched, shared)

    def routes(self) -> list[web.RouteDef]:
        work = self._work
        return [
            self._route("overview", self._overview, {"label"}),
            self._route("history", self._history, {"span", "prefix"}),
            self._route("rounds", self._newest_rounds, {"limit", "before"}),
            self._route("jobs", self._list(work.jobs), _SELECTION),
            self._route("gangs", self._list(work.gangs), _SELECTION),
            self._route("pods", self._list(work.pods), _SELECTION),
            self._route("job", self._one(work.job), {"name"}),
            self._route("gang", self._one(work.gang), {"name"}),
            self._route("pod", self._one(work.pod), {"name"}),
            self._route("queues", self._queues, set()),
            self._route("queue", self._queue, {"name"}),
            self._route("nodes", self._nodes, {"label", "resource", "shape"}),
            self._route("node", self._node, {"name"}),
            self._route("network", self._network, frozenset(_NETWORK)),
            web.get(f"{API}/stream", self._follow),
        ]

    def _route(
        self, name: str, answer: Callable[[web.Request], Awaitable[Json]], parameters: set[str] | frozenset[str]
    ) -> web.RouteDef:
        """Turns errors into answers."""

        async def handle(request: web.Request) -> web.Response:
            try:
                if unknown := next((key for key in request.query if key not in parameters), ""):
                    there_are = ", ".join(sorted(parameters)) or "none"
                    raise InvalidField(f"the parameter {unknown[:64]!r}", f"is unknown; there are: {there_are}")
                return await _packed(request, _json(await answer(request)))
            except InvalidField as error:
                return _json({"error": str(error)}, 400)
            except Refused as error:
                return _json({"error": str(error)}, error.code)
            except (NotFound, UnknownGang, UnknownQueue, UnknownJob, UnknownNetwork) as error:
                scope = await self._scopes.of(request)
                return _json({"error": scope.text(str(error))}, 404)
            except (EngineError, KubeError) as error:
                return _json({"error": str(error)}, 503)

        return web.get(f"{API}/{name}", handle)

    # -- sums -------------------------------------------------------------------------------------------------

    async def _overview(self, request: web.Request) -> Json:
        scope = await self._scopes.of(request)
        survey = await self._surveys.newest()
        label = request.query.get("label", "")
        policy = await self._shared.get("policy", self._policy)
        found = overview_json(self._watched, survey, self._rounds, scope, policy=policy, label=label)
        shown: Json = scope.texts(found)
        return shown | {"reviewing": scope.reviewing}

    async def _policy(self) -> str:
        policy: str = (await self._watched.engine.status()).policy
        return policy

    async def _history(self, request: web.Request) -> Json:
        span = request.query.get("span", "hour")
        if span not in ("hour", "week"):
            raise InvalidField("the parameter span", f"is {span[:64]!r}; give hour or week")
        return self._series.json(fine=span == "hour", prefix=request.query.get("prefix", ""))

    async def _newest_rounds(self, request: web.Request) -> Json:
        limit = _number(request, "limit", _ROUNDS, 1, ROUNDS)
        before = _number(request, "before", 0, 0)
        found = [each.json() for each in self._rounds.newest(limit, before)]
        return {"count": self._rounds.count, "rounds": found}

    # -- lists ------------------------------------------------------------------------------------------------

    def _list(self, listing: Callable[[ListQuery, Scope], Awaitable[Json]]) -> Callable[[web.Request], Awaitable[Json]]:
        async def answer(request: web.Request) -> Json:
            chosen = _selection(request)
            scope = await self._scopes.of(request, chosen.namespace)
            found: Json = scope.texts(await listing(chosen, scope))
            return found

        return answer

    def _one(self, find: Callable[[str, str], Awaitable[Json | None]]) -> Callable[[web.Request], Awaitable[Json]]:
        async def answer(request: web.Request) -> Json:
            full_name = request.query.get("name", "")
            namespace, slash, name = full_name.partition("/")
            if not (namespace and slash and name):
                raise InvalidField("the parameter name", "is missing or malformed; give NAMESPACE/NAME")
            scope = await self._scopes.of(request, namespace)
            if not scope.shows(namespace):
                raise _refused(namespace)
            found = await find(namespace, name)
            if found is None:
                raise NotFound(f"{full_name} not found")
            shown: Json = scope.texts(found)
            return shown

        return answer

    async def _queues(self, request: web.Request) -> Json:
        body = await self._shared.get("queues", lambda: self._watched.queues(""))
        return queues_scoped(body, await self._scopes.of(request))

    async def _queue(self, request: web.Request) -> Json:
        name = request.query.get("name", "")
        if not name:
            raise InvalidField("the parameter name", "is missing; give that of a queue")
        return queues_scoped(await self._watched.queues(name), await self._scopes.of(request))

    # -- nodes ------------------------------------------------------------------------------------------------

    async def _nodes(self, request: web.Request) -> Json:
        query = request.query
        shape = shape_of(query.get("shape", ""))
        survey = await self._surveys.newest()
        resource = query.get("resource", "") or CPU
        return nodes_json(survey, label=query.get("label", ""), resource=resource, shape=shape)

    async def _node(self, request: web.Request) -> Json:
        name = request.query.get("name", "")
        found = node_json(await self._surveys.newest(), name)
        if found is None:
            raise NotFound(f"node {name[:253]} not found")
        return found

    async def _network(self, request: web.Request) -> Json:
        query = request.query
        pod = query.get("pod", "")
        scope = await self._scopes.of(request, pod.partition("/")[0])
        if pod and not scope.shows_object(pod):
            raise _refused(pod.partition("/")[0])
        found = await self._watched.network(**{name: query.get(name, "") for name in _NETWORK})
        return network_scoped(found, scope)

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._stream.serve(request)
        except Refused as error:
            answer = _json({"error": str(error)}, error.code)
            answer.headers["Retry-After"] = "30"
            return answer


def _json(body: Json, status: int = 200) -> web.Response:
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    return web.Response(body=msgspec.json.encode(body), status=status, headers=headers)


async def _packed(request: web.Request, answer: web.Response) -> web.Response:
    """Compressed, if it is large and the asker can read that; in a thread, while the scheduler goes on."""
    data = answer.body
    if isinstance(data, bytes) and len(data) >= _PACK_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        answer.body = await asyncio.to_thread(gzip.compress, data, 1)
        answer.headers["Content-Encoding"] = "gzip"
        answer.headers["Vary"] = "Accept-Encoding"
    return answer


def _refused(namespace: str) -> Refused:
    return Refused(403, f"you may not list the pods of namespace {namespace[:253]}, so nothing of it is shown")


def _number(request: web.Request, name: str, default: int, least: int, largest: int = 1 << 31) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= largest):
        raise InvalidField(f"the parameter {name}", f"is {text[:64]!r}; give a number from {least} to {largest}")
    return int(text)


def _selection(request: web.Request) -> ListQuery:
    given: dict[str, Any] = {key: value[:253] for key, value in request.query.items()}
    given["offset"] = _number(request, "offset", 0, 0, 1_000_000)
    given["limit"] = _number(request, "limit", LIMIT, 1, LARGEST_LIMIT)
    return ListQuery(**given)
