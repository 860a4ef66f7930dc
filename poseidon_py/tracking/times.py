"""Times as they are shown."""

from datetime import UTC, datetime


def written(at: float) -> str | None:
    """An API timestamp; None: the time is 0 or no time."""
    if not 0 < at < 2.5e11:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
