"""Members of a gang beyond its minimum: they reclaim only beside a gang that has it, and within its maximum."""

from tests.builders import ended, make_gang, make_node, make_tasks
from tests.firmament_py.engine.reclaiming import A, cluster_of, cohort, running


def blocked(*events, cpu):
    """Three CPUs of node n are taken for good; node m has so many."""
    return cluster_of(
        cohort(a=8, b=0),
        running([1, 2, 3], unevictable=True),
        make_node("m", cpu=cpu),
        make_gang(7, 3),
        make_tasks(range(11, 15), 1, gang=7, queue=A),
        *events,
        cpu=3,
    )


def test_none_starts_before_its_gang():
    """One CPU is free."""
    cluster = blocked(running([4], on="m"), cpu=2)
    result = cluster.run()
    assert not cluster.names(result)
    assert result.preemption.is_empty


def test_nothing_is_evicted_for_one_before_its_gang_starts():
    cluster = blocked(running([4], on="m"), cpu=1)
    assert cluster.run().preemption.is_empty
    assert not cluster.nominated()


def test_one_alone_does_not_start_a_gang_whose_members_wait_for_victims():
    """Three of four members wait for the tasks of b; a CPU is free for the fourth."""
    cluster = blocked(running([4, 5, 6], on="m"), cpu=4)
    victims = cluster.preempted(cluster.run())
    cluster.tell(ended(*victims))
    assert set(cluster.round()) >= {11, 12, 13}


def test_further_members_reclaim_once_the_gang_has_its_minimum():
    cluster = cluster_of(
        cohort(),
        make_gang(7, 3),
        running(range(1, 6)),
        running([6, 7, 8], queue=A, gang=7),
        make_tasks([11, 12], 1, gang=7, queue=A),
    )
    assert set(cluster.preempted(cluster.run()).values()) == {11}


def test_no_more_reclaim_than_the_maximum():
    cluster = cluster_of(
        cohort(), running(range(1, 9)), make_gang(7, 1, maximum=2), make_tasks(range(11, 15), 1, gang=7, queue=A)
    )
    started = set()
    for _ in range(4):
        result = cluster.run()
        assert len(cluster.preempted(result)) <= 2
        started |= set(cluster.names(result))
        cluster.tell(ended(*cluster.preempted(result)))
    assert len(started) == 2
    assert not cluster.nominated()


def test_of_nominated_members_no_more_start_than_the_maximum():
    """Two were nominated before the maximum was lowered."""
    cluster = cluster_of(cohort(), make_gang(7, 1, maximum=1), running(range(1, 7), unevictable=True))
    cluster.tell(make_tasks([11, 12], 1, gang=7, queue=A, nominated="n"))
    assert len(cluster.round()) == 1
