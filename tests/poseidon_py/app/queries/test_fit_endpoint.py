"""POST /fits over HTTP, and the command that asks it."""

import asyncio
import json

import aiohttp
import pytest
from click.testing import CliRunner

from poseidon_py.app.queries.would_fit import question_of
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.cli.fitting.fits import verdict
from poseidon_py.cli.main import cli
from poseidon_py.feed.client import EngineError
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.gangs.model import Unknown
from tests.poseidon_py.app.serving.answers import Answers

FIT = {
    "fits": False,
    "pods": 3,
    "minimum": 0,
    "gang": "",
    "places": [{"workload": "job/[j]", "node": "n[1]", "count": 2, "after_evictions": True}],
    "waiting": [{"workload": "job/[j]", "count": 1, "message": "0/1 nodes are available: 1 Insufficient cpu."}],
    "at_best": None,
    "victims": ["ns/v"],
    "notes": ["Service ns/s is ignored"],
    "seconds": 0.1,
}


class Fits(Answers):
    async def fits(self, body):
        question = question_of(body)
        match question.namespace:
            case "invalid":
                raise InvalidField("Job ns/j: spec.template", "is missing; give it")
            case "unknown":
                raise Unknown("podgroups.scheduling.x-k8s.io")
            case "refused":
                raise EngineError("WouldFit", "INVALID_ARGUMENT", "members has 100001 tasks")
            case "broken":
                raise EngineError("WouldFit", "UNAVAILABLE", "refused")
        return FIT | {"asked": body}


@pytest.fixture
async def address():
    health = Health(Fits())
    await health.start()
    yield f"127.0.0.1:{health.port}"
    await health.stop()


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ('{"objects": []}', 200, ""),
        ('{"objects": [], "namespace": "invalid"}', 400, "Job ns/j: spec.template: is missing; give it"),
        ('{"objects": [], "namespace": "unknown"}', 503, "podgroups.scheduling.x-k8s.io is being looked up"),
        ('{"objects": [], "namespace": "refused"}', 400, "members has 100001 tasks"),
        ('{"objects": [], "namespace": "broken"}', 503, "WouldFit: UNAVAILABLE: refused"),
        ("{}", 400, "the question: Object missing required field `objects`"),
        ('{"objects": [], "minimm": 2}', 400, "the question: Object contains unknown field `minimm`"),
        ("[]", 400, "the question: is not a mapping"),
        ("{", 400, "the question is not JSON"),
    ],
)
async def test_answers(address, body, status, error):
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{address}/fits", data=body, headers=headers) as answer,
    ):
        found = json.loads(await answer.text())
        assert (answer.status, found.get("error", "")[: len(error)]) == (status, error)


async def test_web_pages_cannot_ask_without_permission(address):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://{address}/fits", data="{}", headers={"Content-Type": "text/plain"}) as answer,
    ):
        assert answer.status == 415


async def test_the_command_prints_nodes_and_reasons(address, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    result = await asyncio.to_thread(
        CliRunner().invoke, cli, ["fits", "-", "--address", address, "--minimum", "2", "-n", "x"], "kind: Pod\n---\n"
    )
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "does not fit: 2 of 3 pods would be placed"
    assert any(each in lines[4] for each in ("job/[j]",))
    assert "n[1]" in lines[4]
    assert "after evictions" in lines[4]
    assert lines[-3:] == [
        "job/[j]: 1 pod would wait: 0/1 nodes are available: 1 Insufficient cpu.",
        "evicts ns/v",
        "note: Service ns/s is ignored",
    ]


async def test_one_bad_document_does_not_spoil_the_file(address):
    """As with kubectl; only if nothing is left, there is no answer."""
    good, bad = "kind: Pod\n", "kind: [Pod\n"
    arguments = ["fits", "-", "--address", address, "--json"]
    text = f"{good}---\n{bad}--- # another\n{good}"
    result = await asyncio.to_thread(CliRunner().invoke, cli, arguments, text)
    found = json.loads(result.output)
    assert found["asked"]["objects"] == [{"kind": "Pod"}] * 2
    assert found["notes"][0].startswith("left out: document 2 of <stdin> is not YAML: while parsing")
    result = await asyncio.to_thread(CliRunner().invoke, cli, arguments, bad)
    assert (result.exit_code, result.output.startswith("error: document 1 of <stdin> is not YAML: ")) == (2, True)


async def test_the_flags_are_asked(address):
    flags = ["--json", "--topology", "zone", "--priority", "5", "--with-preemption"]
    result = await asyncio.to_thread(CliRunner().invoke, cli, ["fits", "-", "--address", address, *flags], "kind: Pod")
    assert json.loads(result.output)["asked"] == {
        "objects": [{"kind": "Pod"}],
        "namespace": "default",
        "minimum": None,
        "topology": "zone",
        "priority": 5,
        "preempt": True,
    }


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"fits": True}, "fits: 2 of 3 pods would be placed"),
        (
            {"fits": True, "minimum": 2, "gang": "Job"},
            "fits: of 3 pods 2 are needed together (a gang by Job), 2 would be placed",
        ),
        ({"minimum": 3, "at_best": 2}, "does not fit: of 3 pods 3 are needed together, at most 2 fit"),
        ({"minimum": 3}, "does not fit: of 3 pods 3 are needed together"),
    ],
)
def test_verdicts(fields, line):
    assert verdict(FIT | fields) == line
