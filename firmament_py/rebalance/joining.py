"""Moves that join free capacity, by integer programming: tasks of a kind are interchangeable, so that integers count
those that leave and those that arrive.

Capacity is given by rows, such as the cpu of a node. A *way* is one of the ways in which a task of a kind can run: what
it takes of some rows. What is wanted is as many *pieces* as possible, each of which takes something of some rows, too;
fewer moves come second. Only the beginning and the end count: tasks may leave before others arrive in their places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.packing.integer_rows import IntegerRows

_MOVES_WORTH, _GAP = 0.45, 0.5
"""What all moves together cost, in pieces; and how far a solution may be from the best: by less than a piece."""

_ERROR, _RELATIVE_ERROR = 0.04, 4e-6
"""Of a solver's bound, in pieces and relative to it. Solvers are exact to some 1e-6 of what they add up; with the gap
and the cost of moves it is less than a piece."""


@dataclass(frozen=True, slots=True)
class Takes:
    """Entries (E,): what `one` of something, >= 0, takes of `row`, each pair once: amount (E,) > 0."""

    one: I64
    row: I64
    amount: I64


@dataclass(frozen=True, slots=True)
class Joining:
    """M rows, W ways, P pieces.

    free (M,); kind (W,) of tasks; ways: what a task takes in each; there (W,): how many tasks that may move run in each
    way; may_arrive (W,): how many more can. pieces: what one takes of free capacity; number (P,): how many there are of
    each at most. clears: pairs (2, E) of a piece, of which there is one at most, and a way in which no task may run
    then.
    """

    free: I64
    kind: I64
    ways: Takes
    there: I64
    may_arrive: I64
    pieces: Takes
    number: I64
    clears: I64

    def best(self, moves: int, before: int, per_piece: int, nodes: int, seconds: float) -> Joined | None:
        """The best of at most so many moves. before: the number of pieces without moves; per_piece: at most so many
        moves for each further one, 0: any number; nodes, seconds: see LinearProgram. None: nothing is found."""
        program = self._program(moves, before, per_piece)
        leave, arrive, piece = self._columns
        worth = np.zeros(len(leave) + len(arrive) + len(piece))
        worth[leave], worth[piece] = -_MOVES_WORTH / max(moves, 1), 1.0
        tasks = np.concatenate([self.there[self._occupied], self.may_arrive])
        upper = np.concatenate([np.minimum(tasks, moves), self.number])
        found = program.solve(worth, upper, _GAP, nodes, seconds)
        if found is None:
            return None
        limit = found.bound + _MOVES_WORTH
        bound, pieces = int(np.floor(limit + max(_ERROR, _RELATIVE_ERROR * limit))), int(found.x[piece].sum())
        # as many pieces by fewer moves
        program.add(np.array([-pieces]), np.zeros_like(piece), piece, np.full(len(piece), -1))
        worth[piece] = 0.0
        fewer = program.solve(worth, upper, _GAP * _MOVES_WORTH / moves, nodes // 100, seconds / 4)
        best = found if fewer is None or fewer.x[leave].sum() > found.x[leave].sum() else fewer
        return self._joined(best.x, bound)

    @property
    def _occupied(self) -> I64:
        """(V,) ways in which tasks run."""
        return np.flatnonzero(self.there)

    @property
    def _columns(self) -> tuple[I64, I64, I64]:
        """The columns of those that leave (V,), those that arrive (W,), and the pieces (P,)."""
        sizes = len(self._occupied), len(self.kind), len(self.number)
        leave, arrive, piece = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2])
        return leave, arrive, piece

    def _program(self, moves: int, before: int, per_piece: int) -> IntegerRows:
        ways, occupied = len(self.kind), self._occupied
        leave, arrive, piece = self._columns
        leave_of = np.full(ways, -1)
        leave_of[occupied] = leave
        program = IntegerRows()
        leaving = leave_of[self.ways.one] >= 0
        program.add(
            self.free,
            np.concatenate([self.ways.row, self.ways.row[leaving], self.pieces.row]),
            np.concatenate([arrive[self.ways.one], leave_of[self.ways.one[leaving]], piece[self.pieces.one]]),
            np.concatenate([self.ways.amount, -self.ways.amount[leaving], self.pieces.amount]),
        )
        kinds = int(self.kind.max(initial=-1)) + 1
        balance = np.concatenate([self.kind[occupied], self.kind]), np.concatenate([leave, arrive])
        sign = np.repeat([1, -1], [len(leave), len(arrive)])
        for entries in (sign, -sign):  # as many arrive as leave
            program.add(np.zeros(kinds, np.int64), *balance, entries)
        program.add(np.array([moves]), np.zeros_like(leave), leave, np.ones_like(leave))
        if per_piece:
            of_all = np.concatenate([leave, piece])
            entries = np.repeat([1, -per_piece], [len(leave), len(piece)])
            program.add(np.array([-per_piece * before]), np.zeros_like(of_all), of_all, entries)
        whole, way = self.clears[:, self.there[self.clears[1]] > 0]
        number = np.tile(np.arange(len(whole)), 2)
        columns = np.concatenate([piece[whole], leave_of[way]])
        entries = np.concatenate([self.there[way], np.full(len(whole), -1)])
        program.add(np.zeros(len(whole), np.int64), number, columns, entries)
        return program

    def _joined(self, x: I64, bound: int) -> Joined:
        leave, arrive, piece = self._columns
        gone: I64 = np.zeros(len(self.kind), np.int64)
        gone[self._occupied] = x[leave]
        both = np.minimum(gone, x[arrive])
        return Joined(gone - both, x[arrive] - both, x[piece], bound)


@dataclass(frozen=True, slots=True)
class Joined:
    """How many tasks leave each way (W,), and arrive in it (W,), never both; pieces (P,) that there are then; no moves
    within the limits leave more than `bound` of these."""

    leave: I64
    arrive: I64
    pieces: I64
    bound: int
