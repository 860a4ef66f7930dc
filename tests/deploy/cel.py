"""ValidatingAdmissionPolicies, carried out by the CEL of Google's C++ library: what an API server says of an object.

Its results are values or errors. An error has a text as its value, so that it would count as true where only the value
is looked at.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

Json = dict[str, Any]

_ROOTS = ("object", "oldObject", "request", "variables")


class EvaluationError(Exception):
    """An expression has no value."""


@cache
def _environment() -> Any:
    return cel.NewEnv(variables=dict.fromkeys(_ROOTS, cel.Type.DYN), extensions=[ext_strings.ExtStrings()])


@cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


def value_of(expression: str, roots: Json) -> Any:
    """Raises EvaluationError."""
    result = _compiled(expression).eval(data={name: roots.get(name) for name in _ROOTS})
    if str(result.type()) in ("ERROR", "UNKNOWN"):
        raise EvaluationError(f"{result.value()} in {expression[:300]}")
    return _plain(result.value())


def _plain(value: Any) -> Any:
    """Lists and maps of the library hold its own values, and are gone with the arena."""
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _plain(value.value()) if hasattr(value, "value") else value


def verdict(policy: Json, new: Json, old: Json | None = None, schedulers: tuple[str, ...] = ("poseidon",)) -> str:
    """What the policy says to a request; empty: it permits it."""
    roots: Json = {
        "object": new,
        "oldObject": old,
        "request": {"operation": "CREATE" if old is None else "UPDATE"},
        "variables": {"schedulers": list(schedulers)},
    }
    if not all(value_of(each["expression"], roots) is True for each in policy["matchConditions"]):
        return ""
    for each in policy["variables"]:
        roots["variables"][each["name"]] = value_of(each["expression"], roots)
    for each in policy["validations"]:
        if value_of(each["expression"], roots) is not True:
            text = value_of(each["messageExpression"], roots)
            assert isinstance(text, str)
            assert 0 < len(text.encode()) <= 5120, "the server would give the plain message instead"
            assert "\n" not in text, "likewise"
            return text
    return ""
