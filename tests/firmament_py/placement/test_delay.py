"""Tasks that wait for a better node although they fit: how long, and that nothing else suffers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import DELAYED
from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.options import Preempting
from firmament_py.policy import DELAY_LONGEST_US, AnywherePolicy, Costs, waiting_cost
from firmament_py.service.answers.explain_reply import explain_reply
from policies.quincy import Quincy
from tests.builders import (
    NOW_US,
    make_class,
    make_cluster,
    make_gang,
    make_inputs,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    tasks_like,
)

SECOND_US = 1_000_000
READER, OTHER = 1, 2


def reading(*events, mib=1000, wait_mib=100.0, task=None):
    """The data of task 1 is on node b, which task 2 fills; node a is empty. Nodes of 4 cpu, tasks of 4 cpu."""
    return make_cluster(
        *(make_node(name, cpu=4) for name in "ab"),
        make_class(READER, cpu=4),
        make_class(OTHER, cpu=4, priority=-1),
        make_inputs(7, (mib, "b")),
        make_gang(9, 1),
        make_tasks([2], OTHER, on="b"),
        make_tasks([1], READER, **{"inputs": 7, **(task or {})}),
        *events,
        policy=Quincy(wait_mib=wait_mib, spread_mib=0),
    )


def test_a_task_waits_until_that_costs_as_much_as_the_node():
    cluster = reading()
    for age in range(9):
        result = cluster.run(NOW_US + age * SECOND_US)
        assert not cluster.names(result)
        assert (result.stats.delayed, result.stats.waiting) == (1, 1)
        assert cluster.scheduler.wake_us(NOW_US) == NOW_US + (age + 1) * SECOND_US
    assert cluster.round(NOW_US + 9 * SECOND_US) == {1: "a"}, "reading 1000 MiB costs as much as 10 s at 100 MiB/s"


def test_it_takes_the_better_node_when_that_has_capacity():
    cluster = reading()
    assert not cluster.round()
    cluster.tell(removed(2))
    assert cluster.scheduler.due(NOW_US + 1)
    assert cluster.round(NOW_US + 1) == {1: "b"}
    assert not cluster.scheduler.wake_us(NOW_US + 1)


def test_why_it_waits_is_told_once():
    cluster = reading()
    first, second = cluster.run(), cluster.run(NOW_US + SECOND_US)
    [(waiting, again)] = zip(first.waiting, second.waiting, strict=True)
    assert waiting.reasons == again.reasons == (DELAYED,)
    assert (len(waiting.unreported), len(again.unreported)) == (1, 0)
    [reason] = explain_reply(cluster.state, 1, cluster.scheduler).reasons
    assert int(reason.kind) == ReasonKind.DELAYED


def test_another_reason_is_told_when_it_does_not_fit_any_more():
    cluster = reading()
    cluster.run()
    cluster.tell(make_tasks([3], OTHER, on="a"))
    [waiting] = cluster.run(NOW_US + SECOND_US).waiting
    assert waiting.reasons != (DELAYED,)
    assert len(waiting.unreported) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"wait_mib": 0.0},
        {"wait_mib": 1000.0},
        {"mib": 100},
        {"task": {"inputs": 0}},
        {"task": {"gang": 9}},
    ],
    ids=["no delays", "a fast network", "little data", "no data", "in a gang"],
)
def test_tasks_that_do_not_wait(options):
    assert reading(**options).round() == {1: "a"}


def test_the_node_that_it_does_not_take_is_for_others():
    assert reading(make_tasks([3], OTHER)).round() == {3: "a"}


class Choosy(AnywherePolicy):
    """Nodes cost a thousand times their number, and no task would pay anything at once."""

    name = "choosy"

    def costs(self, view):
        place = 1000 * (1 + np.arange(len(view.allocatable)))[None, :]
        slot, delay = np.zeros((1, 1), np.int64), view.task_age_us // 1000
        return Costs(place, slot, waiting_cost(view), delay=delay)


class Endless(Choosy):
    def costs(self, view):
        costs = super().costs(view)
        return Costs(costs.place, costs.slot, costs.wait, delay=np.zeros(len(view.task_class), np.int64))


def test_no_task_waits_for_a_better_node_for_longer_than_the_limit():
    cluster = make_cluster(
        make_node("a", cpu=4), make_class(1, cpu=1), make_tasks([1], 1), policy=Endless(), reserve_after_us=SECOND_US
    )
    assert not cluster.round(NOW_US + DELAY_LONGEST_US - 1)
    assert not cluster.scheduler.task_starts_us, "nor is capacity reserved for it"
    assert cluster.round(NOW_US + DELAY_LONGEST_US) == {1: "a"}


def test_a_task_that_does_not_fit_does_not_wait_for_a_better_node():
    cluster = make_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=4),
        make_tasks([1], 1, created_us=NOW_US - 2 * SECOND_US),
        make_tasks([2], 1, on="a"),
        policy=Endless(),
        reserve_after_us=SECOND_US,
    )
    assert cluster.run().stats.delayed == 0
    assert list(cluster.scheduler.task_starts_us) == [1]


class Tabled(AnywherePolicy):
    """Costs by class and node from a table; a task pays up to the delay of its class."""

    name = "tabled"

    def __init__(self, place, delay):
        self._place, self._delay = np.array(place), np.array(delay)

    def costs(self, view):
        number = view.requests[:, list(view.resources).index("cpu")] - 1
        slot = np.zeros((1, 1), np.int64)
        return Costs(self._place[number], slot, waiting_cost(view), delay=self._delay[number][view.task_class])


def test_a_node_that_is_withdrawn_from_one_task_is_for_another():
    """In a flow of least cost tasks 1, 2, 3 go to nodes b, a, c. Task 1 would pay only for a, task 2 only for c."""
    place = [[1, 5, 900], [3, 100, 1], [50, 100, 0]]
    cluster = make_cluster(
        *(make_node(name, cpu=3, pods=1) for name in "abc"),
        *(make_class(number, cpu=number) for number in (1, 2, 3)),
        *(make_tasks([number], number) for number in (1, 2, 3)),
        policy=Tabled(place, [2, 2, 10]),
    )
    assert cluster.round() == {1: "a", 3: "c"}


def test_a_task_that_waits_for_a_better_node_is_not_placed_from_a_list():
    apart = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "web")), "kubernetes.io/hostname"),))
    cluster = make_cluster(
        make_node("a", cpu=4, labels={"kubernetes.io/hostname": "a"}),
        make_class(1, cpu=1),
        make_class(2, cpu=1, peers=apart),
        make_label_set(5, app="web"),
        make_tasks([1], 1),
        make_tasks([2], 2, label_set=5, created_us=NOW_US - DELAY_LONGEST_US),
        policy=Endless(),
    )
    assert cluster.round() == {2: "a"}


def test_no_task_is_evicted_or_moved_for_one_that_waits_for_a_better_node():
    cluster = make_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=1, priority=9),
        make_class(2, cpu=1),
        make_tasks([1], 1),
        make_tasks([2], 2, on="a"),
        policy=Endless(),
        preempting=Preempting.WITHIN_BUDGETS,
    )
    result = cluster.run()
    assert (result.stats.delayed, result.stats.preempted, result.stats.gap) == (1, 0, 0)


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 900), st.integers(0, 4)), min_size=1, max_size=8),
)
def test_no_task_waits_beside_a_node_that_is_worth_the_reading(nodes, tasks):
    """Task i reads so many MiB, all of them on one node, and has waited so many seconds; a second is worth 100 MiB."""
    events = [make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(nodes)]
    arrivals = list[Any]()
    for uid, (home, mib, age) in enumerate(tasks, start=1):
        arrivals.append(make_inputs(uid, (mib, f"n{home}")))
        arrivals.append(make_tasks([uid], 1, inputs=uid, created_us=NOW_US - age * SECOND_US))
    cluster = make_cluster(
        *events, make_class(1, cpu=1), *arrivals, policy=Quincy(wait_mib=100, spread_mib=0), reserve_after_us=None
    )
    placed = cluster.round()
    left = [cpu - list(placed.values()).count(f"n{i}") for i, cpu in enumerate(nodes)]
    for uid, (home, mib, age) in enumerate(tasks, start=1):
        pays = mib <= 100 * (age + 1)
        if uid in placed:
            assert pays or placed[uid] == f"n{home}"
        else:
            assert not (pays and any(left))
            assert home >= len(nodes) or not left[home]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=8),
)
def test_no_task_waits_beside_a_node_that_it_would_pay_for(nodes, tasks):
    """Ages in seconds, and priorities; node i of so many cpu costs 1000 (i + 1), a task pays 1000 for each second."""
    events = [make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(nodes)]
    classes = [make_class(priority + 1, priority=priority, cpu=1) for priority in range(3)]
    arrivals = [
        make_tasks([uid], priority + 1, created_us=NOW_US - age * SECOND_US)
        for uid, (age, priority) in enumerate(tasks, start=1)
    ]
    cluster = make_cluster(*events, *classes, *arrivals, policy=Choosy())
    placed = cluster.round()
    left = [cpu - list(placed.values()).count(f"n{i}") for i, cpu in enumerate(nodes)]
    for uid, (age, _) in enumerate(tasks, start=1):
        if uid in placed:
            assert int(placed[uid][1:]) + 1 <= age
        else:
            assert not any(spare > 0 and i + 1 <= age for i, spare in enumerate(left))
    placed |= cluster.round(NOW_US + 10 * SECOND_US)
    assert len(placed) == min(sum(nodes), len(tasks))
