"""Times as the API server writes them."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4)
def _of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Of seconds since the epoch, which are cut."""
    return _of(int(seconds))


def instant_of(timestamp: str | None) -> float:
    """Seconds since the epoch; 0: there is no timestamp, or it is invalid."""
    try:
        return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0
    except (ValueError, OverflowError):
        return 0.0
