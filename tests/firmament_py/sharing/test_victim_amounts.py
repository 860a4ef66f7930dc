"""What jobs could preempt, as amounts, against a count task by task."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree, Reclaim, Sharing, Within
from firmament_py.sharing.jobs import waiting_jobs
from firmament_py.sharing.use import QueueUse
from firmament_py.sharing.victim_amounts import VictimAmounts
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota

FLAVORS = tuple(Flavor(name, {"kind": name}) for name in ("red", "blue"))
NAMES = ("a", "b", "far")
PRIORITIES = {1: 0, 2: 5}
"""Class -> priority."""


def found(described, running, waiting):
    """{(queue, class): (own, others)}, each by flavor, of one waiting task for each queue and class."""
    nodes = [make_node(name, cpu=99, labels={"kind": name}) for name in ("red", "blue")]
    classes = [make_class(number, cpu=number, priority=priority) for number, priority in PRIORITIES.items()]
    cluster = make_cluster(*nodes, *classes, QueuesObserved(described))
    for uid, (name, cls, on, stays) in enumerate(running, 1):
        cluster.tell(make_tasks([uid], cls, on=on, queue=queue_id(name), unevictable=stays))
    keys = dict(enumerate(waiting, 100))
    for uid, (name, cls) in keys.items():
        cluster.tell(make_tasks([uid], cls, queue=queue_id(name)))
    use = QueueUse(cluster.state)
    jobs = waiting_jobs(cluster.state, use, cluster.state.task_rows(np.array(list(keys), np.uint64)))
    amounts = VictimAmounts(cluster.state, use).of(jobs)
    if amounts is None:
        return None
    own, others = amounts
    columns = [use.queues.column(flavor, "cpu") for flavor in ("red", "blue")]
    of_job = [keys[int(cluster.state.tasks.uid[row])] for row in jobs.rows[jobs.start[:-1]]]
    return {key: (own[j, columns].tolist(), others[j, columns].tolist()) for j, key in enumerate(of_job)}


def cohort(within, reclaim, **fields):
    """a and b share a cohort, far is in none."""
    quotas = quota(3, on="red/cpu"), quota(2, on="blue/cpu")
    policies = {"within": within, "reclaim": reclaim}
    queues = (
        queue("top"),
        *(queue(name, "top" if name != "far" else "", *quotas, **policies, **fields) for name in NAMES),
    )
    return QueueTree(queues, FLAVORS, Sharing.CLASSICAL)


running_tasks = st.tuples(
    st.sampled_from(NAMES), st.sampled_from([1, 2]), st.sampled_from(["red", "blue"]), st.booleans()
)


@examples(40)
@given(
    st.lists(running_tasks, max_size=10),
    st.sampled_from([Within.NEVER, Within.LOWER_PRIORITY, Within.LOWER_OR_NEWER_EQUAL_PRIORITY]),
    st.sampled_from([Reclaim.NEVER, Reclaim.LOWER_PRIORITY, Reclaim.ANY]),
)
def test_amounts_are_those_of_the_tasks_that_policies_permit(running, within, reclaim):
    waiting = [(name, cls) for name in ("a", "b") for cls in PRIORITIES]
    amounts = found(cohort(within, reclaim), running, waiting)
    nominal = {"red": 3, "blue": 2}
    for name, cls in waiting:
        own, others = [], []
        for flavor in ("red", "blue"):
            there = [(owner, c, stays) for owner, c, on, stays in running if on == flavor]
            lower = [(owner, c) for owner, c, stays in there if not stays and PRIORITIES[c] < PRIORITIES[cls]]
            any_ = [(owner, c) for owner, c, stays in there if not stays]
            own.append(sum(c for owner, c in lower if owner == name) if within is not Within.NEVER else 0)
            other = "b" if name == "a" else "a"
            excess = max(0, sum(c for owner, c, _ in there if owner == other) - nominal[flavor])
            candidates = any_ if reclaim is Reclaim.ANY else lower
            taken = min(excess, sum(c for owner, c in candidates if owner == other))
            others.append(taken if reclaim is not Reclaim.NEVER else 0)
        assert amounts is not None
        assert amounts[name, cls] == (own, others)


def test_queues_that_others_may_not_reclaim_from_give_nothing():
    described = cohort(Within.NEVER, Reclaim.ANY, reclaimable=False)
    amounts = found(described, [("b", 2, "red", False)] * 3, [("a", 1)])
    assert amounts == {("a", 1): ([0, 0], [0, 0])}


def test_without_a_choice_of_flavors_nothing_is_calculated():
    described = QueueTree((queue("a", "", quota(3, on="red/cpu"), within=Within.LOWER_PRIORITY),), FLAVORS)
    assert found(described, [("a", 1, "red", False)], [("a", 2)]) is None
