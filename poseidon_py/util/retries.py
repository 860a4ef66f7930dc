"""Growing delays apart for each cause of a failure, and which failures are in the log."""

import random
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from poseidon_py.util.backoff import Backoff

Cause = TypeVar("Cause", bound=Hashable)


class Retries(Generic[Cause]):
    """A series of failures ends with a success. A cause that is new in a series begins with the first delay, however
    often the request has failed for others."""

    def __init__(self, first: float, longest: Mapping[Cause, float], rng: Callable[[], float] = random.random) -> None:
        """`first`: delay in seconds. `longest`: of each cause, likewise."""
        self._delays = {cause: Backoff(first, seconds, rng) for cause, seconds in longest.items()}
        self._seen: set[Hashable] = set()

    def delay(self, cause: Cause, *, first_at_once: bool = False) -> float:
        """Seconds to wait before the request is repeated. `first_at_once`: 0 for the first one of a series."""
        backoff = self._delays[cause]
        if first_at_once and not backoff.attempts:
            backoff.attempts = 1
            return 0.0
        return backoff.next()

    def news(self, failure: Hashable) -> bool:
        """Whether a series has this failure for the first time."""
        if failure in self._seen:
            return False
        self._seen.add(failure)
        return True

    def succeed(self) -> None:
        """Ends the series."""
        for backoff in self._delays.values():
            backoff.reset()
        self._seen.clear()
