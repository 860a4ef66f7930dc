"""Events after which a waiting task can be placed make a round due at once, which places it."""

import pytest

from firmament_py.model.constraints import NO_PEERS, PeerDemand, PeerSelector, PeerTerm, Spread, Taint
from firmament_py.model.events import NamespaceObserved, NodeRemoved
from tests.builders import (
    NOW_US,
    ended,
    make_class,
    make_cluster,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
    tasks_like,
)

A = tasks_like(needs("app", "In", "a"))
RED = PeerSelector(frozenset(), (needs("team", "In", "red"),), (needs("app", "In", "a"),))
TAINTED = make_node("n", cpu=4, labels={"zone": "a"}, taints=[Taint("t", "", "NoSchedule")])
NODE, EMPTY = make_node("n", cpu=4, labels={"zone": "a"}), make_node("m", cpu=4, labels={"zone": "b"}, pods=0)


def near(selector=A):
    return PeerDemand(affinity=(PeerTerm(selector, "zone"),))


def apart(selector=A):
    return PeerDemand(anti_affinity=(PeerTerm(selector, "zone"),))


def there(label_set: int = 1, cls: int = 8, leaving: bool = False):
    return make_tasks([9], cls, on="n", label_set=label_set, leaving=leaving)


PLAIN, DISK = make_class(1, cpu=2), make_class(1, demand=selecting(needs("disk")))
EVEN = PeerDemand(spread=(Spread(A, "zone"),))


@pytest.mark.parametrize(
    ("cls", "events", "change"),
    [
        pytest.param(DISK, [NODE], make_node("n", labels={"disk": ""}), id="a-node-is-labelled"),
        pytest.param(PLAIN, [TAINTED], NODE, id="a-taint-goes"),
        pytest.param(PLAIN, [make_node("n", cpu=1)], NODE, id="a-node-grows"),
        pytest.param(PLAIN, [make_node("n", cpu=4, pods=0)], NODE, id="a-node-takes-more-tasks"),
        pytest.param(make_class(1, cpu=4), [NODE, make_class(7, cpu=1), there(cls=7)], removed(9), id="room-is-freed"),
        pytest.param(make_class(1, cpu=4), [NODE, make_class(7, cpu=1), there(cls=7)], ended(9), id="a-task-ends"),
        pytest.param(
            make_class(1, tokens=("x",)), [NODE, make_class(7, tokens=("x",)), there(cls=7)], removed(9), id="token"
        ),
        pytest.param(make_class(1, peers=apart()), [NODE, there()], removed(9), id="who-was-not-wanted-goes"),
        pytest.param(make_class(1, peers=apart()), [NODE, there()], there(2), id="who-was-not-wanted-is-relabelled"),
        pytest.param(
            make_class(1), [NODE, make_class(7, peers=apart()), there(2, 7)], removed(9), id="who-repels-goes"
        ),
        pytest.param(make_class(1), [NODE, make_class(7, peers=apart()), there(2, 7)], ended(9), id="who-repels-ends"),
        pytest.param(
            make_class(1, peers=apart()),
            [NODE, there()],
            make_node("n", cpu=4),
            id="the-zone-of-who-was-not-wanted-goes",
        ),
        pytest.param(
            make_class(1, peers=near(tasks_like(needs("app", "In", "b")))), [NODE], there(2), id="a-friend-comes"
        ),
        pytest.param(
            make_class(1, peers=near(tasks_like(needs("app", "In", "b")))),
            [NODE, there()],
            there(2),
            id="one-there-becomes-a-friend",
        ),
        pytest.param(
            make_class(1, peers=near(tasks_like(needs("app", "In", "b")))),
            [make_node("n"), there(2)],
            NODE,
            id="the-friend's-node-gets-a-zone",
        ),
        pytest.param(
            make_class(1, peers=near(RED)),
            [NODE, there(3)],
            NamespaceObserved("other", {"team": "red"}),
            id="namespace",
        ),
        pytest.param(
            make_class(1, peers=apart(RED)),
            [NODE, NamespaceObserved("other", {"team": "red"}), there(3)],
            NamespaceObserved("other", {}),
            id="a-namespace-is-no-longer-meant",
        ),
        pytest.param(make_class(1, peers=EVEN), [NODE, EMPTY, there()], there(leaving=True), id="one-is-leaving"),
        pytest.param(make_class(1, peers=EVEN), [NODE, EMPTY, there()], there(2), id="one-does-not-count-any-more"),
        pytest.param(
            make_class(1, peers=EVEN), [NODE, EMPTY, there()], NodeRemoved("id-m"), id="the-emptiest-zone-goes"
        ),
        pytest.param(
            make_class(1, peers=EVEN),
            [NODE, EMPTY, there()],
            make_tasks([10], 8, on="m", label_set=1),
            id="the-emptiest-zone-gets-one",
        ),
        pytest.param(
            make_class(1, peers=PeerDemand(spread=(Spread(A, "rack"),))),
            [NODE],
            make_node("n", labels={"rack": "r"}),
            id="the-label-comes",
        ),
    ],
)
def test_events_that_make_a_round_due(cls, events, change):
    cluster = make_cluster(
        *(
            make_class(8),
            cls,
            make_label_set(1, app="a"),
            make_label_set(2, app="b"),
            make_label_set(3, "other", app="a"),
        ),
        *(*events, make_tasks([1], 1, label_set=1)),
    )
    assert cluster.round() == {}
    assert not cluster.scheduler.due(NOW_US), "nothing has happened"
    cluster.tell(change)
    assert cluster.scheduler.due(NOW_US)
    assert cluster.round() == {1: "n"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(TAINTED, id="the-same-node-again"),
        pytest.param(NamespaceObserved("other", {}), id="the-same-namespace-again"),
        pytest.param(make_label_set(1, app="a"), id="the-same-label set-again"),
        pytest.param(make_tasks([9], 8, on="n", label_set=1), id="the-same-task-again"),
    ],
)
def test_events_that_make_no_round_due(change):
    cluster = make_cluster(
        *(make_class(8), make_class(1, cpu=2, peers=NO_PEERS), make_label_set(1, app="a"), TAINTED, there()),
        *(NamespaceObserved("other", {}), make_tasks([1], 1, label_set=1)),
    )
    assert cluster.round() == {}
    cluster.tell(change)
    assert not cluster.scheduler.due(NOW_US)
