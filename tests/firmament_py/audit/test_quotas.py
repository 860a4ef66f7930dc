"""The independent check of quotas, against Kueue's arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmament_py.audit.quotas import QuotaCheck
from firmament_py.model.constraints import NodeDemand, Taint, Toleration
from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import UNLIMITED, Flavor, QueueTree, Stop
from firmament_py.queues.quota import available, capacity
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree, trees

TAKES_NONE, EXCEEDED = "its queue takes no tasks", "a quota is exceeded"
MISPLACED = "the node is not of the flavor that it was admitted on"


def problems(queues, running, waiting, **requests):
    """Reasons -> uids of waiting tasks {uid: queue} that are refused beside running ones."""
    cluster = make_cluster(make_node("n", cpu=10**6, gpu=10**6), make_class(1, **(requests or {"cpu": 1})))
    cluster.state.apply(QueuesObserved(queues))
    for on, some in (("n", running), (None, waiting)):
        for uid, name in some.items():
            cluster.tell(make_tasks([uid], 1, on=on, queue=queue_id(name)))
    state = cluster.state
    rows = state.task_rows(np.array(list(waiting), np.uint64))
    found = QuotaCheck(state.queues).problems(state, rows, np.full(len(rows), state.node_row("id-n")))
    return {why: set(state.tasks.uid[rows[bad]].tolist()) for why, bad in found.items() if bad.any()}


def test_a_quota_is_what_running_and_new_tasks_may_use_together():
    queues = tree(queue("a", "", quota(2)))
    assert problems(queues, {1: "a"}, {2: "a"}) == {}
    assert problems(queues, {1: "a"}, {2: "a", 3: "a"}) == {EXCEEDED: {2, 3}}


def test_a_queue_borrows_what_its_siblings_lend_up_to_its_limit():
    lender = queue("b", "top", quota(4, lending_limit=2))
    assert problems(tree(queue("top"), queue("a", "top", quota(1)), lender), {}, {1: "a", 2: "a", 3: "a"}) == {}
    limited = tree(queue("top"), queue("a", "top", quota(1, borrowing_limit=1)), lender)
    assert problems(limited, {}, {1: "a", 2: "a", 3: "a"}) == {EXCEEDED: {1, 2, 3}}


def test_what_a_queue_does_not_lend_is_never_refused_to_it():
    queues = tree(queue("top"), queue("a", "top", quota(1, lending_limit=0)), queue("b", "top", quota(1)))
    assert problems(queues, {1: "b", 2: "b"}, {3: "a"}) == {}
    assert problems(queues, {1: "b", 2: "b"}, {3: "b"}) == {EXCEEDED: {3}}


def test_sums_of_unlimited_quotas_do_not_wrap_around():
    """Ten times 2**60 is more than 64 bits hold."""
    children = [queue(name, "x", quota(UNLIMITED)) for name in "abcdefghij"]
    assert problems(tree(queue("x"), *children), {}, {1: "a"}) == {}


def test_quotas_of_flavors_are_those_of_their_nodes():
    """The queue has 1 on red nodes and 2 on blue ones; others count as the first flavor that it has."""
    flavors = tuple(Flavor(name, {"kind": name}) for name in ("red", "blue"))
    queues = QueueTree((queue("a", "", quota(1, on="red/cpu"), quota(2, on="blue/cpu")),), flavors)
    cluster = make_cluster(
        *(make_node(name, cpu=9, labels={"kind": name}) for name in ("red", "blue", "green")),
        make_class(1, cpu=1),
        QueuesObserved(queues),
        make_tasks([1, 2, 3], 1, queue=queue_id("a")),
    )
    state, rows = cluster.state, np.arange(3)

    def refused(*nodes):
        at = np.array([state.node_row(f"id-{name}") for name in nodes])
        return bool(QuotaCheck(state.queues).problems(state, rows[: len(nodes)], at)[EXCEEDED].any())

    assert not refused("red", "blue", "blue")
    assert refused("red", "red")
    assert refused("blue", "blue", "blue")
    assert refused("red", "green")
    assert not refused("blue", "blue", "green")


@pytest.mark.parametrize(
    ("running", "waiting", "node", "why"),
    [
        pytest.param(["red", "blue", "blue"], ["all"], "red", set(), id="each has its own quota"),
        pytest.param(["all", "blue"], ["all"], "red", {EXCEEDED}, id="that of its flavor is used"),
        pytest.param([""], ["all"], "red", {EXCEEDED}, id="what is not known counts on the first"),
        pytest.param(["blue"], ["all"], "red", set(), id="what is on a node of its flavor counts on that"),
        pytest.param(["green"], ["all"], "red", {EXCEEDED}, id="what the queue does not have counts on the first"),
        pytest.param([], ["blue"], "red", {MISPLACED}, id="the node is of another flavor"),
        pytest.param([], ["blue", "blue"], "blue", set(), id="two on one flavor"),
        pytest.param([], ["all", "blue", "blue"], "blue", set(), id="of two flavors"),
        pytest.param([], ["all", "all"], "blue", {EXCEEDED}, id="two on the other one"),
    ],
)
def test_a_task_takes_quota_of_the_flavor_that_it_was_admitted_on(running, waiting, node, why):
    """The queue has 1 on all nodes and 2 each on red and blue ones. What runs is on the node of its flavor, or blue."""
    flavors = (Flavor("all"), *(Flavor(name, {"kind": name}) for name in ("red", "blue", "green")))
    quotas = quota(1, on="all/cpu"), quota(2, on="red/cpu"), quota(2, on="blue/cpu")
    cluster = make_cluster(
        *(make_node(name, cpu=9, labels={"kind": name}) for name in ("red", "blue", "green")),
        make_class(1, cpu=1),
        QueuesObserved(QueueTree((queue("a", "", *quotas),), flavors)),
    )
    state, names = cluster.state, {name: name for name in ("red", "blue", "green")}
    uids = range(1, len(running) + len(waiting) + 1)
    for uid, name in zip(uids, [*running, *waiting], strict=True):
        on = None if uid > len(running) else names.get(name, "blue")
        cluster.tell(make_tasks([uid], 1, on=on, queue=queue_id("a")))
        row = state.task_row(uid)
        assert row is not None
        state.tasks.flavors[row] = state.flavor_choices.number((("cpu", name),)) if name else -1
    rows = state.task_rows(np.array(uids[len(running) :], np.uint64))
    at = np.full(len(rows), state.node_row(f"id-{node}"))
    found = QuotaCheck(state.queues).problems(state, rows, at)
    assert {reason for reason, bad in found.items() if bad.any()} == why


@pytest.mark.parametrize("chosen", ["red", "blue", ""], ids=["its own", "another", "the first, as none is known"])
def test_a_task_tolerates_the_taints_of_the_flavor_that_it_takes(chosen):
    """The node is of both flavors; red has a taint. Class 2 tolerates it."""
    flavors = Flavor("red", taints=(Taint("k", "v", "NoSchedule"),)), Flavor("blue")
    quotas = quota(9, on="red/cpu"), quota(9, on="blue/cpu")
    cluster = make_cluster(
        make_node("n", cpu=9),
        make_class(1, cpu=1),
        make_class(2, cpu=1, demand=NodeDemand(tolerations=(Toleration("k", "Exists"),))),
        QueuesObserved(QueueTree((queue("a", "", *quotas),), flavors)),
        make_tasks([1], 1, queue=queue_id("a")),
        make_tasks([2], 2, queue=queue_id("a")),
    )
    state = cluster.state
    rows = state.task_rows(np.array([1, 2], np.uint64))
    state.tasks.flavors[rows] = state.flavor_choices.number((("cpu", chosen),)) if chosen else -1
    found = QuotaCheck(state.queues).problems(state, rows, np.full(2, state.node_row("id-n")))
    assert {reason: bad.tolist() for reason, bad in found.items() if bad.any()} == (
        {} if chosen == "blue" else {"it does not tolerate the taints of that flavor": [True, False]}
    )


def test_limits_bound_all_below_a_queue():
    queues = tree(queue("top", "", quota(9, limit=2)), queue("a", "top", quota(1)), queue("b", "top", quota(1)))
    assert problems(queues, {1: "a", 2: "b"}, {3: "a"}) == {EXCEEDED: {3}}


@pytest.mark.parametrize("name", ["unknown", "top", "stopped", "below"])
def test_some_queues_take_no_tasks(name):
    queues = tree(
        queue("top"),
        queue("a", "top", quota(9)),
        queue("stopped", "", quota(9), stop=Stop.HOLD),
        queue("held", "", stop=Stop.HOLD_AND_DRAIN),
        queue("below", "held", quota(9)),
    )
    assert problems(queues, {}, {1: name, 2: "a"}) == {TAKES_NONE: {1}}


def test_a_resource_without_a_quota_is_not_there_unless_the_queue_says_otherwise():
    assert problems(tree(queue("a", "", quota(9))), {}, {1: "a"}, cpu=1, gpu=1) == {EXCEEDED: {1}}
    assert problems(tree(queue("a", "", quota(9), unlimited=True)), {}, {1: "a"}, cpu=1, gpu=1) == {}
    for exempt in ({"exempt_prefixes": ("gp",)}, {"exempt_resources": frozenset(["gpu"])}):
        assert problems(tree(queue("a", "", quota(9)), **exempt), {}, {1: "a"}, cpu=1, gpu=1) == {}
    other = tree(queue("a", "", quota(9)), exempt_resources=frozenset(["gp"]))
    assert problems(other, {}, {1: "a"}, cpu=1, gpu=1) == {EXCEEDED: {1}}


def test_tasks_without_a_queue_have_no_quota():
    assert problems(tree(queue("a", "", quota(0))), {}, {1: ""}) == {}


@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_one_more_task_is_refused_exactly_if_it_is_not_available(described, data):
    queues = make_cluster(QueuesObserved(described)).state.queues
    names = [queue.name for row, queue in enumerate(queues.definitions) if queues.leaf[row]]
    running = {uid: data.draw(st.sampled_from(names)) for uid in range(1, data.draw(st.integers(0, 25)) + 1)}
    name = data.draw(st.sampled_from(names))
    definition = queues.definitions[queues.row[queue_id(name)]]
    of_cpu = [each.flavor for each in definition.quotas if each.resource == "cpu"]
    usage = np.zeros_like(queues.nominal)
    for user in running.values():
        row = queues.row[queue_id(user)]
        used = [each.flavor for each in queues.definitions[row].quotas if each.resource == "cpu"]
        if used:
            usage[row, queues.column(used[0], "cpu")] += 1
    left = available(queues, capacity(queues), usage)
    fits = bool(of_cpu) and left[queues.row[queue_id(name)], queues.column(of_cpu[0], "cpu")] >= 1
    assert problems(described, running, {100: name}) == ({} if fits else {EXCEEDED: {100}})
