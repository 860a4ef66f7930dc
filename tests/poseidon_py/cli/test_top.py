"""`poseidon top`: one screen of what the scheduler answers."""

import io
import json

import pytest
from click.testing import CliRunner
from rich.console import Console

from poseidon_py.cli import top as module
from poseidon_py.cli.main import cli
from poseidon_py.cli.reaching.routes import AskError
from poseidon_py.cli.top import Snapshot, view
from tests.builders import NOW_US

LAST = {"seconds": 0.0123, "placed": 3, "pending": 5, "nominated": 1, "preempted": 2, "migrated": 0, "gap": 4}
STATUS = {
    "identity": "host_1",
    "leading": True,
    "policy": "load-spreading",
    "nodes": 20,
    "pods": {"bound": 210, "assumed": 1, "waiting": 42},
    "rounds": 100,
    "bound": 300,
    "last_round": LAST,
    "resources": {
        "cpu": {"allocatable": 640_000, "used": 320_000},
        "memory": {"allocatable": 2**40, "used": 0},
        "pods": {"allocatable": 10, "used": 15},
    },
    "reasons": [
        {"pods": 40 - i, "message": f"0/20 nodes are available: {i} [red]Insufficient[/red] cpu.", "example": "ns/p"}
        for i in range(7)
    ],
}
QUEUE = {
    "name": "team-[a]",
    "running": 3,
    "pending": 9,
    "share": 0.25,
    "resources": [
        {"resource": "cpu", "used": "3", "guarantee": "8"},
        {"resource": "gpu", "used": "1", "guarantee": None},
        {"resource": "memory", "used": "0", "guarantee": "1Gi"},
    ],
}
IDLE = QUEUE | {"name": "idle", "running": 0, "pending": 0}
NOW = Snapshot(NOW_US / 1e6, STATUS, {"queues": [IDLE, QUEUE]})


def lines(now: Snapshot, before: Snapshot | None = None, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(view(now, before))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_one_screen():
    found = lines(NOW, Snapshot(NOW.at - 2, STATUS | {"rounds": 90, "bound": 280}, {"queues": []}), width=120)
    assert found[:6] == [
        "2023-11-14T22:13:20Z  host_1: leader; load-spreading, 20 nodes",
        "pods    210 bound, 1 being bound, 42 waiting, 1 of these nominated",
        "rounds  100, 5.0/s, 10.0 pods bound/s; the last took 12.3 ms, placed 3 of 5, 2 preempted; gap 4",
        "cpu   [##########          ]  50%  320 of 640",
        "pods  [####################] 150%  15 of 10",
        "",
    ]
    assert found[6:8] == [
        "queue     running  pending  share  used of guarantee",
        "team-[a]        3        9   0.25  cpu 3/8, gpu 1/unlimited",
    ]
    assert found[9] == "why pods wait"
    assert found[10] == "     40  0/20 nodes are available: 0 [red]Insufficient[/red] cpu. For example ns/p."
    assert found[-1] == "     69  2 other reasons"


def test_it_fits_80_columns():
    many = [QUEUE | {"name": f"a-rather-long-name-of-a-queue-{i}"} for i in range(20)]
    found = lines(Snapshot(NOW.at, STATUS, {"queues": many}))
    assert max(map(len, found)) <= 80
    assert any(line.startswith("8 more") for line in found)


def test_no_rate_without_two_answers_or_after_a_restart():
    assert "/s" not in lines(NOW)[2]
    assert "/s" not in lines(NOW, Snapshot(NOW.at - 2, STATUS | {"rounds": 200}, {"queues": []}))[2]
    assert lines(Snapshot(NOW.at, STATUS | {"rounds": 0}, {"queues": []}))[2] == "rounds  none yet"


def test_a_scheduler_that_answers_no_more():
    found = lines(Snapshot(NOW.at, STATUS, NOW.queues, "127.0.0.1:1 refuses connections"))
    assert found[1] == "no answer since then: 127.0.0.1:1 refuses connections"


@pytest.fixture
def answers(monkeypatch):
    """What is asked, in turn: statuses, or problems."""
    left: list = []

    def ask(_, path: str):
        found = left[0]
        if isinstance(found, AskError):
            left.pop(0)
            raise found
        if path == "/queues":
            left.pop(0)
        return STATUS | {"rounds": found} if path == "/status" else NOW.queues

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return left


def test_piped_it_is_said_once(answers):
    answers += [1, 2]
    result = CliRunner().invoke(cli, ["top", "--address", "127.0.0.1:1"])
    assert (result.exit_code, answers) == (0, [2])
    assert "rounds  1;" in result.output


def test_json_is_a_line_for_each_answer(answers):
    answers += [1, 2, 3]
    result = CliRunner().invoke(cli, ["top", "--address", "127.0.0.1:1", "--json", "--count", "3"])
    assert [json.loads(line)["status"]["rounds"] for line in result.output.splitlines()] == [1, 2, 3]


def test_without_a_scheduler_it_fails(answers):
    answers += [AskError("nobody is there")]
    result = CliRunner().invoke(cli, ["top", "--address", "127.0.0.1:1"])
    assert (result.exit_code, "nobody is there" in result.stderr) == (1, True)
