"""The text of `poseidon status` and `poseidon explain`."""

from typing import Any

import pytest
from rich.console import Console

from poseidon_py.cli.rendering.render import PLACED_BY, print_explanation, print_status
from protos.gen import flow_pb2

NEVER = dict.fromkeys(("pending", "placed", "waiting", "solves", "vertices", "arcs"), 0) | {"seconds": 0.0}
USAGE = {"basis": "requests", "polling": False, "samples": {"taken": 0}}


def printed(**fields: Any) -> str:
    body: dict[str, Any] = {"identity": "a", "policy": "p", "nodes": 0, "pods": {}, "resources": {}, "rounds": 0}
    console = Console(width=200)
    with console.capture() as captured:
        print_status(body | {"last_round": NEVER, "usage": USAGE} | fields, console)
    return captured.get()


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        pytest.param({"leading": True, "leader": "a"}, "a: leader; policy p", id="leads"),
        pytest.param({"leading": False, "leader": "b"}, "a: standby, the leader is b; policy p", id="another-leads"),
        pytest.param({"leading": False, "leader": ""}, "a: standby, the leader is unknown; policy p", id="no-leader"),
        pytest.param({"leading": False, "leader": "a"}, "a: standby, the leader is unknown; policy p", id="lost"),
        pytest.param(
            {"server": "https://h:6443", "scheduler_names": ["x", "y"]},
            "schedules pods of x, y for the API server https://h:6443",
            id="serves",
        ),
        pytest.param({"not_ready": "nodes are not listed yet"}, "not ready: nodes are not listed yet", id="not-ready"),
        pytest.param({"not_ready": ""}, "no round yet", id="no-round"),
        pytest.param(
            {"rounds": 3, "last_round": NEVER | {"unsolved": {"infeasible": 2}}},
            "2 networks of the last round have no solution: infeasible\n",
            id="unsolved",
        ),
        pytest.param({"rounds": 3}, "round 3: placed 0 of 0", id="rounds"),
        pytest.param({"rounds": 3, "last_round": NEVER | {"solves": 1}}, " 0 arcs, 1 solve\n", id="one-solve"),
        pytest.param(
            {"rounds": 3, "last_round": NEVER | {"waiting": 4, "nominated": 2, "preempted": 3}},
            " 4 waiting, 2 of these nominated, 3 preempted; network",
            id="preempts",
        ),
        pytest.param(
            {"rounds": 3, "last_round": NEVER | {"waiting": 4, "nominated": 0, "preempted": 0}},
            " 4 waiting; network",
            id="preempts-no-pod",
        ),
        pytest.param(
            {"rounds": 3, "last_round": NEVER | {"waiting": 4, "preempted": 1, "migrated": 2}},
            " 4 waiting, 1 preempted, 2 migrated; network",
            id="migrates",
        ),
        pytest.param(
            {"rebalance": {"goal": "pack", "stopped": False, "moves": {"waiting": 2, "leaving": 0, "done": 1}}},
            "a plan of moves is carried out (goal pack): 2 waiting, 1 done\n",
            id="carries out a plan",
        ),
        pytest.param(
            {"rebalance": {"goal": "place", "stopped": True, "moves": {"leaving": 1, "dropped": 3}}},
            "a plan of moves was stopped (goal place): 1 leaving, 3 dropped\n",
            id="plan was stopped",
        ),
    ],
)
def test_role_and_progress(extra, says):
    text = printed(**extra)
    assert says in text
    assert ("not ready" in text) == bool(extra.get("not_ready"))


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        pytest.param({"reserves": False, "starts": None}, "", id="not"),
        pytest.param({"reserves": True, "starts": None}, "capacity is reserved for it\n", id="until-it-fits"),
        pytest.param(
            {"reserves": True, "starts": "2026-01-01T00:00:00Z"},
            "capacity is reserved for it, expected to suffice at 2026-01-01T00:00:00Z\n",
            id="expected",
        ),
    ],
)
def test_a_reservation_for_a_pod(extra, says):
    nothing: dict[str, Any] = dict.fromkeys(("node", "problem", "message"), "") | {
        "requests": {},
        "nearest": [],
        "story": [],
    }
    console = Console(width=200)
    with console.capture() as captured:
        print_explanation({"pod": "ns/p", "state": "bound", "priority": 0} | nothing | extra, console)
    assert captured.get().partition("\n")[2].strip(" ") == says


def test_a_problem_that_is_the_message_is_shown_once():
    body: dict[str, Any] = dict.fromkeys(("problem", "message"), "queue x does not exist") | {
        "requests": {},
        "nearest": [],
        "story": [],
    }
    console = Console(width=200)
    with console.capture() as captured:
        print_explanation({"pod": "ns/p", "state": "waiting", "node": "", "priority": 0} | body, console)
    assert captured.get().count("queue x does not exist") == 1


def test_status_says_why_pods_wait_and_what_is_left_to_do():
    reasons = [{"pods": 30 - n, "message": f"reason {n}.", "example": f"ns/p{n}"} for n in range(12)]
    out = printed(reasons=reasons, unfinished={"binds": 2, "rounds": 0, "reports": 7})
    assert "     30  reason 0. For example ns/p0.\n" in out
    assert "reason 9." in out
    assert "reason 10." not in out
    assert "     39  2 other reasons\n" in out  # 20 + 19
    assert "left to do: 2 binds, 7 reports\n" in out
    assert "left to do" not in printed(unfinished={"binds": 0})


def test_explain_says_which_step_has_placed_a_pod():
    body: dict[str, Any] = {"pod": "ns/p", "state": "bound", "node": "n", "priority": 0, "placed_by": "packing"}
    body |= {"problem": "", "message": "", "requests": {}, "nearest": [], "story": []}
    console = Console(width=200)
    with console.capture() as captured:
        print_explanation(body, console)
    assert "\n  placed by packing: packed anew with other pods of its round, of which more fit so\n" in captured.get()


def test_every_step_of_the_contract_has_words():
    names = [name.removeprefix("PLACED_BY_") for name, _ in flow_pb2.PlacedBy.items()]
    assert list(PLACED_BY) == [name.lower().replace("_", " ") for name in names]


def test_status_says_by_which_steps_pods_were_placed():
    last = NEVER | {"placed": 5, "pending": 5, "placed_by": {"flow": 3, "packing": 2}}
    assert "placed 5 of 5 (flow 3, packing 2) in" in printed(rounds=1, last_round=last)
