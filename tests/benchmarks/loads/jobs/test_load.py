"""The load of jobs that fit only once other tasks end or move."""

import numpy as np
import pytest

from benchmarks.loads.jobs.load import HIGHER, LOWER, JobsLoad, JobsSpec
from firmament_py.model.events import ClassDefined, GangObserved, TasksObserved


def observed(events):
    """The tasks among events."""
    [tasks] = [event for event in events if isinstance(event, TasksObserved)]
    return tasks


def test_a_load_follows_from_its_seed():
    one, same, other = (JobsLoad.generate(JobsSpec(6, 2, 3, 12, mixed=True, seed=seed)) for seed in (5, 5, 6))
    assert str(one.cluster()) == str(same.cluster())
    assert str(one.cluster()) != str(other.cluster())


@pytest.mark.parametrize(("preemptible", "lower"), [(-1, 160), (0, 0), (79, 79)])
def test_as_many_running_tasks_are_preemptible_as_asked_for(preemptible, lower):
    load = JobsLoad.generate(JobsSpec(20, 1, 10, 8, preemptible=preemptible))
    assert load.preemptible.sum() == lower
    assert set(load.priority[load.cls].tolist()) <= {LOWER, HIGHER}
    on_node = np.sort(np.bincount(load.node[load.preemptible], minlength=20))[::-1]
    assert on_node.tolist() == [min(8, max(lower - 8 * n, 0)) for n in range(20)]  # on as few nodes as possible


def test_consolidation_leaves_five_of_eight_gpus_free():
    load = JobsLoad.generate(JobsSpec(500, 41, 10, 6, running=3, preemptible=0, movable=True))
    assert (load.allocatable - load.used == 5).all()
    assert observed(load.cluster()).movable.all()
    arriving = load.arrive(np.arange(41))
    assert [event.minimum for event in arriving if isinstance(event, GangObserved)] == [10] * 41
    members = observed(arriving)
    assert np.bincount(members.gang_id.astype(np.int64))[1:].tolist() == [10] * 41
    assert not members.movable.any()


def test_mixed_nodes_are_full_of_tasks_of_several_sizes_and_ages():
    load = JobsLoad.generate(JobsSpec(200, 1, 60, 12, mixed=True))
    cpu, memory = (load.allocatable - load.used).T
    assert (cpu == 0).all()
    assert (memory >= 0).all()
    per_node = np.bincount(load.node)
    assert 3 < per_node.mean() < 8
    assert len(np.unique(load.requests[load.cls, 0])) > 5
    assert load.run_s.min() < 3600 < 86400 < load.run_s.max()


def test_numbers_of_tasks_and_jobs_are_ids_less_one():
    load = JobsLoad.generate(JobsSpec(2, 2, 3, 8))
    running, members = observed(load.cluster()), observed(load.arrive(np.arange(2)))
    assert running.uid.tolist() == list(range(1, 17))
    assert members.uid.tolist() == list(range(17, 23))
    assert members.job_id.tolist() == [1, 1, 1, 2, 2, 2]
    assert members.gang_id.tolist() == [1, 1, 1, 2, 2, 2]
    assert running.job_id.tolist() == list(range(3, 19))
    assert [running.nodes[n - 1] for n in running.node.tolist()] == ["node-0"] * 8 + ["node-1"] * 8
    classes = [event for event in load.cluster() if isinstance(event, ClassDefined)]
    assert [(one.requests, one.priority) for one in classes] == [
        ({"nvidia.com/gpu": 1}, LOWER),
        ({"nvidia.com/gpu": 8}, HIGHER),
    ]


def test_single_tasks_are_no_gangs_and_may_arrive_one_by_one():
    load = JobsLoad.generate(JobsSpec(2, 3, 1, 1, one_by_one=True))
    assert [jobs.tolist() for jobs in load.arrivals] == [[0], [1], [2]]
    arriving = load.arrive(load.arrivals[1])
    assert len(arriving) == 1
    members = observed(arriving)
    assert (members.uid.tolist(), members.gang_id.tolist()) == ([18], [0])
