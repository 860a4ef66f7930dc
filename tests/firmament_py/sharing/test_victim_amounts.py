"""What jobs could preempt, as amounts, against a count task by task."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree, Reclaim, Sharing, Within
from firmament_py.sharing.jobs import waiting_jobs
from firmament_py.sharing.use import QueueUse
from firmament_py.sharing.victim_amounts import VictimAmounts
from firmament_py.state.tables import EXEMPT_FOREVER_US
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota

FLAVORS = tuple(Flavor(name, {"kind": name}) for name in ("red", "blue"))
NAMES = ("a", "b", "far")
PRIORITIES = {1: 0, 2: 5}
"""Class -> priority; each requests as many cpus as its number says."""
NOMINAL = {"red": 2, "blue": 1}


def found(described, running, waiting):
    """{(queue, class): (own, others)}, each by flavor, of one waiting task for each queue and class."""
    nodes = [make_node(name, cpu=99, labels={"kind": name}) for name in ("red", "blue")]
    classes = [make_class(number, cpu=number, priority=priority) for number, priority in PRIORITIES.items()]
    cluster = make_cluster(*nodes, *classes, QueuesObserved(described))
    for uid, (name, cls, on, stays, least) in enumerate(running, 1):
        exempt = {"least_preemptor": least, "exempt_until_us": EXEMPT_FOREVER_US if least else 0}
        cluster.tell(make_tasks([uid], cls, on=on, queue=queue_id(name), unevictable=stays, **exempt))
    keys = dict(enumerate(waiting, 100))
    for uid, (name, cls) in keys.items():
        cluster.tell(make_tasks([uid], cls, queue=queue_id(name)))
    use = QueueUse(cluster.state)
    jobs = waiting_jobs(cluster.state, use, cluster.state.task_rows(np.array(list(keys), np.uint64)))
    amounts = VictimAmounts(cluster.state, use, NOW_US).of(jobs)
    if amounts is None:
        return None
    own, others = amounts
    columns = [use.queues.column(flavor, "cpu") for flavor in ("red", "blue")]
    of_job = [keys[int(cluster.state.tasks.uid[row])] for row in jobs.rows[jobs.start[:-1]]]
    return {key: (own[j, columns].tolist(), others[j, columns].tolist()) for j, key in enumerate(of_job)}


def cohort(within, reclaim, **fields):
    """a and b share a cohort, far is in none."""
    quotas = tuple(quota(NOMINAL[flavor.name], on=f"{flavor.name}/cpu") for flavor in FLAVORS)
    policies = {"within": within, "reclaim": reclaim}
    queues = (
        queue("top"),
        *(queue(name, "top" if name != "far" else "", *quotas, **policies, **fields) for name in NAMES),
    )
    return QueueTree(queues, FLAVORS, Sharing.CLASSICAL)


running_tasks = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([1, 2]),
    st.sampled_from(["red", "blue"]),
    st.booleans(),
    st.sampled_from([0, 0, 4, 6]),
)


def leaving_one_by_one(candidates, used, nominal):
    """The largest amount that leaves a queue if each victim leaves while the queue exceeds its quota."""
    if used <= nominal:
        return 0
    others = [candidates[:i] + candidates[i + 1 :] for i in range(len(candidates))]
    return max(
        (c + leaving_one_by_one(left, used - c, nominal) for c, left in zip(candidates, others, strict=True)), default=0
    )


@examples(80)
@given(
    st.lists(running_tasks, min_size=5, max_size=12),
    st.sampled_from([Within.NEVER, Within.LOWER_PRIORITY, Within.LOWER_OR_NEWER_EQUAL_PRIORITY]),
    st.sampled_from([Reclaim.NEVER, Reclaim.LOWER_PRIORITY, Reclaim.ANY]),
)
def test_amounts_are_those_of_the_tasks_that_policies_permit(running, within, reclaim):
    """Of other queues: all that may leave them one by one, and no more than one task of theirs beyond their excess."""
    waiting = [(name, cls) for name in ("a", "b") for cls in PRIORITIES]
    amounts = found(cohort(within, reclaim), running, waiting)
    assert amounts is not None
    for name, cls in waiting:
        for at, flavor in enumerate(NOMINAL):
            own, others = (of_flavor[at] for of_flavor in amounts[name, cls])
            there = [(owner, c, stays, least) for owner, c, on, stays, least in running if on == flavor]
            any_ = [(owner, c) for owner, c, stays, least in there if not stays and least <= PRIORITIES[cls]]
            lower = [(owner, c) for owner, c in any_ if PRIORITIES[c] < PRIORITIES[cls]]
            assert own == (sum(c for owner, c in lower if owner == name) if within is not Within.NEVER else 0)
            other = "b" if name == "a" else "a"
            used = sum(c for owner, c, _, _ in there if owner == other)
            candidates = [c for owner, c in (any_ if reclaim is Reclaim.ANY else lower) if owner == other]
            if reclaim is Reclaim.NEVER or used <= NOMINAL[flavor]:
                assert others == 0
                continue
            largest = max((c for owner, c, stays, _ in there if owner == other and not stays), default=0)
            assert others == min(sum(candidates), used - NOMINAL[flavor] - 1 + largest)
            assert others >= leaving_one_by_one(sorted(candidates)[-5:], used, NOMINAL[flavor])


def test_a_gang_leaves_at_once():
    """It uses 4 of the 2 that its queue has; all of it makes way, as would one task of 4."""
    described = cohort(Within.NEVER, Reclaim.ANY)
    nodes = [make_node(flavor.name, cpu=99, labels=flavor.node_labels) for flavor in FLAVORS]
    gang, tasks = make_gang(7, 4), make_tasks([1, 2, 3, 4], 1, on="red", gang=7, queue=queue_id("b"))
    cluster = make_cluster(*nodes, make_class(1, cpu=1), gang, QueuesObserved(described), tasks)
    cluster.tell(make_tasks([9], 1, queue=queue_id("a")))
    use = QueueUse(cluster.state)
    jobs = waiting_jobs(cluster.state, use, cluster.state.task_rows(np.array([9], np.uint64)))
    amounts = VictimAmounts(cluster.state, use, NOW_US).of(jobs)
    assert amounts is not None
    assert amounts[1].tolist() == [[4, 0]]


def test_queues_that_others_may_not_reclaim_from_give_nothing():
    described = cohort(Within.NEVER, Reclaim.ANY, reclaimable=False)
    amounts = found(described, [("b", 2, "red", False, 0)] * 3, [("a", 1)])
    assert amounts == {("a", 1): ([0, 0], [0, 0])}


def test_without_a_choice_of_flavors_nothing_is_calculated():
    described = QueueTree((queue("a", "", quota(3, on="red/cpu"), within=Within.LOWER_PRIORITY),), FLAVORS)
    assert found(described, [("a", 1, "red", False, 0)], [("a", 2)]) is None
