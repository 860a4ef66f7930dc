"""/gangs over HTTP."""

import json

import aiohttp
import pytest

from poseidon_py.app.http_endpoints import Health
from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.feed.client import EngineError
from poseidon_py.util.metrics import Metrics


async def gangs(name, namespace):
    if name == "gone":
        raise UnknownGang("the scheduler knows no gang gone; did you mean ns/one?")
    if name == "broken":
        raise EngineError("GetGangs", "UNAVAILABLE", "refused")
    return {"gangs": [], "asked": [name, namespace]}


def none(*_):
    raise AssertionError("only /gangs is asked for")


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        ("", 200, {"gangs": [], "asked": ["", ""]}),
        ("?name=ns/g&namespace=ns", 200, {"gangs": [], "asked": ["ns/g", "ns"]}),
        ("?name=gone", 404, {"error": "the scheduler knows no gang gone; did you mean ns/one?"}),
        ("?name=broken", 503, {"error": "GetGangs: UNAVAILABLE: refused"}),
        ("?nam=x", 400, {"error": "'nam' is not a parameter; there are name and namespace"}),
    ],
)
async def test_answers(query, status, body):
    health = Health(
        Metrics(),
        alive=none,
        ready=none,
        refresh=none,
        identity=none,
        status=none,
        explain=none,
        gangs=gangs,
        fits=none,
        rebalancer=lambda: None,
    )
    await health.start("127.0.0.1", 0)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{health.port}/gangs{query}") as answer,
        ):
            assert (answer.status, json.loads(await answer.text())) == (status, body)
    finally:
        await health.stop()
