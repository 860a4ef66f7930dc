"""Times of objects as seconds since the epoch, and back."""

from datetime import UTC, datetime


def seconds(timestamp: str | None) -> float:
    """0: there is none, or it is invalid."""
    try:
        return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0
    except (ValueError, OverflowError):
        return 0.0


def written(at: float) -> str | None:
    """An API timestamp; None: the time is 0 or no time."""
    if not 0 < at < 2.5e11:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
