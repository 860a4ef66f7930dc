"""Durations in Go's notation (`90s`, `1h30m`, `1.5h`, `250ms`), or as plain seconds."""

import re

from durationpy import DurationError, from_str

LONGEST = 320_000_000.0
"""Ten years in seconds; what is too long for the decoder counts as this."""

_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_SECONDS = re.compile(_NUMBER)
GO_DURATION = rf"({_NUMBER}(ns|us|µs|μs|ms|s|m|h))+"
"""A pattern of Go's notation as a whole, for JSON schemas too. durationpy accepts more: days and years, and any text
between the parts."""
_GO_DURATION = re.compile(GO_DURATION)
_LONGEST_TEXT = 64


def seconds_of(text: str) -> float | None:
    """Seconds, to the microsecond; None: the text is not a duration."""
    stripped = text.strip()
    return go_seconds_of(f"{stripped}s" if _SECONDS.fullmatch(stripped) else stripped)


def go_seconds_of(text: str) -> float | None:
    """`seconds_of`, for Go's notation alone."""
    stripped = text.strip()
    if len(stripped) > _LONGEST_TEXT or not _GO_DURATION.fullmatch(stripped):
        return None
    try:
        return from_str(stripped).total_seconds()
    except DurationError:
        return LONGEST
