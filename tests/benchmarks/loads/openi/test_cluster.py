"""The checks of decisions find what is wrong."""

import numpy as np
import pytest

from benchmarks.loads.openi.workload import MINUTE
from tests.benchmarks.loads.openi.builders import MEDICINE, job, made, workload

JOBS = (
    job(4),
    job(8),
    job(4, pods=2),
    job(1, preemptible=False),
    job(1, queue=MEDICINE),
    job(8, urgent=True),
    job(1, queue=MEDICINE, urgent=True),
)


def cluster_with(*started, limit=100):
    cluster, _ = made(workload(*JOBS, nodes=(8, 8), limit=limit))
    for number in range(len(JOBS)):
        cluster.arrive(number)
    for number, *nodes in started:
        cluster.start(number, np.array(nodes))
    return cluster


@pytest.mark.parametrize(
    ("started", "limit", "rule"),
    [
        ([(0, 0), (0, 1)], 100, "only waiting jobs start, each once"),
        ([(2, 0)], 100, "no job starts in part"),
        ([(0, 2)], 100, "jobs run on the nodes of their queues"),
        ([(0, 0), (1, 0)], 100, "no node is over-committed"),
        ([(0, 0), (2, 0, 1)], 11, "no queue exceeds its limit"),
    ],
)
def test_starts(started, limit, rule):
    cluster = cluster_with(*started, limit=limit)
    assert set(cluster.violations) == {rule}
    assert rule in cluster.examples


@pytest.mark.parametrize(
    ("victim", "preemptor", "rule"),
    [
        (3, 5, "only preemptible jobs are evicted"),
        (0, 6, "victims are of lower priority, of the same queue"),
        (0, 3, "only jobs that may preempt do"),
    ],
)
def test_evictions(victim, preemptor, rule):
    cluster = cluster_with((0, 0), (3, 0))
    cluster.evict(victim, preemptor, 1, saved=False)
    assert rule in cluster.violations
    assert cluster.violations.keys() <= {rule, "victims are of lower priority, of the same queue"}


def test_what_runs_is_counted_once():
    cluster = cluster_with((0, 0), (2, 0, 1))
    cluster.advance(MINUTE)
    cluster.evict(0, 5, 1, saved=True)
    assert cluster.remaining_us[0] == 59 * MINUTE
    cluster.check_totals()
    assert cluster.sound
    cluster.free[0, 0] += 1
    cluster.check_totals()
    assert set(cluster.violations) == {"the totals are those of the jobs that run"}
