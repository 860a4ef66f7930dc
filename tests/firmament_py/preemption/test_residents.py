"""How residents of nodes are ordered."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.preemption.residents import first_of_each


@given(st.lists(st.integers(0, 4), max_size=20), st.randoms(use_true_random=False))
def test_the_first_of_each_group_in_an_order(groups, random):
    order = list(range(len(groups)))
    random.shuffle(order)
    taken = [random.randint(0, groups.count(g)) for g in range(5)]
    found = first_of_each(np.array(groups, np.int64), np.array(order, np.int64), np.array(taken, np.int64))
    expected = {i for g in range(5) for i in [j for j in order if groups[j] == g][: taken[g]]}
    assert set(found.tolist()) == expected
    assert len(found) == len(expected)
