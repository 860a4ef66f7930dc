"""Volcano's rules, on clusters whose outcome follows from its sources."""

from benchmarks.loads.openi.rules import replay
from benchmarks.loads.openi.volcano import Volcano
from benchmarks.loads.openi.workload import MINUTE, SECOND
from tests.benchmarks.loads.openi.builders import MEDICINE, job, made, running, workload


def played(load, until_s=300, *, preempts=True):
    cluster, timeline = made(load)
    replay(cluster, timeline, Volcano(cluster, timeline, SECOND, preempts=preempts), until_s * SECOND)
    assert cluster.sound, cluster.examples
    return cluster


def test_pods_go_to_the_fullest_node_that_takes_them():
    cluster = played(workload(job(6), job(2), job(4), nodes=(8, 8)))
    assert [cluster.nodes[j].tolist() for j in range(3)] == [[0], [0], [1]]


def test_a_gang_is_allocated_entirely_or_not_at_all_and_others_pass_it():
    cluster = played(workload(job(8, pods=3), job(1, at_s=10), nodes=(8, 8)))
    assert running(cluster) == {1}


def test_the_lowest_priority_then_the_newest_leaves_and_no_more_than_is_needed():
    cluster = played(workload(job(4), job(4, at_s=1), job(4, at_s=60, urgent=True)))
    assert running(cluster) == {0, 2}
    assert cluster.measures.evictions.tolist() == [0, 1, 0]
    assert cluster.measures.lost_gpu_h == 59 * 4 / 3600  # at once, and all of it


def test_a_pod_of_a_gang_takes_the_others_with_it():
    """Two jobs are hurt although one alone would have made enough room: pods are chosen node by node."""
    cluster = played(
        workload(job(4, pods=2), job(4, at_s=1), job(4, at_s=2), job(8, at_s=60, urgent=True), nodes=(8, 8))
    )
    assert 3 in running(cluster)
    measures = cluster.measures
    assert (measures.pods_chosen, measures.pods_evicted) == (2, 2 + int(measures.evictions[0]) * 0)
    assert measures.preemptions == 1


def test_work_since_the_last_checkpoint_is_lost():
    cluster = played(workload(job(8, minutes=200, checkpoints=True), job(8, at_s=45 * 60, urgent=True)), 50 * 60)
    assert cluster.measures.lost_gpu_h == 8 * 15 / 60
    assert cluster.remaining_us[0] == 170 * MINUTE


def test_what_is_not_preemptible_stays_as_do_jobs_of_other_queues():
    jobs = job(8, preemptible=False), job(8, queue=MEDICINE), job(8, at_s=60, urgent=True)
    cluster = played(workload(*jobs))
    assert running(cluster) == {0, 1}


def test_preemption_makes_room_for_the_whole_job_or_for_none_of_it():
    jobs = job(8), job(8, preemptible=False), job(8, pods=2, at_s=60, urgent=True)
    assert running(played(workload(*jobs, nodes=(8, 8)))) == {0, 1}


def test_without_the_action_urgent_jobs_wait():
    load = workload(job(8), job(8, at_s=60, urgent=True))
    assert running(played(load)) == {1}
    assert running(played(load, preempts=False)) == {0}


def test_a_queue_takes_no_more_than_it_deserves_while_another_one_asks():
    """Weights 4 and 3: of 14 GPUs, vision deserves 8 and language 6."""
    jobs = [job(1) for _ in range(14)] + [job(1, queue=1) for _ in range(14)]
    cluster = played(workload(*jobs, nodes=(8, 6)))
    assert cluster.used_of_queue[:2].tolist() == [8, 6]
