"""How many tasks may still be moved in the current hour."""

from collections import deque
from dataclasses import dataclass

from firmament_py.snapshot.domain_limits import UNLIMITED

_HOUR_US = 3_600_000_000


@dataclass(slots=True)
class MovesPause:
    """until_us: when moves for waiting tasks are considered again. From round to round the same object."""

    until_us: int = 0


class MoveRate:
    """Counts the moves of the last hour. per_hour: how many there may be; 0: any number."""

    def __init__(self, per_hour: int) -> None:
        self._per_hour = per_hour
        self._recent: deque[tuple[int, int]] = deque()  # (when, how many)

    def copy(self, limited: bool = True) -> "MoveRate":
        """One that counts separately from now on; limited: False: without a limit. May be called while another thread
        counts."""
        found = MoveRate(self._per_hour if limited else 0)
        found._recent = self._recent.copy()
        return found

    def left(self, now_us: int) -> int:
        """How many moves may be decided at `now_us`, microseconds since the epoch."""
        if not self._per_hour:
            return UNLIMITED
        while self._recent and self._recent[0][0] <= now_us - _HOUR_US:
            self._recent.popleft()
        return max(self._per_hour - sum(count for _, count in self._recent), 0)

    def note(self, count: int, now_us: int) -> None:
        """So many moves have been decided."""
        if count and self._per_hour:
            self._recent.append((now_us, count))
