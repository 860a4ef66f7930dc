"""Growing delays with jitter, so that many clients that fail together do not come back together."""

import random
from collections.abc import Callable


class Backoff:
    """Delays that double from `first` to `most` seconds, each varied down to half of itself."""

    def __init__(self, first: float, most: float, rng: Callable[[], float] = random.random) -> None:
        self._first = first
        self._most = most
        self._rng = rng
        self.attempts = 0

    def next(self) -> float:
        """Seconds to wait before the next attempt."""
        delay = min(self._most, self._first * 2.0 ** min(self.attempts, 60))
        self.attempts += 1
        return delay * (0.5 + 0.5 * self._rng())

    def reset(self) -> None:
        """After a success."""
        self.attempts = 0
