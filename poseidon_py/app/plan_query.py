"""What a plan of moves is asked for, as the flags of `poseidon rebalance` and the parameters of GET /rebalance have it.

Both are texts of the same names, and are checked here. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from poseidon_py.app.move_plan import GOALS, MAX_MOVES, Goal
from poseidon_py.describe import requests
from poseidon_py.kube.objects import InvalidField

DEFAULTS = {"goal": "place", "moves": "50", "for": "", "moves-per-win": "0"}
_ONLY_TO_PACK = ("for", "moves-per-win")


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """See `plan_query`."""

    goal: Goal
    moves: int
    """At most so many."""
    shape: str
    """Requests of the pod that should fit more often, as the user wrote them; empty: whole nodes."""
    amounts: dict[str, int]
    """The same in the engine's units."""
    moves_per_win: int
    """At most so many for each empty node, or each time that the shape fits; 0: any number."""


def plan_query(given: Mapping[str, str]) -> PlanQuery:
    """`given`: any of the keys of DEFAULTS. Raises InvalidField, whose field is the key."""
    for key in given:
        if key not in DEFAULTS:
            raise InvalidField(key[:64], f"is not a parameter; there are {', '.join(DEFAULTS)}")
    values = DEFAULTS | dict(given)
    goal = values["goal"]
    if goal not in GOALS:
        raise InvalidField("goal", f"{goal[:64]!r} is not a goal; give {', '.join(GOALS[:-1])} or {GOALS[-1]}")
    for key in _ONLY_TO_PACK:
        if goal != "pack" and values[key] != DEFAULTS[key]:
            raise InvalidField(key, "is only for the goal pack; set the goal to pack, or omit it")
    return PlanQuery(
        goal=goal,
        moves=_number(values, "moves", 1),
        shape=values["for"],
        amounts=requests.stated(values["for"], "for") if values["for"] else {},
        moves_per_win=_number(values, "moves-per-win", 0),
    )


def _number(values: Mapping[str, str], key: str, least: int) -> int:
    text = values[key]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not least <= number <= MAX_MOVES:
        raise InvalidField(key, f"{text[:64]!r} is refused; give a whole number from {least} to {MAX_MOVES}")
    return number
