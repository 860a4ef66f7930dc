"""What queues used in the past: exact means, what they change, and how they outlive the engine."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import PastUse, PlacementRejected, QueuesObserved
from firmament_py.model.queues import LocalQueue, Sharing
from firmament_py.sharing.past_use import local_scores, past_of, settle
from firmament_py.sharing.report import queue_report
from firmament_py.sharing.use import QueueUse
from tests.builders import NOW_US, SECOND_US, ended, make_class, make_cluster, make_node, make_tasks, removed
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

HALF_LIFE = 100.0
A, B = queue_id("a"), queue_id("b")
ONE, TWO = LocalQueue(queue_id("one"), "one", A), LocalQueue(queue_id("two"), "two", A, 2.0)


def shared(*locals_, half_life=HALF_LIFE, **fields):
    queues = queue("top"), queue("a", "top", quota(8), by_past_use=True), queue("b", "top", quota(8))
    return tree(*queues, usage_half_life_s=half_life, local_queues=locals_, **fields)


def cluster_of(described, *events, cpu=100):
    return make_cluster(make_node("n", cpu=cpu), make_class(1, cpu=1), QueuesObserved(described), *events)


def used(state, name, resource="cpu"):
    """The decayed mean of a queue."""
    past = past_of(state, state.queues)
    assert past is not None
    return past.queues[state.queues.row[queue_id(name)], state.queues.column("red", resource)]


def after(seconds):
    return NOW_US + round(seconds * SECOND_US)


def test_a_constant_use_is_half_counted_after_a_half_life():
    cluster = cluster_of(shared(), make_tasks([1, 2], 1, on="n", queue=A))
    settle(cluster.state, NOW_US)
    assert used(cluster.state, "a") == 0.0
    settle(cluster.state, after(HALF_LIFE))
    assert used(cluster.state, "a") == 1.0
    cluster.tell(ended(1, 2))
    settle(cluster.state, after(3 * HALF_LIFE))
    assert (used(cluster.state, "a"), used(cluster.state, "b")) == (0.25, 0.0)


def integral(history, end_s):
    """The decayed mean at `end_s` of a use that is constant between the times of a history of (seconds, use)."""
    total = 0.0
    for (start, use), stop in zip(history, [*(time for time, _ in history[1:]), end_s], strict=True):
        total += use * (0.5 ** ((end_s - stop) / HALF_LIFE) - 0.5 ** ((end_s - start) / HALF_LIFE))
    return total


steps = st.lists(
    st.tuples(st.floats(0, 300), st.sampled_from(["start", "end", "remove", "ask", "queues"]), st.integers(1, 5)),
    max_size=12,
)


@examples(60)
@given(steps)
def test_means_are_exact_however_often_they_are_calculated(changes):
    """Against the integral of each task's use over the whole history, calculated once at the end."""
    cluster = cluster_of(shared())
    settle(cluster.state, NOW_US)
    now, running, history = 0.0, set(), [(0.0, 0)]
    for seconds, what, task in changes:
        now += seconds
        settle(cluster.state, after(now))
        if what == "start":
            cluster.tell(make_tasks([task], 1, on="n", queue=A))
            running.add(task)
        elif what in ("end", "remove") and task in running:
            cluster.tell(*([ended(task)] if what == "end" else []), removed(task))
            running.discard(task)
        elif what == "queues":
            cluster.tell(QueuesObserved(replace(shared(), queues=(*reversed(shared().queues), queue("c")))))
        history.append((now, len(running)))
    settle(cluster.state, after(now + 50))
    assert math.isclose(used(cluster.state, "a"), integral(history, now + 50), rel_tol=1e-4, abs_tol=1e-5)


def test_times_that_go_back_count_as_no_time():
    cluster = cluster_of(shared(), make_tasks([1], 1, on="n", queue=A))
    for seconds in (0, HALF_LIFE, HALF_LIFE / 2, HALF_LIFE):
        settle(cluster.state, after(seconds))
    assert used(cluster.state, "a") == 0.5


def test_what_was_kept_by_a_clock_that_is_wrong_counts_from_now_on():
    cluster = cluster_of(shared(), make_tasks([1], 1, on="n", queue=A))
    cluster.state.past_use.restore(PastUse(after(1e9), {A: {("red", "cpu"): 3.0}}))
    settle(cluster.state, NOW_US)
    settle(cluster.state, after(60 + HALF_LIFE))
    assert used(cluster.state, "a") == 2.0  # (3 + 1) / 2


