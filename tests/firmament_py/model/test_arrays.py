"""Counting of values, with sorting and without."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.arrays import counts_of


@given(st.lists(st.integers(0, 50), max_size=40), st.sampled_from([51, 10**12]))
def test_counts_of_values(values, below):
    """A large bound is one for which all values are sorted."""
    distinct, count = counts_of(np.array(values, np.int64), below)
    assert dict(zip(distinct.tolist(), count.tolist(), strict=True)) == {v: values.count(v) for v in values}
    assert distinct.tolist() == sorted(set(values))
