"""What the search for a packing calculates with, in Python instead of compiled."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.packing import search_math
from firmament_py.packing.search_math import IndexSet
from tests.effort import examples

insert, clear, any_with, uniform = (
    cast(Any, getattr(search_math, name)).py_func for name in ("insert", "clear", "any_with", "uniform")
)


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch):
    """Nothing calls compiled functions, which have no entry for Python."""
    monkeypatch.setattr(search_math, "uniform", uniform)
    with np.errstate(over="ignore"):
        yield


def members(some: IndexSet) -> list[int]:
    """The members, which `contains` must agree with."""
    found: list[int] = some.members[: some.length[0]].tolist()
    assert sorted(found) == np.flatnonzero(some.contains).tolist()
    return found


def test_random_numbers_are_those_of_splitmix64():
    """The published sequence of the seed 1234567, of which a double takes the upper 53 bits."""
    state = np.array([1234567], np.uint64)
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [uniform(state) for _ in published] == [(number >> 11) * 2.0**-53 for number in published]


@examples(60)
@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6), unique=True))
def test_a_set_has_what_was_inserted_until_it_is_cleared(inserted, at_first):
    some = IndexSet.of(np.array(at_first, np.int64), 7)
    for i in inserted:
        insert(i, some)
    assert sorted(members(some)) == sorted({*at_first, *inserted})
    clear(some)
    assert members(some) == []
    insert(3, some)
    assert members(some) == [3]


@examples(60)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=7), st.integers(0, 2**64 - 1))
def test_a_member_is_chosen_of_which_some_are_left(number, seed):
    """Others leave the set when they are met, and only they."""
    some = IndexSet.of(np.arange(len(number)), len(number))
    chosen = any_with(np.array(number), some, np.array([seed], np.uint64))
    left = {i for i, count in enumerate(number) if count > 0}
    assert left <= {*members(some)}
    assert chosen in left if left else (chosen, members(some)) == (-1, [])


def test_every_member_is_as_likely():
    some, rng = IndexSet.of(np.arange(4), 4), np.array([1], np.uint64)
    drawn = [any_with(np.array([1, 1, 1, 1]), some, rng) for _ in range(4000)]
    assert np.bincount(drawn, minlength=4).min() > 850