def test_without_a_half_life_nothing_is_kept():
    cluster = cluster_of(shared(), make_tasks([1], 1, on="n", queue=A))
    settle(cluster.state, NOW_US)
    settle(cluster.state, after(HALF_LIFE))
    cluster.tell(QueuesObserved(shared(half_life=0.0)))
    settle(cluster.state, after(HALF_LIFE))
    assert past_of(cluster.state, cluster.state.queues) is None
    cluster.tell(QueuesObserved(shared()))
    settle(cluster.state, after(HALF_LIFE))
    assert used(cluster.state, "a") == 0.0


# -- what is restored --------------------------------------------------------------------------------------------


def test_what_was_kept_elsewhere_counts_until_now():
    cluster = cluster_of(shared(), make_tasks([1], 1, on="n", queue=A))
    settle(cluster.state, NOW_US)
    settle(cluster.state, after(HALF_LIFE))
    stored = queue_report(cluster.state).past_use or PastUse()
    again = make_cluster(make_node("n", cpu=100), make_class(1, cpu=1), QueuesObserved(shared(), stored))
    again.tell(make_tasks([1], 1, on="n", queue=A))
    settle(again.state, after(2 * HALF_LIFE))
    settle(cluster.state, after(2 * HALF_LIFE))
    assert used(again.state, "a") == used(cluster.state, "a") == 0.75
    assert queue_report(again.state).past_use == queue_report(cluster.state).past_use


def test_what_was_kept_elsewhere_does_not_replace_what_is_known():
    cluster = cluster_of(shared())
    settle(cluster.state, NOW_US)
    cluster.tell(QueuesObserved(shared(), PastUse(NOW_US, {A: {("red", "cpu"): 9.0}})))
    assert used(cluster.state, "a") == 0.0


def test_amounts_that_are_none_count_as_nothing():
    stored = PastUse(NOW_US, {A: {("red", "cpu"): math.nan, ("blue", "cpu"): -1.0}, B: {("red", "cpu"): 3.0}, 77: {}})
    cluster = cluster_of(shared())
    cluster.state.past_use.restore(stored)
    assert (used(cluster.state, "a"), used(cluster.state, "b")) == (0.0, 3.0)


# -- shares --------------------------------------------------------------------------------------------------------


def test_past_use_moves_shares_to_the_other_queue():
    """KAI's fair shares: with k = 1 and a past of half the cluster, queue a gets weight 1/2, b 1."""
    described = tree(
        queue("a", "", quota(0), unlimited=True),
        queue("b", "", quota(0), unlimited=True),
        sharing=Sharing.PROPORTIONAL,
        usage_half_life_s=HALF_LIFE,
        usage_weight=1.0,
    )
    cluster = cluster_of(described, make_tasks(range(1, 7), 1, on="n", queue=A), cpu=12)
    settle(cluster.state, NOW_US)
    settle(cluster.state, after(50))
    cluster.tell(removed(*range(1, 7)))
    cluster.tell(make_tasks(range(11, 31), 1, queue=A), make_tasks(range(31, 51), 1, queue=B))
    settle(cluster.state, after(50))
    fair = queue_report(cluster.state).fair
    row, column = cluster.state.queues.row, cluster.state.queues.column("red", "cpu")
    assert (fair[row[A], column], fair[row[B], column]) == (4, 8)
    placed = cluster.round(after(50))
    assert sum(uid <= 30 for uid in placed) == 4
    assert len(placed) == 12


def test_a_round_is_due_while_shares_change_by_time_alone():
    described = shared()
    cluster = cluster_of(described, make_tasks(range(1, 20), 1, queue=A), cpu=4)
    cluster.round()
    while cluster.scheduler.due(NOW_US):
        cluster.round()
    assert cluster.scheduler.wake_us(NOW_US) == after(HALF_LIFE / 16)
    assert not cluster.scheduler.due(after(HALF_LIFE / 16) - 1)
    assert cluster.scheduler.due(after(HALF_LIFE / 16))


# -- local queues -----------------------------------------------------------------------------------------------


def scores(state):
    past = past_of(state, state.queues)
    assert past is not None
    return local_scores(state, QueueUse(state), past).tolist()


