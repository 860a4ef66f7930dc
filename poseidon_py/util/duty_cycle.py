"""Limits the share of the time that repeated work takes. Pure arithmetic on times that the caller gives, in seconds."""


class DutyCycle:
    """A pause after each piece of work, in proportion to its duration, less the time that lay idle before: where there
    is little to do, a piece that takes longer than usual delays nothing (the generic cell rate algorithm, ITU-T I.371).
    """

    def __init__(self, share: float, memory: float) -> None:
        """`share`: of the time, if there is always work. `memory`: seconds of idle time that count."""
        self._share = share
        self._memory = memory
        self.free_at = float("-inf")
        """When the next piece of work may start."""

    def ended(self, started: float, ended: float) -> None:
        """A piece of work has ended. The pause after it is never longer than it would be without idle time before, also
        if it started too early."""
        due = min(max(self.free_at, started - self._memory), started)
        self.free_at = due + (ended - started) / self._share
