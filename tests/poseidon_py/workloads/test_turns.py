"""In which order suspended workloads are resumed, and how many at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.workloads.turns import PendingPods, SuspendedWorkload, turns
from tests.effort import examples

LIMIT = 10


def waiting(uid, pods=1, priority=0, created=0, queue=1):
    return SuspendedWorkload(uid, queue, priority, created, pods)


@pytest.mark.parametrize(
    ("workloads", "pending", "resumed"),
    [
        pytest.param([waiting("b", 4, created=2), waiting("a", 4, created=1)], {}, ["a", "b"], id="by age"),
        pytest.param([waiting("a", 4), waiting("b", 4, priority=1)], {}, ["b", "a"], id="by priority"),
        pytest.param([waiting("a", 4), waiting("b", 4)], {1: PendingPods(4, 0)}, ["a"], id="up to the limit"),
        pytest.param([waiting("a", 4), waiting("b", 1)], {1: PendingPods(7, 0)}, [], id="none overtakes"),
        pytest.param([waiting("a", 50)], {}, ["a"], id="at least one workload"),
        pytest.param([waiting("a", 50)], {1: PendingPods(1, 0)}, [], id="a large one waits until nothing is pending"),
        pytest.param([waiting("a", 5, 1), waiting("b", 5, 1)], {1: PendingPods(9, 0)}, ["a"], id="above all pending"),
        pytest.param([waiting("a", 5, 1)], {1: PendingPods(9, 1)}, [], id="as high as one that is pending"),
        pytest.param([waiting("a", 4), waiting("b", 4, queue=2)], {1: PendingPods(10, 0)}, ["b"], id="queue by queue"),
        pytest.param([waiting("a", 50, queue=0), waiting("b", 50, queue=0)], {}, ["a", "b"], id="without a queue"),
    ],
)
def test_turns(workloads, pending, resumed):
    assert [each.uid for each in turns(workloads, pending, LIMIT)] == resumed


def lists(priorities):
    numbers = st.integers(0, 10**6).map(str)
    workload = st.builds(waiting, numbers, st.integers(1, 15), priorities, st.integers(0, 3))
    return st.lists(workload, unique_by=lambda each: each.uid, max_size=12)


PENDING = st.integers(0, 12).map(lambda pods: {1: PendingPods(pods, 0)} if pods else {})


@examples(100)
@given(lists(st.integers(-1, 2)), PENDING)
def test_none_overtakes_another_one(workloads, pending):
    found = turns(workloads, pending, LIMIT)
    order = sorted(workloads, key=lambda each: (-each.priority, each.created_us, each.uid))
    assert found == order[: len(found)]
    assert bool(found) >= (bool(workloads) and not pending)


@examples(100)
@given(lists(st.just(0)), PENDING)
def test_of_one_priority_no_more_than_the_limit_is_pending(workloads, pending):
    found = turns(workloads, pending, LIMIT)
    before = sum(each.pods for each in pending.values())
    together = before + sum(each.pods for each in found)
    assert not found or together <= LIMIT or (len(found) == 1 and not before)
    if len(found) < len(workloads):
        order = sorted(workloads, key=lambda each: (each.created_us, each.uid))
        assert together + order[len(found)].pods > LIMIT
