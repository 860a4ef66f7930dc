"""Nominated tasks and constraints between tasks: what is placed respects a nominated task of no lower priority as if it
ran, so that what was evicted for it, and is created again, does not take its place a second time.

kube-scheduler does that on the nominated node alone (RunFilterPluginsWithNominatedPods); here it holds in all domains.
"""

import pytest

from firmament_py.model.constraints import NO_PEERS, PeerDemand, PeerTerm, Spread, Term
from firmament_py.model.events import QueuesObserved
from tests.builders import (
    any_of,
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
from tests.firmament_py.engine.reclaiming import A, B, cohort
from tests.firmament_py.preemption.recreating import Recreating

HOST, ZONE = "kubernetes.io/hostname", "zone"
LOW, HIGH, MID = 1, 2, 3
"""Label sets `app`, and classes, of 1 cpu, of priorities 0, 10 and 5."""

like_low, like_high = tasks_like(needs("app", "In", "low")), tasks_like(needs("app", "In", "high"))
LABELS = [make_label_set(number, app=app) for number, app in ((LOW, "low"), (HIGH, "high"), (MID, "mid"))]


def host(name, zone="z", cpu=4, **labels):
    return make_node(name, cpu=cpu, labels={HOST: name, ZONE: zone, **labels})


def apart(selector, key=HOST):
    return PeerDemand(anti_affinity=(PeerTerm(selector, key),))


def near(selector, key=HOST):
    return PeerDemand(affinity=(PeerTerm(selector, key),))


def even(selector, key=ZONE):
    return PeerDemand(spread=(Spread(selector, key, 1),))


def world(*events, low, grace=0):
    """low: uid -> name of the node of each task of priority 0, whose owners create them again."""
    running = [make_tasks([uid], LOW, on=node, label_set=LOW) for uid, node in low.items()]
    cluster = preempting_cluster(*LABELS, *events, *running, make_tasks([100], HIGH, label_set=HIGH))
    return Recreating(cluster, {uid: {"cls": LOW, "label_set": LOW} for uid in low}, grace)


only_z = any_of(Term((needs(ZONE, "In", "z"),)))

CASES = {
    "the lower ones repel it": (
        [make_class(LOW, cpu=1, peers=apart(like_high)), make_class(HIGH, cpu=1, priority=10), host("a")],
        {1: "a"},
        1,
    ),
    "it repels the lower ones": (
        [make_class(LOW, cpu=1), make_class(HIGH, cpu=1, priority=10, peers=apart(like_low)), host("a")],
        {1: "a"},
        1,
    ),
    "the lower ones repel it from their zone": (
        [
            make_class(LOW, cpu=1, peers=apart(like_high, ZONE)),
            make_class(HIGH, cpu=1, priority=10, demand=only_z),
            *(host("a"), host("b"), host("c")),
        ],
        {1: "a"},
        1,
    ),
    "it repels the lower ones from its zone": (
        [
            make_class(LOW, cpu=1),
            make_class(HIGH, cpu=1, priority=10, peers=apart(like_low, ZONE), demand=only_z),
            *(host("a"), host("b"), host("c"), host("d", "y", cpu=1)),
        ],
        {1: "a", 2: "a", 3: "d"},
        2,
    ),
    # zone y is full and empty of what the spread counts: at most one in z. The two of node a leave for it, and may not
    # go to b, where there is room
    "the lower ones count for its spread": (
        [
            make_class(LOW, cpu=1),
            make_class(HIGH, cpu=3, priority=10, peers=even(tasks_like(needs("app", "In", "low", "high")))),
            *(make_class(9, cpu=1, priority=20), host("a"), host("b"), host("c", "y", cpu=1)),
            make_tasks([50], 9, on="c"),
        ],
        {1: "a", 2: "a"},
        2,
    ),
    # it may be the first of its kind only if those that it must be near are gone: they may not begin elsewhere
    "the lower ones are what it must be near": (
        [
            make_class(LOW, cpu=1),
            make_class(HIGH, cpu=4, priority=10, peers=near(tasks_like(needs("app", "In", "low", "high")))),
            *(host("a"), host("b")),
        ],
        {1: "a", 2: "a"},
        2,
    ),
}


@pytest.mark.parametrize("grace", [0, 3])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_was_evicted_and_is_created_again_is_not_evicted_again(case, grace):
    events, low, needed = case
    there = world(*events, low=low, grace=grace).rounds()
    assert len(there.evicted) == needed
    assert 100 in there.where


@pytest.mark.parametrize("grace", [0, 3])
@pytest.mark.parametrize(
    ("of_low", "of_high", "needed"),
    [
        pytest.param(apart(like_high), None, 4, id="those of the other queue repel it"),
        pytest.param(None, apart(like_low), 4, id="it repels those of the other queue"),
    ],
)
def test_what_a_queue_reclaims_from_is_not_evicted_again(of_low, of_high, needed, grace):
    """Both nodes are full of a queue that borrows; of equal priority, the task evicts all of one node, once."""
    cluster = preempting_cluster(
        *(*LABELS, host("a"), host("b"), QueuesObserved(cohort(4, 4))),
        make_class(LOW, cpu=1, peers=of_low or NO_PEERS),
        make_class(HIGH, cpu=1, peers=of_high or NO_PEERS),
        *(make_tasks([uid], LOW, on="a" if uid <= 4 else "b", label_set=LOW, queue=B) for uid in range(1, 9)),
        make_tasks([100], HIGH, label_set=HIGH, queue=A),
    )
    low = {uid: {"cls": LOW, "label_set": LOW, "queue": B} for uid in range(1, 9)}
    there = Recreating(cluster, low, grace).rounds()
    assert len(there.evicted) == needed
    assert 100 in there.where


def test_a_gang_that_is_nominated_together_is_respected_until_all_of_it_fits():
    """Its own members have no constraints; those that repel them arrive later, small enough for what is left there."""
    cluster = preempting_cluster(
        *LABELS,
        *(make_class(LOW, cpu=3), make_class(HIGH, cpu=3, priority=10)),
        make_class(4, cpu=1, peers=apart(like_high)),
        *(host("a"), host("b")),
        make_gang(7, 2),
        *(make_tasks([uid], LOW, on=node, label_set=LOW) for uid, node in ((1, "a"), (2, "b"))),
        make_tasks([100, 101], HIGH, label_set=HIGH, gang=7),
    )
    cluster.run()
    assert sorted(cluster.nominated().values()) == ["a", "b"]
    cluster.tell(make_tasks([3], 4, label_set=LOW), removed(1))
    assert not cluster.round()
    cluster.tell(removed(2))
    assert cluster.round().keys() == {100, 101}


def test_a_nomination_is_respected_after_a_restart():
    """As a new engine is told it: what was nominated before, and what repels it."""
    cluster = preempting_cluster(
        *LABELS,
        *(make_class(LOW, cpu=1, peers=apart(like_high)), make_class(HIGH, cpu=1, priority=10), host("a")),
        make_tasks([1], LOW, on="a", label_set=LOW, leaving=True),
        make_tasks([2], LOW, label_set=LOW),
        make_tasks([100], HIGH, label_set=HIGH, nominated="a"),
    )
    result = cluster.run()
    assert not cluster.names(result)
    assert not cluster.preempted(result)
    cluster.tell(removed(1))
    assert cluster.round() == {100: "a"}


@pytest.mark.parametrize(("priority", "placed"), [(5, {}), (10, {}), (20, {3: "b"})])
def test_only_tasks_of_no_higher_priority_respect_a_nominated_one(priority, placed):
    """runtime/framework.go, addGENominatedPods: nominated pods of equal or greater priority count. Here for a zone."""
    cluster = preempting_cluster(
        *LABELS,
        *(make_class(LOW, cpu=4), make_class(HIGH, cpu=4, priority=10)),
        make_class(MID, cpu=1, priority=priority, peers=apart(like_high, ZONE)),
        *(host("a"), host("b")),
        make_tasks([1], LOW, on="a", label_set=LOW, leaving=True),
        make_tasks([50], LOW, on="b", label_set=LOW),
        make_tasks([100], HIGH, label_set=HIGH, nominated="a"),
    )
    cluster.tell(removed(50), make_tasks([3], MID, label_set=MID), host("b", cpu=2))
    assert cluster.round() == placed


@pytest.mark.parametrize("priority", [0, 10])
def test_a_constraint_that_a_nominated_task_would_meet_is_not_met_before_it_runs(priority):
    """The second pass of RunFilterPluginsWithNominatedPods: without the nominated pods."""
    cluster = preempting_cluster(
        *LABELS,
        *(make_class(LOW, cpu=3), make_class(HIGH, cpu=3, priority=10)),
        make_class(MID, cpu=1, priority=priority, peers=near(like_high)),
        host("a"),
        make_tasks([1], LOW, on="a", label_set=LOW, leaving=True),
        make_tasks([3], MID, label_set=MID),
        make_tasks([100], HIGH, label_set=HIGH, nominated="a"),
    )
    assert not cluster.round()
    cluster.tell(removed(1))
    assert cluster.round() == {100: "a", 3: "a"}


def test_a_message_names_the_nominated_task_that_repels_another():
    from firmament_py.explain.reason import ReasonKind

    cluster = preempting_cluster(
        *LABELS,
        *(make_class(LOW, cpu=1), make_class(HIGH, cpu=1, priority=10, peers=apart(like_low)), host("a")),
        make_tasks([1], LOW, on="a", label_set=LOW, leaving=True),
        make_tasks([2], LOW, label_set=LOW),
        make_tasks([100], HIGH, label_set=HIGH, nominated="a"),
    )
    waiting = {int(cluster.state.tasks.uid[row]): each for each in cluster.run().waiting for row in each.unreported}
    assert [reason.kind for reason in waiting[2].reasons] == [ReasonKind.ANTI_AFFINITY_OF_OTHERS]
    assert [reason.kind for reason in waiting[100].reasons] == [ReasonKind.ANTI_AFFINITY]
