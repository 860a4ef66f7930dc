"""How residents of nodes are grouped and ordered."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.preemption.residents import first_of_each, grouped

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.sampled_from([-(2**40), 0, 2**40])), max_size=30)


@given(rows)
def test_alike_rows_have_one_number(table):
    columns = [np.array([row[k] for row in table], np.int64) for k in range(3)]
    number, first = grouped(*columns)
    assert len(first) == len(set(table))
    assert [table[first[n]] for n in number.tolist()] == table
    if len(first):
        assert sorted(set(number.tolist())) == list(range(len(first)))


@given(st.lists(st.integers(0, 4), max_size=20), st.randoms(use_true_random=False))
def test_the_first_of_each_group_in_an_order(groups, random):
    order = list(range(len(groups)))
    random.shuffle(order)
    taken = [random.randint(0, groups.count(g)) for g in range(5)]
    found = first_of_each(np.array(groups, np.int64), np.array(order, np.int64), np.array(taken, np.int64))
    expected = {i for g in range(5) for i in [j for j in order if groups[j] == g][: taken[g]]}
    assert set(found.tolist()) == expected
    assert len(found) == len(expected)
