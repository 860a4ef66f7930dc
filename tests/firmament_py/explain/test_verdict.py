"""The verdict on waiting tasks."""

import pytest

from firmament_py.explain.verdict import Verdict
from firmament_py.service.answers.explain_reply import explain_reply
from protos.gen import flow_pb2
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    preempting_cluster,
)


def verdict(cluster: Cluster, uid: int) -> Verdict:
    return Verdict(explain_reply(cluster.state, uid, cluster.scheduler).verdict)


def test_numbers_are_those_of_the_contract():
    assert {each.name: each.value for each in Verdict} == {
        name: number for name, number in flow_pb2.ExplainReply.Verdict.items() if number
    }


@pytest.mark.parametrize(
    ("cpu", "expected"), [(3, Verdict.NO_ROOM_NOW), (5, Verdict.CAN_NEVER_FIT), (1, Verdict.FITS_BY_NOW)]
)
def test_of_single_tasks(cpu, expected):
    """A node of 4 cpu, of which 2 are used."""
    cluster = make_cluster(
        make_node("a", cpu=4), make_class(1, cpu=2), make_class(2, cpu=cpu), make_tasks([1], 1, on="a")
    )
    cluster.run()
    cluster.tell(make_tasks([2], 2))
    if expected is not Verdict.FITS_BY_NOW:
        cluster.run()
    assert verdict(cluster, 2) is expected


@pytest.mark.parametrize(
    ("minimum", "present", "expected"),
    [
        pytest.param(3, 3, Verdict.NO_ROOM_NOW, id="two fit now, three once the other has left"),
        pytest.param(4, 4, Verdict.CAN_NEVER_FIT, id="there are three places"),
        pytest.param(3, 2, Verdict.WAITS_FOR_MEMBERS, id="one does not exist"),
    ],
)
def test_of_gangs(minimum, present, expected):
    cluster = make_cluster(
        make_node("a", cpu=6),
        make_class(1, cpu=2),
        make_tasks([1], 1, on="a"),
        make_gang(5, minimum),
        make_tasks(range(10, 10 + present), 1, gang=5),
    )
    cluster.run()
    assert verdict(cluster, 10) is expected


def test_room_that_is_made():
    cluster = preempting_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=4),
        make_class(2, cpu=4, priority=9),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2),
    )
    cluster.run()
    assert verdict(cluster, 2) is Verdict.ROOM_IS_MADE


def test_what_is_reserved_for_others():
    """Capacity is reserved for the old, large task; the young one would fit beside what runs."""
    cluster = make_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=3),
        make_class(2, cpu=4),
        make_class(3, cpu=1),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2, created_us=NOW_US - 1000 * SECOND_US),
        make_tasks([3], 3),
    )
    cluster.run()
    assert verdict(cluster, 3) is Verdict.WAITS_ITS_TURN
    assert verdict(cluster, 2) is Verdict.NO_ROOM_NOW


@pytest.mark.parametrize(
    ("daemon", "expected"),
    [
        pytest.param({}, Verdict.CAN_NEVER_FIT, id="it stays"),
        pytest.param({"leaving": True}, Verdict.NO_ROOM_NOW, id="it leaves already"),
        pytest.param({"queue": 7}, Verdict.NO_ROOM_NOW, id="its queue may have more than its share"),
    ],
)
def test_beside_a_daemon(daemon, expected):
    """The task of 4 cpu fits once no daemon of 2 cpu is there."""
    cluster = make_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=2),
        make_class(2, cpu=4),
        make_tasks([1], 1, on="a", daemon=True, **daemon),
        make_tasks([2], 2),
    )
    assert verdict(cluster, 2) is expected


def test_a_daemon_of_lower_priority_may_be_evicted():
    cluster = preempting_cluster(
        make_node("a", cpu=4),
        make_class(1, cpu=2),
        make_class(2, cpu=4, priority=9),
        make_tasks([1], 1, on="a", daemon=True),
        make_tasks([2], 2),
    )
    assert verdict(cluster, 2) is Verdict.NO_ROOM_NOW
    cluster.run()
    assert verdict(cluster, 2) is Verdict.ROOM_IS_MADE, "it is what a round does"


def test_without_nodes_nothing_is_proved():
    cluster = make_cluster(make_class(1, cpu=2), make_tasks([1], 1))
    cluster.run()
    assert verdict(cluster, 1) is Verdict.NO_ROOM_NOW
