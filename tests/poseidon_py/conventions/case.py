"""Two worlds that differ in one field or key."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.poseidon_py.conventions.outcomes import Json, World

ABSENT = object()
"""The value of a field that is missing."""


class Case(NamedTuple):
    one: World
    other: World


def field_case(world: Callable[[Json], World], base: Json, path: str, one: object, other: object) -> Case:
    """`world`: of an object with these fields. `path`: as in the table."""
    return Case(world(changed(base, path, one)), world(changed(base, path, other)))


def changed(base: Json, path: str, value: object) -> Json:
    """A copy of an object with another value at a path."""
    body = copy.deepcopy(base)
    steps = path.split(".")
    at: Any = body
    for step in steps[:-1]:
        name = step.removesuffix("[]").removesuffix("{}")
        if step.endswith("[]"):
            at = at.setdefault(name, [{}])[0]
        elif step.endswith("{}"):
            found = at.setdefault(name, {"name": {}})
            at = found[next(iter(found))]
        else:
            at = at.setdefault(name, {})
    last = steps[-1].removesuffix("[]").removesuffix("{}")
    if steps[-1].endswith("{}[]"):
        value = {"name": value}
    if value is ABSENT:
        at.pop(last, None)
    else:
        at[last] = value
    return body


def key_case(world: Callable[[Json], World], key: str, one: object, other: object, **base: str) -> Case:
    """`world`: of pods, or an object, with these labels or annotations. `base`: further ones, `/` written as `__`."""
    return Case(world(_with(base, key, one)), world(_with(base, key, other)))


def _with(base: Json, key: str, value: object) -> Json:
    return dict(base) if value is ABSENT else {**base, key: value}
