"""Delayed preemption in a replay: victims are told, and leave, save their work, end, or stay."""

import numpy as np

from benchmarks.loads.openi.bridge import Bridge
from benchmarks.loads.openi.rules import replay
from benchmarks.loads.openi.workload import MINUTE, SECOND
from tests.benchmarks.loads.openi.builders import job, made, running, workload

NOTICE_S = 60


def played(load, until_s, notice_s=NOTICE_S):
    cluster, timeline = made(load)
    notice_us = None if notice_s is None else notice_s * SECOND
    bridge = Bridge(cluster, timeline, notice_us, SECOND)
    replay(cluster, timeline, bridge, until_s * SECOND)
    cluster.check_totals()
    assert cluster.sound, cluster.examples
    assert bridge.dropped == 0
    return cluster


def started_s(cluster, number):
    return cluster.measures.first_start_us[number] / SECOND


def test_a_victim_runs_until_its_notice_is_over_then_the_preemptor_starts_at_once():
    load = workload(job(8), job(8, at_s=600, urgent=True))
    assert running(played(load, 600 + NOTICE_S - 1)) == {0}
    cluster = played(load, 600 + NOTICE_S + 2)
    assert running(cluster) == {1}
    assert started_s(cluster, 1) == 600 + NOTICE_S
    assert cluster.measures.lost_gpu_h == 8 * (600 + NOTICE_S) / 3600
    assert (cluster.measures.announced, cluster.measures.spared) == (1, 0)


def test_a_victim_that_can_save_its_work_does_so_and_leaves_sooner():
    cluster = played(workload(job(8, checkpoints=True, save_s=25), job(8, at_s=600, urgent=True, minutes=5)), 1000)
    assert started_s(cluster, 1) == 625
    assert cluster.measures.lost_gpu_h == 0
    assert running(cluster) == {0}  # again, once the urgent job has ended
    assert cluster.remaining_us[0] == 60 * MINUTE - 625 * SECOND


def test_a_victim_that_ends_meanwhile_loses_nothing():
    cluster = played(workload(job(8, minutes=10.5), job(8, at_s=600, urgent=True)), 700)
    assert started_s(cluster, 1) == 630
    assert cluster.measures.evicted_jobs == 0
    assert cluster.measures.done_us[0] == 630 * SECOND


def test_a_victim_stays_if_capacity_comes_free_on_its_node():
    """Both have 4 GPUs, and the one that is no victim ends within the notice."""
    jobs = job(4, preemptible=False, minutes=10.5), job(4), job(4, at_s=600, urgent=True)
    cluster = played(workload(*jobs), 700)
    assert running(cluster) == {1, 2}
    assert started_s(cluster, 2) == 630
    assert (cluster.measures.announced, cluster.measures.spared, cluster.measures.evicted_jobs) == (1, 1, 0)


def test_jobs_leave_as_a_whole_and_as_few_as_possible():
    jobs = job(4, pods=2), job(8), job(8, at_s=600, urgent=True)
    cluster = played(workload(*jobs, nodes=(8, 8)), 700)
    evicted = np.flatnonzero(cluster.measures.evictions)
    assert len(evicted) == 1
    assert cluster.measures.pods_evicted == cluster.measures.pods_chosen == jobs[int(evicted[0])]["pods"]
    assert 2 in running(cluster)


def test_without_preemption_urgent_jobs_wait():
    assert running(played(workload(job(8), job(8, at_s=600, urgent=True)), 1000, notice_s=None)) == {0}


def test_jobs_that_may_not_be_preempted_stay():
    assert running(played(workload(job(8, preemptible=False), job(8, at_s=600, urgent=True)), 1000)) == {0}
