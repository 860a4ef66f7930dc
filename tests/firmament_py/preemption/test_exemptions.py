"""Tasks that are exempt from preemption by tasks below a priority, for a time: in all ways to preempt."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.model.events import QueuesObserved
from firmament_py.model.options import Preempting
from firmament_py.model.queues import Reclaim, Within
from firmament_py.state.tables import EXEMPT_FOREVER_US
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)
from tests.effort import examples
from tests.firmament_py.engine.reclaiming import A, cluster_of, cohort, running
from tests.firmament_py.preemption.priorities import HIGH, LOW, MID, full_node, nodes_with
from tests.firmament_py.queues.trees import queue, quota, tree

END_US = NOW_US + 60 * SECOND_US


def exempt(least, until_us=EXEMPT_FOREVER_US):
    return {"least_preemptor": least, "exempt_until_us": until_us}


@pytest.mark.parametrize(("least", "victims"), [(101, {}), (100, {1: 3}), (-5, {1: 3})])
@pytest.mark.parametrize("cls", [LOW, MID])
def test_only_tasks_of_the_least_priority_or_a_higher_one_evict_it(cls, least, victims):
    """The task that waits has priority 100."""
    cluster = full_node(make_tasks([1], cls, on="a", **exempt(least)), make_tasks([3], HIGH), cpu=4)
    assert cluster.preempted(cluster.run()) == victims


def test_an_exemption_below_its_own_priority_changes_nothing():
    cluster = full_node(make_tasks([1], HIGH, on="a", **exempt(5)), make_tasks([3], MID), cpu=4)
    assert not cluster.preempted(cluster.run())


def test_when_the_exemption_ends_a_round_is_due_that_evicts_it():
    cluster = full_node(make_tasks([1], LOW, on="a", **exempt(1_000, END_US)), make_tasks([3], HIGH), cpu=4)
    assert not cluster.preempted(cluster.run())
    assert cluster.scheduler.wake_us(NOW_US) == END_US
    assert not cluster.scheduler.due(END_US - 1)
    assert not cluster.preempted(cluster.run(END_US - 1))
    assert cluster.scheduler.due(END_US)
    assert cluster.preempted(cluster.run(END_US)) == {1: 3}


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        pytest.param(HIGH, exempt(1_000, END_US), id="it would not be evicted then, either"),
        pytest.param(LOW, exempt(100, END_US), id="it may be evicted already"),
        pytest.param(LOW, {**exempt(1_000, END_US), "unevictable": True}, id="it is never evicted"),
        pytest.param(LOW, exempt(1_000), id="no end"),
    ],
)
def test_no_round_is_due_when_an_exemption_ends_that_keeps_no_task_waiting(cls, fields):
    cluster = full_node(
        make_tasks([1], cls, on="a", **fields),
        make_tasks([2], HIGH, on="a"),
        make_tasks([3], HIGH),
    )
    cluster.run()
    assert cluster.scheduler.wake_us(NOW_US) == 0


@pytest.mark.parametrize("fields", [{}, exempt(100), exempt(1_000, NOW_US - 1)])
def test_a_change_of_the_exemption_makes_a_round_due(fields):
    cluster = full_node(make_tasks([1], LOW, on="a", **exempt(1_000)), make_tasks([3], HIGH), cpu=4)
    assert not cluster.preempted(cluster.run())
    assert not cluster.scheduler.due(NOW_US)
    cluster.tell(make_tasks([1], LOW, on="a", **fields))
    assert cluster.scheduler.due(NOW_US)
    assert cluster.preempted(cluster.run()) == {1: 3}


def test_a_task_that_may_be_evicted_by_fewer_is_spared_where_another_suffices():
    """Task 1 is less important, but nobody below 50 evicts it: it counts as one of 49."""
    cluster = nodes_with(
        make_tasks([1], LOW, on="a", **exempt(50)), make_tasks([2], MID, on="b"), make_tasks([3], HIGH), names="ab"
    )
    assert cluster.preempted(cluster.run()) == {2: 3}


def test_an_exempt_member_spares_its_gang():
    gang = make_gang(7, 2)
    exempted = make_tasks([2], LOW, on="b", gang=7, **exempt(1_000))
    tasks = make_tasks([1], LOW, on="a", gang=7), exempted, make_tasks([3, 4], HIGH)
    cluster = nodes_with(gang, *tasks, names="ab")
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([2], LOW, on="b", gang=7))
    assert cluster.preempted(cluster.run()).keys() == {1, 2}


def test_what_an_exempt_task_that_leaves_has_is_for_others():
    """It leaves for a reason of its own: nobody else is evicted, and its node is kept for the task that waits."""
    cluster = nodes_with(
        make_tasks([1], LOW, on="a", leaving=True, **exempt(1_000)),
        make_tasks([2], LOW, on="b"),
        make_tasks([3], HIGH),
        names="ab",
    )
    assert not cluster.preempted(cluster.run())
    assert cluster.nominated() == {3: "a"}


def test_what_is_evicted_for_the_most_important_serves_others_as_well():
    """Of 8 cpu that the victim leaves, the one above 1,000 takes 4, and the other one the rest."""
    top, wide = make_class(8, cpu=4, priority=1_000), make_class(9, cpu=8)
    cluster = full_node(top, wide, make_tasks([1], 9, on="a", **exempt(1_000)), make_tasks([3], HIGH))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([4], 8))
    assert cluster.preempted(cluster.run()) == {1: 4}
    cluster.tell(removed(1))
    assert cluster.round() == {3: "a", 4: "a"}


@pytest.mark.parametrize(("fields", "named"), [({}, True), (exempt(1_000), False)])
def test_a_budget_is_no_reason_where_the_task_would_be_spared_anyway(fields, named):
    web, budget = make_label_set(1, app="web"), make_budget(1, tasks_like(needs("app")), 0)
    cluster = full_node(web, budget, make_tasks([1], LOW, on="a", label_set=1, **fields), make_tasks([3], HIGH), cpu=4)
    kinds = {reason.kind for waiting in cluster.run().waiting for reason in waiting.reasons}
    assert (ReasonKind.BUDGETS in kinds) is named


# -- queues ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("least", "count"), [(6, 0), (5, 4), (0, 4)])
def test_a_queue_reclaims_nothing_from_tasks_that_are_exempt(least, count):
    """The tasks that wait have priority 5."""
    cluster = cluster_of(cohort(), running(range(1, 9), **exempt(least)), make_tasks([11, 12, 13, 14], 2, queue=A))
    assert len(cluster.preempted(cluster.run())) == count


def test_within_a_queue_exemptions_hold_as_well():
    queues = tree(queue("top"), queue("a", "top", quota(8), within=Within.LOWER_PRIORITY, reclaim=Reclaim.NEVER))
    for least, count in ((6, 0), (5, 1)):
        tasks = running(range(1, 9), queue=A, **exempt(least)), make_tasks([11], 2, queue=A)
        cluster = cluster_of(queues, *tasks)
        assert len(cluster.preempted(cluster.run())) == count


def test_when_the_exemption_ends_a_queue_reclaims():
    cluster = cluster_of(cohort(), running(range(1, 9), **exempt(6, END_US)), make_tasks([11], 2, queue=A))
    assert not cluster.preempted(cluster.run())
    assert cluster.scheduler.wake_us(NOW_US) == END_US
    assert len(cluster.preempted(cluster.run(END_US))) == 1


def test_queues_without_exemptions_know_no_such_time():
    cluster = preempting_cluster(make_class(1, cpu=1), make_node("n", cpu=1), QueuesObserved(cohort()))
    cluster.tell(running([1]), make_tasks([2], 1, queue=A))
    cluster.run()
    assert cluster.scheduler.wake_us(NOW_US) == 0


# -- against all sets of victims -------------------------------------------------------------------------------------

residents = st.tuples(
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 10]),
    st.sampled_from([0, 5, 11, 50, 51, 100]),
    st.sampled_from([NOW_US - 1, NOW_US, NOW_US + 1, EXEMPT_FOREVER_US]),
)


@examples(150)
@given(
    st.lists(st.lists(residents, max_size=4), min_size=1, max_size=3),
    st.integers(1, 6),
    st.sampled_from([10, 50]),
    st.booleans(),
)
def test_a_task_preempts_exactly_where_some_set_of_tasks_that_are_not_exempt_suffices(
    nodes, asked, priority, beyond_budgets
):
    """Each resident: cpu, priority, least priority of a preemptor, and until when that counts."""
    classes = {(cpu, of): 100 * cpu + of for cpu in (1, 2, 3) for of in (0, 10)}
    preempting = Preempting.BEYOND_BUDGETS if beyond_budgets else Preempting.WITHIN_BUDGETS
    cluster = preempting_cluster(
        *(make_class(number, cpu=cpu, priority=of) for (cpu, of), number in classes.items()),
        make_class(99, cpu=asked, priority=priority),
        preempting=preempting,
    )
    uids, permitted, possible = itertools.count(1), {}, False
    for name, there in zip("abc", nodes, strict=False):
        used = sum(cpu for cpu, *_ in there)
        cluster.tell(make_node(name, cpu=max(used, 1)))
        freed = max(used, 1) - used
        for cpu, of, least, until_us in there:
            uid = next(uids)
            permitted[uid] = of < priority and not (until_us > NOW_US and priority < least)
            freed += cpu * permitted[uid]
            fields = exempt(least, until_us)
            cluster.tell(make_tasks([uid], classes[cpu, of], on=name, **fields))
        possible |= freed >= asked
    cluster.tell(make_tasks([1_000], 99))
    result = cluster.run()
    victims = cluster.preempted(result)
    assert all(permitted[uid] for uid in victims)
    assert bool(victims or cluster.names(result)) is possible
