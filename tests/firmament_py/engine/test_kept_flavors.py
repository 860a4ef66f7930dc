"""Jobs that preempt on a flavor are placed on it, though another one is free. The outcomes are Kueue's in the same
cluster, where whenCanPreempt is MayStopSearch."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, Fungibility, QueueTree, Reclaim, Within
from tests.builders import NOW_US, make_class, make_gang, make_node, make_tasks, preempting_cluster, removed
from tests.firmament_py.engine.reclaiming import OLD_US, A, B
from tests.firmament_py.queues.trees import queue, quota

STOP = Fungibility(try_next_to_avoid_preemption=False)
FLAVORS = Flavor("one", {"fl": "one"}), Flavor("two", {"fl": "two"})


def within(one=4):
    """One queue with so much on each flavor."""
    quotas = quota(one, on="one/cpu"), quota(4, on="two/cpu")
    return QueueTree((queue("a", "", *quotas, within=Within.LOWER_PRIORITY, fungibility=STOP),), FLAVORS)


def reclaiming():
    """Queue b has nothing of its own."""
    own, none = ([quota(amount, on=f"{name}/cpu") for name in ("one", "two")] for amount in (4, 0))
    queues = queue("c"), queue("a", "c", *own, reclaim=Reclaim.ANY, fungibility=STOP), queue("b", "c", *none)
    return QueueTree(queues, FLAVORS)


def cluster_of(described, *events, cpu=8):
    classes = [make_class(cpus, cpu=cpus) for cpus in (1, 3, 4)]
    return preempting_cluster(
        make_node("n1", cpu=cpu, labels={"fl": "one"}),
        make_node("n2", cpu=8, labels={"fl": "two"}),
        *classes,
        *(make_class(10 + cpus, cpu=cpus, priority=1000) for cpus in (1, 3, 4)),
        QueuesObserved(described),
        *events,
    )


def job(first, cpus, count, queue_id, *, gang=0, on=None, hurried=False):
    """Tasks first, first + 1, ..."""
    since, uids = (OLD_US if on else NOW_US - 1000) + first, range(first, first + count)
    gangs = [make_gang(gang, count, created_us=since, whole=True)] if gang else []
    cls = cpus + (10 if hurried else 0)
    return [
        *gangs,
        make_tasks(uids, cls, on=on, queue=queue_id, gang=gang, created_us=since, started_us=since if on else 0),
    ]


def settled(cluster):
    """Rounds in which victims leave in the second after they were told to, and single ones do not come back; all that
    runs at the end, and all victims."""
    tasks = cluster.state.tasks
    victims: dict[int, int] = {}
    for second in range(8):
        result = cluster.run(NOW_US + second * 1_000_000)
        cluster.tell(*[removed(uid) for uid in victims if cluster.state.task_row(uid) is not None])
        victims |= cluster.preempted(result)
    rows = tasks.rows()
    on = {int(tasks.uid[r]): cluster.state.nodes.observed[int(tasks.node[r])].name for r in rows if tasks.node[r] >= 0}
    return on, set(victims)


@pytest.mark.parametrize(
    ("low", "high", "victims"),
    [
        pytest.param(job(1, 1, 4, A, on="n1"), job(11, 1, 3, A, gang=2, hurried=True), 3, id="fp-gs"),
        pytest.param(job(1, 1, 4, A, gang=1, on="n1"), job(11, 1, 3, A, gang=2, hurried=True), 4, id="fp-gg"),
        pytest.param(job(1, 4, 1, A, on="n1"), job(11, 3, 1, A, hurried=True), 1, id="fp-g1"),
        pytest.param(job(1, 1, 4, A, gang=1, on="n1"), job(11, 1, 1, A, hurried=True), 4, id="fp-sg"),
        pytest.param(
            job(1, 1, 3, A, gang=1, on="n1"), job(11, 1, 3, A, gang=2, hurried=True), 3, id="fung-pre2, r-stop"
        ),
    ],
)
def test_a_job_runs_on_the_flavor_on_which_it_has_preempted_in_its_queue(low, high, victims):
    cluster = cluster_of(within(), *low, *high)
    on, left = settled(cluster)
    assert {node for uid, node in on.items() if uid > 10} == {"n1"}
    assert len([uid for uid in on if uid > 10]) == len(high[-1].uid)
    assert len(left) == victims


@pytest.mark.parametrize(
    ("low", "high", "cpu", "victims"),
    [
        pytest.param(job(1, 1, 4, B, on="n1"), job(11, 1, 3, A, gang=2), 8, 3, id="fp-reclaim"),
        pytest.param(job(1, 1, 4, B, on="n1"), job(11, 3, 1, A), 8, 3, id="rc-pod2"),
        pytest.param(job(1, 1, 4, B, on="n1"), job(11, 1, 3, A, gang=2), 4, 3, id="rc-full"),
        pytest.param(job(1, 1, 4, B, gang=1, on="n1"), job(11, 1, 2, A, gang=2), 8, 4, id="rc-g2"),
    ],
)
def test_a_job_runs_on_the_flavor_on_which_it_has_reclaimed(low, high, cpu, victims):
    cluster = cluster_of(reclaiming(), *low, *high, cpu=cpu)
    on, left = settled(cluster)
    assert {node for uid, node in on.items() if uid > 10} == {"n1"}
    assert len([uid for uid in on if uid > 10]) == len(high[-1].uid)
    assert len(left) == victims


def test_a_nomination_from_before_a_restart_keeps_the_flavor_of_its_node():
    leaving = make_tasks([1], 4, on="n1", queue=A, created_us=OLD_US, leaving=True)
    cluster = cluster_of(within(), leaving, make_tasks([11], 13, queue=A, nominated="n1"))
    assert not cluster.round()
    cluster.tell(removed(1))
    assert cluster.round() == {11: "n1"}


def test_tasks_that_are_alike_keep_a_flavor_each():
    leaving = [make_tasks([uid], 4, on=f"n{uid}", queue=A, created_us=OLD_US, leaving=True) for uid in (1, 2)]
    nominated = [make_tasks([10 + uid], 11, queue=A, nominated=f"n{uid}") for uid in (1, 2)]
    cluster = cluster_of(within(), *leaving, *nominated)
    assert not cluster.round()
    cluster.tell(removed(2))
    assert cluster.round() == {12: "n2"}
    cluster.tell(removed(1))
    assert cluster.round() == {11: "n1"}


def test_a_job_takes_another_flavor_once_its_own_has_no_quota_left():
    """The quota of the flavor on which it preempts is lowered while its victims leave."""
    cluster = cluster_of(within(), *job(1, 1, 4, A, on="n1"), *job(11, 1, 3, A, gang=2, hurried=True))
    victims = cluster.preempted(cluster.run())
    assert set(cluster.nominated().values()) == {"n1"}
    cluster.tell(QueuesObserved(within(one=0)))
    assert not cluster.round(NOW_US + 1_000_000)
    cluster.tell(*map(removed, victims))
    on, further = settled(cluster)
    assert {node for uid, node in on.items() if uid > 10} == {"n2"}
    assert not further
