"""`matches`, and Kubernetes' `find` and `findAll`: patterns of RE2, which match in time linear in the text."""

import re
from functools import lru_cache
from typing import Any

import re2

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, tenth
from poseidon_py.devices.cel.values import ListValue

_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""Of RE2 in C++, but not of Go's."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The pattern ready to match. Raises EvaluationError."""
    if _SINGLE_BYTE.search(pattern):
        raise EvaluationError(r"error parsing regexp: invalid escape sequence: \C")
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error.args[0]
        raise EvaluationError(f"error parsing regexp: {reason}") from None


def search_cost(text: str, pattern: str, *_count: int) -> int:
    """As upstream counts the length of the pattern; repetitions such as `(a{9}){9}` count more than they are long."""
    return tenth(1 + len(text)) * max(-(-len(pattern) // 4), int(compiled(pattern).programsize) // 16)


def compilation_cost(pattern: str) -> int:
    """Of a pattern that is no literal, each time."""
    return 20 + int(compiled(pattern).programsize) // 4


def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, count: int = -1) -> ListValue:
    """The matches from the left; as in Go, none that is empty directly behind another."""
    found: list[str] = []
    end = -1
    for match in compiled(pattern).finditer(text):
        if 0 <= count <= len(found):
            break
        if match.start() == match.end() == end:
            continue
        found.append(match.group())
        end = match.end()
    return ListValue(found)


OVERLOADS = [
    overload("matches(string, string) -> bool", _matches, search_cost),
    overload("string::matches(string) -> bool", _matches, search_cost),
    overload("string::find(string) -> string", _find, search_cost),
    overload("string::findAll(string) -> list(string)", _find_all, search_cost),
    overload("string::findAll(string, int) -> list(string)", _find_all, search_cost),
]
