"""A plan of moves as JSON: its objects, its validation, and the reason for each move in words. Pure.

The plan names pods by namespace/name and UID, and nodes by name, so that it can be read, stored in a file, and carried
out later or by another replica. docs/rebalance.md documents the keys.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct, field

from poseidon_py.util.decoding import FAILURES

Goal = Literal["place", "pack", "spread", "policy"]
GOALS: tuple[Goal, ...] = ("place", "pack", "spread", "policy")
MAX_MOVES = 5000
"""Of one plan."""
_LISTED = 2
"""Names that a reason lists."""
_PLACE = re.compile(r"(?P<reason>.*?) - at \$\.?(?P<field>.*)", re.DOTALL)


class PlanError(ValueError):
    """A plan is malformed; the message names the field and what is wrong with it."""


class Move(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """The eviction of a pod whose successor is expected on another node."""

    pod: str
    """namespace/name"""
    uid: str
    source: str
    target: str
    saves: int = 0
    """What it saves of the policy's costs; only with the goals spread and policy."""
    why: str = ""
    """See `purposes`; ignored in a plan that is read."""


class Nomination(Struct, kw_only=True):
    """A pending pod that fits once the moves of its step have ended."""

    pod: str
    uid: str
    node: str


class Step(Struct, kw_only=True):
    """Moves that are carried out together."""

    step: int
    """A number of 1 or more, larger than that of the step before."""
    moves: list[Move]
    after: list[int] = field(default_factory=list)
    """Numbers of the steps whose moves must have ended before."""
    win: int = 0
    """Position in the plan's wins, from 1; 0: it wins nothing by itself."""
    nominated: list[Nomination] = field(default_factory=list)


class Win(Struct, kw_only=True):
    """What a step improves."""

    node: str = ""
    """Empty: several nodes."""
    count: int = 1
    """How many pods more fit, or 1 for a node that is empty then."""
    pods: list[str] = field(default_factory=list)
    """The pending pods that fit; only with the goal place."""


class Budget(Struct, kw_only=True):
    """A disruption budget that counts moves of the plan."""

    name: str
    moves: int
    allowed: int
    """Evictions that it permits now."""


class Plan(Struct, kw_only=True, rename={"shape": "for"}):
    """The answer of GET /rebalance, and the body of POST /rebalance."""

    goal: Goal
    steps: list[Step]
    wins: list[Win] = field(default_factory=list)
    id: str = ""
    """Chosen by the sender of a plan that is to be carried out, so that sending it again changes nothing."""
    limit: int = 0
    """The maximum number of moves that was asked for."""
    shape: str = ""
    """The requests of the pod that should fit more often; empty: whole nodes."""
    problem: str = ""
    before: int = 0
    after: int = 0
    bound: int | None = None
    """No plan within the limits reaches more, or fewer pending pods; None: unknown."""
    running: int = 0
    movable: int = 0
    guarded: int = 0
    budgets: list[Budget] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def moves(self) -> Iterator[Move]:
        return (move for step in self.steps for move in step.moves)


def decode_plan(data: bytes) -> Plan:
    """A plan that can be carried out. Raises PlanError."""
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except msgspec.ValidationError as error:
        text = str(error).replace("`", "")
        found = _PLACE.fullmatch(text)
        text, place = (found["reason"], found["field"]) if found else (text, "")
        raise PlanError(f"{place}: {text[:1].lower()}{text[1:]}" if place else text[:1].lower() + text[1:]) from error
    except FAILURES as error:
        raise PlanError(f"it is not the JSON of a plan: {error}") from error
    _check(plan)
    return plan


