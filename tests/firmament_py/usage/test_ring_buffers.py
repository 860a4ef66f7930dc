"""Rings of samples against plain Python, while rows are reused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmament_py.usage.ring_buffers import BYTES_PER_ROW, BYTES_PER_SAMPLE, METRICS, Rings

SECOND = 1_000_000
HALF_LIFE, STALE, DEPTH = 60 * SECOND, 300 * SECOND, 4


def decayed(samples, now, half_life=HALF_LIFE, stale=STALE):
    """METRICS of (time, values) samples, by the definition."""
    means = []
    for metric in range(len(METRICS)):
        pairs = [(at, v[metric]) for at, v in samples if now - at <= stale and not math.isnan(v[metric])]
        weights = [2.0 ** (-(now - at) / half_life) for at, _ in pairs]
        total = sum(w * v for w, (_, v) in zip(weights, pairs, strict=True))
        means.append(total / sum(weights) if pairs else math.nan)
    return means


class Oracle:
    """The content of rings: for each row the generation and its samples, oldest first."""

    def __init__(self, depth) -> None:
        self.depth = depth
        self.rows: dict[int, tuple[int, list[tuple[int, list[float]]]]] = {}

    def add(self, batch):
        """(row, generation, time, values) in the order of arrival; how many were new."""
        new = 0
        for row in {row for row, *_ in batch}:
            generation = next(t for r, t, *_ in batch if r == row)
            if row not in self.rows or self.rows[row][0] != generation:
                self.rows[row] = (generation, [])
            samples = self.rows[row][1]
            newest = max((at for at, _ in samples), default=0)
            fresh = {at: values for r, _, at, values in batch if r == row and at > newest}
            new += len(fresh)
            samples.extend(sorted(fresh.items()))
            del samples[: -self.depth]
        return new


amounts = st.one_of(st.just(math.nan), st.floats(1e-3, 1e12), st.integers(0, 8).map(float))


class RingsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rings = Rings(DEPTH, HALF_LIFE, STALE)
        self.oracle = Oracle(DEPTH)
        self.generation = dict.fromkeys(range(6), 1)
        self.generations = 1
        self.now = 1_000 * SECOND

    @rule(row=st.integers(0, 5))
    def use_again(self, row):
        self.generations += 1
        self.generation[row] = self.generations

    @rule(seconds=st.integers(0, 400))
    def wait(self, seconds):
        self.now += seconds * SECOND

    @rule(data=st.data())
    def add(self, data):
        row = st.tuples(st.integers(0, 5), st.integers(0, 30), st.lists(amounts, min_size=4, max_size=4))
        drawn = data.draw(st.lists(row, max_size=12))
        batch = [(row, self.generation[row], self.now - age * SECOND, values) for row, age, values in drawn]
        rows, generations, at = np.array([three for *three, _ in batch], np.int64).reshape(-1, 3).T
        values = np.array([values for *_, values in batch], np.float64).reshape(-1, len(METRICS))
        assert self.rings.add(rows, generations, at, values) == self.oracle.add(batch)

    @rule(data=st.data())
    def move(self, data):
        """Rows are renumbered, some are removed; the new uses of rows count as other generations."""
        before = data.draw(st.lists(st.integers(0, 5), unique=True))
        after = data.draw(st.permutations(range(6)))[: len(before)]
        generations = [self.generation[row] for row in before]
        self.generations += 1
        self.rings = self.rings.move(
            np.array(before, np.int64),
            np.array(generations, np.int64),
            np.array(after, np.int64),
            np.full(len(after), self.generations),
        )
        remaining = {}
        for old, generation, new in zip(before, generations, after, strict=True):
            if old in self.oracle.rows and self.oracle.rows[old][0] == generation:
                remaining[new] = (self.generations, self.oracle.rows[old][1])
        self.oracle.rows = remaining
        self.generation |= dict.fromkeys(after, self.generations)

    @invariant()
    def means_are_those_of_the_definition(self):
        rows = list(range(6))
        generations = [self.generation[row] for row in rows]
        means, newest = self.rings.means(np.array(rows), np.array(generations), self.now)
        for row in rows:
            there = row in self.oracle.rows and self.oracle.rows[row][0] == self.generation[row]
            samples = self.oracle.rows[row][1] if there else []
            assert newest[row] == max((at for at, _ in samples), default=0)
            for found, expected in zip(means[row].tolist(), decayed(samples, self.now), strict=True):
                assert (math.isnan(found) and math.isnan(expected)) or math.isclose(found, expected, rel_tol=1e-9)
            assert repr(self.rings.samples(row, self.generation[row])) == repr(samples)


TestRings = RingsMachine.TestCase


def column(*values):
    return np.array(values, np.int64)


def cpu(*values):
    return np.array([[v, math.nan, math.nan, math.nan] for v in values], np.float64)


def test_a_sample_counts_half_after_its_half_life():
    rings = Rings(10, HALF_LIFE, STALE)
    now = 1_000 * SECOND
    rings.add(column(0, 0), column(1, 1), column(now - HALF_LIFE, now), cpu(600, 300))
    means, newest = rings.means(column(0), column(1), now)
    assert means[0, 0] == 400.0  # (1/2 x 600 + 1 x 300) / (3/2)
    assert newest.tolist() == [now]


def test_each_stale_sample_is_ignored():
    rings = Rings(10, HALF_LIFE, STALE)
    start = 1_000 * SECOND
    rings.add(column(0, 0), column(1, 1), column(start, start + 60 * SECOND), cpu(600, 300))
    assert rings.means(column(0), column(1), start + STALE)[0][0, 0] == 400.0
    assert rings.means(column(0), column(1), start + STALE + 1)[0][0, 0] == 300.0
    means, newest = rings.means(column(0), column(1), start + STALE + 60 * SECOND + 1)
    assert math.isnan(means[0, 0])
    assert newest[0] == start + 60 * SECOND, "its age is known still"


def test_a_new_generation_inherits_nothing():
    rings = Rings(10, HALF_LIFE, STALE)
    rings.add(column(3), column(7), column(SECOND), cpu(600))
    means, newest = rings.means(column(3), column(8), SECOND)
    assert (math.isnan(means[0, 0]), newest[0]) == (True, 0)
    assert rings.add(column(3), column(8), column(SECOND // 2), cpu(100)) == 1, "older than the other's, but its first"
    assert rings.means(column(3), column(8), SECOND)[0][0, 0] == 100.0
    assert rings.samples(3, 7) == []


def test_a_metric_that_is_missing_from_the_newest_sample_is_taken_from_older_ones():
    rings = Rings(10, HALF_LIFE, STALE)
    values = np.array([[1.0, 2.0, 3.0, math.nan], [5.0, math.nan, math.nan, math.nan]])
    rings.add(column(0, 0), column(1, 1), column(SECOND, SECOND + 1), values)
    means, _ = rings.means(column(0), column(1), 2 * SECOND)
    assert means[0, 1:3].tolist() == pytest.approx([2.0, 3.0])
    assert math.isnan(means[0, 3])


@given(order=st.permutations(range(8)))
def test_the_order_of_arrival_within_a_batch_does_not_matter(order):
    rings = Rings(DEPTH, HALF_LIFE, STALE)
    at = [SECOND * (i + 1) for i in order]
    assert rings.add(column(*[0] * 8), column(*[1] * 8), column(*at), cpu(*order)) == 8
    assert [v[0] for _, v in rings.samples(0, 1)] == [4.0, 5.0, 6.0, 7.0]


def test_memory_is_determined_by_the_highest_row():
    rings = Rings(10, HALF_LIFE, STALE)
    assert rings.nbytes == 0
    rings.add(column(999), column(1), column(SECOND), cpu(1))
    assert rings.nbytes == 1000 * (BYTES_PER_ROW + 10 * BYTES_PER_SAMPLE)
    assert rings.nbytes == 1000 * 464  # as the documentation says
    for _ in range(100):
        rings.add(column(5), column(1), column(SECOND), cpu(1))
    assert rings.nbytes == 1000 * 464


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_a_ring_holds_depth_samples(depth):
    rings = Rings(depth, HALF_LIFE, STALE)
    for i in range(1, 20):
        rings.add(column(0), column(1), column(i * SECOND), cpu(i))
    assert [v[0] for _, v in rings.samples(0, 1)] == [float(i) for i in range(20 - depth, 20)]
