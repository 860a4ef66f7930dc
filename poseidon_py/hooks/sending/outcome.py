"""What becomes of one attempt to deliver."""

import math
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

_TEMPORARY = {408, 425, 429}
"""Codes from 400 to 499 after which the same delivery may succeed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error`: empty if it was delivered. `permanent`: a further attempt would fail as well."""

    error: str = ""
    permanent: bool = False
    pause: float | None = None
    """Seconds for which the endpoint asked for no further requests."""


DELIVERED = Outcome()


def outcome_of(status: int, answer: str, retry_after: str | None, now: float) -> Outcome:
    """The outcome by the status of an answer. `answer`: the beginning of its body; `now`: seconds since the epoch."""
    if 200 <= status < 300:
        return DELIVERED
    text = " ".join(answer.split())
    error = f"status {status}: {text}" if text else f"status {status}"
    if 300 <= status < 400:
        return Outcome(f"status {status}: redirects are not followed; give the final URL", permanent=True)
    if 400 <= status < 500 and status not in _TEMPORARY:
        return Outcome(error, permanent=True)
    pause = seconds_of(retry_after, now) if status in (429, 503) else None
    return Outcome(error, pause=pause)


def seconds_of(retry_after: str | None, now: float) -> float | None:
    """Seconds by a Retry-After header, of which there are two forms; None: it has no valid value."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        date = parsedate_to_datetime(text)
        found = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return max(0.0, found) if math.isfinite(found) else None
