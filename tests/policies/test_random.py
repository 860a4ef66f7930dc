"""random: balls into bins, reproducible, and as uneven as expected by chance."""

import numpy as np
import pytest

from policies.random import Random
from tests.builders import make_class, make_cluster, make_node, make_tasks, per_node, removed
from tests.policies.rig import make_view


def counts(seed=0, nodes=1000, tasks=1000):
    """(nodes,) number of tasks on each of the equal nodes."""
    cluster = make_cluster(
        *(make_node(f"n{i}") for i in range(nodes)),
        make_class(1, cpu=0),
        make_tasks(range(1, tasks + 1), 1),
        policy=Random(seed),
    )
    given = per_node(cluster.round())
    return np.array([given.get(f"n{i}", 0) for i in range(nodes)])


def test_tasks_fall_like_balls_into_bins():
    found = counts()
    assert found.sum() == 1000
    # of 1000 bins 1000/e = 368 stay empty, as many have one ball; the standard deviation of either is below 16
    assert abs((found == 0).sum() - 368) < 4 * 16
    assert abs((found == 1).sum() - 368) < 4 * 16
    # the variance of a Poisson distribution is its mean, give or take sqrt(2 / 1000)
    assert abs(found.var() - 1.0) < 4 * 0.045
    assert 4 <= found.max() <= 9


def test_a_seed_determines_the_costs():
    assert (counts(seed=5, nodes=50, tasks=100) == counts(seed=5, nodes=50, tasks=100)).all()
    draws = {tuple(counts(seed=seed, nodes=50, tasks=100)) for seed in range(8)}
    assert len(draws) == 8


def test_all_nodes_are_equally_likely():
    mean = np.mean([counts(seed=seed, nodes=40, tasks=200) for seed in range(60)], axis=0)
    # 60 draws of Poisson(5): standard deviation of the mean sqrt(5 / 60) = 0.29
    assert abs(mean - 5).max() < 4.5 * 0.29


def test_the_next_round_draws_again():
    """Rounds are hardly correlated: a node with many tasks in one round is not more likely to get many in the next."""
    cluster = make_cluster(*(make_node(f"n{i}") for i in range(400)), make_class(1, cpu=0), policy=Random())
    draws = []
    for step in range(2):
        cluster.tell(make_tasks(range(step * 800 + 1, step * 800 + 801), 1))
        given = per_node(cluster.round())
        draws.append([given.get(f"n{i}", 0) for i in range(400)])
    assert abs(np.corrcoef(draws[0], draws[1]).min()) < 4 / np.sqrt(400)
    cluster.tell(removed(*range(1, 1601)))
    cluster.tell(make_tasks(range(2001, 2801), 1))
    again = per_node(cluster.round())
    assert [again.get(f"n{i}", 0) for i in range(400)] == draws[0]  # the same view, the same draw


def test_costs_of_a_class_do_not_depend_on_its_number():
    nodes = [[110, 8]] * 5
    both = Random().costs(make_view(requests=[[1, 2], [1, 3]], allocatable=nodes)).place.tolist()
    alone = Random().costs(make_view(requests=[[1, 3]], allocatable=nodes)).place.tolist()
    assert both[0] != both[1]
    assert both[1] == alone[0]


def test_runs_of_slots_count_all_their_slots():
    """At offset 1000 about 1000 gaps have passed, counted one by one or in one run."""
    fine = Random().costs(make_view(allocatable=[[110, 8]] * 30, offsets=range(400))).slot[:, -1].mean()
    rough = Random().costs(make_view(allocatable=[[110, 8]] * 30, offsets=(0, 1, 399))).slot[:, -1].mean()
    assert fine == pytest.approx(400_000, rel=0.1)
    assert rough == pytest.approx(400_000, rel=0.1)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_has_a_range(seed):
    with pytest.raises(ValueError, match=f"option seed is {seed}; give a whole number from 0"):
        Random(seed)
