"""Tasks with constraints on other tasks reclaim what is theirs."""

from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.events import QueuesObserved
from firmament_py.preemption import constrained
from firmament_py.preemption.constrained import ConstrainedSearch
from tests.builders import (
    ended,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    tasks_like,
)
from tests.firmament_py.engine.reclaiming import A, cohort, running

WEB, HOST = needs("app", "In", "web"), "kubernetes.io/hostname"
APART = PeerDemand(anti_affinity=(PeerTerm(tasks_like(WEB), HOST),))


def hosts(*names, cpu=4):
    return [make_node(name, cpu=cpu, labels={HOST: name}) for name in names]


def cluster_with(queues, *events):
    """Class 3 runs apart from tasks of the label set 1, which it has itself."""
    return preempting_cluster(
        make_label_set(1, app="web"),
        make_class(1, cpu=1),
        make_class(3, cpu=1, peers=APART),
        QueuesObserved(queues),
        *events,
    )


def test_tasks_with_constraints_on_others_reclaim_one_by_one():
    cluster = cluster_with(
        cohort(),
        *hosts("m", "n"),
        running(range(1, 5), on="m"),
        running(range(5, 9), on="n"),
        make_tasks([11, 12, 13], 3, queue=A, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert set(victims.values()) == {11, 12}
    assert {victim <= 4 for victim in victims} == {True, False}
    nominated = cluster.nominated()
    assert sorted(nominated.values()) == ["m", "n"]
    assert cluster.run().preemption.is_empty  # no node is left for the third one
    cluster.tell(ended(*victims))
    assert cluster.round() == nominated


def test_a_task_whose_constraints_no_victim_satisfies_evicts_none():
    cluster = cluster_with(
        cohort(),
        *hosts("n", cpu=8),
        running([1], queue=A, label_set=1),
        running(range(2, 9)),
        make_tasks([11], 3, queue=A, label_set=1),
    )
    assert cluster.run().preemption.is_empty


def test_a_task_with_constraints_that_lacks_quota_alone_evicts_on_any_node():
    cluster = cluster_with(
        cohort(),
        *hosts("m", "n", cpu=8),
        running(range(1, 9), on="m"),
        make_tasks([11], 3, queue=A, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert list(victims.values()) == [11]
    assert len(cluster.nominated()) == 1
    cluster.tell(ended(*victims))
    assert set(cluster.round()) == {11}


def test_no_more_leave_than_their_queue_borrows():
    cluster = cluster_with(
        cohort(a=4, b=7),
        *hosts("n", cpu=8),
        running(range(1, 9)),
        make_tasks([11, 12], 3, queue=A),
    )
    assert len(cluster.preempted(cluster.run())) == 1


def test_budgets_hold_for_tasks_with_constraints():
    cluster = cluster_with(
        cohort(),
        make_budget(9, tasks_like(needs("app", "In", "db")), 0),
        make_label_set(2, app="db"),
        *hosts("m", "n"),
        running(range(1, 5), on="m", label_set=2),
        running(range(5, 9), on="n", label_set=2),
        make_tasks([11], 3, queue=A, label_set=1),
    )
    assert cluster.run().preemption.is_empty


def test_gangs_with_constraints_wait():
    cluster = cluster_with(
        cohort(),
        *hosts("m", "n"),
        running(range(1, 5), on="m"),
        running(range(5, 9), on="n"),
        make_gang(7, 2),
        make_tasks([11, 12], 3, queue=A, label_set=1, gang=7),
    )
    assert cluster.run().preemption.is_empty


def test_the_node_of_a_task_that_lacks_quota_alone_suits_it():
    """The first node has a task of the same kind, and the second one is too small."""
    cluster = cluster_with(
        cohort(),
        *hosts("a", cpu=8),
        make_node("b", cpu=0, labels={HOST: "b"}),
        *hosts("c", "d", cpu=8),
        running([1], queue=0, on="a", label_set=1),
        running(range(2, 10), on="d"),
        make_tasks([11], 3, queue=A, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 1
    assert cluster.nominated() == {11: "c"}


def test_no_node_that_suits_is_large_enough():
    """Quota of one victim is enough; the nodes with capacity have a task of the same kind each."""
    cluster = cluster_with(
        cohort(),
        *hosts("a", "b", cpu=8),
        running([1], queue=0, on="a", label_set=1),
        running([2], queue=0, on="b", label_set=1),
        running(range(3, 7), on="a"),
        running(range(7, 11), on="b"),
        make_tasks([11], 3, queue=A, label_set=1),
    )
    assert cluster.run().preemption.is_empty
    assert cluster.nominated() == {}


def test_a_node_that_is_too_small_without_all_its_tasks_gets_none():
    cluster = cluster_with(
        cohort(),
        make_class(4, cpu=4, peers=APART),
        *hosts("m", cpu=2),
        *hosts("n", cpu=6),
        running([1, 2], on="m"),
        running(range(3, 9), on="n"),
        make_tasks([11], 4, queue=A, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert len(victims) == 4
    assert min(victims) >= 3
    assert cluster.nominated() == {11: "n"}


def test_each_of_a_run_of_tasks_with_constraints_has_a_node_before_more_quota_is_reclaimed():
    """Three nodes for three tasks, that lack the quota of three victims on a fourth node."""
    cluster = cluster_with(
        cohort(3, 5),
        *hosts("m", "n", "o", cpu=1),
        *hosts("p", cpu=8),
        running(range(1, 9), on="p"),
        make_tasks([11, 12, 13], 3, queue=A, label_set=1),
    )
    victims = cluster.preempted(cluster.run())
    assert sorted(victims.values()) == [11, 12, 13]
    assert set(cluster.nominated()) == {11, 12, 13}
    assert len(set(cluster.nominated().values())) == 3


def test_a_round_evaluates_constraints_no_more_often_than_it_may(monkeypatch):
    """What is left for later is tried in the rounds that follow."""
    counts = list[int]()
    evaluated = ConstrainedSearch._conditions

    def counting(search, cls):
        counts[-1] += 1
        return evaluated(search, cls)

    monkeypatch.setattr(constrained, "SEARCHES", 3)
    monkeypatch.setattr(ConstrainedSearch, "_conditions", counting)
    cluster = cluster_with(
        cohort(),
        *hosts("m", "n", "o", "p", cpu=2),
        *(running([2 * at, 2 * at + 1], on=node) for at, node in enumerate("mnop", 1)),
        make_tasks([11, 12, 13, 14], 3, queue=A, label_set=1),
    )
    found = []
    for _ in range(4):
        counts.append(0)
        found.append(len(cluster.preempted(cluster.run())))
    assert max(counts) <= 3
    assert 0 < found[0] < 4
    assert sum(found) == 4
