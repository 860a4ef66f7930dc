"""/rebalance: plans of moves over HTTP.

GET     /rebalance?goal=G&moves=N&for=SHAPE&moves-per-win=N   a plan; changes nothing
POST    /rebalance             carries out the plan in the body
GET     /rebalance/progress    what has become of its moves
DELETE  /rebalance             begins no further step of it

POST and DELETE evict pods. The health port answers none of these but to its own machine or pod, which are requests
through `kubectl port-forward` or `kubectl exec`, and neither to web pages nor to proxies (origin.py); at the secure
port RBAC says who may use which verb.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from poseidon_py.app.move_plan import PlanError, decode_plan, encode_plan
from poseidon_py.app.plan_query import plan_query
from poseidon_py.app.rebalance import RebalanceError, Rebalancer
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.objects import InvalidField

_JSON = "application/json"


class RebalanceEndpoints:
    """The routes."""

    def __init__(self, rebalancer: Callable[[], Rebalancer | None]) -> None:
        """None: the bridge still starts."""
        self._rebalancer = rebalancer

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/rebalance", self._answered(self._plan)),
            web.post("/rebalance", self._answered(self._carry_out)),
            web.delete("/rebalance", self._answered(self._stop)),
            web.get("/rebalance/progress", self._answered(self._progress)),
        ]

    def _answered(
        self, handle: Callable[[web.Request, Rebalancer], Awaitable[bytes]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Turns errors into answers."""

        async def answer(request: web.Request) -> web.Response:
            try:
                rebalancer = self._rebalancer()
                if rebalancer is None:
                    raise RebalanceError(503, "the scheduler is starting; try again in a few seconds")
                return web.Response(body=await handle(request, rebalancer), content_type=_JSON)
            except RebalanceError as error:
                status, problem = error.status, str(error)
            except EngineError as error:
                status, problem = _of_engine(error)
            return web.Response(body=_encoded({"error": problem}), status=status, content_type=_JSON)

        return answer

    async def _plan(self, request: web.Request, rebalancer: Rebalancer) -> bytes:
        try:
            query = plan_query(request.query)
        except InvalidField as error:
            raise RebalanceError(400, f"the parameter {error}") from error
        return encode_plan(await rebalancer.plan(query))

    async def _carry_out(self, request: web.Request, rebalancer: Rebalancer) -> bytes:
        _require_json(request)
        try:
            plan = decode_plan(await request.read())
        except PlanError as error:
            raise RebalanceError(400, f"the plan is malformed: {error}") from error
        return _encoded(await rebalancer.carry_out(plan))

    async def _stop(self, request: web.Request, rebalancer: Rebalancer) -> bytes:
        _require_json(request)
        return _encoded(await rebalancer.stop())

    async def _progress(self, _: web.Request, rebalancer: Rebalancer) -> bytes:
        return _encoded(rebalancer.progress())


def _of_engine(error: EngineError) -> tuple[int, str]:
    """HTTP status and message."""
    if error.code == "UNIMPLEMENTED":
        return 501, "the flow service has no plans of moves: it is older; upgrade it"
    return (400, error.details) if error.code == "INVALID_ARGUMENT" else (503, str(error))


def _encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body, indent=2).encode() + b"\n"


def _require_json(request: web.Request) -> None:
    """Web pages cannot send this type without asking. Raises RebalanceError."""
    if request.content_type != _JSON:
        raise RebalanceError(415, f"the content type is {request.content_type}; send Content-Type: {_JSON}")
