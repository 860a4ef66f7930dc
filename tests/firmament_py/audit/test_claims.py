"""The independent check of preemptions by the rules of queues, one victim and one preemptor at a time."""

import numpy as np
import pytest

from firmament_py.audit.claims import claim_problems
from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Reclaim, ReclaimRules, Sharing, Within
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

WITHIN = "a queue does not permit the preemption of one of its tasks"
BETWEEN = "a queue may not reclaim from another one"
UNKNOWN = "a victim, or its preemptor, is in an unknown queue"
APART = "a queue reclaims from one of another tree"
QUOTA, SHARE, GUARANTEE = ReclaimRules.QUOTA, ReclaimRules.FAIR_SHARE, ReclaimRules.GUARANTEE


def problems(described, *pairs, **of_victims):
    """For pairs of a victim and a preemptor, (queue, priority, created) each. of_victims: as of make_tasks."""
    classes = [make_class(10 + priority, cpu=1, priority=priority) for priority in range(3)]
    cluster = make_cluster(make_node("n", cpu=9), *classes, QueuesObserved(described))
    for uid, (name, priority, created) in enumerate((task for pair in pairs for task in pair), 1):
        created_us = NOW_US + created
        on = "n" if uid % 2 else None
        fields = of_victims if on else {}
        cluster.tell(make_tasks([uid], 10 + priority, on=on, queue=queue_id(name), created_us=created_us, **fields))
    uids = np.arange(1, 2 * len(pairs) + 1, dtype=np.uint64)
    victims, preemptors = (cluster.state.task_rows(uids[at::2]) for at in range(2))
    return claim_problems(cluster.state, victims, preemptors, NOW_US)


def pair(rules=QUOTA, *, reclaim=Reclaim.NEVER, within=Within.NEVER, reclaimable=True):
    """a and b have a parent, c has none."""
    queues = (
        queue("top"),
        queue("a", "top", quota(1), reclaim=reclaim, within=within),
        queue("b", "top", quota(1), reclaimable=reclaimable),
        queue("c", "", quota(1)),
    )
    sharing = Sharing.CLASSICAL if rules is QUOTA else Sharing.PROPORTIONAL
    return tree(*queues, sharing=sharing, reclaim_rules=rules)


@pytest.mark.parametrize(
    ("within", "victim", "permitted"),
    [
        (Within.NEVER, (0, 0), False),
        (Within.LOWER_PRIORITY, (0, 0), True),
        (Within.LOWER_PRIORITY, (1, 0), False),
        (Within.LOWER_PRIORITY, (1, 9), False),
        (Within.LOWER_OR_NEWER_EQUAL_PRIORITY, (0, 0), True),
        (Within.LOWER_OR_NEWER_EQUAL_PRIORITY, (1, 9), True),
        (Within.LOWER_OR_NEWER_EQUAL_PRIORITY, (1, 5), False),
        (Within.LOWER_OR_NEWER_EQUAL_PRIORITY, (1, 0), False),
        (Within.LOWER_OR_NEWER_EQUAL_PRIORITY, (2, 9), False),
    ],
)
def test_in_a_queue(within, victim, permitted):
    found = problems(pair(within=within), (("a", *victim), ("a", 1, 5)))
    assert found == ([] if permitted else [WITHIN])


@pytest.mark.parametrize(
    ("described", "victim", "permitted"),
    [
        (pair(), 0, False),
        (pair(reclaim=Reclaim.LOWER_PRIORITY), 0, True),
        (pair(reclaim=Reclaim.LOWER_PRIORITY), 1, False),
        (pair(reclaim=Reclaim.ANY), 2, True),
        (pair(reclaim=Reclaim.ANY, reclaimable=False), 0, False),
        (pair(SHARE), 2, True),
        (pair(SHARE, reclaimable=False), 2, False),
        (pair(GUARANTEE), 1, True),
        (pair(GUARANTEE), 2, False),
    ],
)
def test_between_queues(described, victim, permitted):
    found = problems(described, (("b", victim, 0), ("a", 1, 0)))
    assert found == ([] if permitted else [BETWEEN])


@pytest.mark.parametrize(("rules", "expected"), [(QUOTA, [APART]), (SHARE, [])])
def test_trees_of_kueue_have_nothing_in_common(rules, expected):
    assert problems(pair(rules, reclaim=Reclaim.ANY), (("c", 0, 0), ("a", 1, 0))) == expected


def test_unknown_queues():
    assert problems(pair(reclaim=Reclaim.ANY), (("x", 0, 0), ("a", 1, 0))) == [UNKNOWN]
    assert problems(pair(reclaim=Reclaim.ANY), (("b", 0, 0), ("x", 1, 0))) == [UNKNOWN]


def test_each_problem_is_named_once_whatever_else_is_sound():
    sound, refused = (("b", 0, 0), ("a", 1, 0)), (("a", 0, 0), ("a", 1, 0))
    assert problems(pair(reclaim=Reclaim.ANY), sound, refused, sound, refused) == [WITHIN]


@pytest.mark.parametrize(("highest", "permitted"), [(0, False), (1, False), (2, True)])
def test_each_member_of_a_gang_preempts_by_the_highest_priority_of_them(highest, permitted):
    """docs/gangs.md: the gang has the highest of its pending members."""
    classes = [make_class(10 + priority, cpu=1, priority=priority) for priority in range(3)]
    cluster = make_cluster(
        make_node("n", cpu=9),
        make_gang(1, minimum=2),
        *classes,
        QueuesObserved(pair(within=Within.LOWER_PRIORITY)),
        make_tasks([1], 11, on="n", queue=queue_id("a")),
        make_tasks([2], 10, queue=queue_id("a"), gang=1),
        make_tasks([3], 10 + highest, queue=queue_id("a"), gang=1),
    )
    victim, preemptor = (cluster.state.task_rows(np.array([uid], np.uint64)) for uid in (1, 2))
    assert claim_problems(cluster.state, victim, preemptor, NOW_US) == ([] if permitted else [WITHIN])


@pytest.mark.parametrize(
    ("least", "until_us", "permitted"),
    [(2, NOW_US + 1, False), (1, NOW_US + 1, True), (2, NOW_US, True)],
    ids=["exempt", "of the least priority", "not any more"],
)
@pytest.mark.parametrize("name", ["a", "b"])
def test_an_exempt_task_stays(name, least, until_us, permitted):
    """The job that waits is of queue a and priority 1."""
    described = pair(reclaim=Reclaim.ANY, within=Within.LOWER_PRIORITY)
    exempt = {"least_preemptor": least, "exempt_until_us": until_us}
    found = problems(described, ((name, 0, 0), ("a", 1, 5)), **exempt)
    assert found == ([] if permitted else ["a victim is exempt from preemption by a job of that priority"])
