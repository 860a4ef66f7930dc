"""Gang jobs and tasks of other schedulers by the original contract."""

import pytest

from protos.gen import firmament_pb2 as pb
from tests.firmament_py.service.poseidon import MIB, description, resources, topology

# -- gangs ----------------------------------------------------------------------------------------------------------


def member(uid, minimum=3, job="mpi", cpu=1000):
    return description(uid, resources(cpu=cpu), job=job, gang_of=minimum)


def test_a_gang_job_is_placed_whole_or_not_at_all(poseidon):
    poseidon.add_node(topology("n1", cpu=2000))
    poseidon.submit(member(1), member(2))
    assert poseidon.schedule() == {}, "a third has to come"
    poseidon.submit(member(3))
    assert poseidon.schedule() == {}, "2 of 3 fit"
    poseidon.submit(description(9, resources(cpu=1500)))
    assert poseidon.schedule() == {9: "n1"}, "others use the room"
    poseidon.complete(9)
    poseidon.add_node(topology("n2", cpu=1000))
    assert set(poseidon.schedule()) == {1, 2, 3}


def test_the_minimum_of_a_job_that_is_not_a_gang_is_ignored(poseidon):
    poseidon.add_node(topology("n1", cpu=2000))
    task = member(1)
    task.job_descriptor.is_gang_scheduling_job = False
    poseidon.submit(task)
    assert poseidon.schedule() == {1: "n1"}


def test_a_member_that_comes_back_joins_those_that_run(poseidon):
    """Also after delivered placements count as bound."""
    poseidon.add_node(topology("n1", cpu=3000))
    poseidon.submit(member(1), member(2), member(3))
    assert set(poseidon.schedule()) == {1, 2, 3}
    poseidon.fail(2)
    poseidon.remove(2)
    poseidon.submit(member(4))
    assert poseidon.schedule() == {4: "n1"}
    poseidon.add_node(topology("n2", cpu=1000))
    poseidon.submit(member(5))
    assert poseidon.schedule() == {5: "n2"}, "beyond the minimum one is enough"


def test_a_gang_job_is_as_old_as_its_first_task(service, poseidon):
    poseidon.submit(member(1, job="old"))
    service.clock.now_us += 10
    poseidon.submit(member(2, job="young", minimum=1))
    service.clock.now_us += 10
    poseidon.submit(member(3, job="old"), member(4, job="old"))
    poseidon.add_node(topology("n1", cpu=3000))
    assert set(poseidon.schedule()) == {1, 3, 4}


def test_a_gang_job_without_tasks_is_removed(service, poseidon):
    poseidon.submit(member(1), member(2))
    poseidon.update(member(2))
    assert len(service.engine.state.gangs) == 1
    poseidon.remove(1)
    assert len(service.engine.state.gangs) == 1
    poseidon.remove(2)
    assert len(service.engine.state.gangs) == 0


@pytest.mark.parametrize("minimum", [1, 2**63, 2**64 - 1])
def test_any_minimum_is_accepted(poseidon, minimum):
    poseidon.add_node(topology("n1"))
    poseidon.submit(member(1, minimum))
    poseidon.schedule()


# -- tasks of others ------------------------------------------------------------------------------------------------


def test_requests_of_tasks_of_other_schedulers_are_in_bytes(poseidon):
    poseidon.add_node(topology("n1", cpu=1000, memory=1024 * MIB, pods=3))
    assert poseidon.foreign("other", "n1", cpu=500, memory=512 * MIB) == pb.TASKINFO_SUBMITTED_OK
    poseidon.submit(description(1, resources(memory=513 * MIB)), description(2, resources(cpu=501)))
    assert poseidon.schedule() == {}
    poseidon.submit(description(3, resources(cpu=500, memory=512 * MIB)))
    assert poseidon.schedule() == {3: "n1"}
    assert poseidon.foreign("other", "n1", remove=True) == pb.TASKINFO_REMOVED_OK
    # one pod of three is taken; 512 MiB and 500m are free: neither of the two fits
    assert poseidon.schedule() == {}


def test_tasks_of_other_schedulers_count_as_pods(poseidon):
    poseidon.add_node(topology("n1", pods=1))
    poseidon.foreign("other", "n1")
    poseidon.submit(description(1))
    assert poseidon.schedule() == {}
    poseidon.foreign("other", "n1", remove=True)
    assert poseidon.schedule() == {1: "n1"}


def test_a_task_of_another_scheduler_observed_before_its_node_counts(poseidon):
    poseidon.foreign("other", "n1", cpu=500)
    poseidon.add_node(topology("n1", cpu=1000))
    poseidon.submit(description(1, resources(cpu=501)))
    assert poseidon.schedule() == {}


def test_replies_about_tasks_of_other_schedulers(poseidon):
    poseidon.add_node(topology("n1"))
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVE_FAILED
    nowhere = pb.TaskInfo(task_name="x/default", cpu_utilization=500, type=pb.TASKINFO_ADD)
    assert poseidon.stub.AddTaskInfo(nowhere).type == pb.TASKINFO_SUBMIT_FAILED  # it would be taken for one that waits
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMITTED_OK
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMIT_FAILED
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVED_OK
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVE_FAILED
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMITTED_OK, "the name may come again"


def test_negative_amounts_of_other_schedulers_count_as_zero(poseidon):
    poseidon.add_node(topology("n1", cpu=100))
    assert poseidon.foreign("x", "n1", cpu=-500, memory=-1) == pb.TASKINFO_SUBMITTED_OK
    poseidon.submit(description(1), description(2))
    assert len(poseidon.schedule()) == 1
