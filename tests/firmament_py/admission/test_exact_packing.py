"""The search for a placement of a gang of several classes, against brute force over all placements."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from firmament_py.admission.exact_packing import Kind, Packing, pack

MANY = 1_000_000


def brute_force(free, requests, suitable, kinds, lacking, lacking_of_role) -> bool:
    """Whether there is a placement: tries every node, or none, for every member."""
    members = [kind for kind in kinds for _ in range(kind.count)]
    for where in product(range(-1, len(free)), repeat=len(members)):
        placed = [(kind, node) for kind, node in zip(members, where, strict=True) if node >= 0]
        of_role = [sum(kind.role == role for kind, _ in placed) for role in range(len(lacking_of_role))]
        if len(placed) < lacking or any(h < n for h, n in zip(of_role, lacking_of_role, strict=True)):
            continue
        used = np.zeros_like(free)
        for kind, node in placed:
            used[node] += requests[kind.cls]
        if all(suitable[kind.cls, node] for kind, node in placed) and (used <= np.maximum(free, 0)).all():
            return True
    return False


def assert_right(found: Packing, free, requests, suitable, kinds, lacking, lacking_of_role):
    used = np.zeros_like(free)
    assert found.places is not None
    for kind, nodes in zip(kinds, found.places, strict=True):
        assert len(nodes) <= kind.count
        assert suitable[kind.cls, nodes].all()
        np.add.at(used, nodes, requests[kind.cls])
    assert (used <= np.maximum(free, 0)).all()
    assert sum(map(len, found.places)) == lacking
    for role, need in enumerate(lacking_of_role):
        assert sum(len(nodes) for kind, nodes in zip(kinds, found.places, strict=True) if kind.role == role) >= need


@st.composite
def problems(draw):
    """Up to three nodes, three classes, three resources, six members."""
    nodes, classes, resources = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def amounts(rows, maximum, least=0):
        row = st.lists(st.integers(least, maximum), min_size=resources, max_size=resources)
        return np.array(draw(st.lists(row, min_size=rows, max_size=rows)), np.int64)

    suits = st.lists(st.sampled_from([True, True, False]), min_size=nodes, max_size=nodes)
    suitable = np.array(draw(st.lists(suits, min_size=classes, max_size=classes)), np.bool_)
    pairs = draw(st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, 2)), min_size=1, unique=True))
    kinds = [Kind(cls, role, draw(st.integers(1, 3))) for cls, role in pairs]
    while sum(kind.count for kind in kinds) > 6:
        kinds.pop()
    present = [sum(kind.count for kind in kinds if kind.role == role) for role in range(2)]
    of_role = [draw(st.integers(0, maximum)) for maximum in present]
    lacking = draw(st.integers(max(sum(of_role), 1), max(sum(kind.count for kind in kinds), 1)))
    return amounts(nodes, 6, -1), amounts(classes, 4), suitable, kinds, lacking, of_role


@pytest.mark.slow
@given(problem=problems())
def test_a_packing_is_found_if_and_only_if_one_exists(problem):
    found = pack(*(*problem, MANY))
    there_is = brute_force(*problem)
    event(f"there is a way: {there_is}")
    assert found.proven
    assert (found.places is not None) is there_is
    if there_is:
        assert_right(found, *problem)


@pytest.mark.slow
@given(problem=problems(), steps=st.integers(1, 5))
def test_a_search_that_gives_up_is_reported(problem, steps):
    found = pack(*(*problem, steps))
    assert found.steps <= steps
    if found.places is not None:
        assert_right(found, *problem)
    elif found.proven:
        assert not brute_force(*problem)


def test_many_members_on_many_nodes_need_no_backtracking():
    """Three sizes that fill 500 nodes to the last unit: 8 = 5 + 3 and 8 = 6 + 1 + 1."""
    free = np.full((500, 1), 8, np.int64)
    requests = np.array([[6], [5], [3], [1]], np.int64)
    kinds = [Kind(0, 0, 250), Kind(1, 0, 250), Kind(2, 0, 250), Kind(3, 0, 500)]
    found = pack(free, requests, np.ones((4, 500), np.bool_), kinds, 1250, [], max_steps=1500)
    assert_right(found, free, requests, np.ones((4, 500), np.bool_), kinds, 1250, [])


def test_memory_does_not_grow_with_nodes_times_steps():
    """What has failed is remembered without the amounts of all nodes."""
    rng = np.random.default_rng(1)
    free = rng.integers(1, 8, (4000, 5))
    free[:14] = np.column_stack([rng.integers(40, 100, (14, 2)), np.full((14, 3), 1000)])
    requests = np.ones((8, 5), np.int64)
    requests[:, :2] = rng.integers(11, 37, (8, 2))
    suitable = np.zeros((8, len(free)), np.bool_)
    suitable[:, :14] = True
    kinds = [Kind(cls, 0, 6) for cls in range(8)]
    tracemalloc.start()
    found = pack(free, requests, suitable, kinds, 38, [], max_steps=2000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.steps > 500
    assert peak < 20 * free.nbytes


@pytest.mark.parametrize(("members", "fits"), [(4, True), (5, False)])
def test_equal_nodes_are_tried_once(members, fits):
    """Members of 3 on 4 nodes of 5 with one of 2: without symmetry 5 would take thousands of steps to rule out."""
    free = np.full((4, 2), 5, np.int64)
    requests = np.array([[3, 1], [2, 3]], np.int64)
    kinds = [Kind(0, 0, members), Kind(1, 0, 4)]
    found = pack(free, requests, np.ones((2, 4), np.bool_), kinds, members + 4, [], max_steps=50)
    assert found.proven
    assert (found.places is not None) is fits
