"""The fields of a configuration file: each is taken once, and whatever is wrong is a problem with its path."""

import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any, TypeVar

from poseidon_py.util.durations import go_seconds_of
from poseidon_py.util.quoting import quoted

T = TypeVar("T")


class InvalidValueError(ValueError):
    """A value is invalid; the message says what was found, and the remedy."""


class Fields:
    """The fields of one mapping. Problems are collected, so that one run reports all of them."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self.path = path
        self._problems = problems
        self._used: set[str] = set()
        self._values: dict[str, Any] = {}
        if isinstance(value, dict):
            self._values = {str(key): each for key, each in value.items()}
        else:
            self.problem("", f"is {quoted(value)}; give a mapping")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def problem(self, key: str, reason: str) -> None:
        self._problems.append(f"{self.place(key)}: {reason}" if self.place(key) else f"the file {reason}")

    def place(self, key: str) -> str:
        """The path of a field."""
        return ".".join(part for part in (self.path, key) if part)

    def take(self, key: str, convert: Callable[[Any], T], default: T) -> T:
        """The field, converted; the default if it is missing or `convert` raises InvalidValueError."""
        self._used.add(key)
        if key not in self._values:
            return default
        try:
            return convert(self._values[key])
        except InvalidValueError as error:
            self.problem(key, str(error))
            return default

    def require(self, key: str, convert: Callable[[Any], T], default: T, remedy: str) -> T:
        """A field that must be there."""
        if key not in self._values:
            self._used.add(key)
            self.problem(key, f"is missing; {remedy}")
            return default
        return self.take(key, convert, default)

    def each(self, key: str) -> list[tuple[Any, str]]:
        """The items of a list with their paths; empty if it is missing."""
        items: list[Any] = self.take(key, a_list, [])
        return [(item, f"{self.place(key)}[{number}]") for number, item in enumerate(items)]

    def nested(self, key: str) -> "Fields | None":
        """The fields of a mapping; None if it is missing."""
        self._used.add(key)
        return Fields(self._values[key], self.place(key), self._problems) if key in self._values else None

    def names(self) -> tuple[str, ...]:
        """All keys of the mapping."""
        return tuple(self._values)

    def end(self) -> None:
        """Report the keys that were not taken."""
        for key in self._values:
            if key not in self._used:
                close = get_close_matches(key, sorted(self._used), n=1, cutoff=0.7)
                hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(sorted(self._used))}"
                self.problem(key, f"is not a known key; {hint}")


def a_list(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InvalidValueError(f"is {quoted(value)}; give a list of at least one item")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValueError(f"is {quoted(value)}; give a text")
    return value


def matching(pattern: str, description: str) -> Callable[[Any], str]:
    """Texts that match a pattern as a whole."""
    compiled = re.compile(pattern)

    def convert(value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise InvalidValueError(f"is {quoted(value)}; give {description}")
        return value

    return convert


def texts(known: Collection[str] = ()) -> Callable[[Any], tuple[str, ...]]:
    """One text or a list of texts; if `known` is given, of these or `*`."""

    def convert(value: Any) -> tuple[str, ...]:
        found = value if isinstance(value, list) else [value]
        for each in found:
            if not isinstance(each, str) or (each == "" and known):
                raise InvalidValueError(f"has {quoted(each)}; give a text or a list of texts")
            if known and each != "*" and each not in known:
                raise InvalidValueError(f"has {quoted(each)}; give one of {', '.join(known)}, or *")
        if not found:
            raise InvalidValueError("is an empty list, which selects nothing; give at least one text, or *")
        return tuple(found)

    return convert


def whole_number(least: int, largest: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= largest:
            raise InvalidValueError(f"is {quoted(value)}; give a whole number from {least} to {largest}")
        return value

    return convert


def seconds(least: float, largest: float) -> Callable[[Any], float]:
    """A number of seconds, or a duration in Go's notation."""

    def convert(value: Any) -> float:
        found: float | None = None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= largest:
            found = float(value)
        elif isinstance(value, str):
            found = go_seconds_of(value)
        if found is None or not least <= found <= largest:
            raise InvalidValueError(
                f"is {quoted(value)}; give seconds from {least:g} to {largest:g}, or a duration such as 10s or 5m"
            )
        return found

    return convert
