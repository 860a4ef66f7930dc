"""Computes when a round starts. Pure arithmetic on times that the caller gives, in seconds; nothing here waits.

After a change a round starts at once, unless further changes are on their way: while they keep arriving, they are
collected for two windows, and longer if rounds have taken more than a third of the time lately. Otherwise rounds take
at most half of it, less a window. What changes wait has a limit.
"""

from poseidon_py.util.duty_cycle import DutyCycle

_IDLE_SECONDS = 10.0
"""Seconds after which a round is requested without a known change, to detect a restarted engine."""
_SHORTEST_WAIT = 0.01
_WINDOWS = 2
"""For how long changes are collected while they keep arriving, in windows."""
_SHARE, _SHARE_COLLECTING = 1 / 2, 1 / 3
"""Of the time that rounds may take, the latter while changes keep arriving."""
_STEPS = 4
"""How often in a window to look whether changes still arrive."""
_SHORTEST_STEP = 0.001


class Pacer:
    """`idle_seconds`; after a change sleep for `delay` until it is 0; `round_ended`."""

    def __init__(self, window: float = 0.005, window_max: float = 0.25) -> None:
        """`window_max`: seconds that a change waits at most; also the idle time that counts for the next rounds."""
        self._window = window
        self._step = max(window / _STEPS, _SHORTEST_STEP)
        self._window_max = window_max
        self._wake_at = 0.0
        self._duty = DutyCycle(_SHARE, window_max)
        self._duty_collecting = DutyCycle(_SHARE_COLLECTING, window_max)
        self.last_seconds = 0.0
        """Duration of the last round."""

    @property
    def rounds_are_short(self) -> bool:
        """Whether the last one took no longer than changes are collected in any case."""
        return self.last_seconds <= _WINDOWS * self._window

    def idle_seconds(self, now: float) -> float:
        """Seconds to wait for a change before a round starts without one. `now`: since the epoch."""
        left = self.next_seconds(now)
        return _IDLE_SECONDS if left is None else min(_IDLE_SECONDS, max(_SHORTEST_WAIT, left))

    def next_seconds(self, now: float) -> float | None:
        """Seconds until the round that the engine has asked for, 0: it is due; None: none. `now`: since the epoch."""
        return max(0.0, self._wake_at - now) if self._wake_at else None

    def delay(self, began: float, now: float, *, arriving: bool) -> float:
        """Seconds after which to ask again; 0: the round starts. `began`: start of collection, monotonic; `arriving`:
        whether changes are still arriving."""
        elapsed = now - began
        left = self._window_max - elapsed
        if arriving and (elapsed < _WINDOWS * self._window or now < self._duty_collecting.free_at):
            return max(0.0, min(self._step, left))
        return max(0.0, min(self._duty.free_at - self._window - now, left))

    def at_once(self, began: float, now: float, *, arriving: bool) -> bool:
        """Whether a round may start in the same call as the changes: no delay is due, not even for the last window.
        Otherwise pods that arrive one by one would each get a round."""
        return now >= self._duty.free_at and not self.delay(began, now, arriving=arriving)

    def wake_at(self, seconds: float) -> None:
        """The engine requests a round at this time since the epoch; 0: none."""
        self._wake_at = seconds

    def round_ended(self, started: float, ended: float) -> None:
        """Monotonic times of the last round."""
        self._duty.ended(started, ended)
        self._duty_collecting.ended(started, ended)
        self.last_seconds = ended - started
