"""The last samples of each row of a table, and their exponentially decayed means.

One ring of `depth` samples per row, as arrays: a sample is a time and one value per metric, NaN if not measured. A ring
belongs to one use of its row (`generation` of state/table.py): samples of the next use replace all older ones, and
samples of another use are never returned. There are rings up to the highest row that ever had a sample, growing by
doubling; each takes BYTES_PER_ROW + depth x BYTES_PER_SAMPLE.

    mean = sum(2**(-(newest - at) / half_life) x value) / sum(2**(-(newest - at) / half_life))

over the values of the samples that are not older than `stale`. As only ratios of weights count, weights are relative to
the newest sample: the mean changes when a sample is added or becomes stale, and is cached until then.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64, group_starts, run_positions

METRICS = ("cpu", "memory", "rx", "tx")
"""Millicores; bytes; bytes per second received and sent."""

BYTES_PER_ROW = 4 * 8 + len(METRICS) * 8
BYTES_PER_SAMPLE = 8 + len(METRICS) * 8

_NEVER = 2**63 - 1


class Rings:
    """Times are in microseconds since the epoch, above 0. M metrics."""

    def __init__(self, depth: int, half_life_us: int, stale_us: int) -> None:
        self._depth = depth
        self._half_life_us = half_life_us
        self._stale_us = stale_us
        self._generation: I64 = np.zeros(0, np.int64)  # 0: no samples in this row
        self._next: I64 = np.zeros(0, np.int64)  # position of the next sample in the ring
        self._newest: I64 = np.zeros(0, np.int64)
        self._good_until: I64 = np.zeros(0, np.int64)  # when _mean must be computed again
        self._mean: F64 = np.zeros((0, len(METRICS)))
        self._at: I64 = np.zeros((0, depth), np.int64)  # 0: empty
        self._values: F64 = np.zeros((0, depth, len(METRICS)))

    def add(self, rows: I64, generations: I64, at_us: I64, values: F64) -> int:
        """Adds samples (K,), values (K, M), in any order; a row may have several. Returns the number of new ones.

        A sample is skipped unless it is newer than all earlier samples of its ring. Of two samples of one time the last
        counts; of more samples than a ring holds the newest are kept, and all of them count as new.
        """
        if not len(rows):
            return 0
        self._make_room(int(rows.max()) + 1)
        self._give_to(rows, generations)
        order = np.lexsort((at_us, rows))
        rows, at_us = rows[order], at_us[order]
        last_of_moment = np.r_[(rows[1:] != rows[:-1]) | (at_us[1:] != at_us[:-1]), True]
        keep = last_of_moment & (at_us > self._newest[rows])
        rows, at_us, order = rows[keep], at_us[keep], order[keep]
        new = len(rows)
        if not new:
            return 0
        owners, counts = np.unique(rows, return_counts=True)
        position = run_positions(counts)
        fits = position >= np.repeat(counts - self._depth, counts)
        slot = (self._next[rows] + position)[fits] % self._depth
        self._at[rows[fits], slot] = at_us[fits]
        self._values[rows[fits], slot] = values[order[fits]]
        self._next[owners] = (self._next[owners] + counts) % self._depth
        self._newest[owners] = at_us[group_starts(counts) + counts - 1]
        self._good_until[owners] = 0
        return new

    def means(self, rows: I64, generations: I64, now_us: int) -> tuple[F64, I64]:
        """The decayed means of `rows` (K,) as (K, M), NaN where all samples are stale or missing, and the times of
        their newest samples, (K,), 0 if there were none. `now_us` must not decrease from call to call."""
        means = np.full((len(rows), len(METRICS)), np.nan)
        newest = np.zeros(len(rows), np.int64)
        mine = np.flatnonzero(rows < len(self._generation))
        mine = mine[self._generation[rows[mine]] == generations[mine]]
        known = rows[mine]
        self._compute(known[self._good_until[known] <= now_us], now_us)
        means[mine], newest[mine] = self._mean[known], self._newest[known]
        return means, newest

    def samples(self, row: int, generation: int) -> list[tuple[int, list[float]]]:
        """Times and values of one row's samples, oldest first, for tests and debugging."""
        if row >= len(self._generation) or self._generation[row] != generation:
            return []
        order = [i for i in np.argsort(self._at[row], kind="stable").tolist() if self._at[row, i]]
        return [(int(self._at[row, i]), self._values[row, i].tolist()) for i in order]

    def move(self, before: I64, generations_before: I64, after: I64, generations_after: I64) -> "Rings":
        """New rings in which rows `after` (K,) have the samples of rows `before` (K,) here; other rows have none."""
        moved = Rings(self._depth, self._half_life_us, self._stale_us)
        mine = np.flatnonzero(before < len(self._generation))
        mine = mine[self._generation[before[mine]] == generations_before[mine]]
        before, after = before[mine], after[mine]
        moved._make_room(int(after.max(initial=-1)) + 1)
        for name in ("_next", "_newest", "_at", "_values"):
            getattr(moved, name)[after] = getattr(self, name)[before]
        moved._generation[after] = generations_after[mine]
        return moved

    @property
    def nbytes(self) -> int:
        """Memory of all rings, in bytes."""
        arrays = (self._generation, self._next, self._newest, self._good_until, self._mean, self._at, self._values)
        return sum(array.nbytes for array in arrays)

    def _compute(self, rows: I64, now_us: int) -> None:
        if not len(rows):
            return
        oldest_counted = now_us - self._stale_us
        newest = self._newest[rows]
        total = np.zeros((len(rows), len(METRICS)))
        weights = np.zeros_like(total)
        expires: I64 = np.full(len(rows), _NEVER)
        for slot in range(self._depth):  # a handful; each step is one pass over all rows
            at, values = self._at[rows, slot], self._values[rows, slot]
            counts = (at > 0) & (at >= oldest_counted)
            np.minimum(expires, np.where(counts, at + self._stale_us + 1, _NEVER), out=expires)
            weight = np.where(counts, np.exp2((at - newest) / self._half_life_us), 0.0)[:, None] * ~np.isnan(values)
            total += weight * np.nan_to_num(values)
            weights += weight
        self._mean[rows] = np.divide(total, weights, out=np.full_like(total, np.nan), where=weights > 0)
        self._good_until[rows] = expires

    def _give_to(self, rows: I64, generations: I64) -> None:
        """Empties the rings of rows that have been reused since."""
        other = self._generation[rows] != generations
        if other.any():
            taken, by = rows[other], generations[other]
            self._at[taken] = 0
            self._newest[taken] = self._next[taken] = self._good_until[taken] = 0
            self._generation[taken] = by

    def _make_room(self, rows: int) -> None:
        before = len(self._generation)
        if rows <= before:
            return
        after = max(rows, 2 * before)
        for name in ("_generation", "_next", "_newest", "_good_until", "_mean", "_at", "_values"):
            old = getattr(self, name)
            new = np.zeros((after, *old.shape[1:]), old.dtype)
            new[:before] = old
            setattr(self, name, new)
