"""When a round begins. Pure arithmetic on times that the caller gives, in seconds; nothing here waits.

After a change, one window passes in which more changes are gathered. While changes keep arriving, gathering goes on for
some windows, or for twice the duration of the last round if that is longer: a cheap round may begin soon. Between two
rounds there is at least as much time as the last one took. Both end at the limit.
"""

_IDLE_SECONDS = 10.0
"""After so long the engine is asked although nothing is known to have changed: finds out that it was replaced."""
_SHORTEST_WAIT = 0.01
_WINDOWS, _ROUNDS = 4, 2
"""How many windows, and durations of the last round, gathering lasts while changes keep arriving."""
_SHORTEST_WINDOW = 0.001


class Pacer:
    """`idle_seconds`; after a change sleep `window`, then go on in steps of `step` while `gathers`; `round_ended`."""

    def __init__(self, window: float = 0.005, window_max: float = 0.25) -> None:
        """`window_max`: the limit of gathering."""
        self.window = window
        self.step = window or _SHORTEST_WINDOW
        self._window_max = window_max
        self._wake_at = 0.0
        self._last_end = 0.0
        self.last_seconds = 0.0
        """Duration of the last round."""

    def idle_seconds(self, now: float) -> float:
        """How long to wait for a change before a round begins without one. `now`: since the epoch."""
        if not self._wake_at:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(_SHORTEST_WAIT, self._wake_at - now))

    def gathers(self, began: float, now: float, *, arriving: bool) -> bool:
        """Whether the round is put off further. `began`: when gathering did, monotonic; `arriving`: whether changes
        are still being taken in."""
        elapsed = now - began
        if elapsed >= self._window_max:
            return False
        gathering = max(_WINDOWS * self.window, _ROUNDS * self.last_seconds)
        return (arriving and elapsed < gathering) or now - self._last_end < self.last_seconds

    def wake_at(self, seconds: float) -> None:
        """The engine wants a round at this time since the epoch; 0: at no particular time."""
        self._wake_at = seconds

    def round_ended(self, started: float, ended: float) -> None:
        """Monotonic times of the last round."""
        self._last_end = ended
        self.last_seconds = ended - started
