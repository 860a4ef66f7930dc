"""Names for the array types of the engine; docstrings of values state their shapes."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
F64: TypeAlias = NDArray[np.float64]
I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
U32: TypeAlias = NDArray[np.uint32]
U64: TypeAlias = NDArray[np.uint64]

NO_ROWS: I64 = np.zeros(0, np.int64)


def group_starts(counts: I64) -> I64:
    """Start of each of len(counts) consecutive runs: counts (K,) -> starts (K,), starts[0] = 0."""
    starts = np.zeros(len(counts), np.int64)
    np.cumsum(counts[:-1], out=starts[1:])
    return starts


def run_positions(counts: I64) -> I64:
    """0, 1, .., counts[0]-1, 0, 1, .., counts[1]-1, ...: (sum(counts),)."""
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(group_starts(counts), counts)


def runs(values: I64) -> tuple[I64, I64]:
    """Of values (K,), in which equal ones follow each other: the start of each run of equal ones (C,), and the number
    of each value's run (K,)."""
    begins = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins.nonzero()[0], begins.cumsum() - 1


def distinct(values: I64) -> tuple[I64, I64]:
    """Of values (K,): the position where each distinct one (D,), ascending, is first, and the number of each value's
    (K,). np.unique takes twenty times as long for one value, as in rounds for one task."""
    if len(values) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    return first, number.reshape(-1)


def distinct_rows(table: I64 | Bools) -> tuple[I64, I64]:
    """Of integers (K, C): the position where each distinct row (D,), in lexicographic order, is first, and the number
    of each row's (K,). Columns become one number as long as it has room: np.unique compares whole rows to sort them,
    which takes ten times as long."""
    number, size = np.zeros(len(table), np.int64), 1
    for column in table.T:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if size * span > 2**62:
            number = distinct(number)[1]
            size = int(number.max(initial=0)) + 1
        if size * span > 2**62:
            column = distinct(column)[1]
            low, span = 0, int(column.max(initial=0)) + 1
        number, size = number * span + (column - low), size * span
    return distinct(number)


def counts_of(values: I64, below: int) -> tuple[I64, I64]:
    """The distinct ones of values (K,), 0 <= value < below, ascending, and how often each occurs; without sorting if
    there are not many more possible values than K."""
    if below > 16 * len(values) + 1024:
        return np.unique(values, return_counts=True)
    count = np.bincount(values)
    distinct = np.flatnonzero(count)
    return distinct, count[distinct]


def stable_order(values: I64, below: int) -> I64:
    """The stable sort order of values (K,), 0 <= value < below; numpy sorts values that fit into 16 bits by radix, ten
    times as fast."""
    return np.argsort(values.astype(np.uint16) if below <= 2**16 else values, kind="stable")


def smallest(values: I64, count: int) -> I64:
    """(count,) ascending: the positions of so many of the least values (N,), the first ones at a tie, which numpy's
    partitions decide otherwise on other processors."""
    if count >= len(values):
        return np.arange(len(values))
    if count <= 0:
        return np.zeros(0, np.int64)
    limit = np.partition(values, count - 1)[count - 1]
    chosen = values < limit
    chosen[np.flatnonzero(values == limit)[: count - int(chosen.sum())]] = True
    return np.flatnonzero(chosen)


def positions_in(rows: I64, size: int) -> I64:
    """(size + 1,) the position in `rows` (K,) of each number below size, -1: none; the last one for -1, no row."""
    position = np.full(size + 1, -1, np.int64)
    position[rows] = np.arange(len(rows))
    return position


def values_at(keys: I64, values: I64, chosen: I64) -> I64:
    """(K,) the values (T,) of those of the distinct keys (T,) that are chosen (K,), all of which are there."""
    order = np.argsort(keys)
    found: I64 = values[order[np.searchsorted(keys, chosen, sorter=order)]]
    return found


def add_rows(matrix: I64, rows: I64, amounts: I64) -> None:
    """Adds amounts (K, R) to rows (K,) of `matrix` (N, R), which can name a row several times."""
    if len(rows) < 2:
        for row in rows.tolist():
            matrix[row] += amounts[0]
        return
    for r in range(matrix.shape[1]):  # numpy handles repeated indices of a column thirty times as fast as those of rows
        np.add.at(matrix[:, r], rows, amounts[:, r])


def mix(matrix: I64 | Bools | list[I64], seed: int) -> U64:
    """A 64-bit hash of each column of `matrix` (K, N), or of its rows -> (N,): equal columns have equal hashes.

    A random linear combination modulo 2**64: two different columns collide with a probability of about 2**-63.
    Deterministic for a seed.
    """
    random = np.random.default_rng(seed)
    weights: U64 = 2 * random.integers(0, 2**63, size=len(matrix), dtype=np.uint64) + 1  # odd, so invertible
    result: U64 = np.zeros(len(matrix[0]) if isinstance(matrix, list) else matrix.shape[1], np.uint64)
    for k in range(len(matrix)):
        row = matrix[k]
        row = row.view(np.uint64) if row.dtype == np.int64 else row.astype(np.uint64)
        result += row * weights[k]  # wraps around
    return result
