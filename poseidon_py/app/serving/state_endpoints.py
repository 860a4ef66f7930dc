"""The state of the bridge over HTTP, as JSON.

/identity          API server, scheduler names, identity: JSON
/status            counts, usage, last round: JSON
/explain?pod=NS/NAME   why a pod is pending or on its node: JSON
/gangs?name=NAME&namespace=NS   gangs, both parameters are optional: JSON (queries/gang_list.py)
/devices?node=NAME   devices by class and pool; with the parameter, those of a node: JSON (devices/answers.py)
/queue?namespace=NS&queue=QUEUE&order=start   what waits and when it is expected to start, all parameters are optional:
                   JSON (queries/start_list.py)
/queues?name=NAME  queues, the parameter is optional: JSON (queries/queue_list.py)
/jobs?name=NAME&namespace=NS&user=USER&queue=QUEUE&state=STATE   jobs, all parameters are optional: JSON
                   (queries/job_list.py); /jobs/NS/NAME is one of them
/network?round=N&class=NAME&pod=NS/NAME&node=NAME&limit=N   the flow network of a round, all parameters are
                   optional: JSON (queries/round_network.py)
/fits              POST: whether the pods of a manifest would fit: JSON (queries/would_fit.py)
/rebalance         plans of moves: rebalance_endpoints.py
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from poseidon_py.app.devices.answers import UnknownNode
from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.queries.round_network import UnknownNetwork
from poseidon_py.app.queries.start_list import BY_START
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.app.serving.access_review import ReviewApi, review_client
from poseidon_py.app.serving.http_endpoints import Json, Pages, Probed, Probes, json_answer
from poseidon_py.app.serving.rebalance_endpoints import RebalanceEndpoints
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.client import KubeError
from poseidon_py.kube.credentials import Access
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.gangs.model import Unknown

_JOB_PARAMETERS = ("name", "namespace", "user", "queue", "state")
_NETWORK_PARAMETERS = ("round", "class", "pod", "node", "limit")


class Answering(Probed, Protocol):
    """What has a state to ask for. Where a method may raise EngineError, the answer is a 503."""

    @property
    def rebalancer(self) -> Rebalancer | None:
        """None while it starts."""

    def serves(self) -> Json:
        """The body of /identity."""

    async def status(self) -> Json:
        """The body of /status. Raises EngineError."""

    async def explain(self, namespace: str, name: str) -> Json | None:
        """The body of /explain; None: the pod does not exist. Raises EngineError, KubeError."""

    async def devices(self, node: str) -> Json:
        """The body of /devices. Raises UnknownNode."""

    async def gangs(self, name: str, namespace: str) -> Json:
        """The body of /gangs. Raises EngineError, UnknownGang."""

    async def queue(self, namespace: str, queue: str, order: str) -> Json:
        """The body of /queue; `order`: BY_START or empty. Raises EngineError, UnknownQueue."""

    async def queues(self, name: str) -> Json:
        """The body of /queues. Raises EngineError, UnknownQueue."""

    async def jobs(self, **selection: str) -> Json:
        """The body of /jobs; `selection`: of _JOB_PARAMETERS. Raises EngineError, UnknownJob."""

    async def network(self, **selection: str) -> Json:
        """The body of /network; `selection`: of _NETWORK_PARAMETERS. Raises EngineError, InvalidField,
        UnknownNetwork."""

    async def fits(self, body: Json) -> Json:
        """The answer to POST /fits. Raises EngineError, InvalidField, Unknown."""


class Health(Probes):
    """The endpoints of the bridge."""

    def __init__(
        self, asked: Answering, reviews: Callable[[Access], ReviewApi] = review_client, pages: Pages | None = None
    ) -> None:
        super().__init__(asked, reviews, pages)
        self._bridge = asked
        self._rebalance = RebalanceEndpoints(lambda: asked.rebalancer)

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/identity", self._get_identity),
            web.get("/status", self._get_status),
            web.get("/explain", self._get_explain),
            web.get("/gangs", self._get_gangs),
            web.get("/queue", self._get_queue),
            web.get("/queues", self._get_queues),
            web.get("/devices", self._get_devices),
            web.get("/jobs", self._get_jobs),
            web.get("/jobs/{namespace}/{name}", self._get_job),
            web.get("/network", self._get_network),
            web.post("/fits", self._post_fits),
            *self._rebalance.routes(),
        ]

    async def _get_identity(self, _: web.Request) -> web.Response:
        return json_answer(self._bridge.serves())

    async def _get_status(self, _: web.Request) -> web.Response:
        try:
            return json_answer(await self._bridge.status())
        except EngineError as error:
            return json_answer({"error": str(error)}, 503)

    async def _get_explain(self, request: web.Request) -> web.Response:
        namespace, slash, name = request.query.get("pod", "").partition("/")
        if not (namespace and slash and name):
            return json_answer({"error": "the parameter pod is missing or malformed: /explain?pod=NAMESPACE/NAME"}, 400)
        try:
            answer = await self._bridge.explain(namespace, name)
        except (EngineError, KubeError) as error:
            return json_answer({"error": str(error)}, 503)
        if answer is None:
            return json_answer({"error": f"pod {namespace}/{name} not found"}, 404)
        return json_answer(answer)

    async def _get_gangs(self, request: web.Request) -> web.Response:
        return await _listed(request, self._bridge.gangs, "name", "namespace")

    async def _get_queue(self, request: web.Request) -> web.Response:
        if (order := request.query.get("order", "")) not in ("", BY_START):
            return json_answer({"error": f"order is {order[:64]!r}; give {BY_START}, or leave it out"}, 400)
        return await _listed(request, self._bridge.queue, "namespace", "queue", "order")

    async def _get_queues(self, request: web.Request) -> web.Response:
        return await _listed(request, self._bridge.queues, "name")

    async def _get_devices(self, request: web.Request) -> web.Response:
        return await _listed(request, self._bridge.devices, "node")

    async def _get_jobs(self, request: web.Request) -> web.Response:
        async def listing(*values: str) -> Json:
            return await self._bridge.jobs(**dict(zip(_JOB_PARAMETERS, values, strict=True)))

        return await _listed(request, listing, *_JOB_PARAMETERS)

    async def _get_job(self, request: web.Request) -> web.Response:
        found = request.match_info
        return await _listed(request, lambda: self._bridge.jobs(name=found["name"], namespace=found["namespace"]))

    async def _get_network(self, request: web.Request) -> web.Response:
        async def found(*values: str) -> Json:
            return await self._bridge.network(**dict(zip(_NETWORK_PARAMETERS, values, strict=True)))

        try:
            return await _listed(request, found, *_NETWORK_PARAMETERS)
        except InvalidField as error:
            return json_answer({"error": str(error)}, 400)

    async def _post_fits(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":  # which web pages cannot send without asking
            return json_answer({"error": f"the content type is {request.content_type}; send application/json"}, 415)
        try:
            body = await request.json()
            if not isinstance(body, dict):
                raise InvalidField("the question", "is not a mapping; give one with the key objects")
            return json_answer(await self._bridge.fits(body))
        except InvalidField as error:
            return json_answer({"error": str(error)}, 400)
        except (ValueError, RecursionError, LookupError) as error:  # the last: an unknown charset
            return json_answer({"error": f"the question is not JSON: {error}"}, 400)
        except Unknown as error:
            return json_answer({"error": f"{error.what} is being looked up; try again in a few seconds"}, 503)
        except EngineError as error:
            refused = error.code == "INVALID_ARGUMENT"
            return json_answer({"error": error.details if refused else str(error)}, 400 if refused else 503)


async def _listed(request: web.Request, listing: Callable[..., Awaitable[Json]], *parameters: str) -> web.Response:
    """The answer of a listing, called with the values of its parameters, each of which is optional."""
    query = request.query
    if unknown := next((key for key in query if key not in parameters), ""):
        *others, last = parameters or ("none",)
        listed = f"{', '.join(others)} and {last}" if others else last
        there_are = f"there {'is' if len(parameters) == 1 else 'are'} {listed}"
        return json_answer({"error": f"{unknown[:64]!r} is not a parameter; {there_are}"}, 400)
    try:
        return json_answer(await listing(*(query.get(each, "") for each in parameters)))
    except (UnknownGang, UnknownQueue, UnknownJob, UnknownNetwork, UnknownNode) as error:
        return json_answer({"error": str(error)}, 404)
    except EngineError as error:
        return json_answer({"error": str(error)}, 503)
