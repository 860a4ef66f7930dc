"""When a request of a preemption or migration is sent again."""

from collections.abc import Callable

from poseidon_py.preempt.attempt import Outcome, Result
from poseidon_py.util.backoff import Backoff

_LONGEST = 10.0


class Retries:
    """Growing delays with jitter, until the time for all attempts is over."""

    def __init__(self, first: float, patience: float, monotonic: Callable[[], float], rng: Callable[[], float]) -> None:
        """`first`: the first delay, `patience`: the time for all attempts, both in seconds."""
        self._backoff = Backoff(first, _LONGEST, rng)
        self._monotonic = monotonic
        self._give_up = monotonic() + patience

    def delay(self, outcome: Outcome) -> float | None:
        """Seconds until the next attempt; None: there is none, since the outcome is definite or the time is over."""
        if outcome.result is not Result.RETRY:
            return None
        delay = max(self._backoff.next(), outcome.retry_after)
        return delay if self._monotonic() + delay <= self._give_up else None

    def reset(self) -> None:
        """The next request begins with the first delay again, within the same time."""
        self._backoff.reset()
