"""Tasks with constraints on other tasks reclaim what is theirs."""

from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.events import QueuesObserved
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
