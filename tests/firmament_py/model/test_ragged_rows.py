"""Rows of different lengths against a dictionary of lists."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmament_py.model.ragged_rows import RaggedRows

entries = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=40)


class Rows(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.rows = RaggedRows(2)
        self.expected: dict[int, list[tuple[int, int]]] = {}

    @rule(row=st.integers(0, 80), values=entries)
    def set(self, row, values):
        if row in self.expected:
            self.remove({row})
        self.rows.set(row, np.array(values, np.int64).reshape(-1, 2))
        self.expected[row] = values

    @rule(rows=st.sets(st.integers(0, 80)))
    def remove(self, rows):
        known = sorted(rows & self.expected.keys())
        self.rows.remove(np.array(known, np.int64))
        for row in known:
            del self.expected[row]

    @rule(data=st.data())
    def read(self, data):
        rows = data.draw(st.lists(st.sampled_from(sorted(self.expected)), max_size=9)) if self.expected else []
        found, count = self.rows.of(np.array(rows, np.int64))
        assert count.tolist() == [len(self.expected[row]) for row in rows]
        assert found.tolist() == [list(entry) for row in rows for entry in self.expected[row]]

    @rule()
    def change_all(self):
        self.rows.all()[:, 1] += 1
        self.expected = {row: [(a, b + 1) for a, b in values] for row, values in self.expected.items()}

    @invariant()
    def space_of_removed_rows_is_bounded(self):
        live = sum(len(values) for values in self.expected.values())
        longest = 40
        assert len(self.rows._entries) <= max(64, 4 * (self.largest(live) + longest))

    def largest(self, live):
        self.peak = max(getattr(self, "peak", 0), live)
        return self.peak


TestRows = Rows.TestCase
