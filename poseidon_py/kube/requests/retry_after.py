"""The delay before a request is repeated: the Retry-After header of an answer, and its copy in a Status.

A value from a server, a proxy or a webhook is not trusted: an hour, or infinity, would stop the client. It is bounded
to 0 to MAX_SECONDS seconds.
"""

import math

MAX_SECONDS = 60.0
"""Larger values count as this: the longest pause that the bridge makes between attempts on its own."""


def retry_after(header: str | bytes | None, details: float | None = None) -> float | None:
    """Seconds to wait, 0 to MAX_SECONDS; None: the answer has no valid value.

    `header`: the value of Retry-After in seconds (HTTP dates are ignored: this API never sends one). `details`: the
    answer's `details.retryAfterSeconds`, used without a valid header.
    """
    seconds = _bounded(header)
    return seconds if seconds is not None else _bounded(details)


def _bounded(value: str | bytes | float | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):  # an integer may have any number of digits
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_SECONDS)
