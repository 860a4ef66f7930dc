"""Rows of an integer program, kept in integers: solvers get them as floats, and their answers are checked here.

A solver in floating point accepts a row that is exceeded by a millionth of what it adds up, 100 KiB of 256 GiB, and
with amounts in bytes SCIP even loses solutions and proves bounds that are false. So rows are scaled, and every answer
is checked in integers. Rows that it breaks are given anew by digits: a row a @ x <= b whose numbers are a = a0 + B a1
and b = b0 + B b1 holds for integers x exactly if there is an integer c, which is carried, with a0 @ x <= b0 + B c and
a1 @ x + c <= b1. The numbers of such rows are small enough for a solver to tell one from the next.
"""

from __future__ import annotations

import numpy as np

from firmament_py.model.arrays import F64, I64, Bools
from firmament_py.packing.linear_program import IntegerSolution, LinearProgram

_BASE = 2**13
"""Of digits: a millionth of it is far below 1."""

_ATTEMPTS = 4
"""A program is solved so often at most; more than once is rare."""

_LARGEST_POWER = 10
"""The largest entry of a row is scaled to 2**10 at most, so that the smallest are not 0 to SCIP, which ignores 1e-9."""

_EXACT = 2.0**53
"""Floats hold integers up to this."""


class IntegerRows:
    """Rows matrix @ x <= limit of integers x >= 0. Entries and limits are below 2**53."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._limit, self._row, self._column, self._entry = [none], [none], [none], [none]
        self._number = 0

    def add(self, limit: I64, row: I64, column: I64, entry: I64) -> None:
        """Rows with limits (M,), and their entries (E,), each place once: `row` counts from the first of these. They
        are divided by what divides all entries of a row; its limit is rounded down."""
        some = entry != 0
        row, column, entry = row[some], column[some], entry[some]
        divisor = np.zeros_like(limit)
        np.gcd.at(divisor, row, entry)
        divisor = np.maximum(divisor, 1)
        self._limit.append(limit // divisor)
        self._row.append(row + self._number)
        self._column.append(column)
        self._entry.append(entry // divisor[row])
        self._number += len(limit)

    def imply(self, columns: I64, upper: I64, binary: I64) -> None:
        """Variables (K,) with upper bounds (K,) are 0 unless the variable in `binary` (K,), at most 1, is 1."""
        row = np.tile(np.arange(len(columns)), 2)
        self.add(np.zeros_like(columns), row, np.r_[columns, binary], np.r_[np.ones_like(columns), -upper])

    def broken(self, x: I64) -> Bools:
        """(M,) which rows x (K,) breaks. Exact."""
        limit, row, column, entry = self._arrays()
        kind = np.dtype(np.int64 if self._reach(x).max(initial=0.0) < 2**62 else object)  # ints do not overflow
        total = np.zeros(len(limit), kind)
        np.add.at(total, row, entry.astype(kind) * x[column].astype(kind))
        found: Bools = np.greater(total, limit).astype(np.bool_)
        return found

    def solve(self, objective: F64, upper: I64, gap: float, nodes: int, seconds: float) -> IntegerSolution | None:
        """LinearProgram.solve_integers for x <= upper (K,), in a few attempts at most, each within these limits. x
        keeps all rows; None: no such x is found."""
        by_digits = np.zeros(self._number, np.bool_)
        for _ in range(_ATTEMPTS):
            found = self._program(objective, upper, by_digits, _LARGEST_POWER).solve_integers(gap, nodes, seconds)
            if found is None:
                return None
            x = found.x[: len(upper)]
            if not _within(x, upper):
                return None
            broken = self.broken(x)
            if not broken.any():
                return IntegerSolution(x, found.bound)
            by_digits |= broken
        return None

    def solve_from(self, objective: I64, upper: I64, start: I64, work: float) -> I64 | None:
        """LinearProgram.solve_from for x <= upper (K,). x keeps all rows; None: none is proved to be best."""
        by_digits = self._reach(upper) >= _EXACT  # sums that CP-SAT's interface would round
        found = self._program(objective.astype(np.float64), upper, by_digits).solve_from(start, work)
        if found is None:
            return None
        x = found[: len(upper)]
        return x if _within(x, upper) and not self.broken(x).any() else None

    def _reach(self, x: I64) -> F64:
        """(M,) what the entries of each row, as if all were positive, add up to."""
        limit, row, column, entry = self._arrays()
        return np.bincount(row, np.abs(entry.astype(np.float64) * x[column]), len(limit)).astype(np.float64)

    def _program(self, objective: F64, upper: I64, by_digits: Bools, largest: int | None = None) -> LinearProgram:
        """The program as floats, some rows (M,) by digits, with further variables. largest: the largest entries are at
        most 2 to this; None: rows are not scaled."""
        rows, carried = self._by_digits(by_digits, upper)
        limit, row, column, entry = rows._arrays()
        unit: F64 = np.ones(len(limit))
        if largest is not None:
            np.maximum.at(unit, row, np.abs(entry).astype(np.float64))
            unit = 2.0 ** np.maximum(np.ceil(np.log2(unit)) - largest, 0)  # powers of 2 round nothing
        values, bounds = np.r_[objective, np.zeros(len(carried))], np.r_[upper, carried].astype(np.float64)
        return LinearProgram(values, bounds, limit / unit, row, column, entry / unit[row])

    def _by_digits(self, some: Bools, upper: I64) -> tuple[IntegerRows, I64]:
        """The same rows, some of them (M,) by digits, and upper bounds of what is carried, which are further
        variables."""
        limit, row, column, entry = self._arrays()
        rows, carried, width = IntegerRows(), [np.zeros(0, np.int64)], upper
        whole = ~some[row]
        rows.add(limit[~some], (np.cumsum(~some) - 1)[row[whole]], column[whole], entry[whole])
        limit, row, column, entry = limit[some], (np.cumsum(some) - 1)[row[~whole]], column[~whole], entry[~whole]
        while len(limit):
            # the last digit of the rows that have another, all of the others
            large = np.abs(limit) >= _BASE
            large[row[np.abs(entry) >= _BASE]] = True
            last = np.where(large, np.fmod(limit, _BASE), limit)
            digit = np.where(large[row], np.fmod(entry, _BASE), entry)

            # what is carried is in [least, greatest], and given as the difference to the least, as variables are >= 0
            low, high = np.zeros_like(limit), np.zeros_like(limit)
            np.add.at(low, row, np.minimum(digit, 0) * width[column])
            np.add.at(high, row, np.maximum(digit, 0) * width[column])
            least, greatest = (-((last - total) // _BASE) for total in (low, high))
            (of,) = large.nonzero()
            carry = len(width) + np.arange(len(of))
            carried.append((greatest - least)[of])
            width = np.r_[width, carried[-1]]
            entries = np.r_[digit, np.full(len(of), -_BASE)]
            rows.add(last + np.where(large, _BASE * least, 0), np.r_[row, of], np.r_[column, carry], entries)

            # the other digits
            goes_on, place = large[row], np.cumsum(large) - 1
            limit = ((limit - last) // _BASE - least)[of]
            entry = np.r_[((entry - digit) // _BASE)[goes_on], np.ones_like(of)]
            row, column = np.r_[place[row[goes_on]], np.arange(len(of))], np.r_[column[goes_on], carry]
        return rows, np.concatenate(carried)

    def _arrays(self) -> tuple[I64, I64, I64, I64]:
        """Limits (M,), and row, column and entry (E,) of all entries."""
        limit, row, column, entry = map(np.concatenate, (self._limit, self._row, self._column, self._entry))
        return limit, row, column, entry


def _within(x: I64, upper: I64) -> bool:
    """Whether 0 <= x <= upper (K,)."""
    return bool((x >= 0).all() and (x <= upper).all())
