"""Packings by patterns of equal hosts, compared with the best ones and with the program that knows all patterns."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.packing.equal_nodes import equal_nodes, on_nodes, repacked_by_patterns
from firmament_py.packing.linear_program import LinearProgram
from firmament_py.packing.pack import gap_of_groups, pack
from firmament_py.packing.patterns import Patterns, pack_patterns
from firmament_py.packing.problem import Packing, Problem, higher, values, values_of
from tests.effort import examples, seeds
from tests.firmament_py.packing.packings import assert_valid, best_values, make_problem, placed, problems

EFFORT = 2_000_000


def some_problem(seed: int, groups: int = 4, classes: int = 6, levels: int = 2) -> Problem:
    """One node for each group."""
    rng = np.random.default_rng(seed)
    return make_problem(
        rng.integers(1, 9, (classes, 2)),
        rng.integers(8, 25, (groups, 2)),
        rng.integers(20, 120, classes),
        suitable=rng.random((classes, groups)) < 0.8,
        value=rng.choice([1.0, 1.0, 1.5], classes).tolist(),
        level=np.unique(rng.integers(0, levels, classes), return_inverse=True)[1].tolist(),
    )


def assert_fits(problem: Problem, hosts: np.ndarray, patterns: Patterns) -> None:
    """No host holds more than it has, or what does not suit it; no task is on two hosts."""
    assert (patterns.hosts > 0).all()
    assert (np.bincount(patterns.group, patterns.hosts, len(hosts)) == hosts).all()
    assert (patterns.tasks >= 0).all()
    assert (patterns.tasks @ problem.requests <= problem.free[patterns.group]).all()
    assert (patterns.tasks[~problem.suitable[:, patterns.group].T] == 0).all()
    assert (patterns.left >= 0).all()
    assert (patterns.hosts @ patterns.tasks + patterns.left == problem.count).all()


def most_of_first_level(problem: Problem, hosts: np.ndarray) -> tuple[float, float]:
    """A bound on the value of level 0 by all patterns there are, and by how much rounding may miss it: by one host for
    each row of the program."""
    worth = np.where(problem.level == 0, problem.value, 0.0)
    found = []
    for g in range(len(hosts)):
        ranges = [range(int(s) + 1 if w else 1) for s, w in zip(problem.slots[:, g], worth, strict=True)]
        patterns = np.array(list(product(*ranges)))
        found.append(patterns[(patterns @ problem.requests <= problem.free[g]).all(axis=1)])
    group, tasks = np.repeat(np.arange(len(hosts)), [len(one) for one in found]), np.concatenate(found)
    pattern, cls = np.nonzero(tasks)
    classes = len(worth)
    solved = LinearProgram(
        objective=np.r_[worth, np.zeros(len(tasks))],
        upper=np.r_[problem.count, hosts[group]].astype(np.float64),
        limit=np.r_[np.zeros(classes), hosts].astype(np.float64),
        row=np.r_[np.arange(classes), cls, classes + group],
        column=np.r_[np.arange(classes), classes + pattern, classes + np.arange(len(tasks))],
        entry=np.r_[np.ones(classes), -tasks[pattern, cls], np.ones(len(tasks))].astype(np.float64),
    ).solve()
    assert solved is not None
    return solved.bound, float((len(hosts) + classes) * (tasks @ worth).max())


@examples(80)
@given(problems(), st.data())
def test_small_packings_are_valid_and_not_better_than_the_best(problem, data):
    groups = len(problem.free)
    hosts = np.array(data.draw(st.lists(st.integers(1, 2), min_size=groups, max_size=groups)))
    patterns = pack_patterns(problem, hosts, EFFORT)
    assert_fits(problem, hosts, patterns)
    best = best_values(on_nodes(problem, np.repeat(np.arange(groups), hosts)))
    reached = values_of(problem, patterns.left).round(6).tolist()
    assert reached <= best
    for mine, optimum, gap in zip(reached, best, gap_of_groups(problem, hosts, patterns.left), strict=True):
        assert optimum <= mine + gap + 1e-6
        if optimum != mine:
            break


@seeds(16)
def test_the_first_level_loses_no_more_than_rounding_does(seed):
    problem = some_problem(seed)
    hosts = np.random.default_rng(seed).integers(5, 60, len(problem.free))
    patterns = pack_patterns(problem, hosts, EFFORT)
    assert_fits(problem, hosts, patterns)
    bound, loss = most_of_first_level(problem, hosts)
    first = values_of(problem, patterns.left)[0]
    assert bound - loss <= first <= bound + 1e-6
    assert first >= 0.97 * bound


@seeds(8)
def test_with_many_hosts_the_first_level_reaches_its_bound_nearly(seed):
    problem = some_problem(seed)
    scale = 1000
    hosts = scale * np.random.default_rng(seed).integers(5, 60, len(problem.free))
    count = scale * problem.count
    problem = make_problem(
        problem.requests,
        problem.free,
        count,
        suitable=problem.suitable,
        value=problem.value.tolist(),
        level=problem.level.tolist(),
    )
    bound, _ = most_of_first_level(problem, hosts)
    assert values_of(problem, pack_patterns(problem, hosts, EFFORT).left)[0] >= 0.999 * bound


@pytest.mark.parametrize("levels", [1, 3, 12])
def test_any_number_of_levels(levels):
    problem = some_problem(1, classes=24, levels=levels)
    hosts = np.full(len(problem.free), 20)
    assert_fits(problem, hosts, pack_patterns(problem, hosts, EFFORT))


def test_without_effort_a_packing_is_valid():
    problem, hosts = some_problem(2), np.full(4, 10)
    assert_fits(problem, hosts, pack_patterns(problem, hosts, 0))


def test_equal_arguments_give_equal_patterns():
    problem, hosts = some_problem(3), np.full(4, 30)
    one, other = (pack_patterns(problem, hosts, EFFORT) for _ in range(2))
    assert (one.tasks == other.tasks).all()
    assert (one.hosts == other.hosts).all()


def test_what_fits_is_placed_if_pairs_block_each_other():
    """Hosts of 4 cpu and 8 GiB: one of each class fills a host, two of the same block it."""
    problem = make_problem([[3, 2], [1, 6]], [[4, 8]], [1000, 1000])
    patterns = pack_patterns(problem, np.array([1000]), EFFORT)
    assert patterns.left.tolist() == [0, 0]
    assert gap_of_groups(problem, np.array([1000]), patterns.left).tolist() == [0.0]


def test_nodes_are_equal_that_have_the_same_free_and_suit_the_same_classes():
    free = np.array([[4, 8], [4, 8], [4, 9], [4, 8], [4, 8]])
    suitable = np.array([[1, 1, 1, 0, 1], [0, 1, 0, 0, 0]], np.bool_)
    assert equal_nodes(free, suitable, np.array([0])).tolist() == [0, 0, 1, 2, 0]
    assert equal_nodes(free, suitable, np.array([0, 1])).tolist() == [0, 1, 2, 3, 0]
    many = np.zeros((1000, 5), np.bool_)
    many[999, 4] = True
    assert equal_nodes(free[:, :0], many, np.arange(1000)).tolist() == [0, 0, 0, 0, 1]


def expanded(seed: int) -> tuple[Problem, Problem, np.ndarray]:
    """A problem of groups, that of their nodes in any order, and the groups of these; one has too few nodes."""
    groups = some_problem(seed)
    of_node = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2, 3], [9, 20, 2, 11]))
    return groups, on_nodes(groups, of_node), of_node


@seeds(8)
def test_nodes_of_small_groups_stay_as_they_are(seed):
    groups, problem, of_node = expanded(seed)
    (few,) = (of_node == 2).nonzero()
    alone = on_nodes(problem, few)
    cls, node, number = pack(alone, Packing.empty(alone), 0).packing.entries()
    before = Packing.of(problem, cls, few[node], number)
    assert len(cls)
    found = repacked_by_patterns(groups, of_node, before.entries(), EFFORT)
    assert found is not None
    after = Packing.of(problem, *found)
    assert_valid(problem, after)
    assert (placed(problem, after)[:, few] == placed(problem, before)[:, few]).all()
    assert higher(values(problem, after), values(problem, before))


def test_a_packing_that_is_no_better_is_not_returned():
    groups, problem, of_node = expanded(0)
    found = repacked_by_patterns(groups, of_node, Packing.empty(problem).entries(), EFFORT)
    assert found is not None
    assert repacked_by_patterns(groups, of_node, found, EFFORT) is None


def test_patterns_are_not_tried_where_most_nodes_differ():
    problem = make_problem([[1]], [[n] for n in range(3, 40)], [10**6])
    assert repacked_by_patterns(problem, np.arange(37), Packing.empty(problem).entries(), EFFORT) is None
