"""The waiting jobs of queues."""

import numpy as np
import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import QueueTree
from firmament_py.sharing.jobs import waiting_jobs
from firmament_py.sharing.use import QueueUse
from firmament_py.snapshot.term_budget import waiting_tasks
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks, needs, selecting
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree
from tests.firmament_py.sharing.test_use import ON_DEMAND, SPOT

A, B = queue_id("a"), queue_id("b")


def jobs_of(*events, flavors=None):
    """(queue, uids, request of cpu, count) of each job in order, and all of them."""
    queues = queue("a", "", quota(10)), queue("b", "", quota(10))
    observed = QueuesObserved(tree(*queues) if flavors is None else QueueTree(flavors[1], flavors[0]))
    cluster = make_cluster(make_node("n", cpu=100), make_class(1, cpu=1), make_class(2, cpu=2), observed, *events)
    state = cluster.state
    jobs = waiting_jobs(state, QueueUse(state), waiting_tasks(state, NOW_US))
    uids = state.tasks.uid[jobs.rows].tolist()
    names = [state.queues.definitions[row].name for row in jobs.queue.tolist()]
    return [
        (names[j], uids[jobs.start[j] : jobs.start[j + 1]], int(jobs.request[j, 0]), int(jobs.count[j]))
        for j in range(len(names))
    ], jobs


def test_alike_single_tasks_in_a_row_are_one_job():
    found, jobs = jobs_of(
        make_tasks([1, 2], 1, queue=A),
        make_tasks([3], 2, created_us=NOW_US + 1, queue=A),
        make_tasks([4], 1, created_us=NOW_US + 2, queue=A),
        make_tasks([5], 1, queue=B),
    )
    assert found == [("a", [1, 2], 1, 2), ("a", [3], 2, 1), ("a", [4], 1, 1), ("b", [5], 1, 1)]
    assert jobs.of_tasks(np.arange(4)).tolist() == [0, 0, 1, 2, 3]


def test_important_tasks_come_first_then_the_oldest():
    found, _ = jobs_of(
        make_class(3, cpu=1, priority=5),
        make_tasks([1], 1, created_us=NOW_US - 9, queue=A),
        make_tasks([2], 3, queue=A),
        make_tasks([3], 2, created_us=NOW_US - 10, queue=A),
    )
    assert [uids for _, uids, _, _ in found] == [[2], [3], [1]]


def test_a_gang_is_one_job_of_the_members_that_it_lacks():
    found, _ = jobs_of(
        make_gang(7, 3, created_us=NOW_US - 5),
        make_tasks([1], 1, on="n", gang=7, queue=A),
        make_tasks([2, 3, 4], 1, gang=7, queue=A),
        make_tasks([5], 2, created_us=NOW_US - 1, queue=A),
    )
    # two are lacking; the third is a single task of its own age
    assert found == [("a", [2, 3], 2, 1), ("a", [5], 2, 1), ("a", [4], 1, 1)]


def test_the_largest_members_of_a_gang_count():
    found, _ = jobs_of(make_gang(7, 2), make_tasks([1], 1, gang=7, queue=A), make_tasks([2, 3], 2, gang=7, queue=A))
    assert found == [("a", [2, 3], 4, 1), ("a", [1], 1, 1)]


def test_each_role_of_a_gang_has_its_members():
    found, _ = jobs_of(
        make_gang(7, 3, roles={"chief": 1, "worker": 1}),
        make_tasks([1], 1, gang=7, role=0, queue=A),
        make_tasks([2, 3, 4], 2, gang=7, role=1, queue=A),
    )
    assert found == [("a", [1, 2, 3], 5, 1), ("a", [4], 2, 1)]


def test_members_that_run_count_for_the_roles_of_their_own_gang():
    """A chief runs, and one of two workers; of another gang two workers run."""
    found, _ = jobs_of(
        make_gang(7, 3, roles={"chief": 1, "worker": 2}),
        make_gang(8, 2, roles={"chief": 0, "worker": 2}),
        make_tasks([1, 2], 1, on="n", gang=7, role=[0, 1], queue=A),
        make_tasks([3, 4], 1, on="n", gang=8, role=1, queue=A),
        make_tasks([5, 6], 1, gang=7, role=1, queue=A),
        make_tasks([7], 2, gang=7, role=0, queue=A),
    )
    assert found == [("a", [5], 1, 1), ("a", [6], 1, 1), ("a", [7], 2, 1)]


@pytest.mark.parametrize(
    ("minimum", "roles", "role", "complete"),
    [
        pytest.param(3, None, [0, 0], True, id="one runs, one leaves, two wait"),
        pytest.param(4, None, [0, 0], False, id="one more is needed"),
        pytest.param(3, {"chief": 1, "worker": 1}, [1, 1], True, id="the chief runs"),
        pytest.param(3, {"chief": 2, "worker": 1}, [1, 1], False, id="a chief is lacking"),
        pytest.param(4, {"chief": 2, "worker": 1}, [0, 1], False, id="a further member is lacking"),
    ],
)
def test_a_gang_is_complete_if_it_has_all_members_that_it_needs(minimum, roles, role, complete):
    _, jobs = jobs_of(
        make_gang(7, minimum, roles=roles),
        make_tasks([1], 1, on="n", gang=7, queue=A),
        make_tasks([2], 1, on="n", gang=7, queue=A, leaving=True),
        make_tasks([3, 4], 1, gang=7, role=role, queue=A),
        make_tasks([5], 2, queue=A),
    )
    assert jobs.complete.tolist() == [complete] + [True] * (len(jobs.queue) - 1)


def test_a_gang_in_two_queues_is_in_that_of_its_first_member():
    found, _ = jobs_of(make_gang(7, 2), make_tasks([1], 1, gang=7, queue=B), make_tasks([2], 1, gang=7, queue=A))
    assert [(name, uids) for name, uids, _, _ in found] == [("b", [1, 2])]


def test_a_job_suits_the_flavors_of_nodes_that_take_all_its_tasks():
    queues = (queue("a", "", quota(10, on="on-demand/cpu"), quota(10, on="spot/cpu")),)
    _, jobs = jobs_of(
        make_node("n-demand", cpu=9, labels={"kind": "on-demand"}),
        make_node("n-spot", cpu=9, labels={"kind": "spot"}),
        make_class(3, cpu=1, demand=selecting(needs("kind", "In", "spot"))),
        make_gang(7, 2),
        make_tasks([1], 1, created_us=NOW_US - 1, queue=A),
        make_tasks([2], 3, created_us=NOW_US, gang=7, queue=A),
        make_tasks([3], 1, created_us=NOW_US, gang=7, queue=A),
        flavors=((ON_DEMAND, SPOT), queues),
    )
    assert jobs.suitable.tolist() == [[True, True], [False, True]]
