"""How long an API server asks to wait before a request is repeated: the Retry-After header and its copy in a Status.

What a server, a proxy or a webhook says here is not to be trusted: an hour, or no end at all, would silence whoever
obeys. So it is a finite number of seconds from 0 to MAX_SECONDS, or nothing.
"""

import math

MAX_SECONDS = 60.0
"""More is taken for this much: the longest pause between attempts that the bridge makes of its own accord."""


def retry_after(header: str | bytes | None, details: float | None = None) -> float | None:
    """Seconds to wait, 0 to MAX_SECONDS; None: the server did not say, or not in a way that makes sense.

    `header` is the value of Retry-After: a number of seconds (an HTTP date is ignored: nothing in this API sends one).
    `details` is the answer's `details.retryAfterSeconds`, used where the header says nothing.
    """
    seconds = _bounded(header)
    return seconds if seconds is not None else _bounded(details)


def _bounded(value: str | bytes | float | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):  # a whole number may have any length
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, MAX_SECONDS)
