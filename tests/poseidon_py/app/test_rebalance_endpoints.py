"""/rebalance over HTTP: which requests are accepted from where, and the errors."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest

from poseidon_py.app.move_plan import encode_plan
from poseidon_py.app.serving.http_endpoints import _MAX_BODY_BYTES
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.feed.client import EngineError
from protos.addresses import is_loopback
from protos.gen import flow_pb2
from tests.poseidon_py.app.serving.answers import Answers
from tests.poseidon_py.moving_rig import MovingRig, chain

JSON = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]


class Served:
    """The health port of a bridge."""

    def __init__(self, rig: MovingRig, client: aiohttp.ClientSession, url: str) -> None:
        self.rig = rig
        self._client = client
        self._url = url

    async def ask(self, method: str, path: str, **request: Any) -> Answer:
        async with self._client.request(method, self._url + path, **request) as answer:
            return Answer(answer.status, json.loads(await answer.read()))

    async def post(self, data: bytes | None = None, headers: dict[str, str] = JSON) -> Answer:
        return await self.ask(
            "POST", "/rebalance", data=encode_plan(chain()) if data is None else data, headers=headers
        )


@asynccontextmanager
async def served(*, starts: bool = False, **fields: Any) -> AsyncIterator[Served]:
    async with MovingRig(**fields) as rig, aiohttp.ClientSession() as client:
        health = Health(Answers(None if starts else rig.rebalancer))
        await health.start()
        try:
            yield Served(rig, client, f"http://127.0.0.1:{health.port}")
        finally:
            await health.stop()


async def test_a_plan_as_json():
    async with served() as port:
        port.rig.engine.plan = flow_pb2.MovePlan(before=2, after=1, problem="-")
        status, body = await port.ask("GET", "/rebalance?goal=pack&moves=9&for=cpu%3D1&moves-per-win=2")
        assert status == 200
        assert {key: body[key] for key in ("goal", "limit", "for", "before", "after", "problem", "steps")} == {
            "goal": "pack",
            "limit": 9,
            "for": "cpu=1",
            "before": 2,
            "after": 1,
            "problem": "-",
            "steps": [],
        }
        (request,) = port.rig.engine.plan_requests
        assert (dict(request.shape), request.moves_per_win) == ({"cpu": 1000, "pods": 1}, 2)


async def test_what_is_asked_for_is_checked():
    async with served() as port:
        assert await port.ask("GET", "/rebalance?moves=0") == (
            400,
            {"error": "the parameter moves: '0' is refused; give a whole number from 1 to 5000"},
        )
        assert port.rig.engine.plan_requests == []


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (EngineError("PlanMoves", "DEADLINE_EXCEEDED", "too slow"), 503, "PlanMoves: DEADLINE_EXCEEDED: too slow"),
        (EngineError("PlanMoves", "UNIMPLEMENTED", ""), 501, "the flow service has no plans of moves: it is older;"),
        (EngineError("PlanMoves", "INVALID_ARGUMENT", "no"), 400, "no"),
    ],
    ids=str,
)
async def test_errors_of_the_flow_service(error, status, text):
    async with served() as port:
        port.rig.engine.fail["plan_moves"] = [error]
        answer = await port.ask("GET", "/rebalance")
        assert answer.status == status
        assert text in answer.body["error"]


async def test_a_plan_is_carried_out_followed_and_stopped():
    async with served() as port:
        status, body = await port.post()
        assert (status, body["active"], len(body["moves"])) == (200, True, 3)
        await port.rig.settle()
        await port.rig.follow()
        status, body = await port.ask("GET", "/rebalance/progress")
        assert status == 200
        assert body["moves"][0] == {
            "step": 1,
            "pod": "default/a",
            "uid": "uid-a",
            "from": "n",
            "to": "m",
            "state": "leaving",
            "reason": "",
        }
        status, body = await port.ask("DELETE", "/rebalance", headers=JSON)
        assert (status, body["stopped"], [each["state"] for each in body["moves"]]) == (
            200,
            True,
            ["leaving", "leaving", "dropped"],
        )


async def test_a_malformed_plan_is_refused():
    async with served() as port:
        assert await port.post(b'{"goal": "pack", "steps": [{"step": "x"}]}') == (
            400,
            {"error": "the plan is malformed: steps[0].step: expected int, got str"},
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/octet-stream"},
    ],
    ids=str,
)
async def test_content_types_that_web_pages_send_without_asking_are_refused(headers):
    async with served() as port:
        for answer in (await port.post(headers=headers), await port.ask("DELETE", "/rebalance", headers=headers)):
            assert answer.status == 415
            assert "send Content-Type: application/json" in answer.body["error"]
        assert port.rig.engine.calls["carry_out"] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "http://127.0.0.1:10271"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Forwarded", "for=10.0.0.1"),
        ("Via", "1.1 mesh"),
    ],
)
async def test_web_pages_and_proxies_are_refused(name, value):
    async with served() as port:
        headers = JSON | {name: value}
        for answer in (await port.post(headers=headers), await port.ask("DELETE", "/rebalance", headers=headers)):
            assert answer.status == 403
        assert port.rig.engine.calls["carry_out"] == 0


async def test_other_machines_may_neither_plan_nor_carry_out(monkeypatch):
    monkeypatch.setattr("poseidon_py.app.serving.origin.is_loopback", lambda address: False)
    async with served() as port:
        answers = [await port.post(), await port.ask("DELETE", "/rebalance", headers=JSON)]
        answers += [await port.ask("GET", path) for path in ("/rebalance", "/rebalance/progress")]
        for answer in answers:
            assert answer.status == 403
            assert "use kubectl port-forward or kubectl exec" in answer.body["error"]
        assert port.rig.engine.calls["carry_out"] == 0


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("localhost", False),
    ],
)
def test_loopback_addresses(address, expected):
    assert is_loopback(address) == expected


async def test_a_standby_refuses_and_names_the_reason():
    async with served(leads=False) as port:
        for answer in (await port.post(), await port.ask("DELETE", "/rebalance", headers=JSON)):
            assert answer.status == 503
            assert answer.body["error"].startswith("this replica is not the leader")


async def test_another_plan_is_refused_while_one_is_carried_out():
    async with served() as port:
        assert (await port.post()).status == 200
        plan = chain()
        plan.id = "y"
        assert (await port.post(encode_plan(plan))).status == 409


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_is_refused(chunked):
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(_MAX_BODY_BYTES // 65536 + 1):
            yield b" " * 65536

    async with served() as port:
        data: Any = chunks() if chunked else io.BytesIO(b" " * (_MAX_BODY_BYTES + 1))
        answer = await port.post(data)
        assert answer.status == 413
        assert "carry out fewer moves at a time" in answer.body["error"]


async def test_a_bridge_that_starts_says_so():
    async with served(starts=True) as port:
        for method, path in (("GET", "/rebalance"), ("POST", "/rebalance"), ("GET", "/rebalance/progress")):
            answer = await port.ask(method, path, headers=JSON)
            assert answer == (503, {"error": "the scheduler is starting; try again in a few seconds"})
