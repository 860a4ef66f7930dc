"""The generated cluster and its jobs."""

import numpy as np
import pytest

from benchmarks.loads.openi.measures import mean_difference
from benchmarks.loads.openi.workload import DAY, QUEUES, URGENT, Spec, generate


def test_the_cluster_has_120_nodes_with_1100_gpus():
    load = generate(Spec(jobs=1000))
    assert (len(load.capacity), int(load.capacity[:, 0].sum())) == (120, 1100)
    assert load.group_gpus.sum() == 1100
    assert len(load.limit) == len(QUEUES)


@pytest.mark.parametrize("nodes", [24, 120])
def test_every_job_fits_its_group_its_queue_and_a_node(nodes):
    load = generate(Spec(jobs=5000, nodes=nodes, seed=1))
    assert (load.gpus <= load.guarantee[load.queue]).all()
    for group in range(len(load.group_gpus)):
        of_group = load.queue_group[load.queue] == group
        largest = load.capacity[load.node_group == group].max(axis=0)
        assert (load.request[of_group] <= largest).all()
    assert set(np.unique(load.gpus)) <= {1, 2, 4, 8, 16, 32, 64}
    assert (load.guarantee <= load.limit).all()


def test_most_jobs_are_small_and_the_demand_is_about_the_capacity():
    load = generate(Spec())
    assert (load.gpus <= 8).mean() > 0.9
    assert load.gpus.max() == 64
    demand = float((load.gpus * load.work_us).sum()) / (1100 * load.end_us)
    assert 0.95 < demand < 1.1
    days = np.bincount(load.arrival_us // DAY)[:21].reshape(3, 7)
    assert days[:, :5].min() > days[:, 5:].max()  # weekends


def test_urgent_jobs_are_few_and_are_never_preempted():
    load = generate(Spec(jobs=20_000, seed=2))
    urgent = load.priority == URGENT
    assert 0.02 < urgent.mean() < 0.04
    assert not (urgent & load.preemptible).any()
    assert not (load.checkpoints & ~load.preemptible).any()


def test_the_same_seed_gives_the_same_jobs():
    one, other, third = (generate(Spec(jobs=500, seed=seed)) for seed in (3, 3, 4))
    assert (one.work_us == other.work_us).all()
    assert (one.arrival_us == other.arrival_us).all()
    assert (one.work_us != third.work_us).any()


def test_the_mean_difference_is_over_all_pairs():
    use = np.array([0.2, 0.9, 0.4, 0.4])
    pairs = [abs(a - b) for i, a in enumerate(use) for b in use[:i]]
    assert mean_difference(use) == pytest.approx(np.mean(pairs))
    assert mean_difference(np.array([1.0])) == 0