def encode_plan(plan: Plan) -> bytes:
    """Indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def _check(plan: Plan) -> None:
    """Raises PlanError."""
    numbers: set[int] = set()
    uids: set[str] = set()
    for at, step in enumerate(plan.steps):
        place = f"steps[{at}]"
        if step.step <= max(numbers, default=0):
            raise PlanError(f"{place}.step: {step.step} does not exceed the numbers before it; number steps from 1")
        if missing := set(step.after) - numbers:
            raise PlanError(f"{place}.after: there is no earlier step {min(missing)}; give numbers of earlier steps")
        if not 0 <= step.win <= len(plan.wins):
            raise PlanError(f"{place}.win: {step.win} is not from 0 to {len(plan.wins)}, the number of wins")
        numbers.add(step.step)
        if not step.moves:
            raise PlanError(f"{place}.moves: is empty; omit the step")
        for number, move in enumerate(step.moves):
            _check_move(move, f"{place}.moves[{number}]", uids)
    if len(uids) > MAX_MOVES:
        raise PlanError(f"steps: {len(uids)} moves are too many; give at most {MAX_MOVES}")


def _check_move(move: Move, place: str, uids: set[str]) -> None:
    namespace, slash, name = move.pod.partition("/")
    if not (namespace and slash and name):
        raise PlanError(f"{place}.pod: {move.pod!r} is not the name of a pod; give NAMESPACE/NAME")
    if not move.uid:
        raise PlanError(f"{place}.uid: is empty; give the UID of {move.pod}")
    if move.uid in uids:
        raise PlanError(f"{place}.uid: {move.pod} moves twice; give each pod once")
    if not move.source or not move.target or move.source == move.target:
        raise PlanError(f"{place}.to: {move.pod} moves from {move.source!r} to {move.target!r}; give two nodes")
    uids.add(move.uid)


def without(plan: Plan, ended: set[str]) -> Plan:
    """The plan without the moves of these UIDs: steps that have none left are gone, and nothing waits for them."""
    steps: list[Step] = []
    numbers: set[int] = set()
    for step in plan.steps:
        if moves := [move for move in step.moves if move.uid not in ended]:
            numbers.add(step.step)
            after = [number for number in step.after if number in numbers]
            steps.append(msgspec.structs.replace(step, moves=moves, after=after))
    return msgspec.structs.replace(plan, steps=steps)


# -- in words --------------------------------------------------------------------------------------------------------


def purposes(plan: Plan) -> Iterator[tuple[Step, Move, str]]:
    """The moves in order, and why each pod moves, for a table: "empties node-3"."""
    waits: dict[int, int] = {}
    for step in plan.steps:
        for number in step.after:
            waits.setdefault(number, step.step)
    for step in plan.steps:
        for move in step.moves:
            if step.win:
                why = _won(plan, plan.wins[step.win - 1])
            elif move.saves > 0:
                why = f"costs {move.saves:,} less"
            else:
                why = f"makes room for step {waits[step.step]}" if step.step in waits else "makes room"
            yield step, move, why


def reason(plan: Plan, step: Step, move: Move) -> str:
    """Why a pod moves, for its event: "the plan empties node-3"."""
    if step.win:
        won = _won(plan, plan.wins[step.win - 1])
        return f"the plan {won}" if _empties_nodes(plan) else won
    if move.saves > 0:
        return f"it costs {move.saves:,} less there"
    return "it makes room for other moves of the plan"


def _empties_nodes(plan: Plan) -> bool:
    return plan.goal == "pack" and not plan.shape


def _won(plan: Plan, win: Win) -> str:
    if _empties_nodes(plan):
        return f"empties {win.node}"
    where = f" on {win.node}" if win.node else ""
    if plan.shape:
        return f"{win.count} more of {plan.shape} {'fits' if win.count == 1 else 'fit'}{where}"
    if not win.pods:
        return f"{win.count} more {'pod fits' if win.count == 1 else 'pods fit'}{where} then"
    unlisted = len(win.pods) - _LISTED
    names = ", ".join(win.pods[:_LISTED]) + (f" and {unlisted} more" if unlisted > 0 else "")
    return f"{names} {'fits' if len(win.pods) == 1 else 'fit'}{where} then"
