"""Computes when a round starts. Pure arithmetic on times that the caller gives, in seconds; nothing here waits.

After a change a round starts at once, unless further changes are on their way: while they keep arriving, they are
collected for two windows, or for twice the duration of the last round if that is longer, so that a short round starts
early. The time between two rounds is at least the duration of the last one, less a window. The limit applies to both.
"""

_IDLE_SECONDS = 10.0
"""Seconds after which a round is requested without a known change, to detect a restarted engine."""
_SHORTEST_WAIT = 0.01
_WINDOWS, _ROUNDS = 2, 2
"""Maximum duration of collection, in windows and in durations of the last round, while changes keep arriving."""
_STEPS = 4
"""How often in a window to look whether changes still arrive."""
_SHORTEST_STEP = 0.001


class Pacer:
    """`idle_seconds`; after a change sleep for `delay` until it is 0; `round_ended`."""

    def __init__(self, window: float = 0.005, window_max: float = 0.25) -> None:
        """`window_max`: the limit of collection."""
        self._window = window
        self._step = max(window / _STEPS, _SHORTEST_STEP)
        self._window_max = window_max
        self._wake_at = 0.0
        self._last_end = 0.0
        self.last_seconds = 0.0
        """Duration of the last round."""

    def idle_seconds(self, now: float) -> float:
        """Seconds to wait for a change before a round starts without one. `now`: since the epoch."""
        if not self._wake_at:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(_SHORTEST_WAIT, self._wake_at - now))

    def delay(self, began: float, now: float, *, arriving: bool) -> float:
        """Seconds after which to ask again; 0: the round starts. `began`: start of collection, monotonic; `arriving`:
        whether changes are still arriving."""
        elapsed = now - began
        left = self._window_max - elapsed
        if arriving and elapsed < max(_WINDOWS * self._window, _ROUNDS * self.last_seconds):
            return max(0.0, min(self._step, left))
        return max(0.0, min(self._last_end + self.last_seconds - self._window - now, left))

    def at_once(self, began: float, now: float, *, arriving: bool) -> bool:
        """Whether a round may start in the same call as the changes: no delay is due, and none has run for as long as
        the last one took. Otherwise pods that arrive one by one would each get a round."""
        return now >= self._last_end + self.last_seconds and not self.delay(began, now, arriving=arriving)

    def wake_at(self, seconds: float) -> None:
        """The engine requests a round at this time since the epoch; 0: none."""
        self._wake_at = seconds

    def round_ended(self, started: float, ended: float) -> None:
        """Monotonic times of the last round."""
        self._last_end = ended
        self.last_seconds = ended - started
