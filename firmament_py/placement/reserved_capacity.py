"""Capacity that is reserved, while a round goes on, for gangs and tasks that will need it later."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, add_rows
from firmament_py.snapshot.expected_releases import FOREVER


@dataclass(slots=True)
class _Reservation:
    """later (N, R): what tasks that end after starts_us may still use; reserved (N, R): what they may not.
    released (N, R): what is not free yet, but will be by then. holders (K,): the tasks that it is for; priority: the
    lowest one of these."""

    number: int
    priority: int
    starts_us: int
    later: I64
    reserved: I64
    released: I64
    holders: I64


class ReservedCapacity:
    """What tasks may use depends on when they end: see `reserve`. All amounts are (N, R), times microseconds."""

    def __init__(self) -> None:
        self._all: list[_Reservation] = []
        self._numbers = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def horizons(self) -> list[int]:
        """Latest first: tasks that end by the same ones of these times may use the same capacity."""
        return sorted({FOREVER, *(one.starts_us for one in self._all)}, reverse=True)

    def reserve(self, starts_us: int, free: I64, released: I64, demanded: I64, holders: I64, priority: int) -> int:
        """From now on tasks that end after `starts_us` must leave `demanded` of what will be free then, other
        reservations included: `free`, and what is `released` until then. It is for the tasks `holders` (K,), all of
        this priority or a higher one. Returns the number by which to release it."""
        later = free + released - demanded
        for one in self._all:
            if one.starts_us <= starts_us:
                later -= one.reserved
            if one.starts_us >= starts_us:
                one.later -= demanded
        self._numbers += 1
        self._all.append(_Reservation(self._numbers, priority, starts_us, later, demanded, released, holders))
        return self._numbers

    def release(self, number: int) -> None:
        """As if that had never been reserved."""
        gone = next(one for one in self._all if one.number == number)
        self._all = [one for one in self._all if one is not gone]
        for one in self._all:
            if one.starts_us >= gone.starts_us:
                one.later += gone.reserved

    def left_of(
        self, free: I64, ends_us: int, tasks: I64 = NO_ROWS, above: int | None = None, *, evicting: bool = False
    ) -> I64:
        """What of `free` tasks may use that end at `ends_us`, if these are `tasks` (K,), with what is reserved for
        them. above: reservations of this priority and lower ones have no effect. evicting: beside that, the tasks may
        use what they evict, and what leaves already; a reservation may count on the same. Not to be written to."""
        ignored = [
            one
            for one in self._all
            if (above is not None and one.priority <= above) or (len(tasks) and np.isin(one.holders, tasks).all())
        ]
        bounds = [free]
        for one in self._all:
            if ends_us > one.starts_us and not any(one is other for other in ignored):
                released = [other.reserved for other in ignored if one.starts_us >= other.starts_us]
                bounds.append(sum(released, one.later - one.released if evicting else one.later))
        return np.minimum.reduce(bounds) if len(bounds) > 1 else free

    def held_by(self, tasks: I64) -> list[I64]:
        """The holders of each reservation whose holders are all among `tasks` (K,)."""
        return [one.holders for one in self._all if np.isin(one.holders, tasks).all()]

    def subtracted_from(self, free: I64) -> I64:
        """`free` less all that is reserved; a copy."""
        return free - sum((one.reserved for one in self._all), np.zeros_like(free))

    def occupy(self, nodes: I64, used: I64, ends_us: I64) -> None:
        """Tasks that end at `ends_us` (K,) use `used` (K, R) more, or less if below 0, on `nodes` (K,)."""
        for one in self._all:
            late = ends_us > one.starts_us
            add_rows(one.later, nodes[late], -used[late])
