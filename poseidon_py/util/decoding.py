"""Decodes JSON that others have written, and turns each of the ways in which that fails into one error.

The compiled decoder skips unknown fields without a look at their text, so that a byte that is not UTF-8 is an error in
a known field only (UnicodeDecodeError), and recurses into them, so that deep nesting is one anywhere (RecursionError).
"""

import re
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

T = TypeVar("T")

FAILURES = (ValueError, RecursionError)
"""What a decoder of msgspec raises: DecodeError and UnicodeError are ValueErrors."""

DEPTH = 64
"""Levels of nesting that `readable` keeps."""

_BRACKETS = 1_000_000
"""Brackets that are looked at, which takes a second; a document with more is cut off."""

_TOO_DEEP = b'"\\u0000nested too deeply\\u0000"'
# strings as a whole, closed or not: a bracket within one is none
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))*+([\[\]{}]|\Z)', re.DOTALL)


class MalformedError(ValueError):
    """What somebody wrote cannot be decoded. `place` says what it is, `reason` what is wrong with it."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class Decoder(Generic[T]):
    """Decodes JSON as one type."""

    def __init__(self, kind: Any, place: str) -> None:
        """`kind`: what msgspec takes for a type; `place`: what is decoded, for errors."""
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._place = place

    def decode(self, data: bytes | str | Raw) -> T:
        """Raises MalformedError."""
        try:
            return self._decoder.decode(data)
        except FAILURES as error:
            raise MalformedError(self._place, str(error)) from error

    def decode_lines(self, data: bytes) -> list[T]:
        """One document on each line. Raises MalformedError."""
        try:
            return self._decoder.decode_lines(data)
        except FAILURES as error:
            raise MalformedError(self._place, str(error)) from error


def decode_json(data: bytes | str | Raw, kind: Any, place: str) -> Any:
    """`data` as `kind`. Raises MalformedError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except FAILURES as error:
        raise MalformedError(place, str(error)) from error


def readable(data: bytes) -> bytes:
    """The same document with what no decoder takes replaced: bytes that are not UTF-8, and what is nested too deeply.

    For finding out whose the document is; `is_whole` tells whether anything nested was replaced.
    """
    data = data.decode(errors="replace").encode()
    kept: list[bytes] = []
    level = start = 0
    for match in islice(_BRACKET.finditer(data), _BRACKETS):
        if match[1] in (b"[", b"{"):
            level += 1
            if level == DEPTH + 1:
                kept += data[start : match.start(1)], _TOO_DEEP
        elif match[1]:
            level -= 1
            if level == DEPTH:
                start = match.end()
    if level <= DEPTH:
        kept.append(data[start:])
    return b"".join(kept)


def is_whole(data: bytes) -> bool:
    """Whether `readable` has replaced nothing nested in a document."""
    return _TOO_DEEP not in data
