"""The independent check of what gangs keep of quotas, against the computation of rounds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.audit.quotas import QuotaCheck
from firmament_py.audit.retained_quota import retained_quota
from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree, Stop
from firmament_py.sharing.use import QueueUse
from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

A, B = queue_id("a"), queue_id("b")
TAKES_NONE, EXCEEDED = "its queue takes no tasks", "a quota is exceeded"


def problems(queues, *events, waiting):
    """Reasons -> uids of waiting tasks that are refused on the node n."""
    cluster = make_cluster(make_node("n", cpu=99), make_class(1, cpu=1), QueuesObserved(queues), *events)
    state = cluster.state
    rows = state.task_rows(np.array(waiting, np.uint64))
    found = QuotaCheck(state.queues).problems(state, rows, np.full(len(rows), state.node_row("id-n")))
    return {why: set(state.tasks.uid[rows[bad]].tolist()) for why, bad in found.items() if bad.any()}


def members(*uids, **fields):
    return make_tasks(uids, 1, gang=7, queue=A, **fields)


def test_what_a_gang_keeps_is_in_use_and_its_tasks_may_use_it():
    keeps = make_gang(7, 2, keeps={"cpu": 2}, queue=A, keeps_on="n")
    others = make_tasks([20], 1, queue=A)
    for limit, expected in ((3, {}), (2, {EXCEEDED: {20}})):
        queues = tree(queue("a", "", quota(limit)))
        assert problems(queues, keeps, members(1, on="n"), members(2), others, waiting=[20]) == expected
        assert problems(queues, keeps, members(1, on="n"), members(2), others, waiting=[2]) == {}
    lowered = tree(queue("a", "", quota(1)))
    assert problems(lowered, keeps, members(1, on="n"), members(2, 3), waiting=[2]) == {}
    assert problems(lowered, keeps, members(1, on="n"), members(2, 3), waiting=[2, 3]) == {EXCEEDED: {2, 3}}


def test_a_queue_on_hold_takes_tasks_of_gangs_that_keep_quota_for_them():
    keeps = make_gang(7, 2, keeps={"cpu": 2}, queue=A, keeps_on="n")
    for stop, expected in ((Stop.HOLD, {}), (Stop.HOLD_AND_DRAIN, {TAKES_NONE: {2}})):
        queues = tree(queue("a", "", quota(9), stop=stop))
        assert problems(queues, keeps, members(1, on="n"), members(2), waiting=[2]) == expected
    queues = tree(queue("a", "", quota(9), stop=Stop.HOLD))
    assert problems(queues, keeps, members(1, on="n"), members(2, 3), waiting=[2, 3]) == {TAKES_NONE: {2, 3}}


amounts = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 4), "gpu": st.integers(0, 4)})
gangs = st.lists(
    st.tuples(amounts, st.sampled_from([A, B, 9, 0]), st.sampled_from(["", "n", "m", "gone"])), min_size=1, max_size=4
)
tasks = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([A, B, 0]), st.sampled_from(["n", "m", None]), st.booleans()),
    max_size=8,
)


@given(gangs, tasks, st.booleans(), st.sampled_from(Stop), st.sampled_from(Stop))
def test_both_computations_agree(described, running, labelled, stop, above):
    flavors = (Flavor("one", {"kind": "n"}), Flavor("two", {"kind": "m"})) if labelled else (Flavor("one"),)
    quotas = [quota(3, on=f"{flavor.name}/{resource}") for flavor in flavors for resource in ("cpu", "gpu")]
    queues = (queue("top", stop=above), queue("a", "top", *quotas, stop=stop), queue("b", "top", *quotas))
    nodes = [make_node(name, cpu=99, gpu=99, labels={"kind": name}) for name in ("n", "m")]
    cluster = make_cluster(*nodes, make_class(1, cpu=1, gpu=1), QueuesObserved(QueueTree(queues, flavors)))
    for number, (keeps, of_queue, on) in enumerate(described, start=1):
        cluster.tell(make_gang(number, 1, keeps=keeps, queue=of_queue, keeps_on=on))
    for uid, (gang, of_queue, on, leaving) in enumerate(running, start=1):
        of = {"gang": gang} if 0 < gang <= len(described) else {}
        cluster.tell(make_tasks([uid], 1, on=on, queue=of_queue, leaving=leaving and on is not None, **of))
    use, found = QueueUse(cluster.state), retained_quota(cluster.state)
    retained = use.retained
    rows = zip(retained.gang.tolist(), retained.queue.tolist(), retained.amounts.tolist(), strict=True)
    expected = {
        (gang, use.queues.definitions[q].id): {n: a for n, a in zip(use.queues.resources, row, strict=True) if a}
        for gang, q, row in rows
    }
    of_resources = cluster.state.resources.names
    actual = {
        (gang, of_queue): {n: a for n, a in zip(of_resources, row, strict=True) if a}
        for gang, of_queue, row in zip(found.gang.tolist(), found.queue.tolist(), found.amounts.tolist(), strict=True)
    }
    assert actual == expected
