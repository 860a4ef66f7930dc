"""The JSON of plans of moves: what is refused, and the reasons for moves in words."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.app.move_plan import (
    MAX_MOVES,
    Move,
    Plan,
    PlanError,
    Step,
    Win,
    decode_plan,
    encode_plan,
    purposes,
    reason,
    without,
)


def move(name="a", **fields: Any) -> dict[str, Any]:
    return {"pod": f"default/{name}", "uid": f"uid-{name}", "from": "n", "to": "m"} | fields


def plan(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"goal": "pack", "steps": list(steps), "wins": [{"node": "n", "count": 1}]} | fields


def step(number=1, *moves: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"step": number, "moves": list(moves) or [move(f"p{number}")]} | fields


def read(body: Any) -> Plan:
    return decode_plan(json.dumps(body).encode())


def test_a_plan_that_is_written_is_read_again():
    nominated = [{"pod": "default/w", "uid": "uid-w", "node": "n"}]
    body = plan(step(1, win=1), step(4, after=[1], nominated=nominated), limit=7, bound=3, budgets=[])
    found = read(body)
    assert decode_plan(encode_plan(found)) == found
    assert [(each.step, each.after, [m.pod for m in each.moves]) for each in found.steps] == [
        (1, [], ["default/p1"]),
        (4, [1], ["default/p4"]),
    ]
    assert (found.limit, found.bound, found.steps[1].nominated[0].node) == (7, 3, "n")
    written = json.loads(encode_plan(found))
    assert (written["for"], written["steps"][0]["moves"][0]["from"]) == ("", "n")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param([], "expected object, got array", id="not an object"),
        pytest.param({"steps": []}, "object missing required field goal", id="no goal"),
        pytest.param(plan(goal="all"), "goal: invalid enum value 'all'", id="goal"),
        pytest.param(plan({"step": 1}), "steps[0]: object missing required field moves", id="no moves"),
        pytest.param(plan(step(1, move(uid=5))), "steps[0].moves[0].uid: expected str, got int", id="type"),
        pytest.param(plan({"step": 1, "moves": []}), "steps[0].moves: is empty; omit the step", id="empty step"),
        pytest.param(plan(step(0)), "steps[0].step: 0 does not exceed the numbers before it", id="number"),
        pytest.param(plan(step(2), step(2)), "steps[1].step: 2 does not exceed the numbers before it", id="order"),
        pytest.param(plan(step(1, after=[2]), step(2)), "steps[0].after: there is no earlier step 2", id="later step"),
        pytest.param(plan(step(1, after=[1])), "steps[0].after: there is no earlier step 1", id="itself"),
        pytest.param(plan(step(1, win=2)), "steps[0].win: 2 is not from 0 to 1", id="win"),
        pytest.param(plan(step(1, win=-1)), "steps[0].win: -1 is not from 0 to 1", id="negative win"),
        pytest.param(plan(step(1, move(pod="a"))), "steps[0].moves[0].pod: 'a' is not the name of a pod", id="name"),
        pytest.param(plan(step(1, move(uid=""))), "steps[0].moves[0].uid: is empty; give the UID", id="no UID"),
        pytest.param(plan(step(1, move(), move())), "steps[0].moves[1].uid: default/a moves twice", id="twice"),
        pytest.param(plan(step(1, move(to="n"))), "steps[0].moves[0].to: default/a moves from 'n' to 'n'", id="stays"),
        pytest.param(
            plan(*(step(n + 1) for n in range(MAX_MOVES + 1))), f"steps: {MAX_MOVES + 1} moves are too many", id="many"
        ),
    ],
)
def test_an_error_names_the_field(body, text):
    with pytest.raises(PlanError) as caught:
        read(body)
    assert str(caught.value).startswith(text)


def test_the_largest_plan_is_read():
    assert len(list(read(plan(*(step(n + 1) for n in range(MAX_MOVES)))).moves)) == MAX_MOVES


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b'{"x":' + b"[" * 100_000], ids=["empty", "cut off", "not UTF-8", "too deep"]
)
def test_what_is_no_json_is_refused(data):
    with pytest.raises(PlanError, match="it is not the JSON of a plan: "):
        decode_plan(data)


def test_without_moves_that_have_ended_nothing_waits_for_them():
    given = read(plan(step(1), step(2, move("a"), move("b"), after=[1]), step(5, after=[1, 2]), step(7, after=[5])))
    found = without(given, {"uid-p1", "uid-a", "uid-p5"})
    assert [(each.step, each.after, [m.uid for m in each.moves]) for each in found.steps] == [
        (2, [], ["uid-b"]),
        (7, [], ["uid-p7"]),
    ]


def test_nothing_is_left_of_a_plan_that_has_ended():
    given = read(plan(step(1), step(2, after=[1])))
    assert without(given, {"uid-p1", "uid-p2"}).steps == []
    assert without(given, set()) == given


PACK = plan(step(1), step(2, after=[1], win=1))
SEVERAL = plan(step(1), step(2, after=[1]), step(3, after=[1]))
PLACE = plan(step(1), step(2, win=1), goal="place", wins=[{"node": "m", "count": 1, "pods": ["default/w"]}])
SHAPE = plan(step(1, win=1), wins=[{"node": "n", "count": 2}]) | {"for": "cpu=16"}
COSTS = plan(step(1, move(saves=1234)), step(2, move("b", saves=-5)), goal="policy", wins=[])


@pytest.mark.parametrize(
    ("body", "at", "purpose", "why"),
    [
        pytest.param(PACK, 1, "empties n", "the plan empties n", id="empty"),
        pytest.param(PACK, 0, "makes room for step 2", "it makes room for other moves of the plan", id="room"),
        pytest.param(SEVERAL, 0, "makes room for step 2", "it makes room for other moves of the plan", id="first"),
        pytest.param(PLACE, 0, "makes room", "it makes room for other moves of the plan", id="no step waits for it"),
        pytest.param(PLACE, 1, "default/w fits on m then", "default/w fits on m then", id="place"),
        pytest.param(SHAPE, 0, "2 more of cpu=16 fit on n", "2 more of cpu=16 fit on n", id="shape"),
        pytest.param(COSTS, 0, "costs 1,234 less", "it costs 1,234 less there", id="costs"),
        pytest.param(COSTS, 1, "makes room", "it makes room for other moves of the plan", id="costs more"),
    ],
)
def test_the_reason_of_a_move(body, at, purpose, why):
    given = read(body)
    chosen = given.steps[at]
    assert [why for step, _, why in purposes(given) if step is chosen] == [purpose]
    assert reason(given, chosen, chosen.moves[0]) == why


@pytest.mark.parametrize(
    ("win", "text"),
    [
        (Win(pods=["ns/a", "ns/b", "ns/c", "ns/d"], count=4), "ns/a, ns/b and 2 more fit then"),
        (Win(pods=["ns/a", "ns/b"], count=2, node="m"), "ns/a, ns/b fit on m then"),
        (Win(count=1, node="m"), "1 more pod fits on m then"),
        (Win(count=3), "3 more pods fit then"),
    ],
)
def test_several_pods_that_fit(win, text):
    chosen = Step(step=1, win=1, moves=[Move(pod="ns/x", uid="u", source="n", target="m")])
    assert [why for _, _, why in purposes(Plan(goal="place", steps=[chosen], wins=[win]))] == [text]


def test_unknown_keys_of_a_later_version_are_ignored():
    assert msgspec.structs.asdict(read(plan(step(1), later=True)))["goal"] == "pack"


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    numbers = sorted(draw(st.sets(st.integers(1, 30), max_size=8)))
    steps, uid = [], 0
    for at, number in enumerate(numbers):
        moves = []
        for _ in range(draw(st.integers(1, 3))):
            uid += 1
            moves.append(Move(pod=f"ns/p{uid}", uid=f"u{uid}", source="n", target=draw(st.sampled_from("mk"))))
        after = sorted(draw(st.sets(st.sampled_from(numbers[:at])))) if at else []
        steps.append(Step(step=number, moves=moves, after=after, win=draw(st.integers(0, 1))))
    return Plan(goal="pack", steps=steps, wins=[Win(node="n")])


@given(plans(), st.sets(st.integers(1, 24)))
def test_what_is_left_of_any_plan_can_be_carried_out(plan, numbers):
    """A plan that is sent again in part keeps its order: a step waits for exactly those that it waited for and that
    have moves left."""
    ended = {f"u{number}" for number in numbers}
    left = decode_plan(encode_plan(without(plan, ended)))
    assert {move.uid for move in left.moves} == {move.uid for move in plan.moves} - ended
    remaining = {each.step for each in plan.steps if not {move.uid for move in each.moves} <= ended}
    waits = {each.step: set(each.after) & remaining for each in plan.steps if each.step in remaining}
    assert {each.step: set(each.after) for each in left.steps} == waits
