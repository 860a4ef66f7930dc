"""Room that is kept, while a round goes on, for gangs that will need it later."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.snapshot.expected_releases import FOREVER


@dataclass(slots=True)
class _Kept:
    """later (N, R): what tasks may still use that end after starts_us; claimed (N, R): what is kept."""

    number: int
    starts_us: int
    later: I64
    claimed: I64


class ReservedCapacity:
    """What tasks may use depends on when they end: see `keep`. All amounts are (N, R), times microseconds."""

    def __init__(self) -> None:
        self._all: list[_Kept] = []
        self._numbers = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def horizons(self) -> list[int]:
        """Latest first: tasks that end by the same ones of these times may use the same."""
        return sorted({FOREVER, *(kept.starts_us for kept in self._all)}, reverse=True)

    def keep(self, starts_us: int, room: I64, claimed: I64) -> int:
        """From now on tasks that end after `starts_us` have to leave `claimed` of `room`, which is what will be left
        then, not counting what is kept. Returns the number by which to give it up."""
        later = room - claimed
        for kept in self._all:
            if kept.starts_us <= starts_us:
                later -= kept.claimed
            if kept.starts_us >= starts_us:
                kept.later -= claimed
        self._numbers += 1
        self._all.append(_Kept(self._numbers, starts_us, later, claimed))
        return self._numbers

    def give_up(self, number: int) -> None:
        """As if that had never been kept."""
        gone = next(kept for kept in self._all if kept.number == number)
        self._all = [kept for kept in self._all if kept is not gone]
        for kept in self._all:
            if kept.starts_us >= gone.starts_us:
                kept.later += gone.claimed

    def left_of(self, free: I64, ends_us: int) -> I64:
        """What of `free` tasks may use that end at `ends_us`. Not to be written to."""
        bounds = [kept.later for kept in self._all if ends_us > kept.starts_us]
        return np.minimum.reduce([free, *bounds]) if bounds else free

    def less_claims(self, free: I64) -> I64:
        """`free` less all that is kept; a copy."""
        return free - sum((kept.claimed for kept in self._all), np.zeros_like(free))

    def occupy(self, nodes: I64, used: I64, ends_us: int) -> None:
        """Tasks that end at `ends_us` use `used` (K, R) more, or less, on `nodes` (K,), each once."""
        for kept in self._all:
            if ends_us > kept.starts_us:
                kept.later[nodes] -= used
