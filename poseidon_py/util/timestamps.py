"""Times as the API server writes them."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4)
def _of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Of seconds since the epoch, which are cut."""
    return _of(int(seconds))
