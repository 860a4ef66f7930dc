"""/gangs, /queue, /queues, /jobs and /network over HTTP."""

import json

import aiohttp
import pytest

from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.queries.round_network import UnknownNetwork, network_request
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.feed.client import EngineError
from tests.poseidon_py.app.serving.answers import Answers


class Listings(Answers):
    async def gangs(self, name, namespace):
        if name == "gone":
            raise UnknownGang("gang gone not found; did you mean ns/one?")
        if name == "broken":
            raise EngineError("GetGangs", "UNAVAILABLE", "refused")
        return {"gangs": [], "asked": [name, namespace]}

    async def queue(self, namespace, queue, order):
        if queue == "gone":
            raise UnknownQueue("queue gone not found; did you mean one?")
        if queue == "broken":
            raise EngineError("GetStarts", "UNAVAILABLE", "refused")
        return {"waiting": [], "asked": [namespace, queue, order]}

    async def queues(self, name):
        if name == "gone":
            raise UnknownQueue("queue gone not found; did you mean one?")
        if name == "broken":
            raise EngineError("GetQueues", "UNAVAILABLE", "refused")
        return {"queues": [], "asked": name}

    async def jobs(self, **asked):
        if asked["name"] == "gone":
            raise UnknownJob("job gone not found; did you mean one?")
        if asked["name"] == "broken":
            raise EngineError("Explain", "UNAVAILABLE", "refused")
        return {"jobs": [], "asked": {key: value for key, value in asked.items() if value}}

    async def network(self, **asked):
        request = network_request(**asked)
        if request.round == 7:
            raise UnknownNetwork("the networks of round 7 are not kept")
        return {"networks": [], "asked": [request.round, request.class_name, request.task, request.node, request.limit]}


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("gangs", 200, {"gangs": [], "asked": ["", ""]}),
        ("gangs?name=ns/g&namespace=ns", 200, {"gangs": [], "asked": ["ns/g", "ns"]}),
        ("gangs?name=gone", 404, {"error": "gang gone not found; did you mean ns/one?"}),
        ("gangs?name=broken", 503, {"error": "GetGangs: UNAVAILABLE: refused"}),
        ("gangs?nam=x", 400, {"error": "'nam' is not a parameter; there are name and namespace"}),
        ("queue", 200, {"waiting": [], "asked": ["", "", ""]}),
        ("queue?namespace=ns&queue=q&order=start", 200, {"waiting": [], "asked": ["ns", "q", "start"]}),
        ("queue?queue=broken", 503, {"error": "GetStarts: UNAVAILABLE: refused"}),
        ("queue?queue=gone", 404, {"error": "queue gone not found; did you mean one?"}),
        ("queue?order=name", 400, {"error": "order is 'name'; give start, or leave it out"}),
        ("queue?name=x", 400, {"error": "'name' is not a parameter; there are namespace, queue and order"}),
        ("queues", 200, {"queues": [], "asked": ""}),
        ("queues?name=a%20b", 200, {"queues": [], "asked": "a b"}),
        ("queues?name=gone", 404, {"error": "queue gone not found; did you mean one?"}),
        ("queues?name=broken", 503, {"error": "GetQueues: UNAVAILABLE: refused"}),
        ("jobs", 200, {"jobs": [], "asked": {}}),
        ("jobs?user=anna&state=Running", 200, {"jobs": [], "asked": {"user": "anna", "state": "Running"}}),
        ("jobs/ns/a%20b", 200, {"jobs": [], "asked": {"name": "a b", "namespace": "ns"}}),
        ("jobs/ns/gone", 404, {"error": "job gone not found; did you mean one?"}),
        ("jobs?name=broken", 503, {"error": "Explain: UNAVAILABLE: refused"}),
        ("jobs/ns/j?name=x", 400, {"error": "'name' is not a parameter; there are none"}),
        ("network", 200, {"networks": [], "asked": [0, "", "", "", 0]}),
        ("network?round=3&class=a%20b&node=n&limit=9", 200, {"networks": [], "asked": [3, "a b", "", "n", 9]}),
        ("network?pod=ns/p", 200, {"networks": [], "asked": [0, "", "ns/p", "", 0]}),
        ("network?round=7", 404, {"error": "the networks of round 7 are not kept"}),
        ("network?round=x", 400, {"error": "round: is 'x'; give a number from 1 to 2147483647"}),
        ("network?limit=0", 400, {"error": "limit: is '0'; give a number from 1 to 2147483647"}),
        (
            "network?job=x",
            400,
            {"error": "'job' is not a parameter; there are round, class, pod, node and limit"},
        ),
        ("queues?namespace=x", 400, {"error": "'namespace' is not a parameter; there is name"}),
    ],
)
async def test_answers(path, status, body):
    health = Health(Listings())
    await health.start()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{health.port}/{path}") as answer,
        ):
            assert (answer.status, json.loads(await answer.text())) == (status, body)
    finally:
        await health.stop()
