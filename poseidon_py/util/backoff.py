"""Growing delays with jitter, so that clients that fail together do not retry together."""

import random
from collections.abc import Callable


class Backoff:
    """Delays that double from `first` to `max_delay` seconds, each varied at random down to half of it."""

    def __init__(self, first: float, max_delay: float, rng: Callable[[], float] = random.random) -> None:
        self._first = first
        self._max_delay = max_delay
        self._rng = rng
        self.attempts = 0

    def next(self) -> float:
        """Seconds to wait before the next attempt."""
        delay = min(self._max_delay, self._first * 2.0 ** min(self.attempts, 60))
        self.attempts += 1
        return delay * (0.5 + 0.5 * self._rng())

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self.attempts = 0
