"""Gangs that need amounts of resources to be free before they start.

Volcano: minResources of a PodGroup, compared when it is enqueued (actions/enqueue/enqueue.go; plugins/overcommit adds
what PodGroups that have started have yet to take). Coscheduling: core.go, PreFilter and CheckClusterResource.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import waiting_classes
from firmament_py.model.events import Event
from firmament_py.model.lifecycle import ASSUMED, BOUND, WAITING
from firmament_py.model.options import Preempting
from firmament_py.model.queues import Reclaim
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.effort import examples
from tests.firmament_py.engine.test_all_at_once import A, described

CPU1 = make_class(1, cpu=1)


def executors(count, first=101, **fields):
    return make_tasks(range(first, first + count), 1, gang=1, **fields)


@pytest.mark.parametrize(
    ("free", "start", "placed"),
    [
        pytest.param(4, {"cpu": 11}, 0, id="too-little"),
        pytest.param(10, {"cpu": 11}, 0, id="just-too-little"),
        pytest.param(11, {"cpu": 11}, 11, id="just-enough"),
        pytest.param(12, {"cpu": 11, "pods": 11}, 11, id="two-resources"),
        pytest.param(12, {"cpu": 11, "pods": 1000}, 0, id="one-of-them-too-little"),
        pytest.param(12, {"cpu": 1, "gpu": 1}, 0, id="no-node-offers-it"),
        pytest.param(12, {"cpu": 1, "gpu": 0}, 11, id="none-of-what-no-node-offers"),
        pytest.param(4, {}, 4, id="nothing-stated"),
    ],
)
def test_none_of_its_tasks_is_placed_before_that_is_free(free, start, placed):
    """minMember 1, eleven pods of 1 cpu."""
    cluster = make_cluster(make_node("n", cpu=free, pods=100), CPU1, make_gang(1, 1, start=start), executors(11))
    assert len(cluster.round()) == placed


def test_free_is_the_sum_over_all_nodes():
    nodes = [make_node(f"n{i}", cpu=3) for i in range(4)]
    cluster = make_cluster(*nodes, CPU1, make_gang(1, 1, start={"cpu": 12}), executors(12))
    assert len(cluster.round()) == 12


def test_once_it_has_started_it_grows_with_what_there_is():
    """A driver whose executors come later, when others have taken a part of what was free."""
    cluster = make_cluster(make_node("n", cpu=6), CPU1, make_gang(1, 1, start={"cpu": 6}), executors(1))
    assert len(cluster.round()) == 1
    cluster.tell(make_tasks([901, 902], 1))
    assert len(cluster.round()) == 2  # what the gang has yet to take is not kept from single tasks
    cluster.tell(executors(5, first=201))
    assert len(cluster.round()) == 3


def test_what_others_have_started_with_is_not_free_for_a_start():
    gangs = [make_gang(number, 1, created_us=NOW_US + number, start={"cpu": 4}) for number in (1, 2)]
    drivers = [make_tasks([100 + number], 1, gang=number) for number in (1, 2)]
    cluster = make_cluster(make_node("n", cpu=7), CPU1, *gangs, *drivers)
    assert set(cluster.round()) == {101}  # 1 and 3 more: 3 are left
    cluster.tell(make_tasks([101], 1, gang=1, on="n"), make_node("m", cpu=1))
    assert set(cluster.round()) == {102}  # 8 - 1 - 3
    cluster.tell(removed(101, 102))
    cluster.tell(make_tasks([103], 1, gang=1))
    assert set(cluster.round()) == {103}


def test_older_gangs_that_cannot_start_delay_nobody():
    old, young = make_gang(1, 1, created_us=NOW_US, start={"cpu": 9}), make_gang(2, 2, created_us=NOW_US + 1)
    tasks = make_tasks([201, 202], 1, gang=2), make_tasks([901], 1)
    cluster = make_cluster(make_node("n", cpu=3), CPU1, old, young, executors(2), *tasks, reserve_after_us=0)
    assert set(cluster.round(NOW_US + 3600 * SECOND_US)) == {201, 202, 901}


def test_nobody_is_evicted_for_one_that_cannot_start():
    high = make_class(2, cpu=1, priority=9)
    cluster = make_cluster(
        make_node("n", cpu=4),
        *(CPU1, high, make_tasks(range(1, 5), 1, on="n"), make_gang(1, 1, start={"cpu": 3})),
        make_tasks([101, 102, 103], 2, gang=1),
        preempting=Preempting.BEYOND_BUDGETS,
    )
    assert cluster.preempted(cluster.run()) == {}


def test_the_reason_is_what_is_lacking():
    cluster = make_cluster(
        make_node("n", cpu=4), CPU1, make_gang(1, 1, start={"cpu": 11, "gpu": 2}), executors(11), make_tasks([1], 1)
    )
    result = cluster.run()
    found = {reason.kind: reason.value for each in result.waiting for reason in each.reasons}
    # the single task comes after the gang's turn, in which 4 were free
    assert found[ReasonKind.GANG_CANNOT_START] == "cpu: 7, gpu: 2"


@pytest.mark.parametrize(("quota", "placed"), [(3, 0), (6, 4)])
def test_the_quota_of_its_queue_must_have_it_too(quota, placed):
    """Volcano: plugins/capacity/capacity.go, JobEnqueueable."""
    cluster = make_cluster(make_node("n", cpu=99), CPU1, described(reclaim=Reclaim.NEVER, a=quota))
    cluster.tell(make_gang(1, 1, start={"cpu": 6}), executors(4, queue=A))
    assert len(cluster.round()) == placed


def test_what_exceeds_what_it_needs_to_start_waits_for_quota_like_single_tasks():
    """A quota of 8: the gang starts with 6 and gets two more of its nine."""
    cluster = make_cluster(make_node("n", cpu=99), CPU1, described(reclaim=Reclaim.NEVER, a=8))
    cluster.tell(make_gang(1, 1, start={"cpu": 6}), executors(9, queue=A))
    assert len(cluster.round()) == 8


def test_single_tasks_use_the_quota_that_a_gang_cannot_start_with():
    cluster = make_cluster(make_node("n", cpu=99), CPU1, described(reclaim=Reclaim.NEVER, a=5))
    cluster.tell(make_gang(1, 1, start={"cpu": 6}), executors(9, queue=A))
    cluster.tell(make_tasks([1, 2], 1, queue=A, created_us=NOW_US + SECOND_US))
    assert set(cluster.round(NOW_US + 2 * SECOND_US)) == {1, 2}


amounts = st.integers(1, 9)
worlds = st.fixed_dictionaries(
    {
        "nodes": st.lists(amounts, min_size=1, max_size=4),
        "gangs": st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 14)), min_size=1, max_size=5),
        "singles": st.integers(0, 3),
    }
)


@examples(60)
@given(worlds)
def test_random_gangs_start_if_and_only_if_enough_is_free(world):
    """All tasks request 1 cpu, so that sums decide everything. The oracle goes through the gangs by age."""
    nodes = [make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(world["nodes"])]
    events: list[Event] = []
    size: dict[int, int] = {}
    for number, (minimum, further, start) in enumerate(world["gangs"], 1):
        size[number] = minimum + further
        events += [make_gang(number, minimum, created_us=NOW_US + number, start={"cpu": start} if start else {})]
        events += [make_tasks(range(100 * number, 100 * number + size[number]), 1, gang=number, created_us=NOW_US)]
    singles = make_tasks(range(1, 1 + world["singles"]), 1, created_us=NOW_US + 60 * SECOND_US)
    cluster = make_cluster(*nodes, CPU1, *events, singles)
    placed = cluster.round()
    of_gang = {number: sum(uid // 100 == number for uid in placed) for number in size}

    free, owed, started = sum(world["nodes"]), 0, set()
    for number, (minimum, _, start) in enumerate(world["gangs"], 1):
        if free >= minimum and (not start or free - owed >= start):
            started.add(number)
            free -= minimum
            owed += max(start - minimum, 0)
    assert {number for number, count in of_gang.items() if count} == started
    assert len(placed) == min(sum(world["nodes"]), sum(size[number] for number in started) + world["singles"])
    state = cluster.state.tasks.state
    assert set(state[cluster.state.tasks.rows()].tolist()) <= {WAITING, ASSUMED, BOUND}
    assert waiting_classes(cluster.state, []) is not None
