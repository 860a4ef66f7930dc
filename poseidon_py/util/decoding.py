"""Decodes untrusted JSON, and turns every failure into one error.

The compiled decoder skips the text of unknown fields, so that bytes that are not UTF-8 are an error in known fields
only (UnicodeDecodeError), and it recurses into unknown fields, so that deep nesting is an error anywhere
(RecursionError).
"""

import re
from functools import cache
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

T = TypeVar("T")

FAILURES = (ValueError, RecursionError)
"""The errors of msgspec's decoders: DecodeError and UnicodeError are ValueErrors."""

DEPTH = 64
"""Levels of nesting that `readable` keeps."""

_BRACKETS = 1_000_000
"""Number of brackets that are scanned, which takes a second; a document with more is cut off."""

_TOO_DEEP = b'"\\u0000nested too deeply\\u0000"'
# strings are skipped as a whole, closed or not: a bracket within a string does not count
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))*+([\[\]{}]|\Z)', re.DOTALL)


class MalformedError(ValueError):
    """The input cannot be decoded. `place`: what was decoded; `reason`: the error."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class Decoder(Generic[T]):
    """Decodes JSON to one type."""

    def __init__(self, kind: Any, place: str) -> None:
        """`kind`: a type that msgspec supports; `place`: what is decoded, for error messages."""
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


@cache
def _decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """To make one takes longer than to decode a few labels."""
    return msgspec.json.Decoder(kind)


def decode_json(data: bytes | str | Raw, kind: Any, place: str) -> Any:
    """`data` decoded as `kind`. Raises MalformedError."""
    try:
        return _decoder_of(kind).decode(data)
    except FAILURES as error:
        raise MalformedError(place, str(error)) from error


def readable(data: bytes) -> bytes:
    """The document without what decoders reject: bytes that are not UTF-8 and values nested too deeply are replaced.

    It serves to identify the object of the document; `is_whole` tells whether nested values were replaced.
    """
    data = data.decode(errors="replace").encode()
    parts: list[bytes] = []
    level = start = 0
    for match in islice(_BRACKET.finditer(data), _BRACKETS):
        if match[1] in (b"[", b"{"):
            level += 1
            if level == DEPTH + 1:
                parts += data[start : match.start(1)], _TOO_DEEP
        elif match[1]:
            level -= 1
            if level == DEPTH:
                start = match.end()
    if level <= DEPTH:
        parts.append(data[start:])
    return b"".join(parts)


def is_whole(data: bytes) -> bool:
    """Whether `readable` replaced no nested values in the document."""
    return _TOO_DEEP not in data