def test_the_local_queue_that_used_least_gets_the_quota():
    """One has run four tasks for long; two gets all that is left, although the tasks of one are older."""
    cluster = cluster_of(shared(ONE, TWO, usage_sampling_s=1.0))
    cluster.tell(make_tasks(range(1, 5), 1, on="n", queue=A, local_queue=ONE.id))
    settle(cluster.state, NOW_US)
    alone = replace(cluster.state.queues.tree, queues=(queue("a", "", quota(8), by_past_use=True),))
    cluster.tell(QueuesObserved(alone))
    cluster.tell(make_tasks(range(11, 20), 1, queue=A, local_queue=ONE.id, created_us=NOW_US - SECOND_US))
    cluster.tell(make_tasks(range(20, 30), 1, queue=A, local_queue=TWO.id))
    placed = cluster.round(after(HALF_LIFE))
    assert sorted(uid // 10 for uid in placed) == [2, 2, 2, 2]


def test_what_came_through_no_local_queue_has_a_past_of_its_own():
    """Four such tasks have run for long, and two of a local queue: the other four are of that one."""
    described = shared(ONE, usage_sampling_s=1.0)
    cluster = cluster_of(replace(described, queues=(queue("a", "", quota(10), by_past_use=True),)))
    cluster.tell(make_tasks(range(1, 5), 1, on="n", queue=A))
    cluster.tell(make_tasks([5, 6], 1, on="n", queue=A, local_queue=ONE.id))
    settle(cluster.state, NOW_US)
    cluster.tell(make_tasks(range(11, 20), 1, queue=A, created_us=NOW_US - SECOND_US))
    cluster.tell(make_tasks(range(20, 30), 1, queue=A, local_queue=ONE.id))
    placed = cluster.round(after(HALF_LIFE))
    assert sorted(uid // 10 for uid in placed) == [2, 2, 2, 2]


def test_with_equal_pasts_local_queues_take_turns():
    described = tree(
        queue("a", "", quota(8), by_past_use=True),
        usage_half_life_s=HALF_LIFE,
        usage_sampling_s=1.0,
        local_queues=(ONE, replace(TWO, weight=1.0)),
    )
    cluster = cluster_of(described)
    cluster.tell(make_tasks(range(11, 31), 1, queue=A, local_queue=ONE.id, created_us=NOW_US - SECOND_US))
    cluster.tell(make_tasks(range(31, 51), 1, queue=A, local_queue=TWO.id))
    placed = cluster.round()
    assert sum(uid <= 30 for uid in placed) == 4
    assert len(placed) == 8


def test_an_admission_counts_once_and_a_rejected_one_not_at_all():
    """Kueue's entry penalty: 1 - 0.5 ** (100 / 100) of the request of each task."""
    described = shared(ONE, TWO, usage_sampling_s=HALF_LIFE)
    cluster = cluster_of(described, make_tasks([1, 2], 1, queue=A, local_queue=TWO.id))
    assert len(cluster.round()) == 2
    assert scores(cluster.state) == [0.0, 0.5]  # two tasks, half of the request of each, over the weight 2
    cluster.tell(PlacementRejected(2, "id-n"))
    assert scores(cluster.state) == [0.0, 0.25]
    cluster.tell(make_tasks([1], 1, on="n", queue=A, local_queue=TWO.id))
    settle(cluster.state, NOW_US)
    assert scores(cluster.state) == [0.0, 0.25]
    cluster.tell(make_tasks([1], 1, on="n", queue=A, local_queue=TWO.id))  # the same again
    settle(cluster.state, NOW_US)
    assert scores(cluster.state) == [0.0, 0.25]
    assert used(cluster.state, "a") == 0.0  # the use of the queue itself is what it used


def test_resources_count_by_their_weights():
    described = shared(ONE, TWO, resource_weights={"cpu": 0.5, "gpu": 4.0})
    gpus = replace(described.queues[1], quotas=(quota(8), quota(8, on="red/gpu")))
    described = replace(described, queues=(described.queues[0], gpus))
    cluster = make_cluster(make_node("n", cpu=9, gpu=9), make_class(1, cpu=2, gpu=1), QueuesObserved(described))
    cluster.tell(make_tasks([1], 1, on="n", queue=A, local_queue=ONE.id))
    cluster.tell(make_tasks([2], 1, on="n", queue=A, local_queue=TWO.id))
    settle(cluster.state, NOW_US)
    settle(cluster.state, after(HALF_LIFE))
    assert scores(cluster.state) == [2.5, 1.25]


def test_the_report_counts_local_queues():
    cluster = cluster_of(shared(ONE, TWO))
    cluster.tell(make_tasks([1, 2], 1, on="n", queue=A, local_queue=ONE.id))
    cluster.tell(make_tasks([3], 1, queue=A, local_queue=TWO.id), make_tasks([4], 1, queue=A, local_queue=99))
    report = queue_report(cluster.state).local_queues
    assert (report.running.tolist(), report.pending.tolist()) == ([2, 0], [0, 1])
    assert report.used[:, cluster.state.queues.column("red", "cpu")].tolist() == [2, 0]


@pytest.mark.parametrize("wrong", [0, A])
def test_a_local_queue_with_an_id_of_something_else_is_left_out(wrong):
    [outcome] = make_cluster().tell(QueuesObserved(shared(LocalQueue(wrong, "odd", A), ONE)))
    [refusal] = outcome.refused
    assert (refusal.id, refusal.field) == ("odd", "id")
